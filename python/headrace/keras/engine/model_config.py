"""Functional models as configurations, and back."""

from headrace import _api as tf
from headrace.keras import serialization
from headrace.keras.base.keras_tensor import KerasTensor
from headrace.keras.layer import registry


def _layer_rows(model):
    """(layer, its nodes in the model, in order)."""
    network = model._network
    inside = {id(node) for node in network.nodes}
    return [
        (layer, [n for n in layer.inbound_nodes if id(n) in inside])
        for layer in network.layers
    ]


def of_functional(model):
    """The configuration of a functional model."""
    rows = _layer_rows(model)
    places = {id(n): i for _, nodes in rows for i, n in enumerate(nodes)}

    def reference(x):
        return [x.history[0].name, places[id(x.node)], x.history[2]]

    layers = []
    for layer, nodes in rows:
        row = serialization.serialize(layer)
        row["name"] = layer.name
        row["inbound_nodes"] = [_call(n, reference) for n in nodes if n.parents]
        layers.append(row)
    network = model._network
    return {
        "name": model.name,
        "trainable": model.trainable,
        "layers": layers,
        "input_layers": _references(network.inputs, reference),
        "output_layers": _references(network.outputs, reference),
    }


def _references(tensors, reference):
    """References in the structure of inputs or outputs."""
    if isinstance(tensors, KerasTensor):
        return [reference(tensors)]
    return tf.nest.map_structure(reference, tensors)


def _call(node, reference):
    """One call: [[layer, node, tensor, kwargs], …] of its first argument."""

    def plain(x):
        return ["_KERAS_TENSOR", *reference(x)] if isinstance(x, KerasTensor) else x

    kwargs = {k: tf.nest.map_structure(plain, v) for k, v in node.kwargs.items()}
    if len(node.args) != 1:
        raise NotImplementedError(
            f"The configuration of a call of {node.layer.name} with several positional "
            "arguments is not supported"
        )
    first = node.args[0]
    tensors = list(first) if isinstance(first, (list, tuple)) else [first]
    return [[*reference(x), kwargs if i == 0 else {}] for i, x in enumerate(tensors)]


def is_functional(config):
    return all(k in config for k in ("layers", "input_layers", "output_layers"))


class _Rebuilder:
    """Makes layers and calls them in the order in which inputs become known."""

    def __init__(self, config):
        self.layers, self.calls = {}, []
        self._tensors = {}  # (layer, call, output) -> KerasTensor
        for row in config["layers"]:
            layer = registry.deserialize(row)
            self.layers[row["name"]] = layer
            if not row["inbound_nodes"]:
                self._keep(row["name"], 0, layer.output)
            for i, call in enumerate(row["inbound_nodes"]):
                self.calls.append((row["name"], i, call))

    def _keep(self, name, place, outputs):
        for i, x in enumerate(tf.nest.flatten(outputs)):
            self._tensors[name, place, i] = x

    def _argument(self, value):
        if isinstance(value, list) and value and value[0] == "_KERAS_TENSOR":
            return self._tensors[tuple(value[1:])]
        if isinstance(value, list):
            return [self._argument(v) for v in value]
        return value

    def run(self):
        waiting = self.calls
        while waiting:
            left = []
            for name, place, call in waiting:
                try:
                    inputs = [self._tensors[tuple(row[:3])] for row in call]
                    kwargs = {k: self._argument(v) for k, v in call[0][3].items()}
                except KeyError:
                    left.append((name, place, call))
                    continue
                given = inputs[0] if len(inputs) == 1 else inputs
                self._keep(name, place, self.layers[name](given, **kwargs))
            if len(left) == len(waiting):
                names = sorted({name for name, _, _ in left})
                raise ValueError(f"The inputs of layers {names} are not in the config")
            waiting = left

    def found(self, references):
        """The tensors of input_layers or output_layers, in their structure."""
        if isinstance(references, dict):
            return {k: self._tensors[tuple(v)] for k, v in references.items()}
        tensors = [self._tensors[tuple(r)] for r in references]
        return tensors[0] if len(tensors) == 1 else tensors


def rebuild(config):
    """(inputs, outputs) of a functional model's configuration."""
    rebuilder = _Rebuilder(config)
    rebuilder.run()
    inputs = rebuilder.found(config["input_layers"])
    return inputs, rebuilder.found(config["output_layers"])


def clone_model(model, input_tensors=None, clone_function=None):
    """A model of the same layers with new weights."""
    if input_tensors is not None or clone_function is not None:
        raise NotImplementedError(
            "clone_model: input_tensors and clone_function are not supported"
        )
    return type(model).from_config(model.get_config())
