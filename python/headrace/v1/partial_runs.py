"""One run of a session's graph in several steps: Session.partial_run."""

from headrace.context.errors import InvalidArgumentError, UnimplementedError
from headrace.framework import dtypes

_HANDLES = (dtypes.resource, dtypes.variant)


def _refuse(text):
    raise InvalidArgumentError._of(text)


class PartialRun:
    """What a run has been given and has computed so far.

    A step computes what it needs behind the values known: those fed, those fetched, and
    what operations with state (random numbers, reads of variables) made. Others may be
    computed again, with the same values. Operations among the fetches of the setup run
    once, in the first step that can.
    """

    def __init__(self, fetches, targets, feeds):
        if not fetches and not targets:
            _refuse("Must specify at least one target to fetch or execute.")
        self._fetches = {t.name for t in fetches}
        self._feeds = {t.name for t in feeds}
        self._targets = list(targets)  # operations still to be run
        self._known = {}  # tensors by name, and their values
        self._done = set()  # nodes with state that have run

    def feed(self, tensors, values):
        """Takes values; none may come twice."""
        for tensor, value in zip(tensors, values):
            self._check("feed", tensor, self._feeds, "fed")
        for tensor, value in zip(tensors, values):
            self._known[tensor.name] = tensor, value

    def _check(self, what, tensor, planned, done):
        if tensor.name not in planned:
            _refuse(f"The {what} {tensor.name} was not specified in partial_run_setup.")
        if tensor.name in self._known:
            _refuse(f"The {what} {tensor.name} has already been {done}.")

    def check_fetches(self, tensors):
        for tensor in tensors:
            self._check("fetch", tensor, self._fetches, "fetched")

    def run(self, tensors, compute):
        """The tensors' values; `compute` is given tensors, target nodes, feeds."""
        nodes, missing = self._needed([t.op for t in tensors])
        if missing is not None:
            name = tensors[0].name if len(tensors) == 1 else [t.name for t in tensors]
            _refuse(
                f"Fetch {name} can't be computed from the feeds that have been fed so "
                f"far: {missing} is not known."
            )
        ready = []
        for op in self._targets:
            more, missing = self._needed([op])
            if missing is None:
                ready.append(op)
                nodes.update(more)
        again = [op for op in nodes if op.name in self._done and op._node.has_effect]
        if again:
            raise UnimplementedError._of(
                f"partial_run: {again[0].name} has run in an earlier step, and what is "
                "fetched now would run it again"
            )
        kept = list(tensors)
        for op in nodes:
            if op._node.is_stateful:
                kept += [t for t in op.outputs if t.dtype not in _HANDLES]
        known = list(self._known.values())
        values = compute(kept, [op._node for op in ready], known)
        for tensor, value in zip(kept, values):
            self._known[tensor.name] = tensor, value
        self._done.update(op.name for op in nodes if op._node.is_stateful)
        self._targets = [op for op in self._targets if op not in ready]
        return values[: len(tensors)]

    def _needed(self, ops):
        """The operations that must run for these, and a placeholder among them without
        a value, or None."""
        found, open_ops = {}, list(ops)
        while open_ops:
            op = open_ops.pop()
            is_known = op.outputs and all(t.name in self._known for t in op.outputs)
            if op in found or is_known:
                continue
            found[op] = None
            if op.type in ("Placeholder", "PlaceholderV2"):
                return found, op.name
            open_ops += [x.op for x in op.inputs if x.name not in self._known]
            open_ops += op.control_inputs
        return found, None
