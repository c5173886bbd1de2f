"""The TensorArray of graphs: a tensor list that is handed on."""

import copy

from headrace._load import raw
from headrace.context import errors
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes, tensor_shape
from headrace.framework.execution import get_static_value
from headrace.framework.name_scopes import composite, graph_scope


def list_of(dtype, element_shape, items):
    """A list of the tensors of `items`; where one is None, its place is not set."""
    shape = shape_tensor(element_shape)
    flow = raw.TensorListReserve(shape, len(items), element_dtype=dtype)
    for i, item in enumerate(items):
        if item is not None:
            flow = raw.TensorListSetItem(flow, i, item)
    return flow


def shape_tensor(shape):
    """The element shape as list operations take it."""
    if shape.rank is None:
        return conversion.convert_to_tensor(-1, dtypes.int32)
    sizes = [-1 if d is None else d for d in shape.as_list()]
    return conversion.convert_to_tensor(sizes, dtypes.int32)


def row_shape(value):
    return value.shape[1:] if value.shape.rank is not None else value.shape


class _Elements:
    """What is known of the elements: their shape, and their number or -1."""

    def __init__(self, shape, number):
        self.shape = shape
        self.number = number


class Array:
    """What TensorArrays of eager code and of graphs share."""

    dtype = read_only("_dtype")
    dynamic_size = read_only("_dynamic")
    handle = property(lambda self: None)

    @property
    def _type_spec(self):
        return tensor_array.TensorArraySpec.from_value(self)

    def _value(self, value, end=""):
        """A tensor of the dtype."""
        value = conversion.convert_to_tensor(value, dtype_hint=self._dtype)
        if value.dtype != self._dtype:
            raise errors.InvalidArgumentError._of(
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write "
                f"dtype {value.dtype.name}{end}"
            )
        return value


class GraphArray(Array):
    """What TensorArrays of graphs share: a dtype and a `flow`, never changed in place.

    Arrays that come of one another share what is known of their elements, so that
    a write in a loop's body tells the shape of what leaves the loop.
    """

    _is_composite_tensor = True

    def __init__(self, dtype, flow, element_shape, dynamic, infer_shape, number=-1):
        self._dtype = dtype
        self._flow = flow
        self._elements = _Elements(element_shape, number)
        self._dynamic = dynamic
        self._infer_shape = infer_shape

    def _static_parts(self):
        return self._dtype, self.element_shape, self._dynamic, self._infer_shape

    def _components(self):
        return [self._flow]

    def _from_components(self, parts):
        return self._with(parts[0])

    def _with(self, flow):
        array = copy.copy(self)
        array._flow = flow
        return array

    element_shape = read_only("_elements.shape")
    flow = read_only("_flow")

    def identity(self):
        """The same array, in what is made from here on."""
        return self._with(raw.Identity(self._flow))

    def _merge_shape(self, shape):
        known = self.element_shape
        if not known.is_compatible_with(shape):
            raise ValueError(f"Inconsistent shapes: saw {shape} but expected {known}")
        if self._infer_shape:
            self._elements.shape = known.merge_with(shape)

    def _fit(self, value, shape_of=lambda value: value.shape):
        """A tensor of the dtype, whose shape, or that of its parts, is the elements'."""
        value = self._value(value)
        self._merge_shape(shape_of(value))
        return value

    def _merge_parts(self, value):
        """As _merge_shape, of the stretches of `value` along its first dimension."""
        if value.shape.rank is not None:
            self._merge_shape(
                tensor_shape.as_shape([None]).concatenate(value.shape[1:])
            )


class ListArray(GraphArray):
    """The flow is the list itself."""

    @classmethod
    def reserve(cls, dtype, size, element_shape, dynamic, infer_shape):
        with graph_scope(None, "TensorArrayV2") as scope:
            size = conversion.convert_to_tensor(size)
            flow = raw.TensorListReserve(
                shape_tensor(element_shape), size, element_dtype=dtype, name=scope
            )
        number = None if dynamic else get_static_value(size)
        number = -1 if number is None else int(number)
        return cls(dtype, flow, element_shape, dynamic, infer_shape, number)

    def grad(self, source, flow=None, name=None):
        """The array of gradients, which only TensorFlow 1's loops have."""
        raise NotImplementedError("TensorArray.grad is not supported")

    @composite("TensorArrayV2Size")
    def size(self, name=None):
        """The number of elements."""
        return raw.TensorListLength(self._flow, name=name)

    def _given(self, op, *inputs, **attributes):
        """What an op on lists gives of elements of this shape and dtype."""
        shape = shape_tensor(self.element_shape)
        of = getattr(raw, op)
        return of(self._flow, *inputs, shape, element_dtype=self._dtype, **attributes)

    @composite("TensorArrayV2Read")
    def read(self, index, name=None):
        """The element at `index`."""
        return self._given("TensorListGetItem", index, name=name)

    @composite("TensorArrayV2Write")
    def write(self, index, value, name=None):
        """The array with `value` at `index`."""
        value = self._fit(value)
        flow = raw.TensorListSetItem(
            self._flow,
            index,
            value,
            resize_if_index_out_of_bounds=self._dynamic,
            name=name,
        )
        return self._with(flow)

    def push(self, value):
        """The array with `value` behind its last element."""
        value = self._fit(value)
        return self._with(raw.TensorListPushBack(self._flow, value))

    def pop(self):
        """(the array without its last element, that element)."""
        flow, last = self._given("TensorListPopBack")
        last.set_shape(self.element_shape)
        return self._with(flow), last

    @composite("TensorArrayV2Stack")
    def stack(self, name=None):
        """All elements along a new first dimension."""
        number = self._elements.number
        return self._given("TensorListStack", num_elements=number, name=name)

    @composite("TensorArrayV2Gather")
    def gather(self, indices, name=None):
        """The elements at `indices`, stacked."""
        return self._given("TensorListGather", indices, name=name)

    @composite("TensorArrayV2Concat")
    def concat(self, name=None):
        """All elements one after the other along their first dimension."""
        shape = self.element_shape
        if shape.rank is not None:
            shape = tensor_shape.as_shape([None]).concatenate(shape[1:])
        tensor, _ = raw.TensorListConcatV2(
            self._flow,
            shape_tensor(shape),
            conversion.convert_to_tensor([], dtypes.int64),
            element_dtype=self._dtype,
            name=name,
        )
        return tensor

    @composite("TensorArrayUnstack")
    def unstack(self, value, name=None):
        """The array whose elements are the rows of `value`."""
        value = self._fit(value, row_shape)
        flow = raw.TensorListFromTensor(
            value, shape_tensor(self.element_shape), name=name
        )
        return self._with(flow)

    @composite("TensorArrayScatter")
    def scatter(self, indices, value, name=None):
        """The array with the rows of `value` at `indices`."""
        value = self._fit(value, row_shape)
        flow = raw.TensorListScatterIntoExistingList(
            self._flow, value, indices, name=name
        )
        return self._with(flow)

    @composite("TensorArraySplit")
    def split(self, value, lengths, name=None):
        """The array whose elements are stretches of `value` of these lengths."""
        value = self._value(value)
        self._merge_parts(value)
        flow = raw.TensorListSplit(
            value,
            shape_tensor(self.element_shape),
            conversion.convert_to_tensor(lengths, dtypes.int64),
            name=name,
        )
        return self._with(flow)

    def close(self, name=None):
        """Nothing to do: the list goes with its last reader."""


from headrace.control_flow import tensor_array  # noqa: E402  (its arrays are ours)
