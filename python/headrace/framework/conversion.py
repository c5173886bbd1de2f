"""Values to tensors: tf.constant, tf.convert_to_tensor and the registry."""

import collections.abc

import numpy as np

from headrace._load import _headrace, raw
from headrace.framework import dtypes, nest, tensor_shape
from headrace.framework.dimension import Dimension
from headrace.framework.name_scopes import name_scope

_DATA = (int, float, complex, str, bytes, np.ndarray, np.generic)
_DATA_OR_ROWS = (*_DATA, list, tuple, range)
_registry = []  # (priority, order, base type, function)


def register_tensor_conversion_function(base_type, conversion_func, priority=100):
    """Converts objects of `base_type` by `conversion_func(value, dtype, name, as_ref)`."""
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(t, type) for t in types):
        raise TypeError(
            "Argument `base_type` must be a type or a tuple of types. Obtained: "
            f"{base_type}"
        )
    if any(issubclass(t, (int, float, np.generic, np.ndarray)) for t in types):
        raise TypeError(
            "Cannot register conversions for Python numeric types and NumPy scalars "
            "and arrays."
        )
    if not callable(conversion_func):
        raise TypeError(
            f"Argument `conversion_func` must be callable. Received {conversion_func}."
        )
    for t in types:
        _registry.append((priority, len(_registry), t, conversion_func))
    _registry.sort(key=lambda row: row[:2])


def _unsupported(value):
    if not _headrace.is_eager():
        if value is None:
            return ValueError("None values not supported.")
        return TypeError(
            f"Failed to convert elements of {value} to Tensor. Consider casting "
            "elements to a supported type. See "
            "https://www.tensorflow.org/api_docs/python/tf/dtypes for supported TF "
            "dtypes."
        )
    return ValueError(
        f"Attempt to convert a value ({value!r}) with an unsupported type "
        f"({type(value)}) to a Tensor."
    )


def _pack(value, dtype, hint):
    """A sequence with tensors among its leaves: packed by ops. They are cast where the
    first of them is of another dtype than is asked for, else they must agree."""
    if _headrace.is_eager():
        return _packed(value, dtype, hint, "packed")
    return pack_in_graph(value, dtype, hint, "packed")


def pack_in_graph(value, dtype, hint, name):
    """The same, in a scope of the name, where other leaves have their numbers as names."""
    with name_scope(name) as scope:
        return _packed(value, dtype, hint, scope)


def _packed(value, dtype, hint, name):
    first = _first_dtype(value)
    wanted = dtype or hint or first
    items = []
    for i, v in enumerate(value):
        if not _headrace.is_eager() and _is_data(v):
            item = convert_to_tensor(v, wanted, name=str(i))
        else:
            item = to_tensor(v, wanted)
        if item.dtype == wanted:
            pass
        elif first != wanted:
            item = raw.Cast(item, DstT=wanted.base_dtype)
        elif not _headrace.is_eager() or item.shape.rank:
            # Scalars of eager code are refused by Pack, as upstream.
            raise TypeError(
                f"Cannot convert a list containing a tensor of dtype {item.dtype!s} to "
                f"{wanted!s} (Tensor is: {item!r})"
            )
        items.append(item)
    return raw.Pack(items, axis=0, name=name)


def _first_dtype(value):
    for v in value:
        if isinstance(v, (list, tuple)):
            found = _first_dtype(v)
            if found is not None:
                return found
        elif isinstance(v, (_headrace.Tensor, _headrace.VariableBase)):
            return v.dtype
    return None


def _convert_unknown(value, dtype, hint):
    """Called by the bindings with what they do not know."""
    for _, _, base, function in _registry:
        if isinstance(value, base):
            for wanted in (dtype, hint) if dtype is None and hint else (dtype,):
                result = function(value, dtype=wanted, name=None, as_ref=False)
                if result is not NotImplemented:
                    return result
    method = getattr(type(value), "__tf_tensor__", None)
    if method is not None:
        return method(value, dtype, None)
    if isinstance(value, (list, tuple)):
        if _has_tensors(value):
            return _pack(value, dtype, hint)
        _refuse_dtypes(value, dtype)
        # Leaves that are no plain data: let the data path say what is wrong.
        return _constant(_headrace.make_tensor(_plain(value), dtype, hint))
    array = hasattr(value, "__array__") or hasattr(value, "__array_interface__")
    bytes_ = isinstance(value, (memoryview, bytearray))
    if array and not isinstance(value, type) or bytes_:
        return _constant(_headrace.make_tensor(np.asarray(value), dtype, hint))
    if isinstance(value, Dimension):
        return _constant(_headrace.make_tensor(_size(value), dtype, hint))
    if _is_sequence(value):
        return _convert_unknown(_items(value, ()), dtype, hint)
    raise _unsupported(value)


