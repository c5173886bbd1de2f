"""Functions of tf.experimental.numpy that move elements and join arrays."""

import numpy as np

from headrace import _api as tf
from headrace.numpy_api import arrays
from headrace.numpy_api.arrays import as_array
from headrace.numpy_api.weak_tensor import WeakTensor, plain, weakened


def _weak_as(x, made):
    return weakened(made) if isinstance(x, WeakTensor) else made


def reshape(a, newshape, order="C"):
    """The elements in another shape; -1 is the size that is left. With order "F" the
    first index changes fastest. ValueError for other orders."""
    if order not in ("C", "F"):
        raise ValueError(f"Unsupported order argument {order}")
    a = as_array(a)
    if isinstance(newshape, int):
        newshape = [newshape]
    if order == "C":
        return tf.reshape(a, newshape)
    turned = tf.reshape(
        tf.transpose(a), tf.reverse(tf.convert_to_tensor(newshape), [0])
    )
    return tf.transpose(turned)


def ravel(a):
    """The elements in one dimension."""
    return arrays.flat(a)


def flatten(a, order="C"):
    """The elements in one dimension; with order "F" the first index changes fastest.
    ValueError for orders that NumPy does not have."""
    orders = {"C": False, "A": False, "K": False, "F": True}
    if order not in orders:
        raise ValueError(
            f"order must be one of 'C', 'F', 'A', or 'K'. Received: order={order}"
        )
    return arrays.flat(tf.transpose(as_array(a)) if orders[order] else a)


def squeeze(a, axis=None):
    """Without dimensions of size 1: all, or those of `axis`, a number or several."""
    return tf.squeeze(as_array(a), axis)


def transpose(a, axes=None):
    """With the dimensions in the order of `axes`, or the other way round."""
    return tf.transpose(as_array(a), perm=axes)


