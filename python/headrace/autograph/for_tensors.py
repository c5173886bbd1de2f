"""for over tensors, ranges, ragged tensors and TensorArrays of a graph."""

from headrace._load import _headrace, raw
from headrace.autograph import loops, rows, tensors
from headrace.autograph.graph_loops import GraphLoop
from headrace.control_flow.eager_array import EagerArray
from headrace.control_flow.list_array import ListArray
from headrace.framework import conversion
from headrace.framework.execution import get_static_value
from headrace.ops import array_ops
from headrace.ragged.ragged_tensor import RaggedTensor


def both(in_range, extra_test):
    """Whether there is another turn: an element, and what the loop asks besides."""
    if extra_test is None:
        return in_range
    return raw.LogicalAnd(in_range, tensors.tensor(extra_test()))


def count_loop(count, read, extra_test, body, state, opts):
    """A loop over the elements `read(i)` of `count`, a scalar of an integer dtype."""
    zero = array_ops.zeros([], count.dtype)

    def test(i):
        return both(raw.Less(i, count), extra_test)

    def step(i):
        body(read(i))
        return [raw.AddV2(i, conversion.convert_to_tensor(1, count.dtype))]

    GraphLoop(state, test, step, [zero], opts).run()
    return True


def _over_tensor(tensor, extra_test, body, state, opts):
    """Over the rows of a tensor; over a tf.range by counting."""
    tensor = tensors.tensor(tensor)
    if isinstance(tensor, _headrace.SymbolicTensor) and tensor.op.type == "Range":
        return _over_range(tensor, extra_test, body, state, opts)
    return _over_rows(rows.of(tensor), extra_test, body, state, opts)


def _over_rows(found, extra_test, body, state, opts):
    return count_loop(found.count, found.read, extra_test, body, state, opts)


def _over_range(tensor, extra_test, body, state, opts):
    start, limit, delta = tensor.op.inputs
    sign = get_static_value(delta)

    def test(i):
        if sign is None:
            up = raw.LogicalAnd(raw.GreaterEqual(delta, zero), raw.Less(i, limit))
            down = raw.LogicalAnd(raw.Less(delta, zero), raw.Greater(i, limit))
            in_range = raw.LogicalOr(up, down)
        elif sign >= 0:
            in_range = raw.Less(i, limit)
        else:
            in_range = raw.Greater(i, limit)
        return both(in_range, extra_test)

    def step(i):
        body(i)
        return [raw.AddV2(i, delta)]

    zero = array_ops.zeros([], start.dtype)
    GraphLoop(state, test, step, [start], opts).run()
    return True


def _over_ragged(ragged, extra_test, body, state, opts):
    def read(i):
        return ragged[i]

    return count_loop(ragged.nrows(), read, extra_test, body, state, opts)


def _over_array(array, extra_test, body, state, opts):
    return count_loop(array.size(), array.read, extra_test, body, state, opts)


loops.register_iterable(_headrace.Tensor, _over_tensor)
loops.register_iterable(_headrace.VariableBase, _over_tensor)
loops.register_iterable(rows.Rows, _over_rows)
loops.register_iterable(RaggedTensor, _over_ragged)
loops.register_iterable(ListArray, _over_array)
loops.register_iterable(EagerArray, _over_array)
