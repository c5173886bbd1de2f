"""tf.TypeSpec and its kinds: what a value is like, without the value."""

import numpy as np

from headrace import _protos
from headrace._load import _headrace
from headrace.context import late
from headrace.context.properties import read_only
from headrace.framework import (
    conversion,
    dtypes,
    indexed_slices,
    nest,
    tensor_shape,
    variables,
)


def _flat_values(spec, value):
    tensors = nest.flatten(value, expand_composites=True)
    kinds = flat_tensor_specs(spec)
    return [conversion.convert_to_tensor(x, s.dtype) for s, x in zip(kinds, tensors)]


# How datasets hold values of specs of programs: as all of their tensors.
_OF_ELEMENTS = {
    "_flat_tensor_specs": property(lambda spec: flat_tensor_specs(spec)),
    "_to_tensor_list": _flat_values,
    "_to_batched_tensor_list": _flat_values,
    "_from_tensor_list": lambda spec, tensors: of_flat_tensors(spec, iter(tensors)),
}


class TypeSpec:
    """What is known of values of a kind: their parts' shapes and dtypes."""

    # Whether _component_specs is a list, as those of here are; else any structure.
    _lists_parts = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "_component_specs" in vars(cls) and not cls.__module__.startswith(
            "headrace."
        ):
            cls._lists_parts = False
            for name, member in _OF_ELEMENTS.items():
                if not hasattr(cls, name):
                    setattr(cls, name, member)

    @property
    def value_type(self):
        """The class of the values."""
        raise NotImplementedError(f"{type(self).__name__}.value_type")

    def _serialize(self):
        """What it was made with: nested tuples of plain values, shapes, dtypes, specs."""
        raise NotImplementedError(f"{type(self).__name__}._serialize")

    def _to_components(self, value):
        return value._components()

    @classmethod
    def _deserialize(cls, serialization):
        """The spec of what _serialize gave."""
        return cls(*serialization)

    def _to_legacy_output_types(self):
        """What compat.v1.data.get_output_types says of such an element."""
        return self

    def _to_legacy_output_shapes(self):
        """What compat.v1.data.get_output_shapes says of such an element."""
        return self

    def _to_legacy_output_classes(self):
        """What compat.v1.data.get_output_classes says of such an element."""
        return self

    def is_compatible_with(self, spec_or_value):
        """Whether a value or another spec fits."""
        if not isinstance(spec_or_value, TypeSpec):
            spec_or_value = type_spec_from_value(spec_or_value)
        if type(self) is not type(spec_or_value):
            return False
        return _each(_compatible, self._serialize(), spec_or_value._serialize())

    def is_subtype_of(self, other):
        """Whether all values of this spec fit the other."""
        return type(self) is type(other) and _each(
            _subtype, self._serialize(), other._serialize()
        )

    def most_specific_common_supertype(self, others):
        """The narrowest spec that all fit, or None."""
        if any(type(other) is not type(self) for other in others):
            return None
        joined = _joined([spec._serialize() for spec in (self, *others)])
        return None if joined is NotImplemented else self._deserialize(joined)

    def most_specific_compatible_type(self, other):
        """The narrowest spec that the values of both fit; ValueError where there is
        none.
        """
        result = None
        if type(self) is type(other):
            result = self.most_specific_common_supertype([other])
        if result is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return result

    def placeholder_value(self, placeholder_context=None):
        """A value to trace with; kinds of specs that have none raise
        NotImplementedError.
        """
        raise NotImplementedError(f"{type(self).__name__}.placeholder_value")

    def experimental_as_proto(self):
        """The spec as a message: a TypeSpecProto, or a tensor's TensorSpecProto.

        NotImplementedError for specs that have no form outside of a program.
        """
        return late.spec_as_proto(self)

    @classmethod
    def experimental_from_proto(cls, proto):
        """The spec of a message that experimental_as_proto() gives."""
        return late.spec_of_proto(proto)

    @classmethod
    def experimental_type_proto(cls):
        """The class of the messages of these specs."""
        return _protos.TypeSpecProto

    def flatten(self):
        """The TensorSpecs of the tensors that values are made of: a list."""
        return nest.flatten(self, expand_composites=True)

    def to_tensors(self, value):
        """The tensors that a value is made of, as flatten() has them.

        TypeError where one of them has another dtype or shape, ValueError where the value
        is made of others.
        """
        specs, parts = self.flatten(), nest.flatten(value, expand_composites=True)
        if len(specs) != len(parts):
            raise ValueError(
                "The two structures don't have the same nested structure.\n\nFirst "
                f"structure: {specs}\n\nSecond structure: {parts}"
            )
        return [spec.cast(part) for spec, part in zip(specs, parts)]

    def from_tensors(self, tensors):
        """The value that is made of the next tensors of an iterator."""
        return of_flat_tensors(self, tensors)

    def cast(self, value, casting_context=None):
        """The value as one of this kind; TypeError where it is none."""
        if not self.is_compatible_with(value):
            raise TypeError(f"Can not cast {value!r} to {self!r}")
        return value

    def __eq__(self, other):
        return type(self) is type(other) and _key(self._serialize()) == _key(
            other._serialize()
        )

    def __hash__(self):
        return hash((type(self), _key(self._serialize())))

    def __repr__(self):
        return f"{type(self).__name__}{self._serialize()!r}"

    def __reduce__(self):
        return type(self), self._serialize()

    # What specs of programs compare themselves by, under upstream's names.

    @staticmethod
    def __is_compatible(a, b):
        return _each(_compatible, a, b)

    def __make_cmp_key(self, value):
        return _key(value)


