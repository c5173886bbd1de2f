"""Concrete functions: one trace of a function, callable by itself."""

import functools
import weakref

from headrace._load import _headrace
from headrace.context import call_stacks, stack
from headrace.context.errors import (
    InvalidArgumentError,
    OpError,
    UnimplementedError,
)
from headrace.context.properties import read_only
from headrace.eager import named_gradients
from headrace.framework import nest, type_spec
from headrace.framework.support import protos
from headrace.framework.trackable import Trackable
from headrace.function import trace_types
from headrace.function.deferred import Captures
from headrace.function.function_type import P, is_missing
from headrace.graph import func_graph


def _output_type(structure, tensors):
    value = func_graph.rebuild(structure, tensors)
    return _type_of_result(value)


def _type_of_result(value):
    if value is None:
        return trace_types.Literal(None)
    if isinstance(value, _headrace.Tensor):
        return type_spec.TensorSpec(value.shape, value.dtype)
    if nest.is_nested(value):
        keys = nest.sorted_keys(value) if nest._is_dict(value) else None
        items = [_type_of_result(v) for v in nest.children(value)]
        return trace_types.Structure(value, keys, items)
    return type_spec.type_spec_from_value(value)


class ConcreteFunction(Trackable):
    """A function traced for one signature. Calls take tensors of its types."""

    # What runs it where it is called outside of graphs, as variables that it captured lie
    # in other processes: a function of it and its tensors that gives all its results.
    _runner = None
    _runs_first = None  # the ConcreteFunction that its first call runs in its place
    _any_shapes = None  # the native function for tensors of any shapes
    _has_closures = False  # in the place of captured tensors
    _changed = None  # what is to be told of other captures
    _apart = None  # the ConcreteFunction that SavedModels have in its place
    _own_variables = ()

    def __init__(self, core, graph, function_type, results, python_name):
        self._core = core
        self._graph = graph
        self._function_type = function_type
        self._results = results.structure
        self._native = results.native
        self._python_name = python_name
        self._signature = None
        self._of_specs = False  # it was asked for with TensorSpecs
        self._is_new = False  # no call of its Function has run it yet
        self._kept_variables = ()
        graph._concrete = weakref.ref(self)
        function_type.output = _output_type(results.structure, results.tensors)

    # --- calling ---

    def __call__(self, *args, **kwargs):
        leaves = self._leaves(args, kwargs)
        return self._call_flat(leaves)

    @property
    def _gradients(self):
        """Entries that nodes of the graph name as their gradients, or None."""
        return self._graph._gradients or None

    def _call_flat(self, leaves):
        gradients = self._gradients
        if gradients and not _headrace.is_eager():
            named_gradients.keep(gradients)
        if self._graph.deferred:
            leaves = [*leaves, *self._graph.deferred_values()]
        if self._has_closures:
            self._captures.tensors()
        if self._runner is not None and _headrace.is_eager():
            self._check_away()
            return self._pack(self._runner(self, leaves))
        try:
            return self._pack(self._call_core(leaves, gradients))
        except OpError as e:
            self._explain(e)
            raise

    def _call_core(self, leaves, gradients):
        """The tensors that it gives. Eager calls may give tensors of other shapes, which
        are not known to fit before the operations run."""
        try:
            return self._core.call(leaves, gradients)
        except InvalidArgumentError:
            if not _headrace.is_eager():
                raise
            if self._any_shapes is None or not self._of_other_shapes(leaves):
                self._any_shapes = _headrace.core_for_shapes(self._core, leaves)
                if self._any_shapes is None:
                    raise
        return self._any_shapes.call(leaves, gradients)

    def _of_other_shapes(self, leaves):
        return any(
            not x.shape.is_compatible_with(value.shape)
            for x, value in zip(self.inputs, leaves)
            if isinstance(value, _headrace.Tensor)
        )

    def _check_away(self):
        """UnimplementedError where a tape would want the gradient of what runs
        elsewhere."""
        if _headrace.has_recorders() and self.trainable_variables:
            raise UnimplementedError._of(
                f"the gradient of {self.name.decode()}, whose variables lie in other "
                "processes: the tape is to be within the function"
            )

    def _pack(self, tensors):
        return func_graph.rebuild(self._results, tensors)

    def _explain(self, error):
        """Tells where the operation that failed was made; also called natively."""
        if isinstance(error, OpError):
            call_stacks.explain_run(error, self._graph)

    def _leaves(self, args, kwargs):
        try:
            return self._structured(args, kwargs)
        except TypeError as e:
            error = e
        try:
            return self._flat(args, kwargs)
        except TypeError as e:
            raise TypeError(
                f"{error}\nFallback to flat signature also failed due to: {e}"
            ) from None

    def _structured(self, args, kwargs):
        if self._signature is None:
            self._signature = self._function_type.signature()
        literal = ""  # what the guide says of another value than the traced one
        try:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            out = []
            for e in self._function_type.entries:
                value = bound.arguments[e.name]
                if is_missing(value):
                    raise TypeError(f"missing a required argument: {e.name!r}")
                literal = self._other_literal(e, value)
                self._cast(value, e.type, out)
            return out
        except TypeError as e:
            raise TypeError(
                f"{literal}Binding inputs to tf.function failed due to `{e}`. Received "
                f"args: {args} and kwargs: {kwargs} for signature: "
                f"{self._function_type!r}."
            ) from None

    def _other_literal(self, entry, value):
        if not isinstance(entry.type, trace_types.Literal):
            return ""
        if isinstance(value, (_headrace.Tensor, _headrace.VariableBase)):
            return ""
        names = ", ".join(e.name for e in self._function_type.entries)
        made, want = type(entry.type.value).__name__, entry.type.value
        return (
            f"ConcreteFunction {self._python_name}({names}) was constructed with "
            f"{made} value {want!r} in {entry.name}, but was called with "
            f"{type(value).__name__} value {value!r}\n"
        )

    def _cast(self, value, t, out):
        """Dtypes of tensors are checked by the call itself, as are eager ones' shapes."""
        if type(t) is type_spec.TensorSpec and isinstance(value, _headrace.Tensor):
            if not (_headrace.is_eager() or t.shape.is_compatible_with(value.shape)):
                given = type_spec.TensorSpec(value.shape, value.dtype)
                wanted = type_spec.TensorSpec(t.shape, t.dtype)
                raise TypeError(f"Can not cast {given!r} to {wanted!r}")
            out.append(value)
        elif isinstance(t, type_spec.VariableSpec) and isinstance(
            value, _headrace.Tensor
        ):
            out.append(value)
        else:
            trace_types.cast(value, t, out)

    def _most_positional(self, arguments):
        """How many of its tensors a call may give by position."""
        by_keyword = self._function_type.entries and all(
            e.kind == P.KEYWORD_ONLY for e in self._function_type.entries
        )
        return 0 if by_keyword else arguments

    def _flat_names(self):
        """What the tensors of its arguments are called, in order."""
        inputs = self.inputs
        others = len(self.captured_inputs) + len(self._graph.deferred_tensors)
        return [x.op.name for x in inputs[: len(inputs) - others]]

    def _flat(self, args, kwargs):
        """The tensors that the graph takes, by position or by the names that they have
        there; literals are left out."""
        names = self._flat_names()
        shown = f"{self._python_name}({', '.join(names)})"
        most = self._most_positional(len(names))
        if len(args) > most:
            raise TypeError(
                f"{shown} takes {most} positional arguments, got {len(args)}."
            )
        for name in names[: len(args)]:
            if name in kwargs:
                raise TypeError(f"{shown} got two values for {name!r}.")
        missing = [n for n in names[len(args) :] if n not in kwargs]
        if missing:
            raise TypeError(
                f"{shown} missing required arguments: {', '.join(missing)}."
            )
        extra = sorted(k for k in kwargs if k not in names)
        if extra:
            raise TypeError(
                f"{shown} got unexpected keyword arguments: {', '.join(extra)}."
            )
        flat = list(args) + [kwargs[n] for n in names[len(args) :]]
        for i, x in enumerate(flat):
            if not isinstance(x, (_headrace.Tensor, _headrace.VariableBase)):
                raise TypeError(
                    f"{shown}: expected argument #{i}(zero-based) to be a Tensor; got "
                    f"{type(x).__name__} ({x})."
                )
        if not _headrace.is_eager():
            self._check_shapes(flat)
        return flat

    def _check_shapes(self, flat):
        for x, value in zip(self.inputs, flat):
            if not isinstance(value, _headrace.Tensor) or x.dtype != value.dtype:
                continue
            if not x.shape.is_compatible_with(value.shape):
                raise TypeError(
                    f"Tensor {value} is not compatible with the shape this function was "
                    f"traced with. Expected shape {x.shape}, but got shape {value.shape}."
                    "\n\nIf you called get_concrete_function, you may need to pass a "
                    "tf.TensorSpec(..., shape=...) with a less specific shape, having "
                    "None on axes which can vary."
                )

    def _call_with_flat_signature(self, args, kwargs):
        return self._call_flat(self._flat(args, kwargs))

    # --- what it is ---

    @property
    def name(self):
        """The name of the traced function in the runtime's library: bytes."""
        return self._core.name.encode()

    graph = read_only("_graph", "The FuncGraph with the operations that were traced.")

    @property
    def inputs(self):
        """A list of the graph's placeholders: those of the arguments, then of the
        captures.
        """
        return list(self._graph.inputs)

    @property
    def outputs(self):
        """A flat list of the graph's output tensors; structured_outputs has their
        structure.
        """
        return list(self._graph.outputs)

    @property
    def captured_inputs(self):
        """A list of the outer tensors and variables' handles that each call passes
        along.
        """
        return self._captures.tensors()

    @functools.cached_property
    def _captures(self):
        return Captures(self)

    @property
    def _captured_inputs(self):
        return self._captures.all()

    def set_external_captures(self, captures):
        """Calls use these values, tensors or closures that give some, in place of the
        captured ones; ValueError where their number is another."""
        self._captures.set(captures)
        self._tell_change()

    def replace_capture_with_deferred_capture(
        self, tensor, closure, spec, placeholder=None, default_value=None
    ):
        """Each call takes what `closure()` gives then in the place of a captured tensor.

        Args:
          tensor: the captured tensor.
          closure: a function without arguments.
          spec: a TensorSpec that the closure's values fit.
          placeholder: what stands for the capture in `graph`; found by `tensor` without.
          default_value: None alone is supported.

        Raises:
          ValueError: `tensor` was not captured, or the spec does not fit it.
          NotImplementedError: for a default_value.
        """
        if default_value is not None:
            raise NotImplementedError(
                "replace_capture_with_deferred_capture: default_value is not supported"
            )
        self._captures.replace(tensor, closure, spec, placeholder)
        self._tell_change()

    def _tell_change(self):
        self._has_closures = self._captures.has_closures
        if self._changed is not None:
            self._changed()

    variables = read_only(
        "_graph.variables",
        "A tuple of the variables that the function captured and that still live.",
    )
    trainable_variables = read_only(
        "_graph.trainable_variables",
        "A tuple of those of `variables` that are trainable.",
    )

    @property
    def structured_input_signature(self):
        """(args, kwargs) with a TensorSpec, or another spec, in the place of each
        tensor.
        """
        return self._graph.structured_input_signature

    structured_outputs = read_only(
        "_graph.structured_outputs",
        "The outputs in the structure that the Python function returned them in.",
    )

    @property
    def output_dtypes(self):
        """The dtypes of the outputs, in the structure of structured_outputs."""
        return self._of_outputs(lambda t: t.dtype)

    @property
    def output_shapes(self):
        """The static shapes of the outputs, in the structure of structured_outputs."""
        return self._of_outputs(lambda t: t.shape)

    def _of_outputs(self, what):
        return nest.map_structure(
            lambda t: None if t is None else what(t), self.structured_outputs
        )

    function_type = read_only(
        "_function_type",
        "The FunctionType it was traced for: its parameters with their types.",
    )

    @property
    def inference_fn(self):
        """The function that runs without recording gradients:
        here the object itself."""
        return self

    @property
    def function_def(self):
        """The traced function as a FunctionDef proto, made anew at each access."""
        if not hasattr(_headrace, "export_function"):
            raise NotImplementedError(
                "ConcreteFunction.function_def is not supported yet"
            )
        proto = protos.FunctionDef()
        proto.ParseFromString(_headrace.export_function(self._core))
        return proto

    def add_to_graph(self, g=None, overwrite=False):
        """Keeps the function with a graph that names it."""
        graph = g if g is not None else stack.current()
        if graph is not None:
            graph.get_collection_ref("__functions").append(self._core)

    def add_gradient_functions_to_graph(self, g=None):
        """The same as add_to_graph(g): gradients here are no functions of their own."""
        self.add_to_graph(g)

    def pretty_printed_signature(self, verbose=True):
        """Text that names the parameters and results; `verbose` adds types and
        captures: in few words where tensors and Python values come in, one tensor or
        None comes out and nothing was captured.
        """
        if not verbose:
            return repr(self._function_type)
        captures = self.captured_inputs
        if not captures and self._function_type.is_plain():
            return self._function_type.plain(self._python_name)
        return self._function_type.pretty(captures)

    def __repr__(self):
        return f"<ConcreteFunction {self._function_type!r} at {id(self):#x}>"

    def __str__(self):
        return f"ConcreteFunction {self.pretty_printed_signature()}"
