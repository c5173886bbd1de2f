"""Columns of categories whose numbers need no vocabulary."""

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.feature_column import base
from headrace.feature_column.base import CategoricalColumn
from headrace.feature_column.serialization import fields


class OfOneFeature(CategoricalColumn):
    """A categorical column of one raw feature, its field `key`: subclasses give the
    numbers of a sparse tensor's values."""

    name = read_only("key")

    @property
    def parse_example_spec(self):
        return {self.key: tf.io.VarLenFeature(self.dtype)}

    def _numbers(self, sparse, state_manager):
        raise NotImplementedError

    def transform_feature(self, transformation_cache, state_manager):
        raw = transformation_cache.get(self.key, state_manager)
        return self._numbers(base.to_sparse(raw), state_manager)

    def get_sparse_tensors(self, transformation_cache, state_manager):
        return self.IdWeightPair(transformation_cache.get(self, state_manager), None)


def categorical_column_with_hash_bucket(key, hash_bucket_size, dtype=tf.string):
    """A column of texts or integers, numbered by a hash below `hash_bucket_size`.

    "" and -1 in dense features are no categories. ValueError for a size below 1 and
    for other dtypes.
    """
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(
            "hash_bucket_size must be at least 1. "
            f"hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    base.check_key(key)
    dtype = tf.as_dtype(dtype)
    base.check_string_or_integer(dtype, f"column_name: {key}")
    return HashedCategoricalColumn(key, hash_bucket_size, dtype)


class HashedCategoricalColumn(
    OfOneFeature, fields("HashedCategoricalColumn", "key hash_bucket_size dtype")
):
    """See tf.feature_column.categorical_column_with_hash_bucket."""

    num_buckets = read_only("hash_bucket_size")

    def _numbers(self, sparse, state_manager):
        base.check_values(self, sparse.dtype)
        words = sparse.values
        if words.dtype != tf.string:
            words = tf.as_string(words)
        return sparse.with_values(
            tf.strings.to_hash_bucket_fast(words, self.hash_bucket_size)
        )


def categorical_column_with_identity(key, num_buckets, default_value=None):
    """A column of integers that are numbers of categories already, below
    `num_buckets`.

    Others become `default_value`, or without one are no category. -1 in dense
    features is none. ValueError for num_buckets below 1 and for a default that is no
    such number.
    """
    base.check_key(key)
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(
            f"default_value {default_value} not in range [0, {num_buckets}), "
            f"column_name {key}"
        )
    return IdentityCategoricalColumn(key, num_buckets, default_value)


class IdentityCategoricalColumn(
    OfOneFeature,
    fields("IdentityCategoricalColumn", "key number_buckets default_value"),
):
    """See tf.feature_column.categorical_column_with_identity."""

    dtype = property(lambda self: tf.int64)
    num_buckets = read_only("number_buckets")

    def _numbers(self, sparse, state_manager):
        if not sparse.dtype.is_integer:
            raise ValueError(
                f"Invalid input, not integer. key: {self.key} dtype: {sparse.dtype}"
            )
        values = tf.cast(sparse.values, tf.int64)
        if self.default_value is not None:
            default = tf.constant(self.default_value, tf.int64)
            outside = (values < 0) | (values >= self.number_buckets)
            values = tf.where(outside, default, values)
        return sparse.with_values(values)
