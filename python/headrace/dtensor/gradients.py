"""Layouts of the gradients of eager tapes.

A tape here keeps, beside what it records natively, the calls that gave tensors with
layouts while it recorded. Asked for gradients, it makes the same calls in a scratch
graph, with their gradients, and walks that for layouts.
"""

import functools
import threading

from headrace import _api as tf
from headrace._load import _headrace
from headrace.dtensor.propagation import Specs
from headrace.dtensor.structures import leaves, mapped
from headrace.dtensor.tensors import (
    DTensor,
    inside,
    layout_of,
    no_hook,
    variable_of,
    with_layout,
)
from headrace.eager.backprop import GradientTape
from headrace.graph.func_graph import FuncGraph


class _Thread(threading.local):
    def __init__(self):
        self.tapes = []  # those that record on this thread


_thread = _Thread()


def note(function, args, kwargs, result):
    """function(*args, **kwargs) gave `result`, of tensors with layouts."""
    for tape in _thread.tapes:
        tape._calls.append((function, args, kwargs, result))


class _Replay:
    """The calls of a tape in a graph."""

    def __init__(self, calls):
        self.graph, self.layouts = FuncGraph("gradients"), {}
        self._known = {}  # by the id of a tensor or variable: its tensor in the graph
        self._kept = []  # objects whose ids are known
        with self.graph.as_default():
            for function, args, kwargs, result in calls:
                traced = function(*mapped(self.of, args), **mapped(self.of, kwargs))
                for outer, inner in zip(leaves(result), leaves(traced)):
                    if isinstance(inner, _headrace.SymbolicTensor):
                        self._know(outer, inner)

    def _know(self, outer, inner):
        self._known[id(outer)] = inner
        self._kept.append(outer)
        return inner

    def of(self, value):
        """What stands for a tensor or variable in the graph; other values as they are."""
        variable = variable_of(value)
        value = value if variable is None else variable
        if id(value) in self._known:
            return self._known[id(value)]
        if not isinstance(value, (_headrace.EagerTensor, _headrace.VariableBase)):
            return value
        layout = layout_of(value)
        small = value.dtype.is_integer and layout is None
        if small and isinstance(value, _headrace.EagerTensor):
            return self._know(value, tf.constant(value.numpy(), value.dtype))
        holder = tf.compat.v1.placeholder(value.dtype, value.shape)
        if layout is not None:
            self.layouts[holder.name] = layout
        return self._know(value, holder)

    def gradients(self, targets, sources):
        """The gradients in the graph, of seeds that are whole."""
        with self.graph.as_default():
            ends = [self.of(t) for t in targets]
            seeds = [tf.ones(t.shape, t.dtype) for t in ends]
            return tf.gradients(ends, [self.of(s) for s in sources], seeds)


def _layouts_of(calls, targets, sources, mesh):
    """A layout, or None, of the gradient by each source: those of the sources where the
    calls cannot be made in a graph."""
    try:
        replay = _Replay(calls)
        found = replay.gradients(targets, sources)
    except (TypeError, ValueError, AttributeError, LookupError, RuntimeError):
        return [layout_of(s) for s in sources]
    specs = Specs(replay.graph, replay.layouts, mesh)
    return [
        mesh_layout(layout_of(s), specs.of(g))
        if isinstance(g, _headrace.SymbolicTensor)
        else layout_of(s)
        for g, s in zip(found, sources)
    ]


def mesh_layout(layout, specs):
    """The layout with other specs; None where there is none."""
    return None if layout is None else layout._like(specs)


def _gradient(plain, self, target, sources, *args, **kwargs):
    given = list(leaves(sources))
    known = [layout_of(v) for v in given if layout_of(v) is not None]
    if not _headrace.is_eager() or not known:
        return plain(self, target, sources, *args, **kwargs)
    calls = list(self._calls)
    with inside(), no_hook():
        result = plain(self, target, sources, *args, **kwargs)
    if not self._persistent:
        self._calls.clear()
    layouts = iter(_layouts_of(calls, list(leaves(target)), given, known[0].mesh))

    def place(value):
        layout = next(layouts)
        if layout is None or not isinstance(value, _headrace.EagerTensor):
            return value
        if isinstance(value, DTensor) or layout.rank != value.shape.rank:
            return value
        return with_layout(value, layout)

    return mapped(place, result)


def _attach():
    push, pop, plain = GradientTape._push, GradientTape._pop, GradientTape.gradient
    reset = GradientTape.reset

    @functools.wraps(push)
    def _push(self):
        push(self)
        self.__dict__.setdefault("_calls", [])
        _thread.tapes.append(self)

    @functools.wraps(pop)
    def _pop(self):
        pop(self)
        if self in _thread.tapes:
            _thread.tapes.remove(self)

    @functools.wraps(plain)
    def gradient(self, target, sources, *args, **kwargs):
        return _gradient(plain, self, target, sources, *args, **kwargs)

    @functools.wraps(reset)
    def _reset(self):
        self._calls.clear()
        reset(self)

    GradientTape._calls = ()
    GradientTape._push, GradientTape._pop = _push, _pop
    GradientTape.gradient, GradientTape.reset = gradient, _reset


_attach()
