"""The layouts of a graph's results, by those of its inputs."""

import weakref

from headrace import _api as tf
from headrace.dtensor.layout import MATCH, UNSHARDED
from headrace.dtensor.rules import RULES, Call, whole
from headrace.dtensor.shape_rules import RULES as _RULES_OF_SHAPES  # with those

assert RULES is _RULES_OF_SHAPES
_demanded = weakref.WeakKeyDictionary()  # by graphs: {name of a tensor: what it has}


def _demands(graph):
    return _demanded.setdefault(graph, {})


def demand(tensor, layout):
    """What a relayout made of the tensor in a graph has that layout."""
    _demands(tensor.graph)[tensor.name] = layout


def demand_like(tensor, other):
    """What a relayout_like made of the tensor has the layout of another one."""
    _demands(tensor.graph)[tensor.name] = other.name


def fitting(specs, shape, mesh):
    """The specs, of which those that divide a size unevenly are left out."""
    if shape.rank is None or mesh is None:
        return whole(shape.rank)
    sizes = shape.as_list()
    specs = (*specs, *whole(len(sizes)))[: len(sizes)]
    return tuple(
        UNSHARDED if s not in mesh or (n is not None and n % mesh.dim_size(s)) else s
        for s, n in zip(specs, sizes)
    )


class Specs:
    """The specs of all tensors of a graph, of which some are given.

    `layouts` has what is known from outside, by the names of the graph's tensors: a
    variable's handle has its variable's layout.
    """

    def __init__(self, graph, layouts, mesh):
        self._specs = {name: layout._specs for name, layout in layouts.items()}
        self.mesh = mesh
        self._demands = _demanded.get(graph, {})
        for op in graph.get_operations():
            self._walk(op)

    def of(self, tensor):
        """The specs of a tensor of the graph."""
        found = self._specs.get(tensor.name)
        return whole(tensor.shape.rank) if found is None else found

    def _walk(self, op):
        outputs = op.outputs
        if all(t.name in self._specs for t in outputs):
            return
        inputs = [self.of(t) for t in op.inputs]
        found = None
        divides = any(s != UNSHARDED for one in inputs for s in one)
        if divides and op.type in RULES:
            found = self._by_rule(op, inputs)
        for i, tensor in enumerate(outputs):
            specs = whole(tensor.shape.rank) if found is None else found[i]
            self._set(tensor, specs)

    def _by_rule(self, op, inputs):
        if any(t.shape.rank is None for t in (*op.inputs, *op.outputs)):
            return None
        try:
            return RULES[op.type](Call(op, inputs))
        except ValueError as e:
            raise tf.errors.UnknownError(None, None, str(e)) from None

    def _set(self, tensor, specs):
        wanted = self._demands.get(tensor.name)
        if isinstance(wanted, str):
            specs = self._specs.get(wanted, specs)
        elif wanted is not None:
            self.mesh = wanted.mesh
            specs = [
                old if new == MATCH else new for old, new in zip(specs, wanted._specs)
            ]
        if tensor.dtype == tf.resource:
            self._specs[tensor.name] = tuple(specs)
        else:
            self._specs[tensor.name] = fitting(specs, tensor.shape, self.mesh)
