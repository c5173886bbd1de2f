"""The traces of a Function: so many, and none that nothing can call any more."""

import weakref

from headrace._load import _headrace
from headrace.context import strategies
from headrace.function import trace_types

Sizes = _headrace.Traces.Sizes


def _objects(t, out):
    """Appends the weak references to objects that a type depends on."""
    if isinstance(t, trace_types.Object):
        if isinstance(t.reference, weakref.ref):
            out.append(t.reference())
    elif isinstance(t, trace_types.Structure):
        for item in t.items:
            _objects(item, out)


class Traces(_headrace.Traces):
    """The ConcreteFunctions in the order in which they were made.

    What the module's class drops is forgotten here. So are traces that read a variable
    that is gone, or were made for an object that is gone, or before all were to be made
    anew.
    """

    def __init__(self, function):
        super().__init__()
        self._function = weakref.ref(function)
        self._oldest = strategies.oldest_number()

    def add(self, concrete):
        for used in self._function()._take_used():
            self.use(used)
        if super().add(concrete) is not None:
            self._forget()
        needed = list(concrete._graph.variables)
        for t in concrete._function_type.types:
            _objects(t, needed)
        own, trace = weakref.ref(self), weakref.ref(concrete)

        def gone(_):
            traces, concrete = own(), trace()
            # The collector may have taken the trace together with what it needs.
            if traces is not None and concrete is not None:
                traces.remove(concrete)
                traces._forget()

        def changed():
            if (traces := own()) is not None:
                traces._forget()

        concrete._changed = changed
        concrete._needs = [weakref.ref(x, gone) for x in needed if x is not None]

    def drop_old(self):
        """Lets those go that were made before all were to be made anew."""
        oldest = strategies.oldest_number()
        if oldest == self._oldest:
            return
        self._oldest = oldest
        for concrete in self.all():
            if concrete._call_number < oldest:
                self.remove(concrete)
        self._forget()

    def _forget(self):
        """Drops what the native call knows."""
        function = self._function()
        if function is not None:
            function._forget()
