"""tf.debugging.Assert inside graphs."""

from contextlib import nullcontext

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import conversion, dtypes


def make(condition, data, summarize=None, name=None):
    """An operation that fails with the data where the condition is false."""
    graph = stack.current()
    data = [conversion.convert_to_tensor(d) for d in data]
    # Upstream's nodes lie within a branch but for data that every device has at hand.
    at_hand = all(d.dtype in (dtypes.string, dtypes.int32) for d in data)
    guard = nullcontext() if at_hand else graph.name_scope("AssertGuard")
    with graph.name_scope(name or "Assert"), guard:
        _headrace.call_op(
            "Assert",
            [conversion.convert_to_tensor(condition), *data],
            {"summarize": 3 if summarize is None else summarize},
        )
        return graph._last_operation()
