"""Tracing: a Python function becomes a graph."""

import re
import sys
import threading

import numpy as np

from headrace._load import _headrace
from headrace.context import call_stacks, stack, strategies
from headrace.context.errors import InaccessibleTensorError
from headrace.framework import conversion, nest, variables
from headrace.framework.settings import random_seed
from headrace.function import trace_types, user_errors
from headrace.function.concrete import ConcreteFunction
from headrace.function.deferred import TracedGraph
from headrace.function.function_type import FunctionType, P
from headrace.graph import func_graph

_SINGLETON = (
    "tf.function-decorated function tried to create variables on non-first call. "
    "tf.function only supports singleton tf.Variables created on the first call. Make "
    "sure the tf.Variable is only created once or created outside tf.function. See "
    "https://www.tensorflow.org/guide/function#creating_tfvariables for more "
    "information."
)
_NOT_LIFTABLE = (
    "Tensor-typed variable initializers must either be wrapped in an init_scope or "
    "callable (e.g., `tf.Variable(lambda : tf.truncated_normal([10, 40]))`) when "
    "building functions. Please file a feature request if this restriction "
    "inconveniences you."
)


class _State(threading.local):
    depth = 0


_state = strategies.carry(_State())


class Creation:
    """What happens to variables that a function makes while it is traced."""

    def __init__(self, allowed, leaves=None):
        self.allowed = allowed
        self.made = []
        self._leaves = leaves  # the arguments of the call that the trace is for
        self._runs_at_once = leaves is not None and _headrace.is_eager()
        self.graph = None
        self.in_trace = False  # some get their first values when the trace runs

    def __call__(self, next_creator, **kwargs):
        if _headrace.is_eager():
            return next_creator(**kwargs)
        if not self.allowed:
            raise ValueError(_SINGLETON)
        initial = kwargs.get("initial_value")
        if callable(initial):
            initial = kwargs["initial_value"] = _outside_or_here(initial)
        if nest.is_nested(initial) and any(
            isinstance(x, _headrace.SymbolicTensor) for x in nest.flatten(initial)
        ):
            initial = conversion.convert_to_tensor(initial)
        assigned = None
        if isinstance(initial, _headrace.SymbolicTensor):
            if self._runs_at_once and initial.shape.is_fully_defined():
                assigned = initial
                initial = np.zeros(initial.shape, initial.dtype.as_numpy_dtype)
                kwargs["dtype"] = assigned.dtype
            else:
                initial = self._lifted(initial)
            kwargs["initial_value"] = initial
        with stack.init_scope():
            variable = next_creator(**kwargs)
        if assigned is not None:
            self.in_trace = True
            variable.assign(assigned)
        self.made.append(variable)
        return variable

    def _lifted(self, tensor):
        """The value of a tensor of the graph being traced, computed now."""
        graph = self.graph
        if _headrace.graph_id(tensor) != graph._core.id:
            raise ValueError(_NOT_LIFTABLE)
        feeds, values = [], []
        for outer, inner in graph._core.captures():
            if isinstance(outer, _headrace.EagerTensor):
                feeds.append(inner)
                values.append(outer)
        for inner, value in zip(graph.inputs, self._leaves or ()):
            if isinstance(value, _headrace.EagerTensor):
                feeds.append(inner)
                values.append(value)
        try:
            return _headrace.evaluate(graph._core, [tensor], feeds, values)[0]
        except Exception as e:
            raise ValueError(_NOT_LIFTABLE) from e


def _outside_or_here(initial):
    """What a callable gives: outside of the trace, unless it reads what is inside."""
    with stack.init_scope():
        try:
            return initial()
        except (TypeError, InaccessibleTensorError):
            pass
    return initial()


def trace(
    python_function,
    parameters,
    types,
    name,
    creation,
    wrap_errors=True,
    keeps_effects=True,
    own_variables=(),
    keeps_variables=True,
    attributes=None,
    converted=None,
):
    """A ConcreteFunction of `python_function` for arguments of `types`.

    `own_variables`, {alias_id: variable}, are arguments that the function captures as
    well: it is made for these very variables, so that each has one gradient.
    Effects that no result waits for are part of it where `keeps_effects` is true.
    Without `keeps_variables` calls fail once a variable that it captured is gone.
    `converted` is called in the function's place: the same with its control flow made
    that of graphs.
    """
    graph = TracedGraph(name, stack.current())
    graph.keeps_effects = keeps_effects
    graph.variable_arguments.update(own_variables)
    graph.seed = random_seed.holder().seed
    creation.graph = graph
    called = converted or python_function
    with variables.variable_creator_scope(creation), graph.as_default():
        value = _build(called, parameters, types, graph, wrap_errors)
        results = func_graph.Results(value, python_function)
    check_captures(graph)
    captured = graph.variables
    trainable = [v.handle for v in captured if v.trainable]
    full_name = _headrace.new_function_name(f"__inference_{name}")
    graph.drop_unused()
    arguments = graph.inputs + graph.deferred_tensors
    core = _headrace.make_concrete(
        graph._core,
        full_name,
        arguments,
        results.tensors,
        trainable,
        keep_effects=keeps_effects,
        borrowed=() if keeps_variables else captured,
        attrs=attributes or {},
    )
    graph._function = core
    graph.inputs = arguments + graph.internal_captures
    graph.outputs = list(results.tensors)
    graph.structured_outputs = func_graph.rebuild(results.structure, results.tensors)
    function_type = FunctionType(parameters, types)
    graph._function_type = function_type
    made = ConcreteFunction(core, graph, function_type, results, name)
    made._kept_variables = captured if keeps_variables else ()
    made._runner = next(filter(None, (v._runner for v in captured)), None)
    return made


