"""Loops that run as Python while a function is traced, or eagerly."""

import traceback

from headrace._load import _headrace
from headrace.autograph import tensors
from headrace.context import stack
from headrace.context.errors import OperatorNotAllowedInGraphError
from headrace.framework.settings import logging

_CONSISTENCY = (
    "\nSee https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/"
    "autograph/g3doc/reference/limitations.md#consistency-of-control-flow-types for "
    "more info."
)
_CHANGED = (
    "The condition of while loop started as non-Tensor, then changed to Tensor. This "
    "may happen either because variables changed type, or when a break or return "
    "statement inside the loop depends on a Tensor condition. In both cases, changing "
    "to a TF loop should remove the error." + _CONSISTENCY
)
_BREAKS = (
    "break and return statements which depend on a TF condition are not supported in "
    "Python for loops. Did you intend to make it a TF loop?" + _CONSISTENCY
)

MANY_TURNS = 50_000  # as many turns that make operations are warned of
MOST_TURNS = 100_000_000  # of a loop inside of a trace


class _Turns:
    """A Python loop in a graph: each turn copies its operations, which is counted.

    Used in the function that runs the loop: the stacks of the turns' nodes end there,
    and what stands around it is walked once.
    """

    def __init__(self):
        self._graph = stack.current()
        self._nodes = 0

    def __enter__(self):
        _headrace.push_base()
        return self

    def __exit__(self, *error):
        _headrace.pop_base()

    def many(self, done):
        """Called after each turn from the MANY_TURNS-th on: `done` turns were made."""
        if self._graph is None:
            return
        if done == MANY_TURNS:
            self._nodes = self._graph._core.num_nodes
        if done == MANY_TURNS + 1:
            self._warn()
        if done > MOST_TURNS:
            raise ValueError("iteration limit exceeded")

    def _warn(self):
        graph, core = self._graph, self._graph._core
        made = [
            graph._operation(core.node(i)) for i in range(self._nodes, core.num_nodes)
        ]
        if made:
            where = "".join(traceback.format_stack()[:-3])
            logging.warning(
                "Large unrolled loop detected. Did you mean to use a TF loop? The "
                "following ops were created after iteration %s: %s\nSee "
                "https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/"
                "autograph/g3doc/reference/common_errors.md"
                "#warning-large-unrolled-loop-detected\nLocation:\n%s",
                MANY_TURNS + 2,
                tuple(made),
                where,
            )


def run_while(test, body, first, maximum_iterations=None):
    """A while loop; `first` is what `test()` gave before its first turn.

    Raises NotImplementedError where the test becomes a tensor of a graph.
    """
    most = None if maximum_iterations is None else int(maximum_iterations)
    done = 0
    holds = first
    with _Turns() as turns:
        while (most is None or done < most) and _truth(holds, _CHANGED):
            body()
            done += 1
            if done >= MANY_TURNS:
                turns.many(done)
            holds = test()


def run_for(iterable, extra_test, body, maximum_iterations=None):
    """A for loop, as long as `extra_test()` holds where there is one.

    Raises NotImplementedError where that is a tensor of a graph.
    """
    if extra_test is not None and not _truth(extra_test(), _BREAKS):
        return
    most = None if maximum_iterations is None else int(maximum_iterations)
    if most == 0:
        return
    with _Turns() as turns:
        for done, item in enumerate(iterable, 1):
            body(item)
            if done >= MANY_TURNS:
                turns.many(done)
            if extra_test is not None and not _truth(extra_test(), _BREAKS):
                return
            if done == most:
                return


def _truth(value, message):
    if tensors.is_tensor(value) and tensors.in_graph():
        raise NotImplementedError(message)
    try:
        return bool(value)
    except OperatorNotAllowedInGraphError:
        raise NotImplementedError(message) from None
