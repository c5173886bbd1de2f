"""assert statements."""

from headrace.autograph import tensors
from headrace.ops import check_ops


def assert_stmt(expression, error):
    """`assert expression, error()`: tf.debugging.Assert where it is a tensor of a graph.

    Its message is evaluated while the graph is made, otherwise where the assertion
    fails.
    """
    if tensors.is_tensor(expression) and tensors.in_graph():
        message = error()
        return check_ops.Assert(expression, [message])
    assert expression, error()
    return None
