"""Functions with experimental_implements: other programs may put their own in the place of
one, so that all that it is given are tensors, and nothing comes in beside its arguments."""

from headrace.framework.conversion import convert_to_tensor
from headrace.framework.type_spec import TypeSpec


class Implementing:
    """What that changes of a Function."""

    def __call__(self, *args, **kwargs):
        args, kwargs = _converted(args, kwargs)
        return super().__call__(*args, **kwargs)

    def _slots(self, args, kwargs):
        return super()._slots(*_converted(args, kwargs))

    def _trace_once(self, types, creation, own_variables=()):
        concrete = super()._trace_once(types, creation, own_variables)
        captures = concrete.captured_inputs
        if captures:
            implements = self._options["attributes"]["_implements"]
            raise AssertionError(
                f'Function {self._name} has "_implements={implements}" attribute and thus '
                "can not depend on any tensors outside of its signature or modify "
                "variables. \n\nNote: variables are always captured and cause function "
                f"re-tracing for every variable called.\n  inputs: {concrete.inputs}\n  "
                f"captures: {captures}\n\nTo pass a variable to such function use  use "
                "variable.read_value()."
            )
        return concrete


def _converted(args, kwargs):
    """The arguments as tensors; specs in their places stay."""
    return [_tensor_of(x) for x in args], {k: _tensor_of(x) for k, x in kwargs.items()}


def _tensor_of(value):
    return value if isinstance(value, TypeSpec) else convert_to_tensor(value)
