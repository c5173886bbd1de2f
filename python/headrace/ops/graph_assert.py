"""tf.debugging.Assert inside graphs."""

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import conversion


def make(condition, data, summarize=None, name=None):
    """An operation that fails with the data where the condition is false."""
    graph = stack.current()
    data = [conversion.convert_to_tensor(d) for d in data]
    with graph.name_scope(name or "Assert"), graph.name_scope("AssertGuard"):
        _headrace.call_op(
            "Assert",
            [conversion.convert_to_tensor(condition), *data],
            {"summarize": 3 if summarize is None else summarize},
        )
        return graph._last_operation()