class ValuesSpec(TypeSpec):
    """The spec of values that have a dtype and a shape."""

    def _to_legacy_output_types(self):
        return self.dtype

    def _to_legacy_output_shapes(self):
        return self.shape

    def _to_legacy_output_classes(self):
        return self.value_type


def _key(part):
    if isinstance(part, (list, tuple)):
        return tuple(_key(p) for p in part)
    if isinstance(part, dict):
        return tuple(sorted((k, _key(v)) for k, v in part.items()))
    if isinstance(part, tensor_shape.TensorShape):
        return ("shape", part._dims)
    return part


def _each(leaves, a, b):
    """Whether leaves(x, y) holds of what stands at the same places of two structures."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_each(leaves, x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_each(leaves, a[k], b[k]) for k in a)
    return leaves(a, b)


def _compatible(a, b):
    if isinstance(a, (tensor_shape.TensorShape, TypeSpec)):
        return a.is_compatible_with(b)
    if isinstance(a, dtypes.DType) and isinstance(b, dtypes.DType):
        return a.is_compatible_with(b)
    return a == b


def _subtype(a, b):
    if isinstance(a, (tensor_shape.TensorShape, TypeSpec)):
        return a.is_subtype_of(b)
    return a == b


def _joined(column):
    """The least that takes in all parts of a column; NotImplemented: nothing does."""
    first, *others = column
    if isinstance(first, dict) and all(
        isinstance(c, dict) and c.keys() == first.keys() for c in others
    ):
        values = _joined([tuple(c[k] for k in first) for c in column])
        return values if values is NotImplemented else dict(zip(first, values))
    if isinstance(first, (list, tuple)) and all(
        isinstance(c, type(first)) and len(c) == len(first) for c in others
    ):
        values = type(first)(map(_joined, zip(*column)))
        return NotImplemented if any(v is NotImplemented for v in values) else values
    if isinstance(first, (tensor_shape.TensorShape, TypeSpec)):
        found = first.most_specific_common_supertype(others)
        return NotImplemented if found is None else found
    return first if all(c == first for c in others) else NotImplemented


class TensorSpec(ValuesSpec):
    """A tensor's shape, dtype and name."""

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape, dtype=dtypes.float32, name=None):
        self._shape = tensor_shape.TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    value_type = _headrace.Tensor
    shape = read_only("_shape", "The shape: a TensorShape.")
    dtype = read_only("_dtype", "The dtype.")
    name = read_only("_name", "The name, or None.")

    def _serialize(self):
        return (self._shape, self._dtype, self._name)

    def _batch(self, batch_size):
        rows = tensor_shape.TensorShape([batch_size])
        return TensorSpec(rows.concatenate(self._shape), self._dtype)

    def _unbatch(self):
        if self._shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return TensorSpec(self._shape[1:], self._dtype)

    @classmethod
    def from_spec(cls, spec, name=None):
        """The same spec under another name."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor, name=None):
        """The spec of a tensor, named as it is unless told."""
        if isinstance(tensor, _headrace.EagerTensor):
            return cls(tensor.shape, tensor.dtype, name)
        if isinstance(tensor, _headrace.SymbolicTensor):
            return cls(tensor.shape, tensor.dtype, name or tensor.name.split(":")[0])
        raise ValueError(
            f"`tensor` should be a tf.Tensor, but got type {type(tensor)}."
        )

    @classmethod
    def experimental_type_proto(cls):
        """The class of the messages of these specs."""
        return getattr(_protos, f"{cls.__name__}Proto", _protos.TypeSpecProto)

    def flatten(self):
        """A list of this spec."""
        return [self]

    def to_tensors(self, value):
        """The value as a list of one tensor: see cast()."""
        return [self.cast(value)]

    def cast(self, value, casting_context=None):
        """The value as a tensor; TypeError where its dtype or shape is another."""
        if not isinstance(value, _headrace.Tensor):
            value = conversion.convert_to_tensor(value, dtype_hint=self._dtype)
        found = TensorSpec(value.shape, value.dtype)
        if not found.is_subtype_of(TensorSpec(self._shape, self._dtype)):
            raise TypeError(f"Can not cast {found!r} to {self!r}")
        return value

    def is_compatible_with(self, spec_or_tensor):
        """Whether a tensor or another spec fits: dtype and shape."""
        dtype = getattr(spec_or_tensor, "dtype", None)
        shape = getattr(spec_or_tensor, "shape", None)
        if dtype is None or shape is None:
            return False
        kinds = (TensorSpec, _headrace.Tensor, _headrace.VariableBase, np.ndarray)
        if isinstance(spec_or_tensor, TypeSpec) and not isinstance(
            spec_or_tensor, kinds
        ):
            return False
        return self._dtype.is_compatible_with(dtype) and self._shape.is_compatible_with(
            shape
        )

    def is_subtype_of(self, other):
        """True where all tensors of this spec fit the other: dtype, shape and, if set,
        name.
        """
        return (
            isinstance(other, TensorSpec)
            and self._dtype == other._dtype
            and (other._name is None or self._name == other._name)
            and self._shape.is_subtype_of(other._shape)
        )

    def most_specific_common_supertype(self, others):
        """The narrowest spec that all fit, or None."""
        shape = self._shape
        for other in others:
            if not isinstance(other, TensorSpec) or other._dtype != self._dtype:
                return None
            shape = shape.most_specific_compatible_shape(other._shape)
        name = self._name if all(o._name == self._name for o in others) else None
        return type(self)(shape, self._dtype, name)

    def __repr__(self):
        return (
            f"{type(self).__name__}(shape={self._shape}, dtype={self._dtype!r}, "
            f"name={self._name!r})"
        )


class BoundedTensorSpec(TensorSpec):
    """A TensorSpec with bounds of the values."""

    __slots__ = ("_maximum", "_minimum")

    def __init__(self, shape, dtype, minimum, maximum, name=None):
        super().__init__(shape, dtype, name)
        self._minimum = np.array(minimum, self.dtype.as_numpy_dtype)
        self._maximum = np.array(maximum, self.dtype.as_numpy_dtype)

    minimum = read_only(
        "_minimum",
        "The smallest values allowed: an array that broadcasts to the shape.",
    )
    maximum = read_only(
        "_maximum", "The largest values allowed: an array that broadcasts to the shape."
    )

    def _serialize(self):
        low, high = self._minimum.tolist(), self._maximum.tolist()
        return (self._shape, self._dtype, low, high, self._name)

    def __repr__(self):
        return (
            f"BoundedTensorSpec(shape={self._shape}, dtype={self._dtype!r}, "
            f"name={self._name!r}, minimum={self._minimum!r}, "
            f"maximum={self._maximum!r})"
        )


class IndexedSlicesSpec(TypeSpec):
    """What IndexedSlices are like."""

    def __init__(
        self,
        shape=None,
        dtype=dtypes.float32,
        indices_dtype=dtypes.int64,
        dense_shape_dtype=None,
        indices_shape=None,
    ):
        self._shape = tensor_shape.as_shape(shape)
        self._values_dtype = dtypes.as_dtype(dtype)
        self._indices_dtype = dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = (
            None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        )
        self._indices_shape = tensor_shape.as_shape(indices_shape).with_rank(1)

    @property
    def value_type(self):
        return indexed_slices.IndexedSlices

    def _serialize(self):
        return (
            self._shape,
            self._values_dtype,
            self._indices_dtype,
            self._dense_shape_dtype,
            self._indices_shape,
        )

    @property
    def _component_specs(self):
        rows = self._indices_shape.as_list()
        shape = self._shape[1:] if self._shape.rank is not None else None
        values = None if shape is None else tensor_shape.TensorShape(rows + shape)
        specs = [
            TensorSpec(values, self._values_dtype),
            TensorSpec(self._indices_shape, self._indices_dtype),
        ]
        if self._dense_shape_dtype is not None:
            specs.append(TensorSpec([self._shape.rank], self._dense_shape_dtype))
        return specs

    def _from_components(self, parts):
        return indexed_slices.IndexedSlices(*parts)


class VariableSpec(TypeSpec):
    """What a variable is like."""

    def __init__(self, shape, dtype=dtypes.float32, trainable=True, alias_id=None):
        self.shape = tensor_shape.TensorShape(shape)
        self.dtype = dtypes.as_dtype(dtype)
        self.trainable = trainable
        self.alias_id = alias_id

    @property
    def value_type(self):
        return variables.ResourceVariable

    def _serialize(self):
        return (self.shape, self.dtype, self.trainable, self.alias_id)

    def __repr__(self):
        return (
            f"VariableSpec(shape={self.shape}, dtype={self.dtype!r}, "
            f"trainable={self.trainable!r}, alias_id={self.alias_id!r})"
        )


class NoneTensorSpec(TypeSpec):
    """The TypeSpec of None, which no tensor stands for."""

    value_type = type(None)

    def flatten(self):
        """An empty list: None is made of no tensors."""
        return []

    def to_tensors(self, value):
        """An empty list."""
        return []

    def from_tensors(self, tensors):
        """None."""

    def is_compatible_with(self, spec_or_value):
        """Whether a value is None, or another spec its kind."""
        return spec_or_value is None or isinstance(spec_or_value, NoneTensorSpec)

    def _serialize(self):
        return ()

    def _batch(self, batch_size):
        return self

    def _unbatch(self):
        return self


def parts_of(spec):
    """The specs of the parts that values of a composite spec have: a list."""
    parts = spec._component_specs
    return parts if spec._lists_parts else nest.flatten(parts)


def of_parts(composite, parts):
    """The value of a list of parts; `composite` is its spec, or a value like it."""
    if isinstance(composite, TypeSpec) and not composite._lists_parts:
        parts = nest.pack_sequence_as(composite._component_specs, parts)
    return composite._from_components(parts)


def to_parts(spec, value):
    """The list of parts of a value of a composite spec."""
    parts = spec._to_components(value)
    return parts if spec._lists_parts else nest.flatten(parts)


def flat_tensor_specs(spec):
    """The TensorSpecs that a spec is made of."""
    if not hasattr(spec, "_component_specs"):
        return [spec]
    return [t for part in parts_of(spec) for t in flat_tensor_specs(part)]


def of_flat_tensors(spec, tensors):
    """The value of that spec whose tensors are the next ones of an iterator."""
    if not hasattr(spec, "_component_specs"):
        return next(tensors)
    return of_parts(spec, [of_flat_tensors(p, tensors) for p in parts_of(spec)])


_by_type = []  # (type, function of a value)


def register_type_spec_from_value_converter(
    type_object, converter, allow_subclass=False
):
    """Says how the spec of values of a type is made."""
    _by_type.append((type_object, converter, allow_subclass))


def type_spec_from_value(value):
    """The TypeSpec of a value."""
    spec = getattr(value, "_type_spec", None)
    if spec is not None:
        return spec
    if isinstance(value, _headrace.Tensor):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, _headrace.VariableBase):
        return VariableSpec(value.shape, value.dtype, value.trainable)
    for kind, converter, subclass in reversed(_by_type):
        if type(value) is kind or (subclass and isinstance(value, kind)):
            return converter(value)
    if (
        value is not None
        and not nest.is_nested(value)
        or isinstance(value, (list, tuple, np.ndarray))
    ):
        try:
            tensor = conversion.convert_to_tensor(value)
            return TensorSpec(tensor.shape, tensor.dtype)
        except (TypeError, ValueError):
            pass
    raise TypeError(
        f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}"
    )
