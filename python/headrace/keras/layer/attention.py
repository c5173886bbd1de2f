"""Attention."""

import string

from headrace import _api as tf
from headrace.keras import initializer as initializers
from headrace.keras.base.base_layer import Layer
from headrace.keras.phase import dropped
from headrace.keras.layer.advanced_activation import Softmax
from headrace.keras.layer.einsum_dense import EinsumDense
from headrace.keras.layer.noise import Dropout
from headrace.keras.layer.parts import option_names, takes


def _fresh(option):
    """An option of a layer for one inside it; initializers as copies, so that every
    projection gets its own values."""
    if isinstance(option, initializers.Initializer):
        return type(option).from_config(option.get_config())
    return option


def _other_name(name):
    """A property of another name for an attribute."""
    return property(
        lambda self: getattr(self, name), lambda self, value: setattr(self, name, value)
    )


_OPTIONS = option_names("kernel", "bias", activity=False)
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
    _output_shape = _other_name("_output_size")
    _softmax_robust_masking = _other_name("softmax_robust_masking")

    def _begin(self):
        if self._attention_axes is not None:
            given = self._attention_axes
            given = (given,) if isinstance(given, int) else tuple(given)
            self._attention_axes = given
        self._value_dim = self._value_dim or self._key_dim
        self._built_from_signature = False
        self._keras.built_for = dict.fromkeys(_SHAPES)

    _keras_3_names = {
        f"_{part}_dense": f"{part}_dense"
        for part in ("query", "key", "value", "output")
    }

    # --- what subclasses of programs call and define, under the names of tf_keras ---

    def _build_from_signature(self, query, value, key=None):
        """Makes the projections and equations, for inputs (tensors or shapes)."""
        self._built_from_signature = True
        shapes = [
            tf.TensorShape(getattr(x, "shape", x))
            for x in (query, value if key is None else key, value)
        ]
        self._query_shape, self._key_shape, self._value_shape = shapes
        self._keras.built_for = dict(zip(_SHAPES, [s.as_list() for s in shapes]))
        options = self._get_common_kwargs_for_sublayer
        with tf.init_scope():
            for part, shape, size in (
                ("query", shapes[0], self._key_dim),
                ("key", shapes[1], self._key_dim),
                ("value", shapes[2], self._value_dim),
            ):
                free = shape.rank - 1
                heads = [self._num_heads, size]
                dense = self._dense(free, 1, heads, options(), part)
                setattr(self, f"_{part}_dense", dense)
            self._build_attention(shapes[0].rank + 1)
            self._output_dense = self._make_output_dense(
                shapes[0].rank - 1, options(), "attention_output"
            )

    def _get_common_kwargs_for_sublayer(self):
        """The options that all projections are made with; initializers are copies, so
        that every projection gets its own values."""
        options = {name: _fresh(getattr(self, name)) for name in _OPTIONS}
        options["activity_regularizer"] = self.activity_regularizer
        return {**options, "dtype": self._dtype_policy}

    def _make_output_dense(self, free_dims, common_kwargs, name=None):
        """The projection of what the heads give, behind `free_dims` axes."""
        sizes = self._output_size or self._query_shape[-1]
        sizes = [sizes] if isinstance(sizes, int) else list(sizes)
        return self._dense(free_dims, 2, sizes, common_kwargs, name)

    def _dense(self, free, bound, sizes, options, name):
        """A projection of the last `bound` axes, behind `free` ones, to axes of `sizes`."""
        letters = string.ascii_lowercase
        rows, old = letters[:free], letters[free : free + bound]
        new = letters[free + bound : free + bound + len(sizes)]
        return EinsumDense(
            f"{rows}{old},{old}{new}->{rows}{new}",
            (*[None] * (free - 1), *sizes),
            bias_axes=new if self._use_bias else None,
            name=name,
            **options,
        )

    def _build_attention(self, rank):
        """Makes the equations, softmax and dropout for projections of that rank."""
        if self._attention_axes is None:
            self._attention_axes = tuple(range(1, rank - 2))
        over = sorted(a % (rank - 1) for a in self._attention_axes)
        if not over or not set(over) <= set(range(1, rank - 2)):
            raise ValueError(
                f"MultiHeadAttention: attention_axes={self._attention_axes} are not "
                "among those between the first and the last of a query of shape "
                f"{self._query_shape.as_list()}"
            )
        rows = string.ascii_lowercase[:rank]
        further = iter(string.ascii_lowercase[rank:])
        columns = "".join(next(further) if i in over else c for i, c in enumerate(rows))
        alone = "".join(c for i, c in enumerate(rows[:-1]) if i not in over)
        scores = alone + "".join(rows[i] for i in over)
        scores += "".join(columns[i] for i in over)
        self._dot_product_equation = f"{columns},{rows}->{scores}"
        self._combine_equation = f"{scores},{columns}->{rows}"
        self._softmax = Softmax(
            axis=tuple(range(len(scores) - len(over), len(scores))),
            robust_masking=self.softmax_robust_masking,
            dtype=self._dtype_policy,
        )
        self._dropout_layer = Dropout(self._dropout, dtype=self._dtype_policy)

    def _compute_attention(self, query, key, value, attention_mask=None, training=None):
        """(what each query sees of `value`, the scores), of projections
        [batch, ..., heads, size]. Subclasses may define it."""
        query = query * (1.0 / float(self._key_dim) ** 0.5)
        scores = tf.einsum(self._dot_product_equation, key, query)
        scores = self._masked_softmax(scores, attention_mask)
        shared = self._dropout_layer(scores, training=training)
        return tf.einsum(self._combine_equation, shared, value), scores

    def _masked_softmax(self, attention_scores, attention_mask=None):
        """How much of each key a query sees: softmax over the axes of keys."""
        if attention_mask is not None:
            place = -2 * len(self._attention_axes) - 1
            while len(attention_mask.shape) < len(attention_scores.shape):
                attention_mask = tf.expand_dims(attention_mask, place)
        return self._softmax(attention_scores, attention_mask)

    def _compute_attention_mask(
        self, query, value, key=None, attention_mask=None, use_causal_mask=False
    ):
        """What each query may see: the masks that are there, joined."""
        parts = []
        sides = [(query, 2), (value, 1)]
        for x, axis in sides if key is value or key is None else [*sides, (key, 1)]:
            shown = getattr(x, "_keras_mask", None)
            if shown is not None:
                parts.append(tf.expand_dims(tf.cast(shown, tf.bool), axis))
        if use_causal_mask:
            parts.append(self._compute_causal_mask(query, value))
        if attention_mask is not None:
            parts.append(tf.cast(attention_mask, tf.bool))
        out = None
        for part in parts:
            out = part if out is None else tf.logical_and(out, part)
        return out

    def _compute_causal_mask(self, query, value=None):
        """[1, T, S]: which steps are not behind that of the query."""
        rows = tf.shape(query)[1]
        cols = rows if value is None else tf.shape(value)[1]
        return (tf.range(rows)[:, None] >= tf.range(cols)[None, :])[None]

    # --- the layer ---

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
        if not self._built_from_signature:
            self._build_from_signature(query=query, value=value, key=key)
        mask = self._compute_attention_mask(
            query, value, key, attention_mask, use_causal_mask
        )
        out, scores = self._compute_attention(
            self._query_dense(query),
            self._key_dense(key),
            self._value_dense(value),
            mask,
            training,
        )
        out = self._output_dense(out)
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

    def compute_mask(self, inputs, mask=None):
        """The mask of the query."""
        return mask if not isinstance(mask, (list, tuple)) else mask[0]


for _name in _OPTIONS:  # as subclasses know them
    setattr(MultiHeadAttention, f"_{_name}", _other_name(_name))


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
