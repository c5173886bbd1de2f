"""SpectralNormalization: keeps the largest singular value of a kernel at 1."""

from headrace import _api as tf
from headrace.keras import initializer
from headrace.keras.phase import is_tensor
from headrace.keras.layer.wrappers import Wrapper


class SpectralNormalization(Wrapper):
    """Divides the layer's kernel by its norm at every step of training."""

    def __init__(self, layer, power_iterations=1, **kwargs):
        super().__init__(layer, **kwargs)
        if power_iterations <= 0:
            raise ValueError(
                "`power_iterations` should be greater than zero. Received: "
                f"`power_iterations={power_iterations}`"
            )
        self.power_iterations = power_iterations

    def build(self, input_shape):
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True
        for name in ("kernel", "embeddings"):
            if hasattr(self.layer, name):
                self.kernel = getattr(self.layer, name)
                break
        else:
            raise ValueError(
                f"{type(self.layer).__name__} object has no attribute 'kernel' nor "
                "'embeddings'"
            )
        shape, start = (
            (1, self.kernel.shape[-1]),
            initializer.TruncatedNormal(0.0, 0.02),
        )
        self.vector_u = self.add_weight(
            "vector_u", shape, self.kernel.dtype, start, trainable=False
        )
        self.built = True

    def call(self, inputs, training=None):
        if is_tensor(training):
            raise NotImplementedError(
                "SpectralNormalization in graphs whose learning phase is a tensor: pass "
                "training=True or False"
            )
        if training:
            self.normalize_weights()
        return self.layer(inputs)

    def compute_output_shape(self, input_shape):
        return self.layer.compute_output_shape(input_shape)

    def normalize_weights(self):
        """Divides the kernel by its norm, which it improves its guess of."""
        kernel = tf.reshape(self.kernel, [-1, self.kernel.shape[-1]])
        u = self.vector_u._read()
        for _ in range(self.power_iterations):
            v = tf.math.l2_normalize(tf.matmul(u, kernel, transpose_b=True))
            u = tf.math.l2_normalize(tf.matmul(v, kernel))
        u, v = tf.stop_gradient(u), tf.stop_gradient(v)
        norm = tf.matmul(tf.matmul(v, kernel), u, transpose_b=True)
        self.vector_u.assign(tf.cast(u, self.vector_u.dtype))
        self.kernel.assign(tf.reshape(self.kernel / norm, self.kernel.shape))
