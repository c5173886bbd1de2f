"""The TensorArray of TensorFlow 1's loops: a resource that operations write and read."""

from headrace._load import raw
from headrace.context.properties import read_only
from headrace.control_flow.list_array import GraphArray, row_shape
from headrace.framework import conversion, dtypes, tensor_shape
from headrace.framework.execution import get_static_value
from headrace.framework.name_scopes import composite
from headrace.ops import array_ops, math_ops


class FrameArray(GraphArray):
    """The flow is a number that orders what is done with the resource, its `handle`."""

    def __init__(self, dtype, handle, flow, element_shape, dynamic, infer_shape):
        super().__init__(dtype, flow, element_shape, dynamic, infer_shape)
        self._handle = handle
        self._size = None  # as it was given, where it stays so

    handle = read_only("_handle")

    @classmethod
    def make(cls, dtype, size, element_shape, dynamic, infer_shape, clear, names):
        array_name, name = names
        handle, flow = raw.TensorArrayV3(
            size,
            dtype=dtype,
            element_shape=element_shape,
            dynamic_size=dynamic,
            clear_after_read=clear,
            identical_element_shapes=infer_shape,
            tensor_array_name=array_name or "",
            name=name or "TensorArray",
        )
        made = cls(dtype, handle, flow, element_shape, dynamic, infer_shape)
        made._size = None if dynamic else size
        return made

    def grad(self, source, flow=None, name=None):
        """The array of the gradients of this one's elements that `source` names."""
        handle, flow = raw.TensorArrayGradV3(
            self._handle, self._flow if flow is None else flow, source=source, name=name
        )
        shape = self.element_shape
        return FrameArray(self._dtype, handle, flow, shape, False, self._infer_shape)

    def size(self, name=None):
        """The number of elements."""
        if self._size is not None:
            return conversion.convert_to_tensor(self._size, dtypes.int32)
        return raw.TensorArraySizeV3(self._handle, self._flow, name=name)

    def read(self, index, name=None):
        """The element at `index`."""
        value = raw.TensorArrayReadV3(
            self._handle, index, self._flow, dtype=self._dtype, name=name
        )
        value.set_shape(self.element_shape)
        return value

    @composite("TensorArrayWrite")
    def write(self, index, value, name=None):
        """The array with `value` at `index`."""
        value = self._fit(value)
        flow = raw.TensorArrayWriteV3(self._handle, index, value, self._flow, name=name)
        return self._with(flow)

    @composite("TensorArrayStack")
    def stack(self, name=None):
        """All elements along a new first dimension."""
        return self.gather(raw.Range(0, self.size(), 1, name="range"), name=name)

    def gather(self, indices, name=None):
        """The elements at `indices`, stacked."""
        value = raw.TensorArrayGatherV3(
            self._handle,
            indices,
            self._flow,
            dtype=self._dtype,
            element_shape=self.element_shape,
            name=name,
        )
        if self.element_shape.rank is not None:
            count = conversion.convert_to_tensor(indices).shape[:1]
            value.set_shape(count.concatenate(self.element_shape))
        return value

    def concat(self, name=None):
        """All elements one after the other along their first dimension."""
        shape = self.element_shape
        tail = shape[1:] if shape.rank is not None else shape
        value, _ = raw.TensorArrayConcatV3(
            self._handle,
            self._flow,
            dtype=self._dtype,
            element_shape_except0=tail,
            name=name,
        )
        number = None if self._size is None else get_static_value(self._size)
        if shape.rank and shape.as_list()[0] is not None and number is not None:
            rows = tensor_shape.as_shape([number * shape.as_list()[0]])
            value.set_shape(rows.concatenate(tail))
        return value

    @composite("TensorArrayUnstack")
    def unstack(self, value, name=None):
        """The array whose elements are the rows of `value`."""
        value = self._value(value)
        rows = raw.Range(0, array_ops.shape(value)[0], 1, name="range")
        return self.scatter(rows, value, name=name)

    @composite("TensorArrayScatter")
    def scatter(self, indices, value, name=None):
        """The array with the rows of `value` at `indices`."""
        value = self._fit(value, row_shape)
        flow = raw.TensorArrayScatterV3(
            self._handle, indices, value, self._flow, name=name
        )
        return self._with(flow)

    @composite("TensorArraySplit")
    def split(self, value, lengths, name=None):
        """The array whose elements are stretches of `value` of these lengths."""
        value = self._value(value)
        self._merge_parts(value)
        lengths = math_ops.cast(lengths, dtypes.int64)
        flow = raw.TensorArraySplitV3(
            self._handle, value, lengths, self._flow, name=name
        )
        return self._with(flow)

    def close(self, name=None):
        """Forgets the elements when it runs."""
        return raw.TensorArrayCloseV3(self._handle, name=name)