def _build(function, parameters, types, graph, wrap_errors):
    _state.depth += 1
    try:
        slots = [_slot(p, t, graph) for p, t in zip(parameters.parameters, types)]
        before = list(map(_snapshot, slots))
        value = _call(function, parameters, slots, wrap_errors)
        _check_untouched(graph.name, parameters.parameters, slots, before)
        return value
    finally:
        _state.depth -= 1


def _snapshot(value):
    """What of a structure a function might change: its containers."""
    if not isinstance(value, (list, tuple, dict)):
        return value
    keys = nest.sorted_keys(value) if nest._is_dict(value) else None
    return _Snapshot(keys, [_snapshot(v) for v in nest.children(value)])


class _Snapshot:
    def __init__(self, keys, items):
        self.keys, self.items = keys, items

    def is_same(self, other):
        return (
            isinstance(other, _Snapshot)
            and self.keys == other.keys
            and len(self.items) == len(other.items)
            and all(
                a.is_same(b) if isinstance(a, _Snapshot) else a is b
                for a, b in zip(self.items, other.items)
            )
        )


def _check_untouched(name, parameters, slots, before):
    """ValueError where the function changed containers that it was given."""
    changed = []
    for parameter, slot, old in zip(parameters, slots, before):
        if isinstance(old, _Snapshot) and not old.is_same(_snapshot(slot)):
            changed.append(parameter.name)
    if changed:
        shown = ", ".join(p.name for p in parameters)
        raise ValueError(
            f"{name}({shown}) should not modify its Python input arguments. Modifying "
            "a copy is allowed. The following parameter(s) were modified: "
            f"{', '.join(changed)}"
        )


def _slot(parameter, t, graph):
    out = graph.inputs
    if parameter.kind == P.VAR_POSITIONAL:
        return tuple(
            trace_types.placeholder(item, graph, f"{parameter.name}_{i}", out)
            for i, item in enumerate(t.items)
        )
    if parameter.kind == P.VAR_KEYWORD:
        _check_names(t.keys)
        return {
            k: trace_types.placeholder(item, graph, k, out)
            for k, item in zip(t.keys, t.items)
        }
    return trace_types.placeholder(t, graph, parameter.name, out)


def _check_names(keys):
    """ValueError where keywords become the same names of parameters."""
    made = {re.sub("[^a-zA-Z0-9_]", "_", k) for k in keys}
    if len(made) < len(keys):
        raise ValueError(
            "Name collision after sanitization. Please rename tf.function input "
            f"parameters. Original: {sorted(keys)}, Sanitized: {sorted(made)}"
        )


def _call(function, parameters, slots, wrap_errors):
    try:
        return parameters.call(function, slots)
    except Exception as e:
        if not wrap_errors or _state.depth > 1:
            raise
        told = user_errors.in_user_code(e, sys.exc_info()[2])
        if told is None:
            raise
        error = told.with_traceback(e.__traceback__)
    raise error from None


def check_captures(graph):
    """Captured tensors must belong to graphs around this one."""
    around = stack.within_reach() - {graph._core.id}
    for outer, _ in graph._core.captures():
        if isinstance(outer, _headrace.SymbolicTensor):
            if _headrace.graph_id(outer) not in around:
                raise out_of_scope(outer, graph)


def out_of_scope(tensor, graph):
    """The error of a tensor used outside the function or branch that made it."""
    home, error = "a function that is gone", TypeError
    try:
        home = tensor.graph
        label = getattr(home, "branch_label", None)
        other = getattr(graph, "branch_label", None)
        if label and other and home.outer_graph is graph.outer_graph:
            return ValueError(
                f"Tensor {home.outer_scope}{tensor.name} in {label} is accessed from "
                f"{other}."
            )
        if _is_being_made(getattr(home, "outer_graph", None), graph):
            error = InaccessibleTensorError
    except ValueError:
        pass
    return error(
        f"{tensor!r} is out of scope and cannot be used here. Use return values, "
        "explicit Python locals or TensorFlow collections to access it.\nPlease see "
        "https://www.tensorflow.org/guide/function#all_outputs_of_a_tffunction_must_be"
        f"_return_values for more information.\n\n{_origin(tensor, error)}The tensor {tensor!r} cannot be "
        f"accessed from {graph}, because it was defined in {home}, which is out of "
        "scope."
    )


def _is_being_made(inner, graph):
    """True where `inner` is `graph` or one that it is made in, or lies in one."""
    making = []
    while graph is not None:
        making.append(graph)
        graph = getattr(graph, "outer_graph", None)
    while inner is not None:
        if getattr(inner, "building_function", False) and any(
            g is inner for g in making
        ):
            return True
        inner = getattr(inner, "outer_graph", None)
    return False


def _origin(tensor, error):
    """The user's frames where the tensor was made."""
    try:
        frames = call_stacks.user_frames(tensor.op.traceback)
    except ValueError:
        return ""
    lines = [f'    File "{f}", line {n}, in {name}' for f, n, name in frames]
    gap = "\n" if error is InaccessibleTensorError else ""
    return f"{tensor!r} was defined here:\n" + "\n".join(lines) + "\n" + gap


def raise_out_of_scope(tensor):
    """Called natively for a symbolic tensor that reached eager code."""
    if _headrace.in_function_body(tensor):
        raise out_of_scope(tensor, "here")
