"""tf.compat.v1.Variable, the class of all variables of TensorFlow 1's programs."""

import inspect

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework.support.save_slice_info import SaveSliceInfo
from headrace.graph.graph_variables import RefVariable
from headrace.v1 import imported_variables
from headrace.v1.variable_scope import variable_v1

_KINDS = (_headrace.VariableBase, RefVariable)


class _VariableType(type):
    """Calling the class makes a variable of the kind that the scope asks for."""

    def __call__(cls, *args, **kwargs):
        given = inspect.signature(variable_v1).bind(*args, **kwargs).arguments
        proto = given.get("variable_def")
        if proto is None:
            return variable_v1(*args, **kwargs)
        if given.get("initial_value") is not None:
            raise ValueError("variable_def and initial_value are mutually exclusive.")
        return imported_variables.from_proto(proto, given.get("import_scope"))

    def __instancecheck__(cls, instance):
        return isinstance(instance, _KINDS)

    def __subclasscheck__(cls, subclass):
        return cls is subclass or issubclass(subclass, _KINDS)


class Variable(metaclass=_VariableType):
    """A variable: in graphs with its first value by an initializer, taken by reference
    unless `use_resource` or the scope says otherwise. All variables are instances."""

    SaveSliceInfo = SaveSliceInfo

    @staticmethod
    def from_proto(variable_def, import_scope=None):
        """The variable of the current graph's nodes that a VariableDef names, behind
        `import_scope`. KeyError if there are none."""
        return imported_variables.from_proto(variable_def, import_scope)
