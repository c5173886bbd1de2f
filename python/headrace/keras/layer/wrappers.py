"""Layers around layers: Bidirectional and TimeDistributed."""

from headrace import _api as tf
from headrace.keras import serialization
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.call_context import context
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.base.keras_tensor import KerasTensor
from headrace.keras.layer import recurrent_call, registry
from headrace.keras.layer.parts import shaped


class Wrapper(Layer):
    """Holds another layer."""

    def __init__(self, layer, **kwargs):
        if not isinstance(layer, Layer):
            raise ValueError(
                f"Layer {layer} supplied to Wrapper isn't a supported layer type. Please "
                "ensure wrapped layer is a valid Keras layer."
            )
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape=None):
        """Builds the inner layer, unless it is built, for inputs of the same shape."""
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True
        self.built = True

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A wrapper with a new inner layer, of what get_config() gave."""
        return registry.around(cls, config, custom_objects, "layer")


def _check_is_layer(wrapper, layer):
    if not isinstance(layer, Layer):
        raise ValueError(
            f"Please initialize `{type(wrapper).__name__}` layer with a "
            f"`tf.keras.layers.Layer` instance. Received: {layer}"
        )


class TimeDistributed(Wrapper):
    """Applies a layer to every step of [batch, time, …]."""

    supports_masking = True

    def __init__(self, layer, **kwargs):
        _check_is_layer(self, layer)
        super().__init__(layer, **kwargs)

    def build(self, input_shape):
        """Builds the inner layer for one step: the inputs' shape without the time."""
        sizes = tf.TensorShape(input_shape).as_list()
        if len(sizes) < 3:
            raise ValueError(
                "`TimeDistributed` Layer should be passed an `input_shape ` with at "
                f"least 3 dimensions, received: {tuple(sizes)}"
            )
        self.input_spec = InputSpec(shape=(None, None, *sizes[2:]))
        if not self.layer.built:
            self.layer.build(tf.TensorShape([sizes[0], *sizes[2:]]))
            self.layer.built = True
        self.built = True

    def call(self, inputs, training=None, mask=None):
        """The inner layer's outputs for each step: [batch, time, ...]; of a
        tf.RaggedTensor whose rows are the steps, a ragged one.

        The mask is not given to the inner layer.
        """
        if isinstance(inputs, tf.RaggedTensor):
            out = self.layer(inputs.values, training=training)
            return inputs.with_values(out)
        sizes, dynamic = inputs.shape.as_list(), tf.shape(inputs)
        flat = tf.reshape(inputs, tf.concat([[-1], dynamic[2:]], 0))
        flat = shaped(flat, [None, *sizes[2:]])
        out = self.layer(flat, training=training)
        shape = tf.concat([dynamic[:2], tf.shape(out)[1:]], 0)
        result = tf.reshape(out, shape)
        return shaped(result, [*sizes[:2], *out.shape.as_list()[1:]])

    def compute_mask(self, inputs, mask=None):
        """The mask of the inputs."""
        return mask


_MODES = ("sum", "mul", "ave", "concat", None)


