"""Columns that make dense rows of categories: indicators and embeddings."""

import math

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.feature_column import sequence
from headrace.feature_column.base import (
    CategoricalColumn,
    DenseColumn,
    SequenceDenseColumn,
)
from headrace.feature_column.serialization import fields
from headrace.framework.support import signatures

# How an embedding is looked up in and made: parameters of the functions for columns
# that have one, and fields of these.
EMBEDDING = signatures.from_text(
    "combiner='mean', initializer=None, ckpt_to_load_from=None, "
    "tensor_name_in_ckpt=None, max_norm=None, trainable=True, "
    "use_safe_embedding_lookup=True"
)


def embedding_fields(parameters):
    """The fields of a column with an embedding of those parameters."""
    return ("categorical_column", "dimension", *(p.name for p in parameters))


def indicator_column(categorical_column):
    """Categories as rows of counts (ones, where each comes once), or with the sums of
    weights: [batch, num_buckets].

    ValueError for what is no categorical column.
    """
    if not isinstance(categorical_column, CategoricalColumn):
        raise ValueError(
            "Unsupported input type. Input must be a CategoricalColumn. "
            f"Given: {categorical_column}"
        )
    return IndicatorColumn(categorical_column)


class IndicatorColumn(
    DenseColumn, SequenceDenseColumn, fields("IndicatorColumn", "categorical_column")
):
    """See tf.feature_column.indicator_column."""

    name = property(lambda self: f"{self.categorical_column.name}_indicator")

    parse_example_spec = read_only("categorical_column.parse_example_spec")

    @property
    def variable_shape(self):
        return tf.TensorShape([1, self.categorical_column.num_buckets])

    def transform_feature(self, transformation_cache, state_manager):
        ids, weights = self.categorical_column.get_sparse_tensors(
            transformation_cache, state_manager
        )
        depth = self.categorical_column.num_buckets
        if weights is None:
            dense = tf.sparse.to_dense(ids, default_value=-1)
            return tf.reduce_sum(tf.one_hot(dense, depth), axis=-2)
        counts = (ids.values.shape[0], weights.values.shape[0])
        if None not in counts and counts[0] != counts[1]:
            raise ValueError(
                f"Dimensions {counts[0]} and {counts[1]} are not compatible"
            )
        known = (ids.values >= 0) & (ids.values < depth)
        indices = tf.concat([ids.indices[:, :-1], ids.values[:, None]], axis=1)
        shape = tf.concat([ids.dense_shape[:-1], [depth]], axis=0)
        return tf.scatter_nd(
            tf.boolean_mask(indices, known),
            tf.boolean_mask(weights.values, known),
            shape,
        )

    def get_dense_tensor(self, transformation_cache, state_manager):
        sequence.check_sequence(self, "indicator_column", wanted=False)
        return transformation_cache.get(self, state_manager)

    def get_sequence_dense_tensor(self, transformation_cache, state_manager):
        sequence.check_sequence(self, "indicator_column")
        dense = transformation_cache.get(self, state_manager)
        ids = self.categorical_column.get_sparse_tensors(
            transformation_cache, state_manager
        ).id_tensor
        return self.TensorSequenceLengthPair(dense, sequence.lengths(ids))


def check_embedding(dimension, given, of):
    """Puts the initializer into the arguments of an embedding; ValueError for those
    that do not fit."""
    initializer = given["initializer"]
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (given["ckpt_to_load_from"] is None) != (given["tensor_name_in_ckpt"] is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of "
            "them."
        )
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. {of}")
    if initializer is None:
        given["initializer"] = tf.compat.v1.initializers.truncated_normal(
            mean=0.0, stddev=1 / math.sqrt(dimension)
        )


@signatures.taking(EMBEDDING)
def embedding_column(categorical_column, dimension, **given):
    """Categories as rows of a variable, [num_buckets, dimension]: [batch, dimension].

    Several categories of an example are combined by "mean", "sqrtn" or "sum", weights
    counted; rows longer than `max_norm` are cut to it. The first values come from
    `initializer` (by default normal ones, cut, of deviation 1 / sqrt(dimension)) or
    from a tensor of a checkpoint. Without `use_safe_embedding_lookup` examples without
    categories, bad numbers and weights are not looked for. ValueError for arguments
    that do not fit.
    """
    name = getattr(categorical_column, "name", categorical_column)
    check_embedding(dimension, given, f"Embedding of column_name: {name}")
    return EmbeddingColumn(categorical_column, dimension, **given)


def load_first_value(variable, checkpoint, tensor_name):
    """Lets a new variable begin with a tensor of a checkpoint."""
    if checkpoint is None:
        return
    with tf.init_scope():
        if tf.executing_eagerly():
            variable.assign(tf.train.load_variable(checkpoint, tensor_name))
        else:
            tf.compat.v1.train.init_from_checkpoint(checkpoint, {tensor_name: variable})


class LooksUp(DenseColumn, SequenceDenseColumn):
    """A column that looks categories up in an embedding: subclasses have the fields
    and give the variable."""

    _is_v2_column = True
    parents = property(lambda self: [self.categorical_column])

    parse_example_spec = read_only("categorical_column.parse_example_spec")

    def transform_feature(self, transformation_cache, state_manager):
        return transformation_cache.get(self.categorical_column, state_manager)

    def _weights(self, state_manager):
        raise NotImplementedError

    def _make_weights(self, state_manager, **more):
        """The variable of a column whose fields say all about it."""
        variable = state_manager.create_variable(
            self,
            name="embedding_weights",
            shape=(self.categorical_column.num_buckets, self.dimension),
            dtype=tf.float32,
            trainable=self.trainable,
            initializer=self.initializer,
            **more,
        )
        load_first_value(variable, self.ckpt_to_load_from, self.tensor_name_in_ckpt)
        return variable

    def _looked_up(self, transformation_cache, state_manager):
        ids, weights = self.categorical_column.get_sparse_tensors(
            transformation_cache, state_manager
        )
        safe = self.use_safe_embedding_lookup
        look = (
            tf.nn.safe_embedding_lookup_sparse
            if safe
            else tf.nn.embedding_lookup_sparse
        )
        rows = look(
            self._weights(state_manager),
            ids,
            weights,
            combiner=self.combiner,
            max_norm=self.max_norm,
            name=f"{self.name}_weights",
        )
        return rows, ids

    def get_dense_tensor(self, transformation_cache, state_manager):
        sequence.check_sequence(self, self._kind, wanted=False)
        return self._looked_up(transformation_cache, state_manager)[0]

    def get_sequence_dense_tensor(self, transformation_cache, state_manager):
        sequence.check_sequence(self, self._kind)
        dense, ids = self._looked_up(transformation_cache, state_manager)
        return self.TensorSequenceLengthPair(dense, sequence.lengths(ids))


class EmbeddingColumn(LooksUp, fields("EmbeddingColumn", embedding_fields(EMBEDDING))):
    """See tf.feature_column.embedding_column."""

    _kind = "embedding_column"
    name = property(lambda self: f"{self.categorical_column.name}_embedding")
    variable_shape = property(lambda self: tf.TensorShape([self.dimension]))

    def __new__(cls, *args, use_safe_embedding_lookup=True, **kwargs):
        # Configurations of older versions do not say how to look up.
        if len(args) < len(cls._fields):
            kwargs["use_safe_embedding_lookup"] = use_safe_embedding_lookup
        return super().__new__(cls, *args, **kwargs)

    def create_state(self, state_manager):
        self._make_weights(state_manager, use_resource=True)

    def _weights(self, state_manager):
        return state_manager.get_variable(self, name="embedding_weights")
