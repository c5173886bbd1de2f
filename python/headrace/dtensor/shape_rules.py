"""How operations that move elements hand layouts on; see rules.py."""

import math

from headrace.dtensor.layout import UNSHARDED
from headrace.dtensor.rules import RULES, broadcast, rule, whole

__all__ = ["RULES"]


def _where_whole(call, i=0):
    """The specs of an operand, of those dimensions that the result has whole."""
    sizes = zip(call.specs[0], call.shape(0), call.out(i))
    return tuple(s if n == m else UNSHARDED for s, n, m in sizes)


@rule("Slice Pad PadV2 MirrorPad Tile")
def _resized(call):
    return [_where_whole(call)]


@rule("StridedSlice")
def _strided(call):
    if call.attr("new_axis_mask") or call.attr("ellipsis_mask"):
        return [_indexed(call)]
    # Also where dimensions go: those that are left take the specs in order.
    found = _where_whole(call)
    return [(*found, *whole(len(call.out()) - len(found)))]


def _indexed(call):
    """With new dimensions or an ellipsis: each part of the key takes a dimension, makes
    one, or stands for those that no other takes."""
    new, shrink = call.attr("new_axis_mask"), call.attr("shrink_axis_mask")
    ellipsis, parts = call.attr("ellipsis_mask"), call.op.inputs[1].shape[0]
    specs, sizes, out = call.specs[0], call.shape(0), call.out()
    if parts is None:
        return whole(len(out))
    taken = sum(not (new >> i | ellipsis >> i) & 1 for i in range(parts))
    found, at = [], 0

    def take(n):
        nonlocal at
        for _ in range(n):
            same = len(found) < len(out) and sizes[at] == out[len(found)]
            found.append(specs[at] if same else UNSHARDED)
            at += 1

    for i in range(parts):
        if ellipsis >> i & 1:
            take(len(specs) - taken)
        elif new >> i & 1:
            found.append(UNSHARDED)
        elif shrink >> i & 1:
            at += 1
        else:
            take(1)
    take(len(specs) - at)
    return tuple(found)


@rule("Transpose ConjugateTranspose")
def _transposed(call):
    order = call.value(1)
    if order is None:
        return [whole(len(call.specs[0]))]
    return [tuple(call.specs[0][i] for i in order)]


@rule("BroadcastTo")
def _broadcast(call):
    rank = len(call.out())
    return [broadcast([call.shape(0)], call.specs[:1], rank)]


@rule("Reshape")
def _reshaped(call):
    before, after, specs = call.shape(0), call.out(), call.specs[0]
    if before is None or after is None or None in before or None in after:
        return [whole(len(after or ()))]
    return [reshaped(before, after, specs)]


def reshaped(before, after, specs):
    """The specs behind a change of shape: dimensions that are divided and joined again
    have those of the first, on the first."""
    found = list(whole(len(after)))
    if 0 in before or 0 in after:
        return tuple(found)
    old = [i for i, n in enumerate(before) if n != 1]
    new = [i for i, n in enumerate(after) if n != 1]
    while old and new:
        found[new[0]] = specs[old[0]]
        left, right = [old.pop(0)], [new.pop(0)]
        while True:
            m = math.prod(before[i] for i in left)
            n = math.prod(after[i] for i in right)
            if m == n or not (old if m < n else new):
                break
            left.append(old.pop(0)) if m < n else right.append(new.pop(0))
    return tuple(found)


@rule("ExpandDims")
def _expanded(call):
    axis, rank = call.value(1), len(call.out())
    if axis is None:
        return [whole(rank)]
    found = list(call.specs[0])
    found.insert(axis[0] % rank, UNSHARDED)
    return [tuple(found)]


@rule("Squeeze")
def _squeezed(call):
    sizes, rank = call.shape(0), len(call.specs[0])
    axes = {a % rank for a in call.attr("squeeze_dims")} if rank else set()
    axes = axes or {i for i, n in enumerate(sizes) if n == 1}
    return [tuple(s for i, s in enumerate(call.specs[0]) if i not in axes)]


@rule("ConcatV2")
def _joined(call):
    axis, rank = call.value(len(call.specs) - 1), len(call.out())
    if axis is None:
        return [whole(rank)]
    shapes = [call.shape(i) for i in range(len(call.specs) - 1)]
    found = list(broadcast(shapes, call.specs[:-1], rank))
    found[axis[0]] = UNSHARDED
    return [tuple(found)]


@rule("Pack")
def _stacked(call):
    rank = len(call.out())
    axis = call.attr("axis") % rank
    shapes = [call.shape(i) for i in range(len(call.specs))]
    found = list(broadcast(shapes, call.specs, rank - 1))
    if found:  # upstream lets go of the last one
        found[-1] = UNSHARDED
    found.insert(axis, UNSHARDED)
    return [tuple(found)]


@rule("Unpack")
def _unstacked(call):
    rank = len(call.specs[0])
    axis = call.attr("axis") % rank
    kept = tuple(s for i, s in enumerate(call.specs[0]) if i != axis)
    return [kept] * len(call.op.outputs)


@rule("Split SplitV")
def _split(call):
    data, axis = (1, 0) if call.op.type == "Split" else (0, 2)
    axis, found = call.value(axis), list(call.specs[data])
    if axis is None:
        found = list(whole(len(found)))
    else:
        found[axis[0]] = UNSHARDED
    return [tuple(found)] * len(call.op.outputs)


@rule("GatherV2")
def _gathered(call):
    axis, params = call.value(2), call.specs[0]
    if axis is None or call.attr("batch_dims"):
        return [whole(len(call.out()))]
    axis = axis[0] % len(params)
    return [_picked(params[:axis], call.specs[1], params[axis + 1 :])]


def _picked(before, indices, behind):
    """Indices are whole where what they pick is divided so."""
    used = {*before, *behind}
    indices = [UNSHARDED if s in used else s for s in indices]
    return (*before, *indices, *behind)


@rule("Gather ResourceGather")
def _rows(call):
    return [_picked((), call.specs[1], call.specs[0][1:])]


@rule("GatherNd ResourceGatherNd")
def _places(call):
    depth = call.shape(1)[-1]
    if depth is None:
        return [whole(len(call.out()))]
    return [_picked((), call.specs[1][:-1], call.specs[0][depth:])]


@rule("OneHot")
def _one_hot(call):
    found, rank = list(call.specs[0]), len(call.out())
    found.insert(call.attr("axis") % rank, UNSHARDED)
    return [tuple(found)]
