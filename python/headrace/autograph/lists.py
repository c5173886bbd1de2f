"""Lists, and assignments to elements, of converted code with Feature.LISTS.

A list of Python's stays one, until a loop or branch of a graph changes its length: as
that must not change what it carries, the list is a TensorArray from there on.
"""

import collections
import functools

from headrace._load import raw
from headrace.autograph import tensors
from headrace.control_flow import list_array
from headrace.control_flow.eager_array import EagerArray
from headrace.control_flow.list_array import ListArray
from headrace.framework import conversion, dtypes, tensor_shape
from headrace.ops import array_ops

GetItemOpts = collections.namedtuple("GetItemOpts", ("element_dtype",))
ListPopOpts = collections.namedtuple("ListPopOpts", ("element_dtype", "element_shape"))
ListStackOpts = collections.namedtuple(
    "ListStackOpts", ("element_dtype", "original_call")
)

_UNTYPED = (
    "cannot {} a list without knowing its element type; use set_element_type to "
    "annotate it"
)

_ARRAYS = (ListArray, EagerArray)


def _is_tensor_list(value):
    return tensors.is_tensor(value) and value.dtype == dtypes.variant


class GrowingList(list):
    """A list that was made by converted code of a graph, and what its elements are,
    where set_element_type said so."""

    _nest_kind = list
    element_dtype = None
    element_shape = tensor_shape.as_shape(None)

    def copy(self):
        return self._rebuild_as(self)

    def _returned_as(self):
        return list(self)

    def _rebuild_as(self, values):
        made = GrowingList(values)
        made.__dict__.update(self.__dict__)
        return made


def set_list_type(list_, dtype, shape=None):
    """The list, whose elements are tensors of a dtype and shape."""
    if may_grow(list_):
        list_ = list_.copy()
        list_.element_dtype = dtypes.as_dtype(dtype)
        list_.element_shape = tensor_shape.as_shape(shape)
    return list_


def new_list(iterable=None):
    """A list of the elements."""
    kind = GrowingList if tensors.in_graph() else list
    return kind() if iterable is None else kind(iterable)


def may_grow(value):
    """Whether loops and branches have to find out if they change a list's length."""
    return isinstance(value, GrowingList)


def as_array(before, after):
    """The TensorArray that stands for the list `before` where it becomes `after`.

    None where its length stays, or its elements are no tensors of one dtype.
    """
    if not may_grow(before) or not isinstance(after, (list, ListArray)):
        return None
    known = []
    if isinstance(after, ListArray):  # of a loop inside
        known, after = [(after.dtype, after.element_shape)], []
    elif len(before) == len(after):
        return None
    if before.element_dtype is not None:
        known.append((before.element_dtype, before.element_shape))
    try:
        kind = before.element_dtype
        known += [_dtype_and_shape(x, kind) for x in (*before, *after)]
    except (TypeError, ValueError):
        return None
    kinds, shapes = zip(*known)
    if len(set(kinds)) > 1:
        return None
    shape = functools.reduce(lambda a, b: a.most_specific_compatible_shape(b), shapes)
    items = [conversion.convert_to_tensor(x, kinds[0]) for x in before]
    flow = list_array.list_of(kinds[0], shape, items)
    return ListArray(kinds[0], flow, shape, dynamic=True, infer_shape=False)


def _dtype_and_shape(x, dtype):
    if isinstance(x, list):
        raise TypeError("a list in a list")
    converted = conversion.convert_to_tensor(x, dtype)
    return converted.dtype, converted.shape


def list_append(list_, x):
    """The list with `x` at its end; a list of Python's is changed in place."""
    if isinstance(list_, ListArray):
        return list_.push(x)
    if isinstance(list_, EagerArray):
        return list_.write(list_.size(), x)
    if _is_tensor_list(list_):
        return raw.TensorListPushBack(list_, conversion.convert_to_tensor(x))
    if tensors.is_tensor(list_):
        raise ValueError(
            "tensor lists are expected to be Tensors with dtype=tf.variant, instead "
            f"found {list_}"
        )
    if may_grow(list_) and list_.element_dtype is not None:
        x = conversion.convert_to_tensor(x, list_.element_dtype)
    list_.append(x)
    return list_


def list_pop(list_, i, opts):
    """The list without its last element, or that at `i`, and the element."""
    if isinstance(list_, ListArray) and i is None:
        return list_.pop()
    if isinstance(list_, _ARRAYS):
        raise NotImplementedError("a TensorArray loses its last element only")
    if not _is_tensor_list(list_):
        if tensors.is_tensor(list_):
            raise ValueError(f"pop of {list_}, which is no tensor list")
        return list_, (list_.pop() if i is None else list_.pop(i))
    if i is not None:
        raise NotImplementedError("tensor lists only support removing from the end")
    if opts.element_dtype is None:
        raise ValueError(_UNTYPED.format("pop from"))
    shape = tensor_shape.as_shape(opts.element_shape)
    rest, x = raw.TensorListPopBack(
        list_, list_array.shape_tensor(shape), element_dtype=opts.element_dtype
    )
    x.set_shape(shape)
    return rest, x


def list_stack(list_, opts):
    """The elements as one tensor; `opts.original_call` of what is no list."""
    if isinstance(list_, _ARRAYS):
        return list_.stack()
    if _is_tensor_list(list_):
        if opts.element_dtype is None:
            raise ValueError(_UNTYPED.format("stack"))
        return raw.TensorListStack(
            list_,
            list_array.shape_tensor(tensor_shape.as_shape(None)),
            element_dtype=opts.element_dtype,
            num_elements=-1,
        )
    if may_grow(list_) and not list_:
        if list_.element_dtype is None:
            raise ValueError(_UNTYPED.format("stack"))
        sizes = list_.element_shape.as_list() if list_.element_shape.rank else []
        return array_ops.zeros([0, *(n or 0 for n in sizes)], list_.element_dtype)
    return opts.original_call(list_)


def get_item(target, i, opts):
    """`target[i]`; of a string tensor its character `i`."""
    if isinstance(target, _ARRAYS):
        return target.read(i)
    if _is_tensor_list(target):
        if opts.element_dtype is None:
            raise ValueError(_UNTYPED.format("retrieve from"))
        shape = list_array.shape_tensor(tensor_shape.as_shape(None))
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
