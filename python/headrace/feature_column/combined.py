"""Columns made of others: crosses, and categories with weights."""

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.feature_column import base
from headrace.feature_column.base import CategoricalColumn, FeatureColumn
from headrace.feature_column.categorical import HashedCategoricalColumn
from headrace.feature_column.serialization import fields


def crossed_column(keys, hash_bucket_size, hash_key=None):
    """A column of all combinations of the values of others, numbered by a hash.

    `keys` are names of features and categorical columns, at least two (columns that
    hash and columns with weights are refused); `hash_key` changes the hash. ValueError
    for other keys and a size below 1.
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}"
        )
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn)):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical "
                f"column except HashedCategoricalColumn. Given: {key}"
            )
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. "
                "Hashing before crossing will increase probability of collision. "
                f"Instead, use the feature name as a string. Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


class CrossedColumn(
    CategoricalColumn, fields("CrossedColumn", "keys hash_bucket_size hash_key")
):
    """See tf.feature_column.crossed_column."""

    num_buckets = read_only("hash_bucket_size")
    parents = property(lambda self: list(self.keys))

    def _leaves(self):
        """The keys, those of crossed columns in their places."""
        found = []
        for key in self.keys:
            found.extend(key._leaves() if isinstance(key, CrossedColumn) else [key])
        return found

    @property
    def name(self):
        names = [k if isinstance(k, str) else k.name for k in self._leaves()]
        return "_X_".join(sorted(names))

    @property
    def parse_example_spec(self):
        spec = {}
        for key in self.keys:
            if isinstance(key, FeatureColumn):
                spec.update(key.parse_example_spec)
            else:
                spec[key] = tf.io.VarLenFeature(tf.string)
        return spec

    def transform_feature(self, transformation_cache, state_manager):
        inputs = []
        for key in self._leaves():
            if isinstance(key, str):
                inputs.append(transformation_cache.get(key, state_manager))
                continue
            pair = key.get_sparse_tensors(transformation_cache, state_manager)
            if pair.weight_tensor is not None:
                raise ValueError(
                    "crossed_column does not support weight_tensor, but the given "
                    f"column populates weight_tensor. Given column: {key.name}"
                )
            inputs.append(pair.id_tensor)
        return tf.sparse.cross_hashed(
            [_words_or_integers(x) for x in inputs],
            num_buckets=self.hash_bucket_size,
            hash_key=self.hash_key,
        )

    def get_sparse_tensors(self, transformation_cache, state_manager):
        return self.IdWeightPair(transformation_cache.get(self, state_manager), None)


def _words_or_integers(feature):
    if feature.dtype == tf.string or feature.dtype == tf.int64:
        return feature
    return tf.cast(feature, tf.int64)


def weighted_categorical_column(
    categorical_column, weight_feature_key, dtype=tf.float32
):
    """A categorical column each of whose values has the weight that the feature of
    another name has in the same place.

    ValueError for a dtype of weights that is no number.
    """
    given, dtype = dtype, None if dtype is None else tf.as_dtype(dtype)
    if dtype is None or not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype {given} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, dtype)


class WeightedCategoricalColumn(
    CategoricalColumn,
    fields("WeightedCategoricalColumn", "categorical_column weight_feature_key dtype"),
):
    """See tf.feature_column.weighted_categorical_column."""

    num_buckets = read_only("categorical_column.num_buckets")

    @property
    def name(self):
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parents(self):
        return [self.categorical_column, self.weight_feature_key]

    @property
    def parse_example_spec(self):
        spec = self.categorical_column.parse_example_spec
        if self.weight_feature_key in spec:
            raise ValueError(
                f"Parse config {spec[self.weight_feature_key]} already exists for "
                f"{self.weight_feature_key}."
            )
        return {**spec, self.weight_feature_key: tf.io.VarLenFeature(self.dtype)}

    def transform_feature(self, transformation_cache, state_manager):
        weights = transformation_cache.get(self.weight_feature_key, state_manager)
        if weights.dtype != self.dtype:
            raise ValueError(
                f"Bad dtype, expected {self.dtype}, but got {weights.dtype}."
            )
        weights = base.to_sparse(weights, ignore_value=0)
        if not weights.dtype.is_floating:
            weights = tf.cast(weights, tf.float32)
        ids = transformation_cache.get(self.categorical_column, state_manager)
        return ids, weights

    def get_sparse_tensors(self, transformation_cache, state_manager):
        # Those of the column itself, which may arrange its numbers anew.
        pair = self.categorical_column.get_sparse_tensors(
            transformation_cache, state_manager
        )
        _, weights = transformation_cache.get(self, state_manager)
        return self.IdWeightPair(pair.id_tensor, weights)
