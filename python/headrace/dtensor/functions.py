"""Traced functions of tensors with layouts.

Attached to their classes when the first mesh is asked for, so that programs without
meshes pay nothing.
"""

import functools
import weakref

from headrace._load import _headrace
from headrace.dtensor import gradients, tensors
from headrace.dtensor.calls import mesh_of, refuse_plain
from headrace.dtensor.layout import Layout
from headrace.dtensor.propagation import Specs
from headrace.dtensor.rules import whole
from headrace.dtensor.structures import leaves, mapped
from headrace.dtensor.tensors import laid, layout_of, no_hook, with_layout
from headrace.framework import variables
from headrace.framework.settings import tracebacks
from headrace.function import trace_types
from headrace.function.concrete import ConcreteFunction
from headrace.function.polymorphic import Function


def _resolved(function, args, kwargs):
    """(the trace that serves these arguments, the arguments by its parameters)."""
    if isinstance(function, ConcreteFunction):
        return function, (args, kwargs)
    slots = function._slots(args, kwargs)
    if function._signature_types is not None:
        return function._only(function._signature_types), slots
    aliases = trace_types.Aliases()
    types = [trace_types.type_of(v, aliases) for v in slots]
    return function._find(types, aliases.variables), slots


def _of_captures(graph):
    """{name of a capture's tensor in the graph: the layout that it has}."""
    found = {}
    for outer, inner in zip(graph.external_captures, graph.internal_captures):
        value = outer
        if isinstance(outer, _headrace.EagerTensor) and layout_of(outer) is None:
            value = variables.of_handle(outer)
        layout = layout_of(value)
        if layout is not None:
            found[inner.name] = layout
    return found


def _of_arguments(graph, slots):
    """{name of an argument's tensor in the graph: the layout that it has}."""
    captured = {t.name for t in graph.internal_captures}
    free = [t for t in graph.inputs if t.name not in captured]
    given = [v for v in leaves(slots) if hasattr(v, "dtype") and hasattr(v, "shape")]
    found = {}
    for value in given:
        is_variable = isinstance(value, _headrace.VariableBase)
        for i, inner in enumerate(free):
            if (inner.dtype.name == "resource") == is_variable and (
                is_variable or inner.shape.is_compatible_with(value.shape)
            ):
                if layout_of(value) is not None:
                    found[inner.name] = layout_of(value)
                del free[i]
                break
    return found


def _call(native, self, args, kwargs):
    if not _headrace.is_eager() or tensors.is_inside():
        return native(self, *args, **kwargs)
    given = list(leaves((args, kwargs)))
    known = [v for v in given if layout_of(v) is not None]
    mesh = mesh_of(known)
    if known:
        for i, value in enumerate(given):
            if isinstance(value, _headrace.EagerTensor) and layout_of(value) is None:
                refuse_plain(_name_of(self), i, value)
    with no_hook():
        result = native(self, *args, **kwargs)
    if mesh is None and not _lays_out(self):
        return result
    concrete, slots = _resolved(self, args, kwargs)
    if concrete is None:
        return result
    layouts = _of_captures(concrete.graph)
    layouts.update(_of_arguments(concrete.graph, slots))
    if mesh is None and layouts:
        mesh = next(iter(layouts.values())).mesh
    specs = _specs(concrete, layouts, mesh)
    if specs.mesh is None:
        return result
    result = _laid_out(result, concrete, specs, given)
    gradients.note(self, args, kwargs, result)
    return result


def _lays_out(function):
    """Whether a trace gives layouts by what it captured or asked for."""
    is_one = isinstance(function, ConcreteFunction)
    return any(map(_one_lays_out, [function] if is_one else function._traces.all()))


_known = weakref.WeakKeyDictionary()  # by traces: Specs, by the layouts of inputs


def _one_lays_out(concrete):
    kept = _known.setdefault(concrete, {})
    if None not in kept:
        captured = _of_captures(concrete.graph)
        wanted = Specs(concrete.graph, {}, None).mesh is not None
        kept[None] = bool(captured) or wanted
    return kept[None]


def _specs(concrete, layouts, mesh):
    kept = _known.setdefault(concrete, {})
    key = frozenset(layouts.items()), mesh
    if key not in kept:
        if len(kept) > _MOST_KEPT:
            kept.clear()
        kept[key] = Specs(concrete.graph, layouts, mesh)
    return kept[key]


_MOST_KEPT = 64  # of a trace: as many as it may have calls that differ lately


def _name_of(function):
    return f"__inference_{getattr(function, '__name__', function.name)}"


def _laid_out(result, concrete, specs, given):
    known = {id(v) for v in given}
    traced = list(leaves(concrete.structured_outputs))
    if len(traced) != len(list(leaves(result))):
        return result
    rest = iter(traced)

    def place(value):
        inner = next(rest)
        if not isinstance(value, _headrace.EagerTensor):
            return value
        if not isinstance(inner, _headrace.SymbolicTensor):
            return value
        found = specs.of(inner)
        if len(found) != value.shape.rank:  # not known before it ran
            found = whole(value.shape.rank)
        layout = Layout([*found], specs.mesh)
        return laid(value, layout) if id(value) in known else with_layout(value, layout)

    return mapped(place, result)


def _attach(kind):
    native = kind.__call__

    @tracebacks.filtered
    @functools.wraps(native)
    def __call__(self, *args, **kwargs):
        return _call(native, self, args, kwargs)

    kind.__call__ = __call__


for _kind in (Function, ConcreteFunction):
    _attach(_kind)
