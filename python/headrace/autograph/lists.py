"""Lists, and assignments to elements, of converted code with Feature.LISTS.

A list of Python's stays one: what a graph's loop carries must not grow, so that a list
which is to be filled there is a TensorArray, or a tensor list of a given dtype.
"""

import collections

from headrace._load import raw
from headrace.autograph import tensors
from headrace.control_flow.eager_array import EagerArray
from headrace.control_flow.list_array import ListArray
from headrace.framework import conversion, dtypes, tensor_shape
from headrace.ops import array_ops

GetItemOpts = collections.namedtuple("GetItemOpts", ("element_dtype",))
ListPopOpts = collections.namedtuple("ListPopOpts", ("element_dtype", "element_shape"))
ListStackOpts = collections.namedtuple(
    "ListStackOpts", ("element_dtype", "original_call")
)

_ARRAYS = (ListArray, EagerArray)


def _is_tensor_list(value):
    return tensors.is_tensor(value) and value.dtype == dtypes.variant


def new_list(iterable=None):
    """A list of the elements."""
    return [] if iterable is None else list(iterable)


def list_append(list_, x):
    """The list with `x` at its end; a list of Python's is changed in place."""
    if isinstance(list_, _ARRAYS):
        return list_.write(list_.size(), x)
    if _is_tensor_list(list_):
        return raw.TensorListPushBack(list_, conversion.convert_to_tensor(x))
    if tensors.is_tensor(list_):
        raise ValueError(
            "tensor lists are expected to be Tensors with dtype=tf.variant, instead "
            f"found {list_}"
        )
    list_.append(x)
    return list_


def list_pop(list_, i, opts):
    """The list without its last element, or that at `i`, and the element."""
    if isinstance(list_, _ARRAYS):
        raise NotImplementedError("TensorArray.pop is not supported")
    if not _is_tensor_list(list_):
        if tensors.is_tensor(list_):
            raise ValueError(f"pop of {list_}, which is no tensor list")
        return list_, (list_.pop() if i is None else list_.pop(i))
    if i is not None:
        raise NotImplementedError("tensor lists only support removing from the end")
    if opts.element_dtype is None:
        raise ValueError(
            "cannot pop from a list without knowing its element type; use "
            "set_element_type to annotate it"
        )
    shape = tensor_shape.as_shape(opts.element_shape)
    rest, x = raw.TensorListPopBack(
        list_, _shape_tensor(shape), element_dtype=opts.element_dtype
    )
    x.set_shape(shape)
    return rest, x


def list_stack(list_, opts):
    """The elements as one tensor; `opts.original_call` of what is no list."""
    if isinstance(list_, _ARRAYS):
        return list_.stack()
    if _is_tensor_list(list_):
        if opts.element_dtype is None:
            raise ValueError(
                "cannot stack a list without knowing its element type; use "
                "set_element_type to annotate it"
            )
        return raw.TensorListStack(
            list_,
            _shape_tensor(tensor_shape.as_shape(None)),
            element_dtype=opts.element_dtype,
            num_elements=-1,
        )
    return opts.original_call(list_)


def _shape_tensor(shape):
    if shape.rank is None:
        return conversion.convert_to_tensor(-1, dtypes.int32)
    sizes = [-1 if d is None else d for d in shape.as_list()]
    return conversion.convert_to_tensor(sizes, dtypes.int32)


def get_item(target, i, opts):
    """`target[i]`; of a string tensor its character `i`."""
    if isinstance(target, _ARRAYS):
        return target.read(i)
    if _is_tensor_list(target):
        if opts.element_dtype is None:
            raise ValueError(
                "cannot retrieve from a list without knowing its element type; use "
                "set_element_type to annotate it"
            )
        shape = _shape_tensor(tensor_shape.as_shape(None))
        return raw.TensorListGetItem(target, i, shape, element_dtype=opts.element_dtype)
    if (
        tensors.is_tensor(target)
        and target.dtype == dtypes.string
        and target.shape.rank == 0
    ):
        return raw.Substr(target, i, 1)
    return target[i]


def set_item(target, i, x):
    """`target` with `x` at `i`; what Python can change is changed in place."""
    if isinstance(target, _ARRAYS):
        return target.write(i, x)
    if _is_tensor_list(target):
        return raw.TensorListSetItem(target, i, conversion.convert_to_tensor(x))
    if tensors.is_tensor(target) and not hasattr(target, "__setitem__"):
        target = tensors.tensor(target)
        at = array_ops.reshape(conversion.convert_to_tensor(i), [1, 1])
        row = conversion.convert_to_tensor(x, target.dtype)
        return raw.TensorScatterUpdate(target, at, array_ops.expand_dims(row, 0))
    target[i] = x
    return target
