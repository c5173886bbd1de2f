"""Concrete functions that were not traced by this process' Python."""

import functools

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import nest
from headrace.framework.type_spec import TypeSpec, flat_tensor_specs
from headrace.function import trace_types
from headrace.function.concrete import ConcreteFunction
from headrace.function.deferred import TracedGraph
from headrace.function.function_type import FunctionType, P
from headrace.graph import func_graph


class _RestoredGraph(TracedGraph):
    """The graph of a function that was traced elsewhere: complete."""

    def __init__(self, name, core, function_type):
        body, self._inputs, self._outputs = core.body()
        super().__init__(name, core=body)
        self._function_core = core
        self.inputs, self.outputs = self._inputs, self._outputs
        self._function_type = function_type

    @property
    def external_captures(self):
        return self._function_core.captured_inputs()

    @property
    def internal_captures(self):
        outer = self.external_captures
        return self.inputs[len(self.inputs) - len(outer) :]

    @property
    def captures(self):
        return list(zip(self.external_captures, self.internal_captures))


class RestoredConcreteFunction(ConcreteFunction):
    """A concrete function of a SavedModel, or of C++. Its graph is shown when it is
    asked for."""

    _gradients = None
    _made_graph = None
    positional = None  # how many tensors calls may give by position; None: as traced
    keywords = None  # what they are called, in order; None: as in the graph

    def __init__(self, core, parameters, inputs, results, python_name):
        self._core = core
        self.inputs_as_saved = inputs  # ((args), {kwargs}) of specs and values
        results_of = func_graph.Results.of_specs(results)
        self._results, self._native = results_of.structure, results_of.native
        self._python_name = python_name
        self._signature = None
        self._of_specs = self._is_new = False
        self._kept_variables = ()
        self.output_as_saved = results
        output = trace_types.Literal(None)
        if results is not None:
            output = trace_types.type_of(results, trace_types.Aliases())
        slots = parameters.slots(*inputs)
        self._function_type = FunctionType(
            parameters,
            [trace_types.type_of(s, trace_types.Aliases()) for s in slots],
            output,
        )

    @functools.cached_property
    def types(self):
        """The type of its arguments, (args, kwargs), which calls are matched with."""
        return trace_types.type_of(self.inputs_as_saved, trace_types.Aliases())

    @property
    def _graph(self):
        if self._made_graph is None:
            graph = _RestoredGraph(self._python_name, self._core, self._function_type)
            graph.structured_outputs = self._pack(graph.outputs)
            self._made_graph = graph
        return self._made_graph

    @property
    def structured_input_signature(self):
        """(args, kwargs) of the specs of its arguments."""
        return self.inputs_as_saved

    @property
    def structured_outputs(self):
        """The specs of the outputs, in the structure that the function gave them."""
        return self.output_as_saved

    def _call_flat(self, leaves):
        return self._pack(self.of_tensors(leaves))

    def of_tensors(self, leaves):
        """The tensors that it gives for tensors, in order; in a plain graph too, where
        what it captured becomes constants."""
        if stack.plain_graph() is not None:
            return _headrace.call_in_plain_graph(self._core, leaves)
        return self._call_core(leaves, None)

    def _most_positional(self, arguments):
        if self.positional is None:
            return super()._most_positional(arguments)
        return self.positional

    def _flat_names(self):
        return super()._flat_names() if self.keywords is None else self.keywords

    def _explain(self, error):
        """Nobody knows the lines of the program that was traced."""

    @property
    def _in_slots(self):
        """Whether its tensors come in the order of its parameters: files have keywords
        by name."""
        names = [
            p.name
            for p in self._function_type._parameters.parameters
            if p.kind in (P.KEYWORD_ONLY, P.VAR_KEYWORD)
        ]
        return len(names) < 2 or (names == sorted(names) and not self._takes_more)

    @property
    def _takes_more(self):
        kinds = [p.kind for p in self._function_type._parameters.parameters]
        return P.VAR_KEYWORD in kinds

    def flat_specs(self):
        """The TensorSpecs of its arguments, in order."""
        found = (s for s in nest.flatten(self.inputs_as_saved))
        return [
            t for s in found if isinstance(s, TypeSpec) for t in flat_tensor_specs(s)
        ]
