"""Images changed at random, by the process's generator or by a seed."""

import contextlib

from headrace.framework import conversion, dtypes, name_scopes
from headrace.framework.support import signatures
from headrace.imaging import adjusting, flipping, shapes
from headrace.ops import array_ops, check_ops, reduction_ops
from headrace.ops.random import random_ops, stateless_random_ops


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


def _both(stateless_seed=signatures.parameter("seed"), scope=False):
    """Makes random_X(..., seed=None) and stateless_random_X(..., seed) of _X.

    The last parameter of _X draws: uniform(shape, low, high). With `scope` the
    operations lie in one of the function's name.
    """

    def decorate(function):
        name = f"random{function.__name__}"
        scoped = name_scopes.name_scope if scope else contextlib.nullcontext
        *own, _ = signatures.parameters_of(function)

        def made(name, doc, seed, draws):
            def call(seed, **given):
                with scoped(name):
                    return function(**given, uniform=draws(seed))

            like = signatures.named(name, doc, __name__)
            return signatures.function_of(like, [*own, seed], call)

        return (
            made(name, function.__doc__, signatures.parameter("seed", None), _drawn),
            made(f"stateless_{name}", _BY_SEED, stateless_seed, _stateless),
        )

    return decorate


_BY_SEED = "The same with a seed of two integers."


@_both()
def _brightness(image, max_delta, uniform):
    """adjust_brightness by a number in [-max_delta, max_delta)."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjusting.adjust_brightness(image, uniform([], -max_delta, max_delta))


@_both()
def _contrast(image, lower, upper, uniform):
    """adjust_contrast by a factor in [lower, upper)."""
    _both_ways(lower, upper)
    return adjusting.adjust_contrast(image, uniform([], lower, upper))


@_both()
def _hue(image, max_delta, uniform):
    """adjust_hue by a number in [-max_delta, max_delta)."""
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjusting.adjust_hue(image, uniform([], -max_delta, max_delta))


@_both(signatures.parameter("seed", None))
def _saturation(image, lower, upper, uniform):
    """adjust_saturation by a factor in [lower, upper)."""
    _both_ways(lower, upper)
    return adjusting.adjust_saturation(image, uniform([], lower, upper))


@_both(scope=True)
def _flip_left_right(image, uniform):
    """Each image mirrored along its width with probability 1/2."""
    return flipping.mirrored_at_random(image, 1, uniform)


@_both(scope=True)
def _flip_up_down(image, uniform):
    """Each image mirrored along its height with probability 1/2."""
    return flipping.mirrored_at_random(image, 0, uniform)


random_brightness, stateless_random_brightness = _brightness
random_contrast, stateless_random_contrast = _contrast
random_hue, stateless_random_hue = _hue
random_saturation, stateless_random_saturation = _saturation
random_flip_left_right, stateless_random_flip_left_right = _flip_left_right
random_flip_up_down, stateless_random_flip_up_down = _flip_up_down


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
