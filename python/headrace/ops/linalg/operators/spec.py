"""Specs of operators: by them tf.nest, tf.function and SavedModels know operators."""

from headrace._load import _headrace
from headrace.framework import conversion, nest, type_spec
from headrace.ops import array_ops
from headrace.ops.linalg.operators import hints

_KINDS = (_headrace.Tensor, _headrace.VariableBase)


def _is_part(value):
    """Whether the value of a parameter has tensors in it."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_part, value))
    return isinstance(value, _KINDS) or hasattr(value, "_type_spec")


def _spec_of(value):
    if isinstance(value, (list, tuple)):
        return [_spec_of(v) for v in value]
    return type_spec.type_spec_from_value(value)


class LinearOperatorSpec(type_spec.TypeSpec):
    """What operators of a class are like: their parameters.

    Those with tensors in them are specs, or lists of specs, the others are values.
    `prefer_static_fields` are parameters that are values where these are known.
    """

    def __init__(self, param_specs, non_tensor_params, prefer_static_fields):
        self._parts = dict(param_specs)
        self._plain = dict(non_tensor_params)
        self._static = tuple(prefer_static_fields)

    @classmethod
    def from_operator(cls, operator):
        """The spec of an operator."""
        parts, plain = {}, hints.of(operator)
        for field in operator._composite_tensor_fields:
            value = operator._field(field)
            if _is_part(value):
                parts[field] = _spec_of(value)
            else:
                plain[field] = value
        return cls(parts, plain, operator._composite_tensor_prefer_static_fields)

    def _serialize(self):
        return self._parts, self._plain, self._static

    def __reduce__(self):
        return _unpickled, (self.value_type, self._serialize())

    def _with_parts(self, parts):
        return type(self)(parts, self._plain, self._static)

    # --- Tensors, and operators within, in the order of nest.

    @property
    def _component_specs(self):
        return tuple(nest.flatten(self._parts))

    def _to_components(self, value):
        fields = {name: value._field(name) for name in self._parts}
        return nest.flatten(fields)

    def _from_components(self, components):
        fields = nest.pack_sequence_as(self._parts, list(components))
        return self.value_type(**self._plain, **fields)

    def _static_parts(self):
        """What is the same in all operators of a trace: all but tensors."""
        plain = tuple((k, self._plain[k]) for k in sorted(self._plain))
        return plain, tuple(sorted(self._parts)), self._static

    # --- As elements of datasets: the tensors.

    @property
    def _flat_tensor_specs(self):
        return type_spec.flat_tensor_specs(self)

    def _to_tensor_list(self, value):
        return nest.flatten(value, expand_composites=True)

    _to_batched_tensor_list = _to_tensor_list

    def _from_tensor_list(self, tensor_list):
        return type_spec.of_flat_tensors(self, iter(tensor_list))

    def _changed(self, change):
        return self._with_parts(nest.map_structure(change, self._parts))

    def _batch(self, batch_size):
        return self._changed(lambda spec: spec._batch(batch_size))

    def _unbatch(self):
        return self._changed(lambda spec: spec._unbatch())


def _unpickled(value_type, serialization):
    return value_type._spec_class(*serialization)


class CompositeOperator:
    """What makes an operator of a class with a spec a value made of tensors."""

    _spec_class = None  # of a class that takes()

    def _field(self, name):
        """What the constructor's parameter of that name became."""
        return getattr(self, "_" + name)

    @property
    def _type_spec(self):
        found = self.__dict__.get("_type_spec_kept")
        if found is None and self._spec_class is not None:
            found = self._spec_class.from_operator(self)
            self.__dict__["_type_spec_kept"] = found
        return found

    def _components(self):
        return self._type_spec._to_components(self)

    def _from_components(self, parts):
        return self._type_spec._from_components(parts)

    def _static_parts(self):
        return self._type_spec._static_parts()

    def _shape_invariant_to_type_spec(self, shape):
        raise NotImplementedError(
            f"{type(self).__name__}._shape_invariant_to_type_spec"
        )

    def _gradient_parts(self):
        """The tensors that have gradients: all."""
        return nest.flatten(self, expand_composites=True)

    def _gradient_from(self, gradients):
        """The gradient by this operator, of those by its tensors: an operator, or None."""
        if all(g is None for g in gradients):
            return None
        found = [
            array_ops.zeros_like(x) if g is None else conversion.convert_to_tensor(g)
            for g, x in zip(gradients, self._gradient_parts(), strict=True)
        ]
        return nest.pack_sequence_as(self, found, expand_composites=True)
