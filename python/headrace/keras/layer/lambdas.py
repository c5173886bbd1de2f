"""The layer that calls a function: Lambda."""

import inspect

from headrace import _api as tf
from headrace.autograph.calls import in_graph
from headrace.keras.base.base_layer import Layer


class Lambda(Layer):
    """Wraps a function as a layer."""

    def __init__(
        self, function, output_shape=None, mask=None, arguments=None, **kwargs
    ):
        super().__init__(**kwargs)
        self.arguments = dict(arguments or {})
        self.function = function
        self._mask = mask
        self._output_shape = output_shape
        self.supports_masking = mask is not None

    def call(self, inputs, mask=None, training=None):
        """function(inputs, **arguments), with `mask` and `training` where it takes
        them.
        """
        kwargs = dict(self.arguments)
        wanted = inspect.signature(self.function).parameters
        if "mask" in wanted:
            kwargs["mask"] = mask
        if "training" in wanted:
            kwargs["training"] = training
        return in_graph(self.function)(inputs, **kwargs)

    def compute_output_shape(self, input_shape):
        """What output_shape says, or a function of it; else found by a call."""
        shape = self._output_shape
        if shape is None:
            return super().compute_output_shape(input_shape)
        if callable(shape):
            return tf.TensorShape(shape(input_shape))
        return tf.TensorShape([tf.TensorShape(input_shape)[0], *shape])

    def compute_mask(self, inputs, mask=None):
        """The mask given to the constructor, or what it gives as a function."""
        return self._mask(inputs, mask) if callable(self._mask) else self._mask

    def get_config(self):
        """Not supported, as it holds a function: raises NotImplementedError."""
        raise NotImplementedError(
            "The configuration of a Lambda layer is not supported: it holds a function"
        )