_MOST_LEVELS = 64  # of sequences in sequences


def _is_sequence(value):
    """Whether a value of a program's own class is read item by item."""
    cls = type(value)
    known = hasattr(cls, "__len__") and hasattr(cls, "__getitem__")
    return known and not isinstance(value, (collections.abc.Mapping, str, bytes))


def _items(value, around):
    """The items of a sequence as a list, those within as lists, too. `around`: the sequences
    that hold it; one that holds itself is no tensor."""
    if isinstance(value, (list, tuple)) or not _is_sequence(value):
        return value
    if len(around) == _MOST_LEVELS or any(value is outer for outer in around):
        raise _unsupported(value)
    return [_items(value[i], (*around, value)) for i in range(len(value))]


def _size(dimension):
    if dimension.value is None:
        raise ValueError(f"Cannot convert unknown Dimension {dimension} to a Tensor.")
    return dimension.value


def _has_tensors(value):
    return any(
        _has_tensors(v)
        if isinstance(v, (list, tuple))
        else isinstance(v, (_headrace.Tensor, _headrace.VariableBase))
        or hasattr(type(v), "__tf_tensor__")
        or any(isinstance(v, base) for _, _, base, _ in _registry)
        for v in value
    )


def _refuse_dtypes(value, dtype):
    """DTypes are no values: a TypeError in graphs, else ValueError, in TensorFlow's
    words."""
    leaves = nest.flatten(value)
    found = [v for v in leaves if isinstance(v, dtypes.DType)]
    if not found:
        return
    if _headrace.is_eager():
        if dtype is None and not isinstance(leaves[0], dtypes.DType):
            raise ValueError(
                "Can't convert Python sequence with mixed types to Tensor."
            )
        raise _unsupported(found[0])
    if dtype is None:
        raise _unsupported(value)
    raise TypeError(f"Expected {dtype.name}, but got {found[0]!s} of type 'DType'.")


def _plain(value):
    """Leaves that NumPy understands, made arrays."""
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, tensor_shape.TensorShape):
        return value.as_list()
    if isinstance(value, Dimension):
        return _size(value)
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    return value


def _constant(tensor, name=None):
    return _headrace.constant(tensor, name)


def to_tensor(value, dtype=None, hint=None):
    """A tensor of any convertible value."""
    return _headrace.to_tensor(value, dtype, hint)


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    """Converts the value to a tensor: of `dtype`, or if possible of `dtype_hint`."""
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    if isinstance(value, _headrace.Tensor):
        if dtype is not None and not dtype.is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype "
                f"{value.dtype.name}: {value!r}"
            )
        return value
    if dtype is not None and isinstance(value, _headrace.VariableBase):
        if not dtype.is_compatible_with(value.dtype):
            raise ValueError(
                f"Incompatible type conversion requested to type {dtype.name!r} for "
                f"`tf.Variable of type {value.dtype.name!r}. (Variable: {value})".replace(
                    "'int", "int"
                )
            )
    if dtype_hint is not None:
        dtype_hint = dtypes.as_dtype(dtype_hint)
    if name is not None and not _headrace.is_eager() and _is_data(value):
        return constant(
            _made(_headrace.make_tensor, value, dtype, dtype_hint), name=name
        )
    return _made(_headrace.to_tensor, value, dtype, dtype_hint)


def _made(make, value, dtype, hint=None):
    """make(value, dtype, hint), where times are numbers if a dtype is asked for."""
    try:
        return make(value, dtype, hint)
    except (TypeError, ValueError):
        if dtype is None or not _is_time(value) or not _is_numeric(dtype):
            raise
    # NumPy counts them in their unit, and cuts what is too large, as upstream does.
    counts = np.asarray(value).astype(np.int64).astype(dtype.as_numpy_dtype)
    return make(counts, dtype, hint)


def _is_time(value):
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "mM"


def _is_numeric(dtype):
    return dtype.is_integer or dtype.is_floating or dtype.is_bool


def _is_data(value):
    if isinstance(value, (list, tuple)):
        return not _headrace.holds_tensors(value)
    return isinstance(value, _DATA)


_NO_CONSTANT = "Expected any non-tensor type, but got a tensor instead."


