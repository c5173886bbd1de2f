"""Models that connect layers from inputs to outputs."""

import warnings

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.framework.trackable import node_of
from headrace.keras import serialization, settings
from headrace.keras.base import calls, dispatch, functional_call, op_layer
from headrace.keras.base.base_layer import plain_shapes
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.base.keras_tensor import KerasTensor, history
from headrace.keras.engine import model_config
from headrace.keras.engine.graph_network import GraphNetwork
from headrace.keras.engine.model import Model


class Functional(Model):
    """A Model of inputs and outputs; tf.keras.Model(inputs, outputs) makes one."""

    _saved_identifier = "_tf_keras_network"
    _keras_module = "tf_keras.src.engine.functional"  # where files of tf_keras have it
    _registered_as = "Functional"

    def __init__(self, inputs=None, outputs=None, name=None, trainable=True, **kwargs):
        super().__init__(name=name, trainable=True, **kwargs)
        self._init_graph(inputs, outputs)
        if not trainable:
            self.trainable = False

    def _init_name(self, name):
        if name is None and type(self) is Functional:
            return settings.unique_name("model")
        return super()._init_name(name)

    def _init_graph(self, inputs, outputs):
        if isinstance(outputs, list) and len(outputs) == 1:
            outputs = outputs[0]
        if isinstance(inputs, list) and len(inputs) == 1:
            inputs = inputs[0]
        state = self._keras
        gone = self._layer_graph.beside if self._layer_graph else []
        state.network = network = GraphNetwork(inputs, outputs)
        state.parts = list(network.layers) + [
            p for p in state.parts if not any(p is x for x in network.layers + gone)
        ]
        self.built = True
        self._attach_layers()

    _layer_graph = property(lambda self: getattr(self._keras, "network", None))

    def _attach_layers(self):
        """Names layers by their places, as checkpoints know them."""
        node = node_of(self)
        for name, _ in node.children():
            if name.startswith(("layer-", "layer_with_weights-")):
                node.detach(name)
        with_weights = 0
        for i, layer in enumerate(self.layers):
            if _has_weights(layer) or getattr(layer, "_saves_weights", False):
                node.attach(f"layer_with_weights-{with_weights}", node_of(layer))
                with_weights += 1
            node.attach(f"layer-{i}", node_of(layer))

    def _run_beside(self, tensor):
        """Makes a tensor of a loss or metric a part of every call."""
        self._layer_graph.add(tensor)
        parts = self._keras.parts
        parts += [x for x in self._layer_graph.beside if not any(x is p for p in parts)]
        self._attach_layers()

    def _add_keras_loss(self, loss):
        if self._layer_graph is None:
            super()._add_keras_loss(loss)
        else:
            self._run_beside(op_layer.AddLoss(unconditional=False)(loss))

    def _add_keras_metric(self, value, name, aggregation):
        if self._layer_graph is None:
            super()._add_keras_metric(value, name, aggregation)
        else:
            layer = op_layer.AddMetric(aggregation or "mean", name)
            self._run_beside(layer(value))

    def _check_savable(self):
        """Before saving: layers may have got weights since."""
        self._attach_layers()

    # --- what it is made of ---

    @property
    def layers(self):
        """A list of the layers, those near the inputs first."""
        network = self._layer_graph
        return super().layers if network is None else list(network.layers)

    @property
    def inputs(self):
        """A flat list of the KerasTensors that the model starts from; None before it has
        a graph."""
        return self._layer_graph and self._layer_graph.flat_inputs

    @property
    def outputs(self):
        """A flat list of the KerasTensors that the model gives; None before it has a
        graph."""
        dispatch.install()
        return self._layer_graph and self._layer_graph.flat_outputs

    @property
    def _graph_inputs(self):
        return self.inputs or []

    input = read_only(
        "_layer_graph.inputs",
        "The inputs in the structure that the model was made with.",
    )

    @property
    def output(self):
        """The outputs in the structure that the model was made with."""
        dispatch.install()
        return self._layer_graph.outputs

    def _shape_in_models(self, word):
        if self._layer_graph is None:
            return super()._shape_in_models(word)
        return calls.sizes_of(getattr(self, word))

    @property
    def input_names(self):
        """A list of the names of the input layers, in the order of `inputs`."""
        return [history(x)[0].name for x in self._layer_graph.flat_inputs]

    @property
    def output_names(self):
        """Names of the layers that make the outputs, made unique."""
        names, seen = [], {}
        for x in self._layer_graph.flat_outputs:
            name = history(x)[0].name
            seen[name] = seen.get(name, -1) + 1
            names.append(f"{name}_{seen[name]}" if seen[name] else name)
        return names

    @property
    def input_spec(self):
        """The InputSpecs that inputs are checked against: shapes without the batch,
        unless others were set."""
        own = getattr(self, "_own_input_spec", None)
        return self._declared_specs() if own is None else own

    @input_spec.setter
    def input_spec(self, value):
        self._own_input_spec = value

    def _declared_specs(self):
        state = self._keras
        if getattr(state, "specs_of", None) is not self._layer_graph:
            state.specs_of = self._layer_graph
            state.specs = [
                InputSpec(
                    shape=[None, *x.shape.as_list()[1:]] if x.shape.rank else x.shape,
                    allow_last_axis_squeeze=True,
                    optional=getattr(history(x)[0], "optional", False),
                )
                for x in self._layer_graph.flat_inputs
            ]
        return state.specs

    # --- calling ---

    def _prepared(self, inputs):
        if self._layer_graph is None:
            return super()._prepared(inputs)
        return self._conformed(inputs)

    def _conformed(self, inputs):
        """A flat list of tensors, as the inputs are declared."""
        declared = self._layer_graph.flat_inputs
        if isinstance(inputs, dict):
            flat = self._chosen(inputs)
        else:
            flat = tf.nest.flatten(inputs)
        if len(flat) != len(declared):
            raise ValueError(
                f'Layer "{self.name}" expects {len(declared)} input(s), but it received '
                f"{len(flat)} input tensors. Inputs received: {inputs}"
            )
        return [_conform(x, ref) for x, ref in zip(flat, declared)]

    def _chosen(self, inputs):
        """Of a dict of inputs those that the model takes, in their order, by the keys of
        its own dict or the names of its inputs; a warning of others."""
        own = self._layer_graph.inputs
        is_flat = isinstance(own, dict) and len(own) == len(
            self._layer_graph.flat_inputs
        )
        if isinstance(own, dict) and not is_flat:
            return tf.nest.flatten(inputs)
        names = sorted(own) if is_flat else self.input_names
        for name in names:
            if name not in inputs:
                raise ValueError(
                    f'Missing data for input "{name}". You passed a data dictionary with '
                    f"keys {list(inputs)}. Expected the following keys: {names}"
                )
        others = sorted(set(inputs) - set(names))
        if others:
            warnings.warn(
                f"Input dict contained keys {others} which did not match any model input. "
                "They will be ignored by the model.",
                stacklevel=2,
            )
        return [inputs[name] for name in names]

    def call(self, inputs, training=None, mask=None):
        """Runs the layers on `inputs`: the model's structure, or a dict by names of
        inputs.

        `mask` has the masks of the inputs, in their order. `training` reaches the
        layers by the call that is under way.
        """
        flat = inputs if isinstance(inputs, list) else self._conformed(inputs)
        if mask is not None:
            for x, m in zip(flat, tf.nest.flatten(mask)):
                if m is not None:
                    x._keras_mask = m
        return self._layer_graph.run(flat)

    def compute_output_shape(self, input_shape):
        """The static shape, or structure of shapes,
        of the outputs for `input_shape`."""
        dtype = self._layer_graph.flat_inputs[0].dtype
        outputs = functional_call.run_shapes(self, input_shape, dtype)
        return tf.nest.map_structure(lambda t: t.shape, outputs)

    # --- configuration ---

    def get_build_config(self):
        """{"input_shape": the shape of the input, or a list of those}; None before
        they are known."""
        if self._layer_graph is None:
            return super().get_build_config()
        shapes = [plain_shapes(x.shape) for x in self._layer_graph.flat_inputs]
        return {"input_shape": shapes[0] if len(shapes) == 1 else shapes}

    def get_config(self):
        """The layers, their configs and how they are connected: a dict that JSON can
        hold.
        """
        if serialization.overrides(type(self), "__init__"):
            return super().get_config()
        return model_config.of_functional(self)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A new model, without trained weights, of what get_config() gave."""
        with serialization.CustomObjectScope(custom_objects or {}):
            if not model_config.is_functional(config):
                return cls(**config)
            return model_config.rebuild(config, cls)


def _has_weights(layer):
    """Whether a layer has weights by now; no error for a model that is yet to be built,
    or holds one."""
    below = [x for x in layer._flatten_layers() if isinstance(x, Model)]
    return all(x._is_made() for x in below) and bool(layer.weights)


def _conform(x, declared):
    """x as the declared input: its dtype, and its rank where an axis of 1 is short."""
    if isinstance(x, KerasTensor) or x is None and history(declared)[0].optional:
        return x
    if not isinstance(x, tf.Tensor):
        if isinstance(x, tf.experimental.ExtensionType):
            return x
        if getattr(type(x), "_is_composite_tensor", False):
            return x if x.dtype == declared.dtype else tf.cast(x, declared.dtype)
        x = tf.convert_to_tensor(x)
    if x.dtype != declared.dtype and not (
        x.dtype == tf.string or declared.dtype == tf.string
    ):
        mask = getattr(x, "_keras_mask", None)
        x = tf.cast(x, declared.dtype)
        if mask is not None:
            x._keras_mask = mask
    rank, wanted = x.shape.rank, declared.shape.rank
    if rank is not None and wanted is not None and rank != wanted:
        if rank == wanted + 1 and x.shape[-1] == 1:
            return tf.squeeze(x, axis=-1)
        if rank == wanted - 1 and declared.shape[-1] == 1:
            return tf.expand_dims(x, axis=-1)
    return x
