"""Dimensions moved to the end of a shape and back, of known and unknown ranks."""

from headrace._load import raw
from headrace.framework import conversion
from headrace.ops import array_ops


def with_axis_last(x, axis):
    """(`x` with dimension `axis` as the last one, the function that moves it back,
    under a name if it is given one).

    `axis`: an int of [-rank, rank); where the rank is not known, the run checks it.
    """
    rank = x.shape.rank
    if rank is not None:
        axis = axis % rank
        if axis == rank - 1:
            return x, lambda y, name=None: y
        order = [i for i in range(rank) if i != axis] + [axis]
        back = [order.index(i) for i in range(rank)]
    else:
        if axis == -1:
            return x, lambda y, name=None: y
        order = _order(array_ops.rank(x), axis)
        back = raw.InvertPermutation(order)
    return array_ops.transpose(x, order), _transposing(back)


def _transposing(order):
    return lambda y, name=None: array_ops.transpose(y, order, name=name)


def _order(rank, axis):
    """The permutation, of a rank that only the run knows."""
    axis = conversion.convert_to_tensor(axis, rank.dtype)
    # (A gather of the axis out of all refuses one that is out of range.)
    every = array_ops.range(rank)
    axis = array_ops.gather(array_ops.concat([every, every], 0), axis + rank)
    kept = array_ops.boolean_mask(every, array_ops.reshape(every != axis, [-1]))
    return array_ops.concat([kept, array_ops.reshape(axis, [1])], 0)
