"""Calls that speak to the converter and do nothing when they run."""

import ast
import inspect

from headrace.autograph.conversion.names import last_name


class _Unset:
    def __repr__(self):
        return "UNSPECIFIED"


UNSPECIFIED = _Unset()


def set_element_type(entity, dtype, shape=UNSPECIFIED):
    """Says what the elements of a list are that becomes one of tensors.

    Args:
      entity: the list, a variable of the converted function.
      dtype: the tf.DType of its elements.
      shape: their tf.TensorShape, unknown unless given.
    """
    del entity, dtype, shape


def set_loop_options(
    parallel_iterations=UNSPECIFIED,
    swap_memory=UNSPECIFIED,
    maximum_iterations=UNSPECIFIED,
    shape_invariants=UNSPECIFIED,
):
    """Says how the loop around it runs where it becomes one of the graph: the
    arguments are tf.while_loop's.

    Args:
      parallel_iterations: how many turns may run at once.
      swap_memory: accepted; there is no other memory to swap to.
      maximum_iterations: an int or scalar tensor, the most turns.
      shape_invariants: pairs (variable, tf.TensorShape or tf.TypeSpec).
    """
    del parallel_iterations, swap_memory, maximum_iterations, shape_invariants


_DIRECTIVES = (set_element_type, set_loop_options)


class Finder:
    """Says what calls mean: find(call) is (the directive's name, {parameter: node}), or
    None where it is no directive.

    Attributes:
      meant: {what is called, as text: the directive's name, or None} of all calls so
        far that are spelled like directives.
    """

    def __init__(self, look_up):
        """`look_up` gives the value of a name."""
        self._look_up = look_up
        self.meant = {}

    def __call__(self, call):
        name = last_name(call.func)
        if not any(name == d.__name__ for d in _DIRECTIVES):
            return None
        found = self._directive(call.func)
        self.meant[ast.unparse(call.func)] = found and found.__name__
        if found is None:
            return None
        parameters = list(inspect.signature(found).parameters)
        given = dict(zip(parameters, call.args))
        given.update({k.arg: k.value for k in call.keywords})
        unknown = [k for k in given if k not in parameters]
        if unknown or len(call.args) > len(parameters):
            raise TypeError(
                f"{name}() got an unexpected argument {', '.join(map(str, unknown))}"
            )
        return name, given

    def still(self, meant):
        """True where calls mean what they `meant` to a Finder before."""
        for text, name in meant.items():
            found = self._directive(ast.parse(text, mode="eval").body)
            if (found and found.__name__) != name:
                return False
        return True

    def _directive(self, node):
        """The directive that an expression is; None for anything else."""
        value = self._value_of(node)
        return next((d for d in _DIRECTIVES if value is d), None)

    def _value_of(self, node):
        if isinstance(node, ast.Name):
            return self._look_up(node.id)
        if isinstance(node, ast.Attribute):
            holder = self._value_of(node.value)
            return None if holder is None else getattr(holder, node.attr, None)
        return None
