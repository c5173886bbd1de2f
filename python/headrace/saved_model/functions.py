"""Functions of loaded models."""

import inspect

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import nest
from headrace.framework.errors import InvalidArgumentError
from headrace.framework.trackable import Trackable
from headrace.framework.type_spec import TypeSpec, flat_tensor_specs
from headrace.function import trace_types
from headrace.function.concrete import ConcreteFunction
from headrace.function.deferred import TracedGraph
from headrace.function.function_type import FreelyNamed, FunctionType, P, Parameters
from headrace.function.polymorphic import Function, checked_options
from headrace.graph import func_graph
from headrace.saved_model import structured


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


class RestoredConcreteFunction(ConcreteFunction, Trackable):
    """A concrete function of a SavedModel. Its graph is shown when it is asked for."""

    _gradients = None
    _made_graph = None
    _any_shapes = None  # the same for tensors of any shapes
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
        types = trace_types.type_of(inputs, trace_types.Aliases())
        self.types = types
        output = trace_types.Literal(None)
        if results is not None:
            output = trace_types.type_of(results, trace_types.Aliases())
        slots = parameters.slots(*inputs)
        self._function_type = FunctionType(
            parameters,
            [trace_types.type_of(s, trace_types.Aliases()) for s in slots],
            output,
        )

    @property
    def _graph(self):
        if self._made_graph is None:
            graph = _RestoredGraph(self._python_name, self._core, self._function_type)
            outputs = graph.outputs
            graph.structured_outputs = func_graph.rebuild(self._results, outputs)
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
        try:
            return self._core.call(leaves, None)
        except InvalidArgumentError:
            core = self._any_shapes or _headrace.core_for_shapes(self._core, leaves)
            if core is None:
                raise
        self._any_shapes = core
        return core.call(leaves, None)

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


def parameters_of(spec, inputs):
    """The Parameters that a FunctionSpec describes; where it describes none those that
    `inputs`, (args, kwargs), were given to."""
    full = None if spec is None else structured.decoded(spec[0])
    if full is None:
        args, kwargs = inputs
        found = [P(f"arg_{i}", P.POSITIONAL_ONLY) for i in range(len(args))]
        found += [FreelyNamed(name, P.KEYWORD_ONLY) for name in kwargs]
        return Parameters.of(found)
    names = list(full.args)
    if spec[1] and names:  # older files list `self`
        names = names[1:]
    defaults = list(full.defaults or ())
    first_default = len(names) - len(defaults)
    found = []
    for i, name in enumerate(names):
        default = defaults[i - first_default] if i >= first_default else P.empty
        found.append(P(name, P.POSITIONAL_OR_KEYWORD, default=default))
    if full.varargs:
        found.append(P(full.varargs, P.VAR_POSITIONAL))
    given = full.kwonlydefaults or {}
    for name in full.kwonlyargs:
        default = given.get(name, P.empty)
        found.append(FreelyNamed(name, P.KEYWORD_ONLY, default=default))
    if full.varkw:
        found.append(P(full.varkw, P.VAR_KEYWORD))
    return Parameters.of(found)


def _body(parameters):
    """What stands for the Python function, which was not saved."""

    def restored_function_body(*args, **kwargs):
        raise NotImplementedError("the Python code of a loaded function is not there")

    restored_function_body.__signature__ = inspect.Signature(parameters.parameters)
    return restored_function_body


