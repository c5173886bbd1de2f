"""What functions and operators of tf do with ragged tensors.

ragged_functions.txt, beside api_names.txt, says which function answers for which.
"""

from headrace import _names
from headrace._load import _headrace
from headrace.framework import dispatch as dispatching
from headrace.framework.support import operators
from headrace.ragged import broadcast
from headrace.ragged.ragged_tensor import RaggedTensor, as_values
from headrace.ragged.ragged_value import RaggedTensorValue

dispatching.add_functions(RaggedTensor, _names.text("ragged_functions.txt"))
dispatching.convert_first(RaggedTensorValue, as_values)


@dispatching.dispatch_for_unary_elementwise_apis(RaggedTensor)
def _unary(function, x):
    return x.with_flat_values(function(x.flat_values))


def _binary(function, x, y):
    return broadcast.apply(function, x, y)


def _assertion(function, x, y):
    return broadcast.asserted(function, x, y)


for _register, _handler in (
    (dispatching.dispatch_for_binary_elementwise_apis, _binary),
    (dispatching.dispatch_for_binary_elementwise_assert_apis, _assertion),
):
    _register(RaggedTensor, object)(_handler)
    _register(object, RaggedTensor)(_handler)


def _operator(name, public, swapped=False):
    found = []

    def apply(self, *others):
        if not found:
            found.append(_names.public(public))
        operands = (self, *others)
        return found[0](*(operands[::-1] if swapped else operands))

    return apply


def _equality(public, different):
    compare = _operator(None, public)

    def apply(self, other):
        if other is None:
            return different
        # As tensors do: those of a session's graph compare by identity.
        if self._is_key() or not _headrace.tensor_equality():
            return (self is other) != different
        return compare(self, other)

    return apply


operators.attach(RaggedTensor, _operator)
RaggedTensor.__eq__ = _equality("__operators__.eq", False)
RaggedTensor.__ne__ = _equality("__operators__.ne", True)