class Bidirectional(Layer):
    """A recurrent layer forwards and its copy backwards."""

    _config_names = ("merge_mode", "layer")
    _num_constants = None  # how many the cells were called with

    supports_masking = True

    def __init__(
        self, layer, merge_mode="concat", weights=None, backward_layer=None, **kwargs
    ):
        if merge_mode not in _MODES:
            raise ValueError(
                f"Invalid merge mode. Received: {merge_mode}. Merge mode should be one "
                'of {"sum", "mul", "ave", "concat", None}'
            )
        _check_is_layer(self, layer)
        super().__init__(**kwargs)
        self.merge_mode = merge_mode
        object.__setattr__(self, "layer", layer)
        self.return_sequences = layer.return_sequences
        self.return_state = layer.return_state
        self._own_backward = backward_layer is not None
        self.forward_layer = self._copy(layer, f"forward_{layer.name}")
        if backward_layer is None:
            backwards = not layer.go_backwards
            name = f"backward_{layer.name}"
            backward_layer = self._copy(layer, name, go_backwards=backwards)
        self.backward_layer = backward_layer
        for layer in (self.forward_layer, self.backward_layer):
            layer.zero_output_for_mask = self.return_sequences

    @staticmethod
    def _copy(layer, name, **changes):
        config = {**layer.get_config(), "name": name, **changes}
        cell = getattr(layer, "cell", None)
        # Cells of programs need no registering.
        known = {type(c).__name__: type(c) for c in (cell, *getattr(cell, "cells", ()))}
        with serialization.CustomObjectScope(known):
            return type(layer).from_config(config)

    def build(self, input_shape):
        """Builds the layers of both directions."""
        shape = input_shape[0] if isinstance(input_shape, list) else input_shape
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:
                context.names.append(layer.name)
                try:
                    layer._build_now(shape)
                finally:
                    context.names.pop()
        self.built = True

    def reset_states(self):
        """Sets the states of both directions to zeros, where they are stateful."""
        self.forward_layer.reset_states()
        self.backward_layer.reset_states()

    def __call__(self, inputs, initial_state=None, constants=None, **kwargs):
        if isinstance(inputs, (list, tuple)) and len(inputs) > 1:
            if not isinstance(inputs[0], KerasTensor) or inputs[0].shape.rank == 3:
                inputs = list(inputs)
        inputs, initial_state, constants = recurrent_call.parts_of_call(
            inputs, initial_state, constants, self._num_constants
        )
        if initial_state is not None:
            kwargs["initial_state"] = self._checked_states(initial_state)
        if constants is not None:
            kwargs["constants"] = constants
            self._num_constants = len(constants)
        return super().__call__(inputs, **kwargs)

    @staticmethod
    def _checked_states(states):
        """ValueError for states that cannot be halved, or of which only some are
        symbolic."""
        if len(states) % 2:
            raise ValueError(
                "When passing `initial_state` to a Bidirectional RNN, the state should "
                "be a list containing the states of the underlying RNNs. "
                f"Received: {states}"
            )
        if len({isinstance(s, KerasTensor) for s in states}) > 1:
            raise ValueError(
                "The initial state of a Bidirectional layer cannot be specified with a "
                'mix of TF-Keras tensors and non-Keras tensors (a "Keras tensor" is a '
                "tensor that was returned by a TF-Keras layer, or by `Input`)"
            )
        return states

    def call(
        self, inputs, training=None, mask=None, initial_state=None, constants=None
    ):
        """Both directions' outputs, merged as merge_mode says; then the states, if
        wanted.

        `initial_state` is a list: the states forwards, then those backwards. The cells
        of both get the `constants`.
        """
        given = {"mask": mask, "training": training}
        if constants is not None:
            given["constants"] = constants
        ahead, back = dict(given), dict(given)
        if initial_state is not None:
            half = len(initial_state) // 2
            ahead["initial_state"] = initial_state[:half]
            back["initial_state"] = initial_state[half:]
        first = self.forward_layer(inputs, **ahead)
        second = self.backward_layer(inputs, **back)
        states = []
        if self.return_state:
            states = list(first[1:]) + list(second[1:])
            first, second = first[0], second[0]
        if self.return_sequences:
            axis = 0 if getattr(self.forward_layer, "time_major", False) else 1
            second = tf.reverse(second, [axis])
        out = self._merged(first, second)
        if not states:
            return out
        return [*out, *states] if isinstance(out, list) else [out, *states]

    def _merged(self, first, second):
        mode = self.merge_mode
        if mode == "concat":
            return tf.concat([first, second], -1)
        if mode == "sum":
            return first + second
        if mode == "ave":
            return (first + second) / 2
        if mode == "mul":
            return first * second
        return [first, second]

    def compute_mask(self, inputs, mask=None):
        """The mask of the inputs with return_sequences; None without, or with
        return_state.
        """
        mask = mask[0] if isinstance(mask, list) else mask
        shown = mask if self.return_sequences else None
        if self.merge_mode is None:
            shown = [shown, shown]
        if not self.return_state:
            return shown
        return None

    def get_config(self):
        """Adds merge_mode, the layer's config and, if it was given,
        backward_layer's."""
        config = super().get_config()
        if self._num_constants is not None:
            config["num_constants"] = self._num_constants
        if self._own_backward:
            config["backward_layer"] = serialization.serialize(self.backward_layer)
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A layer, without weights, of what get_config() gave."""
        config = dict(config)
        constants = config.pop("num_constants", None)
        names = ("layer", "backward_layer")
        made = registry.around(cls, config, custom_objects, *names)
        made._num_constants = constants
        return made