class RestoredFunction(Function):
    """A tf.function of a SavedModel: the concrete functions that it was saved with, of
    which calls choose by their arguments. No others are made.
    """

    def __init__(self, concrete_functions, spec, parameters):
        signature = structured.decoded(spec[2])
        options = checked_options(
            input_signature=signature,
            autograph=False,
            jit_compile={1: True}.get(spec[3]),
        )
        super().__init__(_body(parameters), options)
        self.concrete_functions = concrete_functions

    def of_tensors(self, leaves):
        """What its only concrete function gives for tensors: tensors, in order."""
        return self.concrete_functions[0].of_tensors(leaves)

    def _list_all_concrete_functions(self):
        return list(self.concrete_functions)

    _list_all_concrete_functions_for_serialization = _list_all_concrete_functions

    @property
    def variable_captures(self):
        return tuple(v for c in self.concrete_functions for v in c.variables)

    def pretty_printed_concrete_signatures(self, verbose=True):
        shown = [c.pretty_printed_signature(verbose) for c in self.concrete_functions]
        return "\n\n".join(shown)

    def _resolve(self, slots, leaves):
        if self._signature_types is not None:
            return self._resolve_constrained(slots)
        concrete, converted = self._matching(slots)
        if converted is not None:
            return self._answer(concrete, converted)
        # The native key lists tensors as the parameters come.
        kept = concrete._in_slots
        return self._answer(
            concrete, leaves if kept else self._cast(concrete, slots), kept
        )

    def _answer(self, concrete, leaves, kept=False):
        results = concrete._results if concrete._native else None
        return concrete, concrete._core, results, None if kept else leaves

    def _only(self, types, leaves=None):
        if not self.concrete_functions:
            raise ValueError("Found zero restored functions for caller function.")
        if len(self.concrete_functions) == 1 or leaves is None:
            return self.concrete_functions[0]
        shapes = [(x.dtype, x.shape) for x in leaves]
        for concrete in self.concrete_functions:
            specs = concrete.flat_specs()
            if len(specs) == len(shapes) and all(
                s.dtype == d and s.shape.is_compatible_with(shape)
                for s, (d, shape) in zip(specs, shapes)
            ):
                return concrete
        return self.concrete_functions[0]

    def _cast(self, concrete, slots):
        out = []
        trace_types.cast(self._parameters.as_called(slots), concrete.types, out)
        return out

    def _matching(self, slots):
        """(concrete function, None), or (concrete function, its leaves) where arguments
        had to be converted."""
        if not self.concrete_functions:
            raise ValueError("Found zero restored functions for caller function.")
        inputs = self._parameters.as_called(slots)
        given = trace_types.type_of(inputs, trace_types.Aliases())
        for concrete in self.concrete_functions:
            if trace_types.subsumes(concrete.types, given):
                return concrete, None
        for concrete in self.concrete_functions:
            out = []
            try:
                trace_types.cast(inputs, concrete.types, out)
            except (TypeError, ValueError):
                continue
            return concrete, out
        raise ValueError(self._no_match(inputs))

    def _no_match(self, inputs):
        shown = _described(_named(inputs, self._parameters))
        options = [
            f"Option {i}:\n  {_described(c.inputs_as_saved)}"
            for i, c in enumerate(self.concrete_functions, 1)
        ]
        return (
            "Could not find matching concrete function to call loaded from the "
            f"SavedModel. Got:\n  {shown}\n\n Expected these arguments to match one of "
            f"the following {len(options)} option(s):\n\n" + "\n\n".join(options)
        )

    def get_concrete_function(self, *args, **kwargs):
        """The concrete function that serves arguments, or TensorSpecs in their place;
        ValueError where none does."""
        if self._signature_types is not None:
            return self._concrete_constrained(args, kwargs)
        return self._matching(self._slots(args, kwargs))[0]

    def _with(self, options):
        raise NotImplementedError("a loaded function cannot be traced anew")

    def __reduce__(self):
        raise TypeError("functions of loaded models cannot be pickled; save the model")


def _named(inputs, parameters):
    """Arguments with symbolic tensors' forms for tensors, as upstream's messages have
    them: it looks for the function while it traces a call."""
    args, kwargs = inputs
    names = [p.name for p in parameters.parameters]
    names += [names[-1] if names else "args"] * (len(args) - len(names))
    return (
        tuple(_shown(a, name) for a, name in zip(args, names)),
        {k: _shown(v, k) for k, v in kwargs.items()},
    )


class _Shown:
    def __init__(self, text):
        self._text = text

    def __repr__(self):
        return self._text


def _shown(value, name):
    def one(leaf):
        if not isinstance(leaf, _headrace.Tensor):
            return leaf
        return _Shown(
            f"<tf.Tensor '{name}:0' shape={leaf.shape} dtype={leaf.dtype.name}>"
        )

    return nest.map_structure(one, value)


def _described(inputs):
    args, kwargs = inputs
    rows = "".join(f"\n    * {a!r}" for a in args)
    return f"Positional arguments ({len(args)} total):{rows}\n  Keyword arguments: {kwargs}"
