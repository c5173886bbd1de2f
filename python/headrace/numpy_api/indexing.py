"""Elements of arrays by indices and conditions, in NumPy's ways."""

import functools

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework import dimension
from headrace.numpy_api import arrays, promotion, shaping
from headrace.numpy_api.arrays import as_array
from headrace.numpy_api.weak_tensor import WeakTensor, plain, weakened

_ONLY = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer "
    "or boolean arrays are valid indices, got "
)
_SCALARS = (int, np.integer, dimension.Dimension, type(None), type(Ellipsis))


def getitem(x, key, native):
    """x[key] by NumPy's rules; `native(x, key)` is what plain tensors do.

    Integers and slices choose as ever, arrays of integers along their dimensions
    together, vectors of booleans like the places of their true elements. IndexError for
    keys of other types, ValueError for a boolean without dimensions.
    """
    if isinstance(key, int) and not isinstance(key, bool):
        return native(x, key)
    if _is_mask(key):
        return tf.boolean_mask(x, plain(as_array(key)))
    if isinstance(key, list) and any(_is_part(k) for k in key):
        key = tuple(key)
    keys = [_as_key(k) for k in (key if isinstance(key, tuple) else (key,))]
    if not any(map(_is_array, keys)):
        return native(x, tuple(keys))
    return _gathered(x, _spread(keys), native)


def _is_part(key):
    return key is None or key is Ellipsis or isinstance(key, slice)


def _is_mask(key):
    if isinstance(key, (bool, np.bool_)):
        raise ValueError("mask cannot be scalar.")
    dtype = getattr(key, "dtype", None)
    return dtype is not None and not isinstance(key, tuple) and dtype == tf.bool


def _check_slice(key):
    if isinstance(key, slice):
        for part in (key.start, key.stop, key.step):
            if isinstance(part, (float, str, complex)):
                raise IndexError(f"{_ONLY}{part!r}")


def _bound(x):
    """A bound of a slice as what tensors take."""
    if isinstance(x, _headrace.Tensor) and x.dtype not in (tf.int32, tf.int64):
        return tf.cast(x, tf.int64) if x.dtype.is_integer else x
    return x


def _as_key(key):
    """A slice, an integer, None, an ellipsis, a tensor without dimensions, or an array of
    integers."""
    if isinstance(key, slice):
        _check_slice(key)
        return slice(*map(_bound, (key.start, key.stop, key.step)))
    if isinstance(key, _SCALARS) and not isinstance(key, bool):
        return key
    try:
        made = plain(as_array(key))
    except ValueError:
        raise IndexError(f"{_ONLY}{key!r}") from None
    if made.dtype == tf.bool and made.shape.rank != 0:
        return made
    if not made.dtype.is_integer:
        raise IndexError(f"{_ONLY}{key!r}")
    return made if made.dtype in (tf.int32, tf.int64) else tf.cast(made, tf.int64)


def _is_array(key):
    return isinstance(key, _headrace.Tensor) and key.shape.rank != 0


def _spread(keys):
    """The keys, masks as the places of what is true in them."""
    found = []
    for key in keys:
        if _is_array(key) and key.dtype == tf.bool:
            found += tf.unstack(tf.where(key), num=key.shape.rank, axis=1)
        else:
            found.append(key)
    if sum(key is Ellipsis for key in found) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    return found


def _gathered(x, keys, native):
    """x[keys] where some of the keys are arrays."""
    plain_keys = tuple(slice(None) if _is_array(k) else k for k in keys)
    if not all(isinstance(k, slice) and k == slice(None) for k in plain_keys):
        x = native(x, plain_keys)
    # The dimensions of what the plain keys leave that the arrays choose from: behind an
    # ellipsis they are counted from the last.
    left = [k for k in keys if _leaves_dimension(k)]
    at = next((i for i, k in enumerate(left) if k is Ellipsis), len(left))
    axes = [
        i - (len(left) if i > at else 0) for i, k in enumerate(left) if _is_array(k)
    ]
    if x.shape.rank is not None:
        axes = [axis % x.shape.rank for axis in axes]
    sizes = tf.shape(x)
    indices = [k for k in keys if _is_array(k)]
    indices = [_from_front(k, sizes[axis]) for k, axis in zip(indices, axes)]
    if len(indices) == 1:
        return tf.gather(x, indices[0], axis=axes[0])
    return _together(x, indices, axes)


def _leaves_dimension(key):
    return key is None or key is Ellipsis or isinstance(key, slice) or _is_array(key)


def _from_front(index, size):
    return tf.where(index < 0, index + tf.cast(size, index.dtype), index)


