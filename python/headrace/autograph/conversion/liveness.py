"""Which variables matter to a branch or loop: those read again behind it."""

import ast

from headrace.autograph.conversion import names
from headrace.autograph.conversion.names import Names

CONTROL = (ast.If, ast.While, ast.For)


class Liveness:
    """Walks a lowered function body from its end to its beginning.

    Each `if`, `while` and `for` gets the attributes `live_in`, what its blocks read
    that may come from before it (of a loop, from the turn before), and `live_out`, what
    is read behind it; `at_end` is read at the end. Who reads a variable that holds a
    function may call it, and reads what it uses.
    """

    def __init__(self, body, at_end):
        whole = Names(body)
        self._always = whole.declared
        self._carried = names.carried(body)
        self._raised = set()  # what a handler around the statement reads
        self._block(body, set(at_end))

    def _block(self, statements, live):
        for node in reversed(statements):
            live = self._statement(node, live | self._raised | self._always)
        return live

    def _reads(self, *nodes):
        return self._with_carried(Names(*nodes).reads)

    def _with_carried(self, reads):
        return reads.union(*(self._carried.get(r, ()) for r in reads))

    def _statement(self, node, live):
        visit = getattr(self, "_visit_" + type(node).__name__, None)
        if visit is not None:
            return visit(node, live)
        if isinstance(node, ast.Raise):
            return self._reads(node) | self._raised
        return self._before(live, node)

    def _before(self, live, *nodes):
        """Live before what reads and binds the names in `nodes`."""
        found = Names(*nodes)
        return (live - found.writes) | self._with_carried(found.reads)

    def _visit_If(self, node, live):
        node.live_out = live
        node.live_in = self._block(node.body, live) | self._block(node.orelse, live)
        return node.live_in | self._reads(node.test)

    def _turns(self, node, live, repeated, bound):
        """Live before a loop's turn, once it does not change any more."""
        node.live_out = live
        live = live | repeated
        while True:
            before = live | (self._block(node.body, live) - bound)
            if before == live:
                break
            live = before
        node.live_in = (self._block(node.body, live) - bound) | repeated
        return live

    def _visit_While(self, node, live):
        repeated = self._reads(node.test) | set(getattr(node, "stops", ()))
        return self._turns(node, live, repeated, set())

    def _visit_For(self, node, live):
        target = Names(node.target)
        stops = set(getattr(node, "stops", ()))
        live = self._turns(node, live, stops, target.writes)
        return live | target.reads | self._reads(node.iter)

    def _visit_With(self, node, live):
        return self._before(self._block(node.body, live), *node.items)

    def _visit_Match(self, node, live):
        before = live | self._reads(node.subject)
        for case in node.cases:
            before |= self._block(case.body, live)
            before |= self._reads(case.pattern, case.guard or [])
        return before

    def _visit_Try(self, node, live):
        behind = self._block(node.finalbody, live)
        handled = set()
        for handler in node.handlers:
            handled |= self._block(handler.body, behind)
            handled |= self._reads(handler.type or [])
        orelse = self._block(node.orelse, behind)
        outer, self._raised = self._raised, self._raised | handled
        if node.finalbody:
            self._raised = self._raised | behind
        live = self._block(node.body, orelse) | self._raised
        self._raised = outer
        return live

    _visit_TryStar = _visit_Try


class State:
    """The variables of one `if`, `while` or `for`.

    Attributes:
      outputs: sorted; those that count behind it, attributes and elements among them.
      inputs: sorted; others that its blocks set and read from before.
    """

    def __init__(self, node, declared, rebound):
        inner = [node.body]
        if isinstance(node, ast.While):
            inner.append(node.test)
        elif isinstance(node, ast.If):
            inner.append(node.orelse)
        else:
            inner.append(node.target)
        found = Names(*inner)
        writes = found.writes | (found.nonlocals | found.globals)
        for name in found.reads & set(rebound):  # a nested function that binds them
            writes |= rebound[name]
        composites = {c for c in found.composites if not names.roots(c) & found.writes}
        behind = node.live_out | declared
        self.outputs = sorted((writes & behind) | composites)
        self.inputs = sorted((writes & node.live_in) - behind)

    @property
    def names(self):
        """All, in order."""
        return (*self.outputs, *self.inputs)

    @property
    def plain(self):
        """Those that are variables, no attributes or elements."""
        return [n for n in self.names if names.root(n) == n]
