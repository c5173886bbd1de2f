"""Arrays of values: what every function of tf.experimental.numpy begins with."""

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.support import signatures
from headrace.numpy_api import promotion
from headrace.numpy_api.weak_tensor import WeakTensor, plain, weakened


def as_array(x, dtype=None):
    """A tensor of a value: tensors as they are, of `dtype` where that is given.

    Python's numbers take the precision that the mode gives these; lists may hold
    tensors. ValueError for rows of different lengths and None, TypeError for what is
    no array.
    """
    if isinstance(x, (_headrace.Tensor, WeakTensor)):
        return x if dtype is None or x.dtype == dtype else tf.cast(x, dtype)
    if isinstance(x, (tf.Variable, tf.IndexedSlices)) or x is None:
        x = tf.convert_to_tensor(x)
    else:
        kind, weak = promotion.joined(x)
        x = tf.convert_to_tensor(_without_weak(x), kind)
        if weak and dtype is None:
            return weakened(x)
    return x if dtype is None or x.dtype == dtype else tf.cast(x, dtype)


def _without_weak(x):
    if isinstance(x, (list, tuple)):
        return [_without_weak(v) for v in x]
    return plain(x)


def as_arrays(*values):
    """The arrays of values, all of the dtype that these have together by the mode."""
    dtype, weak = promotion.joined(*values)
    arrays = [plain(as_array(x, dtype)) for x in values]
    return [weakened(x) for x in arrays] if weak else arrays


def plain_arrays(*values):
    """The same, of no weak dtype."""
    return [plain(x) for x in as_arrays(*values)]


def numpy_arrays(*values):
    """Plain arrays of the dtype that the values have together by NumPy's rules."""
    dtype = promotion.joined_by_numpy(*values)
    return [plain(as_array(x, dtype)) for x in values]


def floating(x):
    """The array, integers and booleans as floating values, weak where they were."""
    x = as_array(x)
    if x.dtype.is_floating or x.dtype.is_complex:
        return x
    made = tf.cast(x, promotion.default_float())
    return weakened(made) if isinstance(x, WeakTensor) else made


def of_kind(x, dtype):
    """The array of the dtype, weak where it was."""
    made = plain(as_array(x, dtype))
    return weakened(made) if isinstance(x, WeakTensor) else made


def flat(x):
    """The array in one dimension."""
    return tf.reshape(as_array(x), [-1])


def static_rank(x):
    """The number of dimensions; ValueError where a graph does not know it."""
    if x.shape.rank is None:
        raise ValueError("The number of dimensions of the array must be known.")
    return x.shape.rank


def axis_of(axis, rank, name="axis"):
    """An axis counted from the first; ValueError where there is none."""
    if not -rank <= axis < rank:
        raise ValueError(
            f"Argument `{name}` (received {name}={axis}) is out of bounds for an array "
            f"of rank {rank}."
        )
    return axis % rank


def refuse(given, why="is not supported"):
    """ValueError for the first of the arguments, by name, that is not None."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"The `{name}` argument {why}.")


def add_functions(scope, table, makers):
    """Adds the functions of a table to a module, whose globals() are `scope`.

    A row is "kind(parameters) name=what name ...": the functions of these parameters,
    each of which makers[kind](what) gives, `what` being the name where it is not said.
    """
    for row in table.strip().splitlines():
        head, _, names = row.strip().partition(") ")
        kind, _, parameters = head.partition("(")
        for name in names.split():
            name, _, what = name.partition("=")
            doc = f"What NumPy's `{name}` gives, as a tensor."
            like = signatures.named(name, doc, scope["__name__"])
            call = makers[kind](what or name)
            scope[name] = signatures.function_of(
                like, signatures.from_text(parameters), call
            )


# --- The functions.


def array(val, dtype=None, copy=True, ndmin=0):
    """A tensor of a value, of at least `ndmin` dimensions.

    Without a `dtype` it has that which the value's parts have together; Python's
    numbers take the precision that the mode gives these. With `copy` it is a tensor of
    its own, on the device of the scope.
    """
    x = as_array(val, promotion.as_dtype(dtype))
    x = tf.identity(x) if copy else x
    missing = ndmin - static_rank(x) if ndmin else 0
    return tf.reshape(x, [1] * missing + sizes_of(x)) if missing > 0 else x


def sizes_of(x):
    """The sizes of the dimensions: ints, or tensors where a graph does not know one."""
    if x.shape.is_fully_defined():
        return x.shape.as_list()
    return list(tf.unstack(tf.shape(x)))


def asarray(a, dtype=None):
    """A tensor of a value, which a tensor of the dtype is itself."""
    return as_array(a, promotion.as_dtype(dtype))


def asanyarray(a, dtype=None):
    """A tensor of a value, which a tensor of the dtype is itself."""
    return asarray(a, dtype)


def ascontiguousarray(a, dtype=None):
    """A tensor of a value, of at least one dimension."""
    return array(a, dtype, ndmin=1)


def copy(a):
    """A tensor of a value."""
    return array(a, copy=True)


def ndim(a):
    """The number of dimensions: an int, or, where a graph does not know it, a tensor."""
    a = as_array(a)
    return tf.rank(a) if a.shape.rank is None else a.shape.rank


def shape(a):
    """The static shape: a tf.TensorShape."""
    return as_array(a).shape


def size(x, axis=None):
    """The number of elements: an int, or, where a graph does not know it, a tensor.

    NotImplementedError for an `axis`.
    """
    if axis is not None:
        raise NotImplementedError(
            "axis argument is not supported in the current `np.size` implementation"
        )
    if isinstance(x, (int, float, np.int32, np.int64, np.float32, np.float64)):
        return 1
    x = as_array(x)
    count = x.shape.num_elements()
    return tf.size(x) if count is None else np.int64(count)


def isscalar(num):
    """True for numbers, texts and arrays without dimensions."""
    if isinstance(num, str):
        return True
    rank = as_array(num).shape.rank
    return tf.equal(tf.rank(num), 0) if rank is None else rank == 0


def iscomplexobj(x):
    """True where the dtype is complex."""
    return as_array(x).dtype.is_complex


def isrealobj(x):
    """True where the dtype is not complex."""
    return not iscomplexobj(x)