def _together(x, indices, axes):
    """The elements that several arrays of indices choose together."""
    indices = arrays.numpy_arrays(*indices)
    indices = tf.stack(shaping.broadcast_arrays(*indices), -1)
    first = axes[0]
    if first < 0:
        first += tf.rank(x)
    chosen = tf.gather_nd(_with_first(x, axes), indices)
    if axes[0] == 0 or axes != list(range(axes[0], axes[0] + len(axes))):
        return chosen  # arrays that are apart: their dimensions come first
    count = (
        tf.rank(indices) - 1 if indices.shape.rank is None else indices.shape.rank - 1
    )
    return _with_first(chosen, tf.range(count, count + first))


def _with_first(x, axes):
    """The array with some dimensions before the others, which keep their order."""
    static = tf.get_static_value(axes) if tf.is_tensor(axes) else axes
    if x.shape.rank is not None and static is not None:
        first = [int(i) for i in static]
        rest = [i for i in range(x.shape.rank) if i not in first]
        return tf.transpose(x, first + rest)
    rank = tf.rank(x)
    axes = _from_front(tf.convert_to_tensor(axes), rank)
    rest = tf.sets.difference(tf.range(rank)[None], axes[None])
    return tf.transpose(x, tf.concat([axes, rest.values], 0))


# --- Arrays with other elements in some places.


def _with_index(update):
    """A function of (array, key, values): the array with other elements at the key."""

    def call(a, slice_spec, updates):
        a = plain(as_array(a))
        own, dtype = a.dtype, promotion.joined(a, updates)[0]
        a, updates = tf.cast(a, dtype), plain(as_array(updates, dtype))
        places = tf.reshape(tf.range(tf.size(a)), tf.shape(a))
        places = getitem(places, slice_spec, type(places).__getitem__)
        updates = tf.reshape(tf.broadcast_to(updates, tf.shape(places)), [-1])
        rows = tf.reshape(places, [-1, 1])
        made = update(tf.reshape(a, [-1]), rows, updates)
        return tf.cast(tf.reshape(made, tf.shape(a)), own)

    return call


with_index_update = _with_index(tf.tensor_scatter_nd_update)
with_index_add = _with_index(tf.tensor_scatter_nd_add)
with_index_min = _with_index(tf.tensor_scatter_nd_min)
with_index_max = _with_index(tf.tensor_scatter_nd_max)


# --- The functions.


def take(a, indices, axis=None, out=None, mode="clip"):
    """The elements at indices along a dimension, or of all as one.

    Indices that are too large or negative are the nearest ones, with mode "wrap" those
    that are counted round. ValueError for other modes and for `out`.
    """
    if out is not None:
        raise ValueError("out argument is not supported in take.")
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"Invalid value for argument `mode`. Received: mode={mode}")
    if mode == "raise":
        raise ValueError("The 'raise' mode to take is not supported.")
    a, indices = plain(as_array(a)), plain(as_array(indices))
    indices = (
        indices if indices.dtype in (tf.int32, tf.int64) else tf.cast(indices, tf.int64)
    )
    if axis is None:
        a, axis = tf.reshape(a, [-1]), 0
    size = tf.cast(tf.shape(a)[axis], indices.dtype)
    if mode == "clip":
        indices = tf.clip_by_value(indices, 0, size - 1)
    else:
        indices = tf.math.floormod(indices, size)
    return tf.gather(a, indices, axis=axis)


def take_along_axis(arr, indices, axis):
    """Of each row along a dimension the elements at the indices in the same row; the
    other dimensions are broadcast. InvalidArgumentError for indices that are too large."""
    arr, indices = plain(as_array(arr)), plain(as_array(indices))
    if axis is None:
        return take_along_axis(tf.reshape(arr, [-1]), indices, 0)
    rank = arrays.static_rank(arr)
    if not -rank <= axis < rank:
        raise tf.errors.InvalidArgumentError(
            None, None, f"There is no dimension {axis} in an array of rank {rank}."
        )
    arr, indices = shaping.moveaxis(arr, axis, -1), shaping.moveaxis(indices, axis, -1)
    rows = tf.broadcast_dynamic_shape(tf.shape(arr)[:-1], tf.shape(indices)[:-1])
    arr, indices = (
        tf.broadcast_to(x, tf.concat([rows, tf.shape(x)[-1:]], 0))
        for x in (arr, indices)
    )
    indices = _from_front(indices, tf.shape(arr)[-1])
    made = tf.gather(arr, indices, batch_dims=rank - 1, axis=-1)
    return shaping.moveaxis(made, -1, axis)


def compress(condition, a, axis=None):
    """The elements along a dimension, or of all as one, for which a vector of conditions
    is true; those beyond its end are left out. ValueError for other conditions."""
    condition, a = as_array(condition, tf.bool), plain(as_array(a))
    if condition.shape.rank != 1:
        raise ValueError("condition must be a 1-d array.")
    if axis is None:
        a, axis = tf.reshape(a, [-1]), 0
    axis = arrays.axis_of(axis, arrays.static_rank(a))
    count, size = condition.shape[0], a.shape[axis]
    if None not in (count, size) and count < size:
        a = a[(*[slice(None)] * axis, slice(0, count))]
    return tf.boolean_mask(a, condition, axis=axis)


