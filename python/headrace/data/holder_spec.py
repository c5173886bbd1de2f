"""Specs of what stands for elements behind one tensor: datasets and the like."""

from headrace.context.properties import read_only
from headrace.framework import dtypes, tensor_shape, type_spec


class Holder:
    """An object that is one tensor and knows the spec of its elements."""

    _is_composite_tensor = True

    def _static_parts(self):
        return (self._type_spec,)

    def _components(self):
        return [self._variant_tensor]

    def _from_components(self, parts):
        return self._type_spec._wrap(parts[0])


class HolderSpec(type_spec.TypeSpec):
    """The spec of a Holder.

    Subclasses define `value_type` and `_wrap`, which makes the object of a tensor.
    """

    _dtype = dtypes.variant

    def __init__(self, element_spec):
        self._element_spec = element_spec

    element_spec = read_only(
        "_element_spec", "The nested structure of specs that an element has."
    )

    @property
    def shape(self):
        """The shape of the one tensor that holds the object: a scalar."""
        return tensor_shape.TensorShape([])

    def _serialize(self):
        return (self._element_spec,)

    @property
    def _component_specs(self):
        return [type_spec.TensorSpec(self.shape, self._dtype)]

    def _from_components(self, parts):
        return self._wrap(parts[0])

    @classmethod
    def from_value(cls, value):
        """The spec of such an object, of its element_spec."""
        return cls(value.element_spec)


class VariantHolderSpec(HolderSpec):
    """The spec of an object whose variant can itself be part of an element."""

    def _to_variant(self, value):
        return value._variant_tensor

    def _of_variant(self, tensor):
        return self._wrap(tensor)
