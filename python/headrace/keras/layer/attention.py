"""Attention."""

from headrace import _api as tf
from headrace.keras import initializer as initializers
from headrace.keras.base.base_layer import Layer
from headrace.keras.layer.einsum_dense import EinsumDense
from headrace.keras.layer.noise import Dropout
from headrace.keras.layer.parts import option_names, takes

_LOW = -1e9


def _fresh(option):
    """An option of a layer for one inside it; initializers as copies, so that every
    projection gets its own values."""
    if isinstance(option, initializers.Initializer):
        return type(option).from_config(option.get_config())
    return option


_HIDDEN = ("num_heads", "key_dim", "value_dim", "dropout", "use_bias", "attention_axes")


@takes(
    "num_heads, key_dim, value_dim=None, dropout=0.0, use_bias=True, "
    "output_shape=None, attention_axes=None, **kwargs",
    *("kernel", "bias"),
)
class MultiHeadAttention(Layer):
    """Attention of several heads, over the steps of [batch, time, features]."""

    supports_masking = True
    _config_attributes = {name: f"_{name}" for name in _HIDDEN}
    _config_attributes["output_shape"] = "_output_size"

    def _begin(self):
        if self._attention_axes not in (None, 1, (1,), [1]):
            raise NotImplementedError(
                f"MultiHeadAttention: attention_axes={self._attention_axes} is not "
                "supported"
            )
        self._value_dim = self._value_dim or self._key_dim
        if isinstance(self._output_size, (list, tuple)):
            if len(self._output_size) != 1:
                raise NotImplementedError(
                    "MultiHeadAttention: output_shape of several axes is not supported"
                )
            self._output_size = self._output_size[0]
        self._query_dense = None

    _keras_3_names = {
        f"_{part}_dense": f"{part}_dense"
        for part in ("query", "key", "value", "output")
    }

    def _make(self, query):
        """The projections, for queries of this shape."""
        keys, values = self._key_dim, self._value_dim
        out = self._output_size or query[-1]
        with tf.init_scope():
            for part, size in (("query", keys), ("key", keys), ("value", values)):
                sizes = (self._num_heads, size)
                dense = self._projection("abc,cde->abde", sizes, "de", part)
                setattr(self, f"_{part}_dense", dense)
            self._dropout_layer = Dropout(self._dropout)
            dense = self._projection("abcd,cde->abe", (out,), "e", "attention_output")
            self._output_dense = dense

    def _projection(self, equation, sizes, bias_axes, name):
        options = option_names("kernel", "bias", activity=False)
        return EinsumDense(
            equation,
            (None, *sizes),
            bias_axes=bias_axes if self._use_bias else None,
            name=name,
            **{option: _fresh(getattr(self, option)) for option in options},
        )

    def call(
        self,
        query,
        value,
        key=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
    ):
        """[batch, time, features of query], or (that, scores): each step's mix of
        `value`.

        `query` is [batch, T, features], `value` and `key` (else `value`) [batch, S,
        features]; NotImplementedError for other ranks. `attention_mask` is bool [batch,
        T, S], or [batch, heads, T, S]; True may be seen. Scores are [batch, heads, T,
        S]. Vaswani et al. (2017), https://arxiv.org/abs/1706.03762.
        """
        query, value = map(tf.convert_to_tensor, (query, value))
        key = value if key is None else tf.convert_to_tensor(key)
        for x in (query, value, key):
            if x.shape.rank != 3:
                raise NotImplementedError(
                    "MultiHeadAttention: inputs must be [batch, time, features], got "
                    f"shape {x.shape}"
                )
        if self._query_dense is None:
            self._make(query.shape)
        mask = self._mask(query, value, key, attention_mask, use_causal_mask)
        q = self._query_dense(query)
        k = self._key_dense(key)
        v = self._value_dense(value)
        q = q * (1.0 / float(self._key_dim) ** 0.5)
        scores = tf.einsum("aecd,abcd->acbe", k, q)
        if mask is not None:
            mask = tf.expand_dims(mask, 1) if mask.shape.rank == 3 else mask
            scores = scores + (1.0 - tf.cast(mask, scores.dtype)) * _LOW
        scores = tf.nn.softmax(scores)
        shared = self._dropout_layer(scores, training=training)
        out = self._output_dense(tf.einsum("acbe,aecd->abcd", shared, v))
        return (out, scores) if return_attention_scores else out

    def _mask(self, query, value, key, attention_mask, causal):
        """What each query may see: the masks that are there, joined."""
        parts = []
        sides = [(query, 2), (value, 1)]
        for x, axis in sides if key is value else [*sides, (key, 1)]:
            shown = getattr(x, "_keras_mask", None)
            if shown is not None:
                parts.append(tf.expand_dims(tf.cast(shown, tf.bool), axis))
        if causal:
            rows, cols = tf.shape(query)[1], tf.shape(value)[1]
            seen = tf.range(rows)[:, None] >= tf.range(cols)[None, :]
            parts.append(seen[None])
        if attention_mask is not None:
            parts.append(tf.cast(attention_mask, tf.bool))
        out = None
        for part in parts:
            out = part if out is None else tf.logical_and(out, part)
        return out

    def compute_mask(self, inputs, mask=None):
        """The mask of the query."""
        return mask if not isinstance(mask, (list, tuple)) else mask[0]

    def get_config(self):
        """Adds heads, sizes, dropout, use_bias and what kernels and biases are made
        with.
        """
        return {**super().get_config(), "attention_axes": None}


