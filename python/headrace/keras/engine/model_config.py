"""Functional models as configurations, and back."""

import inspect

import numpy as np

from headrace import _api as tf
from headrace.keras import serialization
from headrace.keras.base import op_layer
from headrace.keras.base.keras_tensor import call_of, history, is_described
from headrace.keras.layer import registry


def _layer_rows(model):
    """(layer, its nodes in the model, in order)."""
    network = model._layer_graph
    inside = {id(node) for node in network.nodes}
    inside |= {
        id(call_of(x)) for x in network.flat_inputs
    }  # also where nothing needs them
    return [
        (layer, [n for n in layer.inbound_nodes if id(n) in inside])
        for layer in network.layers
    ]


def of_functional(model):
    """The configuration of a functional model."""
    config = {"name": model.name, "trainable": model.trainable}
    graph, layers = _graph(model)
    graph["layers"] = [
        {**serialization.serialize(layer), **row}
        for row, layer in zip(graph["layers"], layers)
    ]
    return {**config, **graph}


def _graph(model):
    """(how the layers of a functional model call each other, the layers)."""
    rows = _layer_rows(model)
    places = {id(n): i for _, nodes in rows for i, n in enumerate(nodes)}

    def reference(x):
        return [history(x)[0].name, places[id(call_of(x))], history(x)[2]]

    network = model._layer_graph
    graph = {
        "layers": [
            {
                "name": layer.name,
                "inbound_nodes": [_call(n, reference) for n in nodes if n.parents],
            }
            for layer, nodes in rows
        ],
        "input_layers": _references(network.inputs, reference),
        "output_layers": _references(network.outputs, reference),
    }
    return graph, [layer for layer, _ in rows]


def _references(tensors, reference):
    """References in the structure of inputs or outputs."""
    if is_described(tensors):
        return [reference(tensors)]
    return tf.nest.map_structure(reference, tensors)


def _call(node, reference):
    """One call: its first argument's structure of [layer, node, tensor, kwargs], or of
    ["_CONSTANT_VALUE", -1, value, kwargs]; in kwargs tensors are [layer, node, tensor]."""

    def plain(x):
        if is_described(x):
            return reference(x)
        return _as_lists(x)

    names = list(inspect.signature(node.layer.call).parameters)
    given = {**dict(zip(names[1:], node.args[1:])), **node.kwargs}
    kwargs = {k: tf.nest.map_structure(plain, v) for k, v in given.items()}

    def row(x):
        if is_described(x):
            return [*reference(x), kwargs]
        return ["_CONSTANT_VALUE", -1, _as_lists(x), kwargs]

    first = node.args[0]
    if isinstance(node.layer, op_layer.OfTheModel) or isinstance(first, dict):
        return tf.nest.map_structure(row, first)
    return [row(x) for x in tf.nest.flatten(first)]


def _as_lists(x):
    """Arrays and tensors as lists, all else as it is."""
    if isinstance(x, tf.Tensor):
        x = x.numpy()
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x


def is_functional(config):
    return all(k in config for k in ("layers", "input_layers", "output_layers"))


def _is_reference(value):
    """Whether a value of a call is a tensor, or a constant, and what goes with it."""
    return (
        isinstance(value, (list, tuple))
        and len(value) in (3, 4)
        and isinstance(value[0], str)
        and all(isinstance(x, int) for x in value[1 : 2 if value[1] == -1 else 3])
    )


class _Rebuilder:
    """Calls layers, by the names that they have in a configuration, in the order in
    which inputs become known."""

    def __init__(self, config, layers):
        self.layers, self.calls = {}, []
        self._tensors = {}  # (layer, call, output) -> KerasTensor
        for row, layer in zip(config["layers"], layers):
            self.layers[row["name"]] = layer
            if not row["inbound_nodes"]:  # an input
                self._keep(row["name"], 0, layer.output)
            for i, call in enumerate(row["inbound_nodes"]):
                self.calls.append((row["name"], i, call))

    def _keep(self, name, place, outputs):
        for i, x in enumerate(tf.nest.flatten(outputs)):
            self._tensors[name, place, i] = x

    def _argument(self, value):
        """A value with its tensors: KeyError where one is not made yet."""
        if _is_reference(value) and value[0] == "_CONSTANT_VALUE":
            return value[2]
        if _is_reference(value) and value[0] in self.layers:
            return self._tensors[tuple(value[:3])]
        if isinstance(value, dict):
            return {k: self._argument(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            if value and value[0] == "_KERAS_TENSOR":  # as we wrote them once
                return self._tensors[tuple(value[1:])]
            return type(value)(self._argument(v) for v in value)
        return value

    def _arguments(self, name, call):
        """(the first argument, the others by name) of a call."""
        first = self._argument(call)
        is_list = isinstance(call, list) and not _is_reference(call)
        keeps = isinstance(self.layers[name], op_layer.OfTheModel)
        if is_list and len(first) == 1 and not keeps:
            first = first[0]
        row = call
        while row and not _is_reference(row):
            row = next(iter(row.values())) if isinstance(row, dict) else row[0]
        return first, self._argument(row[3] if len(row) == 4 else {})

    def run(self):
        waiting = self.calls
        while waiting:
            left = []
            for name, place, call in waiting:
                try:
                    first, kwargs = self._arguments(name, call)
                except KeyError:
                    left.append((name, place, call))
                    continue
                self._keep(name, place, self.layers[name](first, **kwargs))
            if len(left) == len(waiting):
                names = sorted({name for name, _, _ in left})
                raise ValueError(f"The inputs of layers {names} are not in the config")
            waiting = left

    def beside(self, layers):
        """The tensors that other layers than these make."""
        inside = {layer.name for layer in layers}
        return [x for (name, _, _), x in self._tensors.items() if name not in inside]

    def found(self, references):
        """The tensors of input_layers or output_layers, in their structure."""
        found = self._found(references)
        is_one = isinstance(found, list) and len(found) == 1
        return found[0] if is_one else found

    def _found(self, part):
        if isinstance(part, dict):
            return {key: self._found(value) for key, value in part.items()}
        if len(part) > 1 and isinstance(part[0], str) and isinstance(part[1], int):
            return self._tensors[tuple(part)]
        return type(part)(map(self._found, part))


def rebuild(config, cls):
    """The functional model of a configuration, as one of `cls`."""
    layers = [registry.deserialize(row) for row in config["layers"]]
    made = _connected(config, layers, cls, config.get("name"))
    made.trainable = config.get("trainable", True)
    return made


def again(model, made, cls):
    """A functional model of `cls` like `model`, of made(layer) for each of its layers."""
    graph, layers = _graph(model)
    return _connected(graph, [made(layer) for layer in layers], cls, model.name)


def _connected(graph, layers, cls, name):
    rebuilder = _Rebuilder(graph, layers)
    rebuilder.run()
    inputs = rebuilder.found(graph["input_layers"])
    outputs = rebuilder.found(graph["output_layers"])
    made = cls(inputs=inputs, outputs=outputs, name=name)
    for tensor in rebuilder.beside(made.layers):
        made._run_beside(tensor)
    return made
