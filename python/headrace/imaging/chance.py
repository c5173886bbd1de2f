"""Images changed at random, by the process's generator or by a seed."""

from headrace.framework import conversion, dtypes, name_scopes
from headrace.imaging import adjusting, flipping, shapes
from headrace.ops import (
    array_ops,
    check_ops,
    random_ops,
    reduction_ops,
    stateless_random_ops,
)


def _drawn(seed):
    return lambda shape, low=0.0, high=1.0: random_ops.uniform(
        shape, low, high, seed=seed
    )


def _stateless(seed):
    return lambda shape, low=0.0, high=1.0: stateless_random_ops.uniform(
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
    with name_scopes.name_scope("random_flip_left_right"):
        return flipping.mirrored_at_random(image, 1, _drawn(seed))


def stateless_random_flip_left_right(image, seed):
    """The same with a seed of two integers."""
    with name_scopes.name_scope("stateless_random_flip_left_right"):
        return flipping.mirrored_at_random(image, 1, _stateless(seed))


def random_flip_up_down(image, seed=None):
    """Each image mirrored along its height with probability 1/2."""
    with name_scopes.name_scope("random_flip_up_down"):
        return flipping.mirrored_at_random(image, 0, _drawn(seed))


def stateless_random_flip_up_down(image, seed):
    """The same with a seed of two integers."""
    with name_scopes.name_scope("stateless_random_flip_up_down"):
        return flipping.mirrored_at_random(image, 0, _stateless(seed))


def _crop(value, size, draw):
    value = shapes.tensor(value)
    size = conversion.convert_to_tensor(size, dtypes.int32)
    shape = array_ops.shape(value)
    fits = check_ops.Assert(
        reduction_ops.reduce_all(shape >= size),
        ["Need value.shape >= size, got ", shape, size],
    )
    del fits
    limit = shape - size + 1
    return array_ops.slice(value, draw(array_ops.shape(shape)) % limit, size)


def random_crop(value, size, seed=None, name=None):
    """A part of a tensor, of a size, at a random place."""
    with name_scopes.name_scope(name or "random_crop"):
        return _crop(
            value,
            size,
            lambda shape: random_ops.uniform(
                shape, maxval=dtypes.int32.max, dtype=dtypes.int32, seed=seed
            ),
        )


def stateless_random_crop(value, size, seed, name=None):
    """The same with a seed of two integers."""
    with name_scopes.name_scope(name or "stateless_random_crop"):
        return _crop(
            value,
            size,
            lambda shape: stateless_random_ops.uniform(
                shape, seed, maxval=dtypes.int32.max, dtype=dtypes.int32
            ),
        )
