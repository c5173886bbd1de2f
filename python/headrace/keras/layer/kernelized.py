"""A layer whose products come near those of a kernel."""

import numpy as np

from headrace import _api as tf
from headrace.keras import initializer as initializers
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.layer.parts import takes

_KINDS = ("gaussian", "laplacian")


def _laplacian(shape, dtype=None, **kwargs):
    """Numbers of Cauchy's distribution."""
    even = tf.random.uniform(shape, 1e-6, 1.0 - 1e-6, dtype or tf.float32)
    return tf.tan(np.pi * (even - 0.5))


@takes(
    "output_dim, kernel_initializer='gaussian', scale=None, trainable=False, name=None, "
    "**kwargs"
)
class RandomFourierFeatures(Layer):
    """cos(x @ kernel / scale + bias) of a random kernel: products of such outputs come
    near a gaussian's or laplacian's. With `trainable` the scale is learned."""

    def _kept(self, name, value):
        if name == "kernel_initializer" and isinstance(value, str):
            return value  # one of two kinds, which only this layer has
        return super()._kept(name, value)

    def _begin(self):
        if self.output_dim <= 0:
            raise ValueError(
                "`output_dim` should be a positive integer. Received: "
                f"{self.output_dim}"
            )
        kind = self.kernel_initializer
        if isinstance(kind, str) and kind.lower() not in _KINDS:
            raise ValueError(
                f"Unsupported `kernel_initializer`: {kind} Expected one of: "
                f"{list(_KINDS)}"
            )
        if self.scale is not None and self.scale <= 0.0:
            raise ValueError(
                "When provided, `scale` should be a positive float. Received: "
                f"{self.scale}"
            )

    def build(self, input_shape):
        """Makes the kernel [features, output_dim], the bias and the scale, [1]."""
        shape = tf.TensorShape(input_shape)
        if shape.rank != 2:
            raise ValueError(
                "The rank of the input tensor should be 2. Received input with rank "
                f"{shape.rank} instead. Full input shape received: {input_shape}"
            )
        size = shape[1]
        if size is None:
            raise ValueError(
                "The last dimension of the input tensor should be defined. Found `None`. "
                f"Full input shape received: {input_shape}"
            )
        self.input_spec = InputSpec(ndim=2, axes={1: size})
        kind = self.kernel_initializer
        named = kind.lower() if isinstance(kind, str) else None
        makes = {"gaussian": initializers.RandomNormal(stddev=1.0)}
        makes["laplacian"] = _laplacian
        even = initializers.RandomUniform(0.0, 2 * np.pi)
        self.unscaled_kernel = self.add_weight(
            name="unscaled_kernel",
            shape=(size, self.output_dim),
            initializer=makes.get(named) or initializers.get(kind),
            trainable=False,
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.output_dim,), initializer=even, trainable=False
        )
        if self.scale is None:
            self.scale = np.sqrt(size / 2.0) if named == "gaussian" else 1.0
        self.kernel_scale = self.add_weight(
            name="kernel_scale",
            shape=(1,),
            initializer=initializers.Constant(self.scale),
            trainable=True,
            constraint="NonNeg",
        )
        self.built = True

    def call(self, inputs):
        """[batch, output_dim] of [batch, features]."""
        inputs = tf.cast(tf.convert_to_tensor(inputs), tf.float32)
        products = tf.matmul(inputs, self.unscaled_kernel / self.kernel_scale)
        return tf.cos(products + self.bias)

    def compute_output_shape(self, input_shape):
        """[batch, output_dim]."""
        return tf.TensorShape([tf.TensorShape(input_shape)[0], self.output_dim])
