"""Values that a traced function takes anew at each call: of closures, not arguments."""

from headrace._load import _headrace
from headrace.context import stack
from headrace.function import trace_types
from headrace.graph.func_graph import FuncGraph


class _Deferred:
    """A closure with the type of its value and what stands for it in the graph."""

    def __init__(self, graph, closure, spec, key):
        self.closure, self.spec, self.key = closure, spec, key
        self._type = trace_types.signature_type(spec)
        self.tensors = []
        with graph.as_default():
            self.placeholder = trace_types.placeholder(
                self._type, graph, "deferred_capture", self.tensors
            )

    def values(self):
        """The tensors of the value now; those of the graph that is being traced, where
        one is, take it when that is called."""
        graph = _graph_being_traced()
        if graph is None:
            value = self.closure()
        else:
            value = graph.capture_call_time_value(self.closure, self.spec, self.key)
        out = []
        trace_types.cast(value, self._type, out)
        return out


def _graph_being_traced():
    graph = None if _headrace.is_eager() else stack.current()
    while graph is not None and getattr(graph, "is_branch", False):
        graph = graph.outer_graph
    return graph if isinstance(graph, TracedGraph) else None


class TracedGraph(FuncGraph):
    """The graph of a tf.function."""

    def __init__(self, name, outer_graph=None, core=None):
        super().__init__(name, outer_graph, core)
        self.deferred = {}  # by key

    def capture_call_time_value(self, closure, spec, key=None):
        """Tensors of what `closure()` gives whenever the function is called.

        `spec` is a TypeSpec or a structure of some; calls raise TypeError where the
        value does not fit it. Of one `key` the first closure alone is asked.
        """
        if key is None:
            key = object()
        if key not in self.deferred:
            self.deferred[key] = _Deferred(self, closure, spec, key)
        return self.deferred[key].placeholder

    @property
    def deferred_tensors(self):
        """What stands for the values: arguments behind the function's own."""
        return [t for d in self.deferred.values() for t in d.tensors]

    def deferred_values(self):
        return [t for d in self.deferred.values() for t in d.values()]
