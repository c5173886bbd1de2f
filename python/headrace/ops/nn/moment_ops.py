"""Means and variances in parts, and with weights."""

from headrace.framework import conversion, name_scopes
from headrace.framework.support import signatures
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.ops.nn import nn_ops


def sufficient_statistics(x, axes, shift=None, keepdims=False, name=None):
    """(count, sum, sum of squares, shift) of `x` over `axes`, less `shift`."""
    x = conversion.convert_to_tensor(x)
    axes = list(axes) if isinstance(axes, (list, tuple)) else [axes]
    with name_scopes.name_scope(name or "sufficient_statistics"):
        sizes = [x.shape[a] for a in axes] if x.shape.rank is not None else [None]
        if None in sizes:
            sizes = array_ops.gather(array_ops.shape(x), axes)
            count = math_ops.cast(reduction_ops.reduce_prod(sizes), x.dtype)
        else:
            total = 1
            for size in sizes:
                total *= size
            count = conversion.convert_to_tensor(total, x.dtype)
        sums, squares = x, elementwise_ops.square(x)
        if shift is not None:
            shift = conversion.convert_to_tensor(shift, x.dtype)
            sums = x - shift
            squares = elementwise_ops.squared_difference(x, shift)
        sums = reduction_ops.reduce_sum(sums, axes, keepdims)
        squares = reduction_ops.reduce_sum(squares, axes, keepdims)
        return count, sums, squares, shift


def normalize_moments(counts, mean_ss, variance_ss, shift, name=None):
    """(mean, variance) of what sufficient_statistics gives."""
    with name_scopes.name_scope(name or "normalize"):
        divisor = elementwise_ops.reciprocal(counts, name="divisor")
        shifted = mean_ss * divisor
        mean = shifted if shift is None else shifted + shift
        variance = variance_ss * divisor - elementwise_ops.square(shifted)
        return mean, variance


def weighted_moments(x, axes, frequency_weights, keepdims=False, name=None):
    """(mean, variance) of `x` over `axes`, each value as often as its weight."""
    x = conversion.convert_to_tensor(x)
    weights = conversion.convert_to_tensor(frequency_weights)
    with name_scopes.name_scope(name or "weighted_moments"):
        y = nn_ops.not_half(x)
        weights = math_ops.cast(weights, y.dtype)
        everywhere = weights + array_ops.zeros_like(y)
        total = reduction_ops.reduce_sum(everywhere, axes, True)
        mean = reduction_ops.reduce_sum(weights * y, axes, True) / total
        distance = elementwise_ops.squared_difference(y, mean)
        variance = reduction_ops.reduce_sum(weights * distance, axes, True) / total
        return tuple(
            nn_ops.without_axes(m, axes, keepdims, x.dtype) for m in (mean, variance)
        )


@signatures.having(
    "input, mean, variance, beta, gamma, variance_epsilon, scale_after_normalization, "
    "name=None"
)
def batch_norm_with_global_normalization(
    input, gamma, scale_after_normalization, **given
):
    """Batch normalization, scaled by `gamma` where asked for."""
    scale = gamma if scale_after_normalization else None
    return nn_ops.batch_normalization(input, scale=scale, **given)