def constant(value, dtype=None, shape=None, name="Const"):
    """A constant tensor of Python or NumPy data (or of an eager tensor's value).

    TypeError for tensors of graphs, whose values are not known.
    """
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    if isinstance(value, _headrace.Tensor):
        tensor = value
        if not isinstance(tensor, _headrace.EagerTensor):
            raise TypeError(_NO_CONSTANT)
        if dtype is not None and tensor.dtype != dtype:
            raise TypeError(
                f"Expected tensor {_brief(tensor)} with dtype {dtype!r}, but got dtype "
                f"{tensor.dtype!r}."
            )
    elif isinstance(value, _headrace.VariableBase):
        tensor = value._read()
    elif isinstance(value, (list, tuple)) and _headrace.holds_tensors(value):
        tensor = _constant_of_mixed(value, dtype)
    else:
        tensor = as_data(value, dtype)
    if shape is not None:
        tensor = _with_shape(tensor, value, shape)
    return _headrace.constant(tensor, name)


def _brief(tensor):
    if isinstance(tensor, _headrace.EagerTensor):
        return tensor.numpy()
    return tensor


def _constant_of_mixed(value, dtype):
    if not _headrace.is_eager():
        if _has_tensors(value):
            raise TypeError(_NO_CONSTANT)
        _refuse_dtypes(value, dtype)
        return _headrace.make_tensor(_plain(value), dtype)
    return _headrace.to_tensor(value, dtype)


def as_data(value, dtype=None):
    """The value as an eager tensor where it is data, whatever code is running."""
    if isinstance(value, tensor_shape.TensorShape):
        if dtype in (None, dtypes.int32, dtypes.int64):
            return _sizes(value, dtype)
        value = _sizes(value, dtypes.int64).numpy()
    make = _headrace.make_tensor
    return _made(make if isinstance(value, _DATA_OR_ROWS) else to_tensor, value, dtype)


def _with_shape(tensor, value, shape):
    shape = tensor_shape.as_shape(shape)
    if tensor.shape == shape:
        return tensor
    count, wanted = tensor.shape.num_elements(), shape.num_elements()
    array = tensor.numpy()
    if count == wanted:
        return _headrace.make_tensor(np.reshape(array, shape.as_list()), tensor.dtype)
    if wanted is None:
        raise TypeError(f"The shape of a constant must be known, but is {shape}.")
    if count == 1:
        if tensor.dtype == dtypes.string:
            filled = np.empty(shape.as_list(), object)
            filled[...] = array if tensor.shape.rank == 0 else array.ravel()[0]
        else:
            filled = np.broadcast_to(np.reshape(array, []), shape.as_list())
        return _headrace.make_tensor(filled, tensor.dtype)
    if not _headrace.is_eager():
        raise TypeError(
            f"Expected Tensor's shape: {tuple(shape)}, but got {tuple(tensor.shape)}."
        )
    raise TypeError(
        "Eager execution of tf.constant with unsupported shape. Tensor "
        f"{array} (converted from {value}) has {count} elements, but got `shape` "
        f"{shape} with {wanted} elements)."
    )


def _sizes(value, dtype):
    """A TensorShape as data: int32, or int64 where a size needs it."""
    if not value.is_fully_defined():
        raise ValueError(
            f"Cannot convert a partially known TensorShape {value} to a Tensor."
        )
    sizes = value.as_list()
    big = any(d > 2**31 - 1 for d in sizes)
    if dtype is None:
        dtype = dtypes.int64 if big else dtypes.int32
    if dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError(
            f"Cannot convert TensorShape {value} to dtype {dtype!r}. Allowed dtypes are "
            "tf.int32 and tf.int64."
        )
    if big and dtype == dtypes.int32:
        raise ValueError(
            f"Cannot convert TensorShape {value} to dtype int32; a dimension is too "
            "large. Consider using tf.int64."
        )
    return _headrace.make_tensor(sizes, dtype)


def _convert_shape(value, dtype=None, name=None, as_ref=False):
    return _constant(_sizes(value, dtype))


def shape_vector(shape, name="shape"):
    """A shape as a vector of int32, of int64 where a size needs it; tensors and arrays
    keep their type."""
    if isinstance(shape, _headrace.Tensor):
        return shape
    if isinstance(shape, (list, tuple)) and not shape:
        return convert_to_tensor(shape, dtypes.int32, name=name)
    typed = isinstance(shape, (np.ndarray, np.generic)) or _headrace.needs_int64(shape)
    hint = None if typed else dtypes.int32
    return convert_to_tensor(shape, dtype_hint=hint, name=name)


register_tensor_conversion_function(tensor_shape.TensorShape, _convert_shape)
_headrace.set_converter(_convert_unknown)