@takes("dropout=0.0, **kwargs")
class _PlainAttention(Layer):
    """Attention of [query, value] or [query, value, key] without projections."""

    supports_masking = True

    def _scores(self, query, key):
        raise NotImplementedError(type(self).__name__)

    def call(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
        use_causal_mask=False,
    ):
        """[batch, T, features of value], or (that, weights): each step's mix of
        `value`.

        `inputs` is [query, value] or [query, value, key]: [batch, T or S, features];
        `mask` is a list of the first two's masks. Weights are [batch, T, S]; `dropout`
        acts on them in training. ValueError for another number of inputs.
        """
        if not isinstance(inputs, (list, tuple)) or len(inputs) not in (2, 3):
            raise ValueError(
                f"{type(self).__name__} layer must be called on a list of inputs, namely "
                f"[query, value] or [query, value, key]. Received: {inputs}."
            )
        query, value = inputs[0], inputs[1]
        key = inputs[2] if len(inputs) > 2 else value
        scores = self._scores(query, key)
        shown = None
        if mask is not None and mask[1] is not None:
            shown = tf.expand_dims(tf.cast(mask[1], tf.bool), 1)
        if use_causal_mask:
            rows, cols = tf.shape(scores)[1], tf.shape(scores)[2]
            seen = (tf.range(rows)[:, None] >= tf.range(cols)[None, :])[None]
            shown = seen if shown is None else tf.logical_and(shown, seen)
        if shown is not None:
            low = 65504.0 if scores.dtype == tf.float16 else 1e9
            scores -= low * tf.cast(tf.logical_not(shown), scores.dtype)
        weights = tf.nn.softmax(scores)
        if training and self.dropout:
            weights = tf.nn.dropout(weights, self.dropout)
        out = tf.matmul(weights, value)
        if mask is not None and mask[0] is not None:
            out *= tf.cast(tf.expand_dims(mask[0], -1), out.dtype)
        return (out, weights) if return_attention_scores else out

    def compute_mask(self, inputs, mask=None):
        """The mask of the query, or None."""
        return None if mask is None or mask[0] is None else mask[0]


@takes("use_scale=False, score_mode='dot', dropout=0.0, **kwargs")
class Attention(_PlainAttention):
    """Dot-product attention."""

    def _begin(self):
        if self.score_mode not in ("dot", "concat"):
            raise ValueError(
                f"Received: score_mode={self.score_mode}. Acceptable values are: "
                '["dot", "concat"]'
            )

    def build(self, input_shape):
        """Makes the scalars scale, with use_scale, and concat_score_weight, for
        "concat".
        """
        self.scale = self.concat_score_weight = None
        if self.use_scale:
            self.scale = self.add_weight(name="scale", shape=(), initializer="ones")
        if self.score_mode == "concat":
            self.concat_score_weight = self.add_weight(
                name="concat_score_weight", shape=(), initializer="ones"
            )
        self.built = True

    def _scores(self, query, key):
        if self.score_mode == "dot":
            scores = tf.matmul(query, key, transpose_b=True)
            return scores if self.scale is None else scores * self.scale
        mixed = tf.expand_dims(query, -2) + tf.expand_dims(key, -3)
        if self.scale is not None:
            mixed = self.scale * mixed
        return self.concat_score_weight * tf.reduce_sum(tf.tanh(mixed), axis=-1)


@takes("use_scale=True, dropout=0.0, **kwargs")
class AdditiveAttention(_PlainAttention):
    """Bahdanau's attention."""

    def build(self, input_shape):
        """Makes scale, [features], with use_scale."""
        size = tf.TensorShape(input_shape[0])[-1]
        self.scale = None
        if self.use_scale:
            self.scale = self.add_weight(
                name="scale", shape=[size], initializer="glorot_uniform"
            )
        self.built = True

    def _scores(self, query, key):
        mixed = tf.tanh(tf.expand_dims(query, -2) + tf.expand_dims(key, -3))
        scale = 1.0 if self.scale is None else self.scale
        return tf.reduce_sum(scale * mixed, axis=-1)
