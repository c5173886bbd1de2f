"""tf.keras.layers.Embedding."""

from headrace import _api as tf
from headrace.keras.base.base_layer import Layer
from headrace.keras.layer.parts import Weighted, takes


@takes(
    "input_dim, output_dim, mask_zero=False, input_length=None, **kwargs",
    "embeddings",
    before="mask_zero",
)
class Embedding(Weighted, Layer):
    """Rows of a table for integers."""

    def _before(self, given):
        input_dim, output_dim = given["input_dim"], given["output_dim"]
        given.setdefault("input_shape", (given["input_length"] or None,))
        if input_dim <= 0 or output_dim <= 0:
            raise ValueError(
                "Both `input_dim` and `output_dim` should be positive, Received "
                f"input_dim = {input_dim} and output_dim = {output_dim}"
            )

    def _begin(self):
        self._autocast, self.supports_masking = False, self.mask_zero

    def build(self, input_shape=None):
        """Makes the table, [input_dim, output_dim]."""
        self.embeddings = self._new_weight(
            "embeddings",
            (self.input_dim, self.output_dim),
            experimental_autocast=False,
        )
        self.built = True

    def compute_mask(self, inputs, mask=None):
        """False where the input is 0, with mask_zero; else None."""
        return tf.not_equal(inputs, 0) if self.mask_zero else None

    def call(self, inputs):
        """Rows of the table: [...] to [..., output_dim]; other than int32 or int64 is
        cast.
        """
        if inputs.dtype not in (tf.int32, tf.int64):
            inputs = tf.cast(inputs, tf.int32)
        return self._cast_out(tf.nn.embedding_lookup(self.embeddings, inputs))

    def compute_output_shape(self, input_shape):
        """The shape with output_dim behind it."""
        return tf.TensorShape(input_shape).concatenate([self.output_dim])
