"""tf.compat.v1.saved_model.main_op: operations to be run when a model is loaded."""

from headrace.context import stack
from headrace.framework import scopes
from headrace.v1 import collections


def main_op():
    """An operation that initializes all variables and tables of the current graph."""
    initializers = [
        collections.global_variables_initializer(),
        collections.local_variables_initializer(),
        collections.tables_initializer(),
    ]
    return scopes.group(initializers, None)


def main_op_with_restore(restore_op_name):
    """The same with an operation that restores, given itself, which runs after it."""
    with stack.default_graph().control_dependencies([main_op()]):
        return scopes.group([restore_op_name], None)
