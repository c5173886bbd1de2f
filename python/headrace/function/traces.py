"""The traces of a Function: so many, and none that nothing can call any more."""

import weakref

from headrace.function import trace_types

MOST = 128


def _objects(t, out):
    """Appends the weak references to objects that a type depends on."""
    if isinstance(t, trace_types.Object):
        if isinstance(t.reference, weakref.ref):
            out.append(t.reference())
    elif isinstance(t, trace_types.Structure):
        for item in t.items:
            _objects(item, out)


class Traces:
    """A list of ConcreteFunctions in the order in which they were made.

    Traces beyond MOST go, first those that were not run since the last one went. So do
    traces that read a variable that is gone, or were made for an object that is gone.
    """

    def __init__(self, function):
        self._function = weakref.ref(function)
        self._all = []
        self._used = set()  # ids of those that were found since
        self._gone = set()  # ids

    def __iter__(self):
        return iter(self.living())

    def __len__(self):
        return len(self.living())

    def living(self):
        while self._gone:
            gone, self._gone = self._gone, set()
            self._all = [c for c in self._all if id(c) not in gone]
        return self._all

    is_full = property(lambda self: len(self) >= MOST)

    def use(self, concrete):
        self._used.add(id(concrete))

    def add(self, concrete):
        if self.is_full:
            self._drop_one()
        self._all.append(concrete)
        needed = list(concrete._graph.variables)
        for t in concrete._function_type.types:
            _objects(t, needed)
        own, number = weakref.ref(self), id(concrete)

        def gone(_):
            traces = own()
            if traces is not None:
                traces._gone.add(number)
                traces._forget()

        concrete._needs = [weakref.ref(x, gone) for x in needed if x is not None]

    def _forget(self):
        """Drops what the native call knows."""
        function = self._function()
        if function is not None:
            function._forget()

    def _drop_one(self):
        used = self._used.union(map(id, self._function()._take_used()))
        self._used = set()
        idle = (c for c in self._all if id(c) not in used)
        self._all.remove(next(idle, self._all[0]))
        self._forget()
