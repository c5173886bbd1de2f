"""tf.TensorArray: a list of tensors that loops write and read."""

import functools
import inspect

from headrace._load import _headrace
from headrace.control_flow import (
    eager_array,
    flow_contexts,
    frame_array,
    list_array,
)
from headrace.framework import dtypes, tensor_shape
from headrace.framework.type_spec import TensorSpec, TypeSpec


class _ArrayType(type):
    def __call__(cls, *args, **kwargs):
        if cls is not TensorArray:
            return super().__call__(*args, **kwargs)
        return _create(*args, **kwargs)

    def __instancecheck__(cls, instance):
        if cls is TensorArray:
            return isinstance(instance, list_array.Array)
        return super().__instancecheck__(instance)


class TensorArray(metaclass=_ArrayType):
    """Tensors of one dtype by index; every write gives the array to go on with."""


def _add_methods():
    """The methods of arrays of all kinds, for programs that take them from the class:
    `tf.nest.map_structure(tf.TensorArray.stack, arrays)`."""
    for name, member in inspect.getmembers(list_array.ListArray, inspect.isfunction):
        if name.startswith("_") or not hasattr(eager_array.EagerArray, name):
            continue
        setattr(TensorArray, name, _of_any_kind(name, member))


def _of_any_kind(name, member):
    @functools.wraps(member)
    def method(self, *args, **kwargs):
        return getattr(self, name)(*args, **kwargs)

    method.__qualname__ = f"TensorArray.{name}"
    return method


_add_methods()


def _create(
    dtype,
    size=None,
    dynamic_size=None,
    clear_after_read=None,
    tensor_array_name=None,
    handle=None,
    flow=None,
    infer_shape=True,
    element_shape=None,
    colocate_with_first_write_call=True,
    name=None,
):
    dtype = dtypes.as_dtype(dtype).base_dtype
    shape = tensor_shape.as_shape(element_shape)
    clear = True if clear_after_read is None else bool(clear_after_read)
    how = shape, bool(dynamic_size), infer_shape
    if flow_contexts.wanted() and (flow is None or handle is not None):
        if handle is not None:
            return frame_array.FrameArray(dtype, handle, flow, *how)
        _check_size(size)
        names = tensor_array_name, name
        return frame_array.FrameArray.make(dtype, size, *how, clear, names)
    if handle is not None:
        raise NotImplementedError("tf.TensorArray: handle is not supported")
    if flow is not None:
        return list_array.ListArray(dtype, flow, *how)
    if _headrace.is_eager():
        if size is None:
            raise ValueError(
                "Size must be declared for TensorArrays when eager execution is enabled."
            )
        return eager_array.EagerArray(dtype, int(size), *how, clear)
    _check_size(size)
    return list_array.ListArray.reserve(dtype, size, *how)


TensorArray.__signature__ = inspect.signature(_create)


def _check_size(size):
    if size is None:
        raise ValueError(
            "Argument `size` must be provided if argument `flow` is not provided."
        )


class TensorArraySpec(TypeSpec):
    """What a TensorArray is like."""

    def __init__(
        self,
        element_shape=None,
        dtype=dtypes.float32,
        dynamic_size=False,
        infer_shape=True,
    ):
        self._element_shape = tensor_shape.as_shape(element_shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size = dynamic_size
        self._infer_shape = infer_shape

    @property
    def value_type(self):
        return TensorArray

    @staticmethod
    def from_value(value):
        """The spec of a TensorArray: shape and dtype of elements,
        and how it may grow."""
        return TensorArraySpec(
            value.element_shape, value.dtype, value.dynamic_size, value._infer_shape
        )

    def _to_legacy_output_types(self):
        return self._dtype

    def _to_legacy_output_shapes(self):
        flags = [int(self._dynamic_size), int(self._infer_shape)]
        return tensor_shape.TensorShape(flags).concatenate(self._element_shape)

    def _to_legacy_output_classes(self):
        return TensorArray

    def _serialize(self):
        return (self._element_shape, self._dtype, self._dynamic_size, self._infer_shape)

    # In functions, loops and datasets an array is its list.

    @property
    def _component_specs(self):
        return [TensorSpec([], dtypes.variant)]

    def _to_components(self, value):
        return value._components()

    def _from_components(self, parts):
        return self._of_variant(parts[0])

    def _to_variant(self, value):
        return value._components()[0]

    def _of_variant(self, tensor):
        return list_array.ListArray(
            self._dtype,
            tensor,
            self._element_shape,
            self._dynamic_size,
            self._infer_shape,
        )
