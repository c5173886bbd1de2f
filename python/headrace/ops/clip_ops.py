"""Clipping values and norms."""

from headrace._load import raw
from headrace.framework import conversion
from headrace.framework.indexed_slices import IndexedSlices
from headrace.framework.name_scopes import composite, graph_scope
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops


@composite("clip_by_value", ends=True)
def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    """Values below the minimum or above the maximum are set to it."""
    values = (
        t.values if isinstance(t, IndexedSlices) else conversion.convert_to_tensor(t)
    )
    low = elementwise_ops.minimum(values, clip_value_max)
    values.shape.assert_is_compatible_with(low.shape)
    out = elementwise_ops.maximum(low, clip_value_min, name)
    values.shape.assert_is_compatible_with(out.shape)
    if isinstance(t, IndexedSlices):
        return IndexedSlices(out, t.indices, t.dense_shape)
    return out


@composite("clip_by_norm", ends=True)
def clip_by_norm(t, clip_norm, axes=None, name=None):
    """Scaled down where the L2 norm is above `clip_norm`, of any dtype; one below 0
    counts as 0."""
    values = (
        t.values if isinstance(t, IndexedSlices) else conversion.convert_to_tensor(t)
    )
    squares = reduction_ops.reduce_sum(values * values, axes, keepdims=True)
    positive = squares > 0
    safe = array_ops.where(positive, squares, array_ops.ones_like(squares))
    norm = array_ops.where(positive, elementwise_ops.sqrt(safe), squares)
    clip_norm = math_ops.cast(clip_norm, values.dtype)
    clip_norm = elementwise_ops.maximum(clip_norm, array_ops.zeros_like(clip_norm))
    out = values * clip_norm / elementwise_ops.maximum(norm, clip_norm)
    out = array_ops.identity(out, name=name)
    if isinstance(t, IndexedSlices):
        return IndexedSlices(out, t.indices, t.dense_shape)
    return out


@composite("global_norm")
def global_norm(t_list, name=None):
    """The L2 norm of all the tensors' elements together."""
    if not isinstance(t_list, (list, tuple)):
        raise TypeError(
            f"`t_list` should be a sequence of tensors. Received {type(t_list)}."
        )
    halves = []
    for t in t_list:
        if t is None:
            continue
        values = t.values if isinstance(t, IndexedSlices) else t
        halves.append(raw.L2Loss(values))
    total = reduction_ops.reduce_sum(array_ops.stack(halves))
    two = conversion.to_tensor(2.0, total.dtype)
    return elementwise_ops.sqrt(total * two, "global_norm")


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    """All scaled down together where their global norm is above `clip_norm`."""
    if not isinstance(t_list, (list, tuple)):
        raise TypeError(
            f"`t_list` should be a sequence of tensors. Received {type(t_list)}."
        )
    norm = global_norm(t_list) if use_norm is None else use_norm
    with graph_scope(name, "clip_by_global_norm"):
        return _scaled_to(clip_norm, norm, t_list), norm


def _scaled_to(clip_norm, norm, t_list):
    norm = conversion.convert_to_tensor(norm)
    one = conversion.to_tensor(1.0, norm.dtype)
    limit = conversion.to_tensor(clip_norm, norm.dtype)
    scale_for_finite = limit * elementwise_ops.minimum(one / norm, one / limit)
    scale = scale_for_finite + (norm - norm)  # NaN where the norm is not finite

    def scaled(values):
        values = conversion.convert_to_tensor(values)
        return values * math_ops.cast(scale, values.dtype)

    out = []
    for t in t_list:
        if t is None:
            out.append(None)
        elif isinstance(t, IndexedSlices):
            out.append(IndexedSlices(scaled(t.values), t.indices, t.dense_shape))
        else:
            out.append(scaled(t))
    return out
