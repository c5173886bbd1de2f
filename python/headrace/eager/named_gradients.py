"""Gradients that nodes of graphs name: tf.custom_gradient's and tf.RegisterGradient's.

The native walks over graphs know what RegisterGradient registered and ask `find` for
other names. An entry answers in two ways: `direct` emits into the graph being built,
next to the node that was recorded; `written` gives a function for the way back through
copies of the node's graph.
"""

import itertools
import sys
import weakref

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework.indexed_slices import from_gradient, to_gradient
from headrace.graph.func_graph import FuncGraph
from headrace.graph.operation import Operation

_custom = weakref.WeakValueDictionary()
_registered = {}  # _Registered by name; the native registry holds them too
_numbers = itertools.count()


def find(name):
    """The entry of a call's gradient, or None."""
    return _custom.get(name)


def keep(gradients):
    """Lets the graphs being built hold entries that their nodes name.

    An entry lives as long as a graph that may ask for it; bodies of branches and
    loops live no longer than what is around them.
    """
    for graph in reversed(stack.entered()):
        if graph is None:
            break
        graph._gradients.update(gradients)


class CustomGradient:
    """The gradient of one call of a function with tf.custom_gradient in a graph.

    `backward` takes a gradient (or None) for each of the call's results and gives one
    for each of its inputs.
    """

    def __init__(self, graph, backward, num_results):
        self.name = f"CustomGradient-{next(_numbers)}"
        self.core = graph._core  # native: knows what was captured as what
        self.graph_id = graph._core.id
        self._reach = stack.within_reach()  # what its closure may hold tensors of
        self._backward = backward
        self._num_results = num_results
        self._written = {}
        self._inside = set()  # entries that the written functions name
        _custom[self.name] = self
        keep([self])

    def direct(self, outputs, gradients):
        n = self._num_results
        return [None] * n + self._backward(gradients[:n])

    def written(self, outputs, gradients):
        key = tuple(None if g is None else (g.dtype, str(g.shape)) for g in gradients)
        found = self._written.get(key)
        if found is None:
            found = _write(
                lambda given: self.direct(outputs, given), gradients, self._reach
            )
            self._inside.update(found[2])
            self._written[key] = found
        return found[0], found[1], None


class _Registered:
    """A function of tf.RegisterGradient, there for good."""

    core = None
    graph_id = 0  # of any graph

    def __init__(self, function, place):
        self._function = function
        self.place = place

    def direct(self, outputs, gradients):
        return self._call(outputs[0].op, gradients)

    def at_once(self, op_type, inputs, outputs, attributes, gradients):
        return self._call(_EagerCall(op_type, inputs, outputs, attributes), gradients)

    def written(self, outputs, gradients):
        op = Operation(None, _headrace.node_of(outputs[0]))
        reach = {_headrace.graph_id(outputs[0])}
        return _write(lambda given: self._call(op, given), gradients, reach)

    def _call(self, op, gradients):
        given = [
            zeros_like(o) if g is None and _is_trainable(o) else from_gradient(g)
            for g, o in zip(gradients, op.outputs)
        ]
        found = self._function(op, *given)
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        if len(found) != len(op.inputs):
            raise ValueError(
                f"Num gradients {len(found)} generated for op {op.node_def} "
                f"do not match num inputs {len(op.inputs)}"
            )
        return [to_gradient(g) for g in found]


class _EagerCall:
    """What a gradient function sees of a call that ran at once: an operation's face."""

    def __init__(self, op_type, inputs, outputs, attributes):
        self.type = self.name = self.node_def = op_type
        self.inputs = inputs
        self.outputs = outputs
        self._attributes = attributes

    def get_attr(self, name):
        if name not in self._attributes:
            raise ValueError(f"Operation '{self.name}' has no attr named '{name}'.")
        return self._attributes[name]


def _is_trainable(x):
    return x.dtype.is_floating or x.dtype.is_complex


def zeros_like(x):
    return raw.ZerosLike(x)


def _write(backward, gradients, reach):
    """(native function, places of its results, entries that it names).

    `reach`: identities of the graphs that `backward` reads tensors of; the caller finds
    what became of them. The function takes the gradients that are not None. Places are one an input of the
    node: None, a result's number, or three of them for slices.
    """
    graph = FuncGraph("gradient")
    graph.stands_in = frozenset(reach)
    results = []

    def place(x):
        if x is None:
            return None
        if isinstance(x, tuple):
            return tuple(place(part) for part in x)
        results.append(_of_graph(x, graph))
        return len(results) - 1

    with graph.as_default():
        given = [
            None
            if g is None
            else graph._core.placeholder(f"grad_{i}", g.dtype, g.shape, g)
            for i, g in enumerate(gradients)
        ]
        places = [place(x) for x in backward(given)]
    name = _headrace.new_function_name("__custom_gradient")
    arguments = [g for g in given if g is not None]
    core = _headrace.make_concrete(graph._core, name, arguments, results, [])
    return core, places, graph._gradients


def _of_graph(x, graph):
    if (
        isinstance(x, _headrace.SymbolicTensor)
        and _headrace.graph_id(x) == graph._core.id
    ):
        return x
    return raw.Identity(x)


class RegisterGradient:
    """Decorates the gradient function of a name: `f(op, *gradients)`.

    It serves operations of that type, and those that Graph.gradient_override_map gives
    the name.
    """

    def __init__(self, op_type):
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f):
        name = self._op_type
        if name in _registered or _headrace.has_gradient(name):
            before = _registered.get(name)
            place = f" (Previous registration was in {before.place})" if before else ""
            raise KeyError(f"Registering two gradient with name '{name}'!{place}")
        frame = sys._getframe(1)
        place = f"{frame.f_code.co_name} {frame.f_code.co_filename}:{frame.f_lineno}"
        _registered[name] = _Registered(f, place)
        _headrace.register_gradient(name, _registered[name])
        return f
