"""tf.types.experimental: what functions and their arguments are to users' own types."""

import abc
import typing

from headrace.function.concrete import ConcreteFunction
from headrace.framework.type_spec import TypeSpec


class Callable(abc.ABC):
    """What can be called with tensors and has a function_type."""

    @property
    @abc.abstractmethod
    def function_type(self):
        """The FunctionType: parameters with their types."""


class PolymorphicFunction(Callable):
    """A function that is traced for each kind of arguments: what tf.function makes."""

    @abc.abstractmethod
    def get_concrete_function(self, *args, **kwargs):
        """The ConcreteFunction for arguments, or for TypeSpecs in their place."""

    def experimental_get_compiler_ir(self, *args, **kwargs):
        """Not supported: raises NotImplementedError."""
        raise NotImplementedError("experimental_get_compiler_ir is not supported")


class AtomicFunction(Callable):
    """A function of tensors alone that records no gradient."""

    @abc.abstractmethod
    def call_with_captures(self, args, kwargs, captures):
        """Calls it with the values in the place of its captures."""


Callable.register(ConcreteFunction)
GenericFunction = PolymorphicFunction


class TraceType(abc.ABC):
    """What a trace depends on, for values of a class of the user's.

    The class gives one in __tf_tracing_type__. Types of values that hold tensors are
    not supported: a tf.experimental.ExtensionType is a class for such.
    """

    @abc.abstractmethod
    def is_subtype_of(self, other):
        """Whether a trace of `other`, a TraceType, serves values of this one."""

    @abc.abstractmethod
    def most_specific_common_supertype(self, others):
        """The narrowest TraceType that this and all others are subtypes of, or None."""

    @abc.abstractmethod
    def placeholder_value(self, placeholder_context):
        """The value that the function is traced with; the context is None."""

    def to_tensors(self, value):
        """A list of the tensors in a value: none."""
        return []

    def from_tensors(self, tensors):
        """The value made of tensors: the one to trace with."""
        return self.placeholder_value(None)

    def flatten(self):
        """A list of the types of the tensors in a value: none."""
        return []

    @abc.abstractmethod
    def __hash__(self):
        """Equal for equal types."""

    @abc.abstractmethod
    def __eq__(self, other):
        """Whether both stand for the same kind of values."""


TraceType.register(TypeSpec)


@typing.runtime_checkable
class SupportsTracingProtocol(typing.Protocol):
    """A value that says what its traces depend on."""

    def __tf_tracing_type__(self, context):
        """A TraceType; the context is None."""