def nonzero(a):
    """The places of what is not 0: a list of a vector for each dimension."""
    a = plain(shaping.atleast_1d(a))
    if a.dtype != tf.bool:
        a = tf.not_equal(a, tf.zeros([], a.dtype))
    return tf.unstack(tf.where(a), arrays.static_rank(a), axis=1)


def where(condition, x=None, y=None):
    """x where a condition is true, else y; without both the places where it is.

    ValueError where one of them is missing.
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("Both x and y must be ndarrays, or both must be None.")
    return tf.where(as_array(condition, tf.bool), *arrays.plain_arrays(x, y))


def select(condlist, choicelist, default=0):
    """The element of the first choice whose condition is true, or the default.

    ValueError where there is no condition, or they are not as many as choices.
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            "condlist must have length equal to choicelist "
            f"({len(condlist)} vs {len(choicelist)})"
        )
    if not condlist:
        raise ValueError("condlist must be non-empty")
    made, *choices = arrays.plain_arrays(default, *choicelist)
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        made = tf.where(as_array(condition, tf.bool), choice, made)
    return made


def ix_(*args):
    """Vectors of indices, each along a dimension of its own: a list. Booleans stand for
    the places of what is true. ValueError for other arrays."""
    found = []
    for i, arg in enumerate(args):
        x = plain(as_array(arg))
        if x.shape.rank != 1:
            raise ValueError(
                f"Arguments must be 1-d, got arg {i} of rank {x.shape.rank}"
            )
        if x.dtype == tf.bool:
            x = nonzero(x)[0]
        elif not x.dtype.is_integer:
            raise ValueError(
                f"Only integer and bool dtypes are supported, got {x.dtype}"
            )
        sizes = [1] * len(args)
        sizes[i] = -1
        found.append(tf.reshape(x, sizes))
    return found


# --- Diagonals and triangles.


def diag(v, k=0):
    """A matrix with the vector on its k-th diagonal, or that diagonal of a matrix.

    ValueError for more than two dimensions, InvalidArgumentError for none.
    """
    v = as_array(v)
    rank = arrays.static_rank(v)
    if rank == 0:
        raise tf.errors.InvalidArgumentError(
            None, None, "diag takes an array of one or two dimensions, not of none."
        )
    if rank > 2:
        raise ValueError(f"Shape {v.shape} must have rank at most 2")
    made = tf.linalg.diag(plain(v), k=k) if rank == 1 else plain(diagonal(v, k))
    return weakened(made) if isinstance(v, WeakTensor) else made


def diagflat(v, k=0):
    """A matrix with all elements on its k-th diagonal."""
    return diag(arrays.flat(v), k)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonals of two dimensions, along a new last one."""
    a = as_array(a)
    moved = plain(a)
    rank = arrays.static_rank(a)
    if rank < 2:
        raise tf.errors.InvalidArgumentError(
            None, None, f"diagonal takes at least two dimensions, but got {rank}."
        )
    if (axis1 % rank, axis2 % rank) != (rank - 2, rank - 1):
        moved = shaping.moveaxis(moved, (axis1, axis2), (-2, -1))
    known = moved.shape[-2:].is_fully_defined()
    if known and not -moved.shape[-2] < offset < moved.shape[-1]:
        # Beyond the corners there is nothing.
        made = tf.zeros(tf.concat([tf.shape(moved)[:-2], [0]], 0), moved.dtype)
    else:
        made = tf.linalg.diag_part(moved, k=offset)
    return weakened(made) if isinstance(a, WeakTensor) else made


def diag_indices(n, ndim=2):
    """The places of the diagonal of an array with `ndim` dimensions of size n."""
    if n < 0:
        raise ValueError(f"n must be non-negative, but got {n}.")
    if ndim < 0:
        raise ValueError(f"ndim must be non-negative, but got {ndim}.")
    return (tf.range(n),) * ndim


def _triangle(name, keep, m, k):
    m = as_array(m)
    if m.shape.rank is not None and m.shape.rank < 2:
        raise ValueError(f"Argument to {name} must have rank at least 2")
    values = plain(m)
    rows, columns = tf.unstack(tf.shape(values)[-2:])
    distance = tf.range(columns) - tf.range(rows)[:, None]
    made = tf.where(keep(distance, k), values, tf.zeros([], values.dtype))
    return weakened(made) if isinstance(m, WeakTensor) else made


_lower = functools.partial(_triangle, "tril", lambda distance, k: distance <= k)
_upper = functools.partial(_triangle, "triu", lambda distance, k: distance >= k)


def tril(m, k=0):
    """Matrices with zeros above the k-th diagonal; ValueError for vectors."""
    return plain(_lower(m, k))


def triu(m, k=0):
    """Matrices with zeros below the k-th diagonal; ValueError for vectors."""
    return _upper(m, k)
