"""tf.keras.Sequential."""

import copy

from headrace import _api as tf
from headrace.keras import serialization
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.call_context import context
from headrace.keras.base.keras_tensor import history, is_described
from headrace.keras.base.tracking import unique
from headrace.keras.engine import functional
from headrace.keras.engine.graph_network import GraphNetwork
from headrace.keras.engine.input_layer import InputLayer
from headrace.keras.engine.model import Model
from headrace.keras.layer import registry


def _input_of(layer, shape, dtype):
    """The InputLayer in front of a first layer."""
    return InputLayer(batch_input_shape=shape, dtype=dtype, name=layer.name + "_input")


class Sequential(functional.Functional):
    """Layers one after another.

    Its graph is made when the shape of the input is known: at once where the
    first layer says it, else by `build` or the first call.
    """

    _saved_identifier = "_tf_keras_sequential"
    _keras_module = "keras"

    def __init__(self, layers=None, name=None):
        Model.__init__(self, name=name)
        self._keras.stack = []  # InputLayer first, where there is one
        self._keras.inferred = None  # the shape that a call gave
        self._keras.no_graph = False  # whether its layers only run one by one
        if layers:
            if not isinstance(layers, (list, tuple)):
                layers = [layers]
            for layer in layers:
                self.add(layer)

    # --- layers ---

    def add(self, layer):
        """Puts a layer at the end; a first layer with an input shape starts the graph.

        TypeError for what is no layer, ValueError for a name that is taken.
        """
        if is_described(layer):
            layer = history(layer)[0]
        if not isinstance(layer, Layer):
            raise TypeError(
                "The added layer must be an instance of class Layer. Received: "
                f"layer={layer} of type {type(layer)}."
            )
        stack = self._keras.stack
        if any(layer.name == x.name and layer is not x for x in stack):
            raise ValueError(
                "All layers added to a Sequential model should have unique names. Name "
                f'"{layer.name}" is already the name of a layer in this model. Update '
                "the `name` argument to pass a unique name."
            )
        if not stack:
            self._start(layer)
        elif self._layer_graph is not None:
            self._set_graph(
                self._layer_graph.inputs, self._called(layer, self.outputs[0])
            )
        if not (stack and stack[-1] is layer):
            stack.append(layer)
        self._hold()

    def _start(self, layer):
        """Begins the graph where the first layer knows its input's shape."""
        stack = self._keras.stack
        if isinstance(layer, InputLayer):
            stack.append(layer)
            self._set_graph(layer.output, layer.output)
            return
        shape = layer._keras.batch_input_shape
        dtype = layer.dtype
        if (
            shape is None
            and isinstance(layer, functional.Functional)
            and layer._layer_graph
        ):
            if len(layer.inputs) == 1:
                shape = tuple(layer.inputs[0].shape.as_list())
                dtype = layer.inputs[0].dtype
        if shape is None:
            return
        first = _input_of(layer, shape, dtype)
        x = first.inbound_nodes[0].outputs
        stack.append(first)
        stack.append(layer)
        self._set_graph(x, self._called(layer, x))

    @staticmethod
    def _called(layer, x):
        out = layer(x)
        if len(tf.nest.flatten(out)) != 1:
            raise ValueError(
                "All layers in a Sequential model should have a single output tensor. "
                "For multi-output layers, use the functional API."
            )
        return out

    def _set_graph(self, inputs, outputs):
        if inputs is outputs:
            self._keras.network = None
            self._keras.network = GraphNetwork(inputs, outputs)
        else:
            self._init_graph(inputs, outputs)

    def _hold(self):
        """Tracks the layers, whether or not there is a graph."""
        mine = self.layers
        state = self._keras
        state.parts = mine + [
            p
            for p in state.parts
            if not any(p is x for x in mine) and not isinstance(p, InputLayer)
        ]
        self._attach_layers()

    def _parts_with_weights(self):
        """Its layers: not the metrics and layers that were set as attributes."""
        return self.layers

    def pop(self):
        """Takes the last layer off; returns nothing. TypeError where there is none."""
        stack = self._keras.stack
        if not self.layers:
            raise TypeError("There are no layers in the model.")
        layer = stack.pop()
        layer._keras.inbound.pop()
        self._keras.parts = [p for p in self._keras.parts if p is not layer]
        if self._layer_graph is not None:
            if not self.layers:
                self._keras.network = None
                self.built = False
            else:
                self._set_graph(self._layer_graph.inputs, stack[-1].output)
        self._hold()

    @property
    def layers(self):
        """A list of the layers, first to last, without the InputLayer."""
        stack = self._keras.stack
        first = stack[1:] if stack and isinstance(stack[0], InputLayer) else stack
        beside = self._layer_graph.beside if self._layer_graph else []
        return unique([*first, *beside])  # one may stand at several places

    # --- building ---

    def build(self, input_shape=None):
        """Makes the graph and all weights for a shape with the batch, such as (None,
        28).

        Does nothing where the graph is there; else ValueError without a shape.
        """
        if isinstance(input_shape, dict):
            # Of features by name: the layers make their weights when they are called.
            self.built = True
            return
        if self._layer_graph is None and not self._keras.no_graph:
            if input_shape is None:
                raise ValueError("You must provide an `input_shape` argument.")
            self._try_graph_for(tf.TensorShape(input_shape), None)
        self.built = True

    def _build_for(self, inputs):
        has_shape = hasattr(inputs, "shape") or tf.nest.is_nested(inputs)
        if isinstance(inputs, tf.experimental.ExtensionType) or not has_shape:
            self.built = True  # the layers make their weights when they are called
        else:
            super()._build_for(inputs)

    def _graph_for(self, shape, dtype):
        """Makes the graph for inputs of that shape."""
        outer, context.names = context.names, []
        training, context.training = context.training, None
        try:
            with tf.init_scope():
                first = self.layers[0]
                made = _input_of(first, shape.as_list(), dtype or first.dtype)
                out = x = made.inbound_nodes[0].outputs
                for layer in self.layers:
                    layer._keras.inbound.clear()
                    out = self._called(layer, out)
                self._keras.inferred = shape
                self._init_graph(x, out)
        finally:
            context.names, context.training = outer, training

    def _try_graph_for(self, shape, dtype):
        """Makes the graph; where a layer does not stand that, the layers run one by one
        from now on, and say what they do not like themselves."""
        try:
            self._graph_for(shape, dtype)
        except Exception:
            self._keras.no_graph = True
            for layer in self.layers:
                layer._keras.inbound.clear()

    def _begin_with(self, shape, dtype):
        if self._layer_graph is None and self.layers and not self._keras.no_graph:
            self._try_graph_for(tf.TensorShape(shape), dtype)

    def _follow(self, x):
        """Makes the graph by the first input, and wider when others come."""
        known = self._keras.inferred
        if self._layer_graph is not None and known is None:
            return
        if not isinstance(x, tf.Tensor) or x.shape.rank is None or not self.layers:
            return
        if self._keras.no_graph:
            return
        if known is None:
            self._try_graph_for(x.shape, x.dtype)
        elif not known.is_compatible_with(x.shape) and known.rank == x.shape.rank:
            old, new = known.as_list(), x.shape.as_list()
            # Weights fix the last size.
            if old[1:] == new[1:] or old[-1] == new[-1]:
                wide = [a if a == b else None for a, b in zip(old, new)]
                self._graph_for(tf.TensorShape(wide), x.dtype)

    def _prepared(self, inputs):
        if isinstance(inputs, dict) and self._layer_graph is None:
            prepared = super()._prepared
            return {key: prepared(value) for key, value in inputs.items()}
        if self._layer_graph is None or self._keras.inferred is not None:
            inputs = Model._prepared(self, inputs)
            self._follow(inputs)
        if self._layer_graph is None:
            return inputs
        return self._conformed(inputs)

    def _declared_specs(self):
        """None unless the model was told its input's shape."""
        told = self._layer_graph is not None and self._keras.inferred is None
        return super()._declared_specs() if told else None

    def call(self, inputs, training=None, mask=None):
        """Runs the layers one after another."""
        if self._layer_graph is not None:
            return super().call(inputs, training, mask)
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs

    @property
    def input_shape(self):
        """The shape of the input, None for the batch; AttributeError before it is
        known.
        """
        if self._layer_graph is None:
            raise AttributeError(
                f"Layer {self.name} has never been called and thus has no defined input "
                "shape. Note that the `input_shape` property is only available for "
                "Functional and Sequential models."
            )
        return tuple(self._layer_graph.flat_inputs[0].shape.as_list())

    @property
    def output_shape(self):
        """The shape of the output, None for the batch; AttributeError before it is
        known.
        """
        if self._layer_graph is None:
            raise AttributeError(
                f"Layer {self.name} has never been called and thus has no defined "
                "output shape."
            )
        return tuple(self._layer_graph.flat_outputs[0].shape.as_list())

    # --- configuration ---

    def get_config(self):
        """The name, the layers' configs and the shape that the model was built for."""
        if self._layer_graph is not None and self._layer_graph.beside:
            raise NotImplementedError(
                f"The configuration of {self.name}, a Sequential model with losses or "
                "metrics of KerasTensors, is not supported: use a functional model"
            )
        layers = [serialization.serialize(x) for x in self._keras.stack]
        config = {"name": self.name, "layers": copy.deepcopy(layers)}
        shape = self._keras.seen_shape
        if (
            self._layer_graph is None
            and shape is not None
            and not isinstance(shape, dict)
        ):
            config["build_input_shape"] = shape
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A new model, without trained weights, of what get_config() gave."""
        made = cls(name=config.get("name"))
        for row in config["layers"]:
            made.add(registry.deserialize(row, custom_objects))
        return made
