"""tf.experimental.Optional: a value that may be missing."""

from headrace._load import raw
from headrace.context.properties import read_only
from headrace.data.functions import flat
from headrace.data.holder_spec import Holder, VariantHolderSpec
from headrace.elements import structure


class Optional(Holder):
    """An element of a known kind that may be missing, as next_as_optional gives it."""

    @staticmethod
    def empty(element_spec):
        """One without a value."""
        return OptionalImpl(raw.OptionalNone(), element_spec)

    @staticmethod
    def from_value(value):
        """One with that value."""
        value = structure.normalize(value)
        spec = structure.spec_of(value)
        variant = raw.OptionalFromValue(structure.to_tensors(spec, value))
        return OptionalImpl(variant, spec)


class OptionalImpl(Optional):
    """An optional by its variant tensor."""

    def __init__(self, variant_tensor, element_spec):
        self._variant_tensor = variant_tensor
        self._element_spec = element_spec

    element_spec = read_only("_element_spec")
    _type_spec = property(lambda self: OptionalSpec(self._element_spec))

    def has_value(self, name=None):
        """Whether there is a value, as a tensor."""
        return raw.OptionalHasValue(self._variant_tensor, name=name)

    def get_value(self, name=None):
        """The value; InvalidArgumentError when there is none."""
        tensors = raw.OptionalGetValue(
            self._variant_tensor, name=name, **flat(self._element_spec)
        )
        return structure.from_tensors(self._element_spec, tensors)


class OptionalSpec(VariantHolderSpec):
    """What an optional is like."""

    value_type = OptionalImpl

    def _wrap(self, tensor):
        return OptionalImpl(tensor, self._element_spec)