def swapaxes(a, axis1, axis2):
    """With two dimensions in each other's place; IndexError where there is none."""
    a = as_array(a)
    order = list(range(arrays.static_rank(a)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return tf.transpose(a, order)


def moveaxis(a, source, destination):
    """With dimensions moved to other places; the others keep their order.

    ValueError where the two are not as many, or there is no such dimension.
    """
    a = as_array(a)
    source, destination = np.atleast_1d(source), np.atleast_1d(destination)
    if len(source) != len(destination):
        raise ValueError("The lengths of source and destination must equal")
    rank = arrays.static_rank(a)
    of = [arrays.axis_of(int(i), rank, "source") for i in source]
    to = [arrays.axis_of(int(i), rank, "destination") for i in destination]
    order = [i for i in range(rank) if i not in of]
    for place, axis in sorted(zip(to, of)):
        order.insert(place, axis)
    return tf.transpose(a, order)


def expand_dims(a, axis):
    """With a new dimension of size 1 at `axis`."""
    return tf.expand_dims(as_array(a), axis)


def _at_least(rank, places):
    """A function that gives arrays of rank 1, 2, ... below `rank` new dimensions, before
    and behind their own."""

    def make(*arys):
        made = [_with_dims(as_array(x)) for x in arys]
        return made[0] if len(made) == 1 else made

    def _with_dims(x):
        own = arrays.static_rank(x)
        if own >= rank:
            return x
        before, behind = places[own]
        return tf.reshape(x, [1] * before + arrays.sizes_of(x) + [1] * behind)

    return make


_ONE, _TWO = _at_least(1, [(1, 0)]), _at_least(2, [(2, 0), (1, 0)])
_THREE = _at_least(3, [(3, 0), (1, 1), (0, 1)])


def atleast_1d(*arys):
    """Arrays with at least one dimension: one, or a list of several."""
    return _ONE(*arys)


def atleast_2d(*arys):
    """Arrays with at least two dimensions: one, or a list of several."""
    return _TWO(*arys)


def atleast_3d(*arys):
    """Arrays with at least three dimensions: one, or a list of several."""
    return _THREE(*arys)


def broadcast_to(array, shape):
    """The array, broadcast to a shape."""
    sizes = [shape] if isinstance(shape, int) else shape
    return tf.broadcast_to(plain(as_array(array)), sizes)


def broadcast_arrays(*args, **kwargs):
    """The arrays, broadcast to the shape that they have together: a list.

    ValueError for a `subok` of True.
    """
    if kwargs.get("subok", False):
        raise ValueError("subok=True is not supported.")
    made = [as_array(x) for x in args]
    if len(made) < 2:
        return made
    made = [plain(x) for x in made]
    sizes = tf.shape(made[0])
    for x in made[1:]:
        sizes = tf.broadcast_dynamic_shape(sizes, tf.shape(x))
    return [tf.broadcast_to(x, sizes) for x in made]


# --- Joining and splitting.


def _several(arys):
    """The arrays of one dtype; those that an array's first dimension holds, too."""
    if tf.is_tensor(arys):
        return tf.unstack(plain(as_array(arys)))
    return arrays.plain_arrays(*arys)


def concatenate(arys, axis=0):
    """The arrays joined along a dimension, in the dtype that they have together; with an
    axis of None each in one dimension. ValueError where there is none."""
    if not isinstance(arys, (list, tuple)):
        arys = [arys]
    if not arys:
        raise ValueError(
            f"Need at least one array to concatenate. Received empty input: arys={arys}"
        )
    made = arrays.plain_arrays(*arys)
    if axis is None:
        return tf.concat([tf.reshape(x, [-1]) for x in made], 0)
    return made[0] if len(made) == 1 else tf.concat(made, axis)


def stack(arrays, axis=0):
    """The arrays joined along a new dimension, in the dtype that they have together."""
    if tf.is_tensor(arrays):
        made = as_array(arrays)
        return made if axis == 0 else moveaxis(made, 0, axis)
    return tf.stack(_several(arrays), axis)


def hstack(tup):
    """The arrays joined along the second dimension, vectors along their only one."""
    made = [_ONE(x) for x in _several(tup)]
    return tf.concat(made, 0 if made[0].shape.rank == 1 else 1)


def vstack(tup):
    """The arrays joined along the first of at least two dimensions."""
    return tf.concat([_TWO(x) for x in _several(tup)], 0)


def dstack(tup):
    """The arrays joined along the last of at least three dimensions."""
    return tf.concat([_THREE(x) for x in _several(tup)], 2)


def append(arr, values, axis=None):
    """The values behind the array, along a dimension or both in one."""
    if axis is None:
        arr, values = arrays.flat(arr), arrays.flat(values)
    return concatenate([arr, values], 0 if axis is None else axis)


def split(ary, indices_or_sections, axis=0):
    """Parts of an array along a dimension: as many as a number says, of one size, or
    those between the indices of a list."""
    ary = plain(as_array(ary))
    if isinstance(indices_or_sections, int) or tf.is_tensor(indices_or_sections):
        return tf.split(ary, indices_or_sections, axis)
    size = ary.shape[axis]
    ends = [*indices_or_sections, size]
    if size is None:
        raise ValueError("The size of the dimension that is split must be known.")
    parts, begin = [], 0
    for end in ends:
        keys = [slice(None)] * arrays.static_rank(ary)
        keys[axis] = slice(begin, end)
        parts.append(ary[tuple(keys)])
        begin = end
    return parts


def _split_along(ary, indices_or_sections, axis):
    ary = plain(as_array(ary))
    if arrays.static_rank(ary) <= axis:
        raise IndexError(
            f"An array of rank {ary.shape.rank} cannot be split along dimension {axis}."
        )
    return split(ary, indices_or_sections, axis)


def vsplit(ary, indices_or_sections):
    """split along the first dimension."""
    return _split_along(ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections):
    """split along the second dimension, of a vector along its only one."""
    ary = as_array(ary)
    return _split_along(ary, indices_or_sections, 0 if ary.shape.rank == 1 else 1)


def dsplit(ary, indices_or_sections):
    """split along the third dimension."""
    return _split_along(ary, indices_or_sections, 2)


# --- Repeating and moving.


def tile(a, reps):
    """The array repeated: `reps` times, or as many times along each dimension."""
    a, reps = plain(as_array(a)), plain(as_array(reps, tf.int32))
    reps = tf.reshape(reps, [-1])
    count = reps.shape[0]
    if count is None:
        raise ValueError("The number of repeats must be known.")
    missing = arrays.static_rank(a) - count
    a = tf.reshape(a, tf.concat([[1] * -missing, tf.shape(a)], 0))
    return tf.tile(a, tf.concat([[1] * missing, reps], 0))


def repeat(a, repeats, axis=None):
    """Each element, or each row along a dimension, several times."""
    a = plain(as_array(a))
    repeats = plain(as_array(repeats))
    if axis is None:
        a, axis = tf.reshape(a, [-1]), 0
    return tf.repeat(a, repeats, axis)


def roll(a, shift, axis=None):
    """Elements shifted along dimensions, those that leave come back; without an axis as
    if there were only one."""
    a = plain(as_array(a))
    if axis is not None:
        return tf.roll(a, shift, axis)
    return tf.reshape(tf.roll(tf.reshape(a, [-1]), shift, 0), tf.shape(a))


def flip(m, axis=None):
    """Elements in the other order along a dimension, several, or all."""
    m = as_array(m)
    rank = arrays.static_rank(m)
    if axis is None:
        axis = list(range(rank))
    axes = [axis] if isinstance(axis, int) else list(axis)
    return _weak_as(m, tf.reverse(plain(m), axes))


def fliplr(m):
    """Elements in the other order along the second dimension."""
    return flip(m, 1)


def flipud(m):
    """Elements in the other order along the first dimension."""
    return flip(m, 0)


def rot90(m, k=1, axes=(0, 1)):
    """The array turned k times by 90 degrees, from the first of two axes to the second.

    ValueError for axes that are not two of the array's.
    """
    m = as_array(m)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    rank = arrays.static_rank(m)
    first, second = (arrays.axis_of(i, rank, "axes") for i in axes)
    turns = k % 4
    if turns == 0:
        return m
    if turns == 2:
        return flip(flip(m, first), second)
    if turns == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


def pad(array, pad_width, mode, **kwargs):
    """The array with elements before and behind, as `pad_width` has it for each
    dimension: (before, behind), or one number or pair for all.

    Modes are "constant", with `constant_values`, "reflect" and "symmetric"; ValueError
    for others.
    """
    mode = mode.lower()
    if mode not in ("constant", "reflect", "symmetric"):
        raise ValueError("Unsupported padding mode: " + mode)
    array = plain(as_array(array))
    widths = as_array(pad_width, tf.int32)
    if widths.shape.rank is not None and widths.shape.rank < 2:
        widths = tf.broadcast_to(widths, [arrays.static_rank(array), 2])
    value = kwargs.get("constant_values", 0)
    return tf.pad(array, widths, mode, constant_values=tf.cast(value, array.dtype))
