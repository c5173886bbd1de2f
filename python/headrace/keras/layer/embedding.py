"""tf.keras.layers.Embedding."""

from headrace import _api as tf
from headrace.keras.base.base_layer import Layer
from headrace.keras.layer.parts import Weighted, takes


@takes(
    "input_dim, output_dim, mask_zero=False, input_length=None, sparse=False, **kwargs",
    "embeddings",
    before="mask_zero",
)
class Embedding(Weighted, Layer):
    """Rows of a table for integers."""

    _config_without = ("sparse",)  # as in TensorFlow, where it is not set

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

        A tf.SparseTensor stands for its dense form, but with `sparse`: then it gives the
        rows of its values alone. With `sparse` the outputs are sparse, of dense inputs
        without what is 0; a tf.RaggedTensor is TypeError.
        """
        if isinstance(inputs, tf.SparseTensor):
            if self.sparse:
                rows = self._rows(inputs.values)
                return _sparse_rows(inputs, rows, self.output_dim)
            inputs = tf.sparse.to_dense(inputs)
        elif self.sparse and isinstance(inputs, tf.RaggedTensor):
            raise TypeError("Embedding(sparse=True) takes no RaggedTensor")
        rows = self._rows(inputs)
        return tf.sparse.from_dense(rows) if self.sparse else rows

    def _rows(self, inputs):
        if inputs.dtype not in (tf.int32, tf.int64):
            inputs = tf.cast(inputs, tf.int32)
        return self._cast_out(tf.nn.embedding_lookup(self.embeddings, inputs))

    def get_config(self):
        """As Layer's; with `sparse` where it is set."""
        return super().get_config() | ({"sparse": True} if self.sparse else {})

    def compute_output_shape(self, input_shape):
        """The shape with output_dim behind it."""
        return tf.TensorShape(input_shape).concatenate([self.output_dim])


def _sparse_rows(inputs, rows, size):
    """A SparseTensor with a further axis: row k of [n, size] is that of the inputs' value
    k."""
    count = tf.shape(inputs.indices, tf.int64)[0]
    columns = tf.tile(tf.range(size, dtype=tf.int64), [count])
    places = tf.concat(
        [tf.repeat(inputs.indices, size, axis=0), columns[:, tf.newaxis]], 1
    )
    shape = tf.concat([inputs.dense_shape, [size]], 0)
    return tf.SparseTensor(places, tf.reshape(rows, [-1]), shape)
