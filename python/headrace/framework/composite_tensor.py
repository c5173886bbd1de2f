"""tf.__internal__.CompositeTensor: values made of tensors, by classes of programs."""

import abc

from headrace._load import _headrace
from headrace.framework import nest, type_spec


class CompositeTensor(abc.ABC):
    """A value that is made of tensors, as its `_type_spec`, a tf.TypeSpec, says:

      _component_specs: a structure of the specs of its parts,
      _to_components(value): the parts, in that structure,
      _from_components(parts): the value of such parts.

    Functions, loops, branches and tf.nest with `expand_composites` take it apart. All
    classes of such values are subclasses: ragged and sparse tensors, extension types.
    """

    _is_composite_tensor = True

    @property
    @abc.abstractmethod
    def _type_spec(self):
        """The tf.TypeSpec of the value."""

    @classmethod
    def __subclasshook__(cls, other):
        if cls is not CompositeTensor:
            return NotImplemented
        return getattr(other, "_is_composite_tensor", False) or NotImplemented

    def _components(self):
        return nest.flatten(self._type_spec._to_components(self))

    def _from_components(self, parts):
        return type_spec.of_parts(self._type_spec, parts)

    def _static_parts(self):
        return (self._type_spec,)

    def _shape_invariant_to_type_spec(self, shape):
        """The spec that a shape given to tf.while_loop stands for."""
        raise NotImplementedError(
            f"{type(self).__name__}._shape_invariant_to_type_spec"
        )

    def _consumers(self):
        """A list of the operations of a graph that take one of its tensors."""
        parts = nest.flatten(self, expand_composites=True)
        of_graph = [x for x in parts if isinstance(x, _headrace.SymbolicTensor)]
        return nest.flatten([x.consumers() for x in of_graph])

    def _convert_variables_to_tensors(self):
        """The value with tensors in place of variables: itself, unless a class says."""
        return self
