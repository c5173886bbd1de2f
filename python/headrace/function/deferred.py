"""Values that a traced function takes anew at each call: of closures, not arguments."""

import weakref

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import nest
from headrace.framework.conversion import convert_to_tensor
from headrace.framework.type_spec import TensorSpec, type_spec_from_value
from headrace.function import trace_types
from headrace.graph.func_graph import FuncGraph


class Deferred:
    """A closure with the type of its value and what stands for it in the graph."""

    def __init__(self, closure, spec, key):
        self.closure, self.spec, self.key = closure, spec, key
        self._type = trace_types.signature_type(spec)
        self.tensors = []
        self.note = None  # what the closure's `passed` is told

    def placed(self, graph):
        """The same, with a placeholder in the graph."""
        with graph.as_default():
            self.placeholder = trace_types.placeholder(
                self._type, graph, "deferred_capture", self.tensors
            )
        return self

    def values(self):
        """The tensors of the value now; those of the graph that is being traced, where
        one is, take it when that is called."""
        graph = graph_being_traced()
        if graph is None:
            value = self.closure()
        else:
            value = graph.capture_call_time_value(self.closure, self.spec, self.key)
            if hasattr(self.closure, "passed"):
                value = self.closure.passed(value, self.note)
        out = []
        trace_types.cast(value, self._type, out)
        return out


def graph_being_traced():
    """The graph of the innermost tf.function that is being traced; None where none is."""
    graph = None if _headrace.is_eager() else stack.current()
    while graph is not None and getattr(graph, "is_branch", False):
        graph = graph.outer_graph
    return graph if isinstance(graph, TracedGraph) else None


class TracedGraph(FuncGraph):
    """The graph of a tf.function."""

    def __init__(self, name, outer_graph=None, core=None):
        super().__init__(name, outer_graph, core)
        self.deferred = {}  # by key
        self._concrete = None  # a weak reference to the ConcreteFunction of it

    def capture_call_time_value(self, closure, spec, key=None):
        """Tensors of what `closure()` gives whenever the function is called.

        `spec` is a TypeSpec or a structure of some; calls raise TypeError where the
        value does not fit it. Of one `key` the first closure alone is asked. One with
        an attribute `if_used` is not asked where the graph does nothing with its value,
        as of bodies of loops that were given up. A method `passed` of a closure says what a
        traced function gives to one that it calls.
        """
        if key is None:
            key = object()
        if key not in self.deferred:
            self.deferred[key] = Deferred(closure, spec, key).placed(self)
        return self.deferred[key].placeholder

    def _experimental_capture_side_input_by_ref(self, identifier, func):
        """Tensors of what `func()` gives whenever the function is called, of the types
        that it gives now. Of one identifier the first function alone is asked."""
        spec = nest.map_structure(
            lambda x: type_spec_from_value(convert_to_tensor(x)), func()
        )
        return self.capture_call_time_value(func, spec, identifier)

    def replace_capture_with_deferred_capture(
        self, tensor, closure, spec, placeholder, default_value=None
    ):
        """That of the ConcreteFunction whose graph this is."""
        concrete = self._concrete and self._concrete()
        if concrete is None:
            raise NotImplementedError(
                "replace_capture_with_deferred_capture: the function is to be traced first"
            )
        concrete.replace_capture_with_deferred_capture(
            tensor, closure, spec, placeholder, default_value
        )

    def drop_unused(self):
        """Forgets closures that wanted to be asked only where their values are used."""
        for key, d in list(self.deferred.items()):
            if getattr(d.closure, "if_used", False):
                if not any(t.consumers() for t in d.tensors):
                    del self.deferred[key]

    @property
    def deferred_tensors(self):
        """What stands for the values: arguments behind the function's own."""
        return [t for d in self.deferred.values() for t in d.tensors]

    def deferred_values(self):
        return [t for d in self.deferred.values() for t in d.values()]


class Captures:
    """What a ConcreteFunction is given besides its arguments, in order: the tensors that
    its trace captured, or closures in their places, then the closures of its trace."""

    def __init__(self, concrete):
        self._core, self._concrete = concrete._core, weakref.proxy(concrete)
        self._closures = {}  # number of a captured tensor -> the Deferred in its place

    @property
    def _graph(self):
        return self._concrete.graph

    @property
    def has_closures(self):
        """Whether there are closures in places of captured tensors."""
        return bool(self._closures)

    def all(self):
        """A list of tensors and closures."""
        found = self._core.captured_inputs()
        for i, deferred in self._closures.items():
            found[i] = deferred.closure
        return found + [d.closure for d in self._graph.deferred.values()]

    def tensors(self):
        """The captured tensors, with what closures in their places give now, which the
        next call takes."""
        found = self._core.captured_inputs()
        for i, deferred in self._closures.items():
            (found[i],) = deferred.values()
        if self._closures:
            self._core.set_captured_inputs(found)
        return found

    def set(self, captures):
        """Calls use these tensors or closures."""
        captures = list(captures)
        inner = self._graph.internal_captures
        deferred = list(self._graph.deferred.values())
        if len(captures) not in (len(inner), len(inner) + len(deferred)):
            raise ValueError(
                f"the function has {len(inner)} captured tensors and {len(deferred)} "
                f"closures, got {len(captures)} captures"
            )
        closures, tensors = {}, self._core.captured_inputs()
        for i, (placeholder, given) in enumerate(zip(inner, captures)):
            if callable(given):
                spec = TensorSpec(placeholder.shape, placeholder.dtype)
                closures[i] = Deferred(given, spec, placeholder.name)
            else:
                tensors[i] = convert_to_tensor(given)
        self._core.set_captured_inputs(tensors)
        self._closures = closures
        for d, given in zip(deferred, captures[len(inner) :]):
            d.closure = given if callable(given) else lambda given=given: given

    def replace(self, tensor, closure, spec, placeholder):
        """Puts a closure in the place of a captured tensor."""
        inner = self._graph.internal_captures
        places = inner if placeholder is not None else self._core.captured_inputs()
        wanted = tensor if placeholder is None else placeholder
        at = next((i for i, x in enumerate(places) if x._id == wanted._id), None)
        if at is None:
            raise ValueError(
                f"Did not find `tensor` argument {tensor} in the ConcreteFunction's "
                "captured inputs list, and did not receive a placeholder argument. Thus "
                "we're unable to infer the internal placeholder. "
            )
        stands = inner[at]
        if not spec.is_compatible_with(TensorSpec(stands.shape, stands.dtype)):
            raise ValueError(
                f"Attempting to substitute closure with spec {spec} that's incompatible "
                f"with the original capture {tensor} or the internal placeholder "
                f"{stands}."
            )
        self._closures[at] = Deferred(closure, spec, stands.name)
