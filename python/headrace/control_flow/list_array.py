"""The TensorArray of graphs: a tensor list that is handed on."""

from headrace._load import _headrace
from headrace.framework import conversion, dtypes, tensor_shape


def _op(op, **arguments):
    return _headrace.raw_op(op)(**arguments)


def _shape_tensor(shape):
    """The element shape as list operations take it."""
    if shape.rank is None:
        return conversion.convert_to_tensor(-1, dtypes.int32)
    sizes = [-1 if d is None else d for d in shape.as_list()]
    return conversion.convert_to_tensor(sizes, dtypes.int32)


class ListArray:
    """A dtype, an element shape and the list (its `flow`); never changed in place."""

    _is_composite_tensor = True

    def __init__(self, dtype, flow, element_shape, dynamic, infer_shape):
        self._dtype = dtype
        self._flow = flow
        self._element_shape = element_shape
        self._dynamic = dynamic
        self._infer_shape = infer_shape

    @classmethod
    def reserve(cls, dtype, size, element_shape, dynamic, infer_shape):
        flow = _op(
            "TensorListReserve",
            element_shape=_shape_tensor(element_shape),
            num_elements=size,
            element_dtype=dtype,
        )
        return cls(dtype, flow, element_shape, dynamic, infer_shape)

    def _components(self):
        return [self._flow]

    def _from_components(self, parts):
        return self._with(parts[0])

    def _with(self, flow, element_shape=None):
        shape = self._element_shape if element_shape is None else element_shape
        return ListArray(self._dtype, flow, shape, self._dynamic, self._infer_shape)

    @property
    def _type_spec(self):
        from headrace.control_flow.tensor_array import TensorArraySpec

        return TensorArraySpec.from_value(self)

    dtype = property(lambda self: self._dtype)
    dynamic_size = property(lambda self: self._dynamic)
    element_shape = property(lambda self: self._element_shape)
    flow = property(lambda self: self._flow)
    handle = property(lambda self: None)

    def identity(self):
        return self._with(_op("Identity", input=self._flow))

    def grad(self, source, flow=None, name=None):
        raise NotImplementedError("TensorArray.grad is not supported")

    def _merged(self, shape):
        if not self._element_shape.is_compatible_with(shape):
            raise ValueError(
                f"Inconsistent shapes: saw {shape} but expected {self._element_shape}"
            )
        return (
            self._element_shape.merge_with(shape)
            if self._infer_shape
            else (self._element_shape)
        )

    def size(self, name=None):
        """The number of elements."""
        return _op("TensorListLength", input_handle=self._flow, name=name)

    def read(self, index, name=None):
        """The element at `index`."""
        return _op(
            "TensorListGetItem",
            input_handle=self._flow,
            index=index,
            element_shape=_shape_tensor(self._element_shape),
            element_dtype=self._dtype,
            name=name,
        )

    def write(self, index, value, name=None):
        """The array with `value` at `index`."""
        value = self._value(value)
        flow = _op(
            "TensorListSetItem",
            input_handle=self._flow,
            index=index,
            item=value,
            resize_if_index_out_of_bounds=self._dynamic,
            name=name,
        )
        return self._with(flow, self._merged(value.shape))

    def _value(self, value):
        from headrace.framework import errors

        value = conversion.convert_to_tensor(value, dtype_hint=self._dtype)
        if value.dtype != self._dtype:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write "
                f"dtype {value.dtype.name}",
            )
        return value

    def stack(self, name=None):
        """All elements along a new first dimension."""
        return _op(
            "TensorListStack",
            input_handle=self._flow,
            element_shape=_shape_tensor(self._element_shape),
            element_dtype=self._dtype,
            name=name,
        )

    def gather(self, indices, name=None):
        """The elements at `indices`, stacked."""
        return _op(
            "TensorListGather",
            input_handle=self._flow,
            indices=indices,
            element_shape=_shape_tensor(self._element_shape),
            element_dtype=self._dtype,
            name=name,
        )

    def concat(self, name=None):
        """All elements one after the other along their first dimension."""
        shape = self._element_shape
        if shape.rank is not None:
            shape = tensor_shape.as_shape([None]).concatenate(shape[1:])
        tensor, _ = _op(
            "TensorListConcatV2",
            input_handle=self._flow,
            element_shape=_shape_tensor(shape),
            leading_dims=conversion.convert_to_tensor([], dtypes.int64),
            element_dtype=self._dtype,
            name=name,
        )
        return tensor

    def unstack(self, value, name=None):
        """The array whose elements are the rows of `value`."""
        value = self._value(value)
        rows = value.shape[1:] if value.shape.rank is not None else value.shape
        shape = self._merged(rows)
        flow = _op(
            "TensorListFromTensor",
            tensor=value,
            element_shape=_shape_tensor(shape),
            name=name,
        )
        return self._with(flow, shape)

    def scatter(self, indices, value, name=None):
        """The array with the rows of `value` at `indices`."""
        value = self._value(value)
        rows = value.shape[1:] if value.shape.rank is not None else value.shape
        flow = _op(
            "TensorListScatterIntoExistingList",
            input_handle=self._flow,
            tensor=value,
            indices=indices,
            name=name,
        )
        return self._with(flow, self._merged(rows))

    def split(self, value, lengths, name=None):
        """The array whose elements are stretches of `value` of these lengths."""
        value = self._value(value)
        shape = self._element_shape
        if value.shape.rank is not None:
            inner = tensor_shape.as_shape([None]).concatenate(value.shape[1:])
            shape = self._merged(inner)
        flow = _op(
            "TensorListSplit",
            tensor=value,
            element_shape=_shape_tensor(shape),
            lengths=conversion.convert_to_tensor(lengths, dtypes.int64),
            name=name,
        )
        return self._with(flow, shape)

    def close(self, name=None):
        """Nothing to do: the list goes with its last reader."""
