"""assert statements."""

from headrace.autograph import tensors
from headrace.ops import graph_assert


def assert_stmt(expression, error):
    """`assert expression, error()`: tf.debugging.Assert where it is a tensor of a graph.

    Its message is evaluated while the graph is made, otherwise where the assertion
    fails.
    """
    if tensors.is_tensor(expression) and tensors.in_graph():
        message = error()
        data = message if isinstance(message, (list, tuple)) else [message]
        return graph_assert.make(expression, data)
    if not expression:
        raise AssertionError(error())
    return None
