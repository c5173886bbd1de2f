"""What variables of plain graphs have that are no `tf.Variable`s."""

from headrace.framework import tensor
from headrace.framework.support import operators


class ByIdentity:
    """One that equals itself alone, iterates over its snapshot and computes with what
    `_operand()` gives."""

    def get_shape(self):
        """The same as shape."""
        return self.shape

    def ref(self):
        """Something that stands for the variable and may be a key."""
        return tensor.Reference(self)

    experimental_ref = ref

    def __iter__(self):
        return iter(self._snapshot)

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    def __repr__(self):
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    __array_priority__ = 100


def _of_operand(name, public, swapped):
    def method(self, *others):
        return getattr(self._operand(), name)(*others)

    method.__name__ = method.__qualname__ = name
    return method


operators.attach(ByIdentity, _of_operand)
