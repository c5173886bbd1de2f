"""Columns of sequences: categories and numbers, step by step."""

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.feature_column import categorical, numeric, vocabulary
from headrace.feature_column.base import CategoricalColumn, SequenceDenseColumn
from headrace.feature_column.serialization import fields
from headrace.framework.support import signatures


def lengths(sparse, per_step=1):
    """[batch] int64: how many steps each example has, `per_step` values each."""
    rows, last = sparse.indices[:, 0], sparse.indices[:, 1] // per_step
    batch = sparse.dense_shape[0]
    longest = tf.math.unsorted_segment_max(last + 1, rows, batch)
    return tf.maximum(longest, 0)  # of examples without values


def check_sequence(column, kind, wanted=True):
    """ValueError where SequenceFeatures meets a column that is of no sequence, or where
    DenseFeatures meets one of a sequence, which is not `wanted` there."""
    inner = column.categorical_column
    if isinstance(inner, SequenceCategoricalColumn) == wanted:
        return
    text = (
        "must be of type SequenceCategoricalColumn to use SequenceFeatures. Suggested "
        "fix: Use one of sequence_categorical_column_with_*."
        if wanted
        else "must not be of type SequenceCategoricalColumn. Suggested fix A: If you "
        "wish to use DenseFeatures, use a non-sequence categorical_column_with_*. "
        "Suggested fix B: If you wish to create sequence input, use SequenceFeatures "
        "instead of DenseFeatures."
    )
    raise ValueError(
        f"In {kind}: {column.name}. categorical_column {text} Given (type "
        f"{type(inner)}): {inner}"
    )


class SequenceCategoricalColumn(
    CategoricalColumn, fields("SequenceCategoricalColumn", "categorical_column")
):
    """A categorical column whose values are steps, to be kept apart.

    See tf.feature_column.sequence_categorical_column_with_identity.
    """

    name = read_only("categorical_column.name")
    num_buckets = read_only("categorical_column.num_buckets")
    parse_example_spec = read_only("categorical_column.parse_example_spec")

    def transform_feature(self, transformation_cache, state_manager):
        inner = self.categorical_column
        return inner.transform_feature(transformation_cache, state_manager)

    def get_sparse_tensors(self, transformation_cache, state_manager):
        pair = self.categorical_column.get_sparse_tensors(
            transformation_cache, state_manager
        )
        ids, weights = pair.id_tensor, pair.weight_tensor
        # What a step has lies along a third dimension, so that steps are not combined.
        shape = ids.dense_shape
        shape = tf.stack([shape[0], shape[1], tf.reduce_prod(shape[2:])])
        ids = tf.sparse.reshape(ids, shape)
        if weights is not None:
            weights = tf.sparse.reshape(weights, shape)
        return self.IdWeightPair(ids, weights)


def _for_steps(function):
    """The public function of a column for sequences of what `function` is for."""
    name = function.__name__.removesuffix("_v1")

    def made(**given):
        return SequenceCategoricalColumn(function(**given))

    made.__name__ = made.__qualname__ = f"sequence_{name}"
    made.__doc__ = f"{name} for the steps of sequences."
    return signatures.function_of(made, signatures.parameters_of(function), made)


sequence_categorical_column_with_identity = _for_steps(
    categorical.categorical_column_with_identity
)
sequence_categorical_column_with_hash_bucket = _for_steps(
    categorical.categorical_column_with_hash_bucket
)
sequence_categorical_column_with_vocabulary_file = _for_steps(
    vocabulary.categorical_column_with_vocabulary_file_v1
)
sequence_categorical_column_with_vocabulary_list = _for_steps(
    vocabulary.categorical_column_with_vocabulary_list
)


def sequence_numeric_column(
    key, shape=(1,), default_value=0.0, dtype=tf.float32, normalizer_fn=None
):
    """A column of sequences of numbers: sparse features, each step of which has as many
    values as `shape` says.

    `default_value` stands behind the ends of sequences; `normalizer_fn` is called with
    the sparse tensor. TypeError and ValueError for shapes and dtypes that are none.
    """
    return SequenceNumericColumn(
        key,
        shape=numeric.checked_shape(shape, key),
        default_value=default_value,
        dtype=numeric.checked_number(dtype, key),
        normalizer_fn=numeric.checked_function(normalizer_fn),
    )


class SequenceNumericColumn(
    SequenceDenseColumn,
    fields("SequenceNumericColumn", "key shape default_value dtype normalizer_fn"),
):
    """See tf.feature_column.sequence_numeric_column."""

    name = read_only("key")
    variable_shape = property(lambda self: tf.TensorShape(self.shape))

    @property
    def parse_example_spec(self):
        return {self.key: tf.io.VarLenFeature(self.dtype)}

    def transform_feature(self, transformation_cache, state_manager):
        tensor = transformation_cache.get(self.key, state_manager)
        return tensor if self.normalizer_fn is None else self.normalizer_fn(tensor)

    def get_sequence_dense_tensor(self, transformation_cache, state_manager):
        sparse = transformation_cache.get(self, state_manager)
        if not isinstance(sparse, tf.SparseTensor):
            raise TypeError("Input must be a SparseTensor.")
        dense = tf.sparse.to_dense(sparse, default_value=self.default_value)
        dense = tf.reshape(dense, [tf.shape(dense)[0], -1, *self.shape])
        # Values that lie flat, one dimension behind the batch, are cut into steps.
        per_step = 1
        if sparse.shape.rank == 2:
            per_step = self.variable_shape.num_elements()
        return self.TensorSequenceLengthPair(dense, lengths(sparse, per_step))


def all_equal(tensors):
    """The first of the tensors; where others differ, an error."""
    first = tensors[0]
    checks = [tf.debugging.assert_equal(first, other) for other in tensors[1:]]
    with tf.control_dependencies([c for c in checks if c is not None]):
        return tf.identity(first)
