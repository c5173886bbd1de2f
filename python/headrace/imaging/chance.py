"""Images changed at random, by the process's generator or by a seed."""

import headrace as tf
from headrace.imaging import adjusting, flipping, shapes


def _drawn(seed):
    return lambda shape, low=0.0, high=1.0: tf.random.uniform(
        shape, low, high, seed=seed
    )


def _stateless(seed):
    return lambda shape, low=0.0, high=1.0: tf.random.stateless_uniform(
        shape, seed, low, high
    )


def _both_ways(low, high):
    if high <= low:
        raise ValueError("upper must be > lower.")
    if low < 0:
        raise ValueError("lower must be non-negative.")


def _brightness(image, max_delta, uniform):
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjusting.adjust_brightness(image, uniform([], -max_delta, max_delta))


def _contrast(image, lower, upper, uniform):
    _both_ways(lower, upper)
    return adjusting.adjust_contrast(image, uniform([], lower, upper))


def _hue(image, max_delta, uniform):
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjusting.adjust_hue(image, uniform([], -max_delta, max_delta))


def _saturation(image, lower, upper, uniform):
    _both_ways(lower, upper)
    return adjusting.adjust_saturation(image, uniform([], lower, upper))


def random_brightness(image, max_delta, seed=None):
    """adjust_brightness by a number in [-max_delta, max_delta)."""
    return _brightness(image, max_delta, _drawn(seed))


def stateless_random_brightness(image, max_delta, seed):
    """The same with a seed of two integers."""
    return _brightness(image, max_delta, _stateless(seed))


def random_contrast(image, lower, upper, seed=None):
    """adjust_contrast by a factor in [lower, upper)."""
    return _contrast(image, lower, upper, _drawn(seed))


def stateless_random_contrast(image, lower, upper, seed):
    """The same with a seed of two integers."""
    return _contrast(image, lower, upper, _stateless(seed))


def random_hue(image, max_delta, seed=None):
    """adjust_hue by a number in [-max_delta, max_delta)."""
    return _hue(image, max_delta, _drawn(seed))


def stateless_random_hue(image, max_delta, seed):
    """The same with a seed of two integers."""
    return _hue(image, max_delta, _stateless(seed))


def random_saturation(image, lower, upper, seed=None):
    """adjust_saturation by a factor in [lower, upper)."""
    return _saturation(image, lower, upper, _drawn(seed))


def stateless_random_saturation(image, lower, upper, seed=None):
    """The same with a seed of two integers."""
    return _saturation(image, lower, upper, _stateless(seed))


def random_flip_left_right(image, seed=None):
    """Each image mirrored along its width with probability 1/2."""
    with tf.name_scope("random_flip_left_right"):
        return flipping.mirrored_at_random(image, 1, _drawn(seed))


def stateless_random_flip_left_right(image, seed):
    """The same with a seed of two integers."""
    with tf.name_scope("stateless_random_flip_left_right"):
        return flipping.mirrored_at_random(image, 1, _stateless(seed))


def random_flip_up_down(image, seed=None):
    """Each image mirrored along its height with probability 1/2."""
    with tf.name_scope("random_flip_up_down"):
        return flipping.mirrored_at_random(image, 0, _drawn(seed))


def stateless_random_flip_up_down(image, seed):
    """The same with a seed of two integers."""
    with tf.name_scope("stateless_random_flip_up_down"):
        return flipping.mirrored_at_random(image, 0, _stateless(seed))


def _crop(value, size, draw):
    value = shapes.tensor(value)
    size = tf.convert_to_tensor(size, tf.int32)
    shape = tf.shape(value)
    fits = tf.debugging.Assert(
        tf.reduce_all(shape >= size),
        ["Need value.shape >= size, got ", shape, size],
    )
    del fits
    limit = shape - size + 1
    return tf.slice(value, draw(tf.shape(shape)) % limit, size)


def random_crop(value, size, seed=None, name=None):
    """A part of a tensor, of a size, at a random place."""
    with tf.name_scope(name or "random_crop"):
        return _crop(
            value,
            size,
            lambda shape: tf.random.uniform(
                shape, maxval=tf.int32.max, dtype=tf.int32, seed=seed
            ),
        )


def stateless_random_crop(value, size, seed, name=None):
    """The same with a seed of two integers."""
    with tf.name_scope(name or "stateless_random_crop"):
        return _crop(
            value,
            size,
            lambda shape: tf.random.stateless_uniform(
                shape, seed, maxval=tf.int32.max, dtype=tf.int32
            ),
        )
