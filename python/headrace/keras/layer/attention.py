"""Attention."""

from headrace import _api as tf
from headrace.keras import initializer as initializers
from headrace.keras.base.base_layer import Layer
from headrace.keras.phase import dropped
from headrace.keras.layer.advanced_activation import masked
from headrace.keras.layer.einsum_dense import EinsumDense
from headrace.keras.layer.noise import Dropout
from headrace.keras.layer.parts import option_names, takes


def _fresh(option):
    """An option of a layer for one inside it; initializers as copies, so that every
    projection gets its own values."""
    if isinstance(option, initializers.Initializer):
        return type(option).from_config(option.get_config())
    return option


_SHAPES = ("query_shape", "key_shape", "value_shape")
_HIDDEN = ("num_heads", "key_dim", "value_dim", "dropout", "use_bias", "attention_axes")


@takes(
    "num_heads, key_dim, value_dim=None, dropout=0.0, use_bias=True, "
    "output_shape=None, attention_axes=None, softmax_robust_masking=False, **kwargs",
    *("kernel", "bias"),
    before="softmax_robust_masking",
)
class MultiHeadAttention(Layer):
    """Attention of several heads, over the steps of [batch, time, features]."""

    supports_masking = True
    _config_attributes = {name: f"_{name}" for name in _HIDDEN}
    _config_attributes["output_shape"] = "_output_size"
    _config_without = ("softmax_robust_masking",)

    def _begin(self):
        if self._attention_axes is not None:
            given = self._attention_axes
            given = (given,) if isinstance(given, int) else tuple(given)
            self._attention_axes = given
        self._value_dim = self._value_dim or self._key_dim
        self._query_dense = None
        self._keras.built_for = dict.fromkeys(_SHAPES)

    _keras_3_names = {
        f"_{part}_dense": f"{part}_dense"
        for part in ("query", "key", "value", "output")
    }

    def _make(self, query):
        """The projections and equations, for queries of this shape."""
        between = len(query) - 2
        if self._attention_axes is None:
            self._attention_axes = tuple(range(1, between + 1))
        over = {a % len(query) for a in self._attention_axes}
        if not over or not over <= set(range(1, between + 1)):
            raise ValueError(
                f"MultiHeadAttention: attention_axes={self._attention_axes} are not "
                f"among those between the first and the last of a query of shape {query}"
            )
        # Axes of queries in small letters, those of keys that differ in capital ones;
        # H are heads, F features.
        rows = "abcdefgijklmnop"[: between + 1]
        columns = "".join(c.upper() if i in over else c for i, c in enumerate(rows))
        alone = "".join(c for c in rows if c in columns)
        seen = [c for c in rows if c not in columns]
        scores = f"{alone}H{''.join(seen)}{''.join(seen).upper()}"
        self._score_equation = f"{columns}HF,{rows}HF->{scores}"
        self._mix_equation = f"{scores},{columns}HF->{rows}HF"
        keys, values = self._key_dim, self._value_dim
        out = self._output_size or query[-1]
        out = (out,) if isinstance(out, int) else tuple(out)
        with tf.init_scope():
            for part, size in (("query", keys), ("key", keys), ("value", values)):
                sizes = (*[None] * between, self._num_heads, size)
                dense = self._projection(f"{rows}x,xyz->{rows}yz", sizes, "yz", part)
                setattr(self, f"_{part}_dense", dense)
            self._dropout_layer = Dropout(self._dropout, dtype=self._dtype_policy)
            last = "uvw"[: len(out)]
            equation = f"{rows}yz,yz{last}->{rows}{last}"
            sizes = (*[None] * between, *out)
            dense = self._projection(equation, sizes, last, "attention_output")
            self._output_dense = dense

    def _projection(self, equation, sizes, bias_axes, name):
        options = option_names("kernel", "bias", activity=False)
        return EinsumDense(
            equation,
            sizes,
            bias_axes=bias_axes if self._use_bias else None,
            name=name,
            dtype=self._dtype_policy,
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
        features]; there may be more axes between the first and the last, of which
        `attention_axes` says those that T and S are, all without it. `attention_mask` is
        bool [batch, T, S], or [batch, heads, T, S]; True may be seen. Scores are
        [batch, heads, T, S], the axes that are not attended over behind the batch.
        Vaswani et al. (2017), https://arxiv.org/abs/1706.03762.
        """
        query, value = map(tf.convert_to_tensor, (query, value))
        key = value if key is None else tf.convert_to_tensor(key)
        for x in (query, value, key):
            if (
                x.shape.rank is None
                or x.shape.rank != query.shape.rank
                or x.shape.rank < 3
            ):
                raise ValueError(
                    "MultiHeadAttention: inputs must be [batch, time, features], all of "
                    f"the same rank, got shape {x.shape} beside {query.shape}"
                )
        if self._query_dense is None:
            self._make(query.shape.as_list())
            shapes = [x.shape.as_list() for x in (query, key, value)]
            self._keras.built_for = dict(zip(_SHAPES, shapes))
        mask = self._mask(query, value, key, attention_mask, use_causal_mask)
        q = self._query_dense(query)
        k = self._key_dense(key)
        v = self._value_dense(value)
        q = q * (1.0 / float(self._key_dim) ** 0.5)
        scores = self._shares(tf.einsum(self._score_equation, k, q), mask)
        shared = self._dropout_layer(scores, training=training)
        out = self._output_dense(tf.einsum(self._mix_equation, shared, v))
        return (out, scores) if return_attention_scores else out

    def get_config(self):
        """A dict of the arguments, softmax_robust_masking where it is true, and the
        shapes of the first call, None before it."""
        config = super().get_config()
        more = {"softmax_robust_masking": True} if self.softmax_robust_masking else {}
        return {**config, **more, **self._keras.built_for}

    @classmethod
    def from_config(cls, config):
        """A new layer, without weights, which are made for the shapes of its first
        call."""
        config = dict(config)
        shapes = {name: config.pop(name, None) for name in _SHAPES}
        made = super().from_config(config)
        made._keras.built_for = shapes
        return made

    def _shares(self, scores, mask):
        """How much of each key a query sees: softmax over the axes of keys."""
        count = len(self._attention_axes)
        if mask is not None:
            while mask.shape.rank < scores.shape.rank:
                mask = tf.expand_dims(mask, -2 * count - 1)
            scores = masked(scores, mask, self.softmax_robust_masking)
        if count == 1:
            return tf.nn.softmax(scores)
        axes = list(range(-count, 0))
        return tf.exp(scores - tf.reduce_logsumexp(scores, axes, keepdims=True))

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
        if self.dropout:
            weights = dropped(weights, self.dropout, training)
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
