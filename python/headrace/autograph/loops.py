"""while and for statements."""

from headrace.autograph import python_loops, tensors
from headrace.autograph.graph_loops import GraphLoop
from headrace.control_flow.eager_array import EagerArray

_kinds = []  # (class, function), those registered last first


def register_iterable(cls, function):
    """Says how a graph loops over instances of `cls`.

    `function(iterable, extra_test, body, state, opts)` adds the loop to the graph and
    returns True, or returns False where the loop is to run as Python; `state` is
    (get_state, set_state, symbol_names), `extra_test` may be None.
    """
    _kinds.insert(0, (cls, function))


def while_stmt(test, body, get_state, set_state, symbol_names, opts):
    """Runs `body` while `test()` holds: Python's loop, or tf.while_loop of a tensor.

    `get_state` and `set_state` read and set the variables `symbol_names` that the
    body changes. Where they are loop variables of a graph they keep dtype, structure
    and shape, but for the `shape_invariants` in `opts`, pairs of a value and a shape.
    """
    if not tensors.in_graph():
        python_loops.run_while(test, body, test(), opts.get("maximum_iterations"))
        return
    with tensors.scratch_graph() as graph:
        first = test()
        made = graph._core.num_nodes > 0
    if not tensors.is_tensor(first):
        python_loops.run_while(test, body, test() if made else first)
        return

    def condition():
        return tensors.bool_scalar(test(), "while loop")

    GraphLoop((get_state, set_state, symbol_names), condition, body, opts=opts).run()


def for_stmt(iter_, extra_test, body, get_state, set_state, symbol_names, opts):
    """Calls `body` on what `iter_` gives, as long as `extra_test()` holds.

    In a graph it is a loop of the graph over tensors (their rows, tf.range without
    making it), ragged tensors, TensorArrays and what else is registered
    (`register_iterable`); all else is iterated by Python.
    """
    state = (get_state, set_state, symbol_names)
    if tensors.in_graph():
        for cls, function in _kinds:
            if isinstance(iter_, cls) and function(
                iter_, extra_test, body, state, opts
            ):
                return
        python_loops.run_for(iter_, extra_test, body)
        return
    loops_in_graphs = (*tensors.TENSORS, *(cls for cls, _ in _kinds))
    most = None
    if isinstance(iter_, loops_in_graphs):
        most = opts.get("maximum_iterations")
    if isinstance(iter_, EagerArray):
        iter_ = [iter_.read(i) for i in range(int(iter_.size()))]
    python_loops.run_for(iter_, extra_test, body, most)
