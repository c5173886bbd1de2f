"""Columns of numbers: as they are, and in buckets."""

import numpy as np

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.feature_column import base
from headrace.feature_column.base import CategoricalColumn, DenseColumn
from headrace.feature_column.serialization import as_tuples, fields


def checked_shape(shape, key):
    """A shape as a tuple of positive integers; TypeError or ValueError otherwise."""
    if not isinstance(shape, (list, tuple, str)) and not hasattr(shape, "__iter__"):
        shape = [shape]
    shape = tuple(shape)
    for size in shape:
        if not isinstance(size, (int, np.integer)):
            raise TypeError(
                f"shape dimensions must be integer. shape: {shape}, key: {key}"
            )
        if size < 1:
            raise ValueError(
                f"shape dimensions must be greater than 0. shape: {shape}, key: {key}"
            )
    return shape


def checked_number(dtype, key):
    """A dtype of numbers; ValueError for others."""
    dtype = tf.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(
            f"dtype must be convertible to float. dtype: {dtype}, key: {key}"
        )
    return dtype


def checked_function(function):
    if function is not None and not callable(function):
        raise TypeError(f"normalizer_fn must be a callable. Given: {function}")
    return function


def _fits(value, shape):
    if not shape:
        return not isinstance(value, (list, tuple, dict))
    if isinstance(value, dict) or not hasattr(value, "__len__"):
        return False
    return len(value) == shape[0] and all(_fits(v, shape[1:]) for v in value)


def _default(shape, value, dtype, key):
    """A default value as nested tuples of the shape, or None."""
    if value is None:
        return None
    given = value
    if hasattr(value, "tolist"):
        value = value.tolist()
    numbers = (int, float) if dtype.is_floating else int
    if isinstance(value, (int, float)):
        if isinstance(value, numbers):
            return as_tuples(np.full(shape, value).tolist())
    elif not _fits(value, shape):
        raise ValueError(
            "The shape of default_value must be equal to given shape. "
            f"default_value: {given}, shape: {shape}, key: {key}"
        )
    elif all(isinstance(leaf, numbers) for leaf in tf.nest.flatten(value)):
        return as_tuples(value)
    raise TypeError(
        "default_value must be compatible with dtype. "
        f"default_value: {given}, dtype: {dtype}, key: {key}"
    )


def numeric_column(
    key, shape=(1,), default_value=None, dtype=tf.float32, normalizer_fn=None
):
    """A column of numbers, as float32 of shape [batch, *shape].

    `default_value` (a number, or one for each place) is for examples without the
    feature, when they are parsed; without one such examples are an error then.
    `normalizer_fn` is called with the tensor. ValueError and TypeError for arguments
    that do not fit each other.
    """
    base.check_key(key)
    shape = checked_shape(shape, key)
    dtype = checked_number(dtype, key)
    return NumericColumn(
        key,
        shape=shape,
        default_value=_default(shape, default_value, dtype, key),
        dtype=dtype,
        normalizer_fn=checked_function(normalizer_fn),
    )


class NumericColumn(
    DenseColumn, fields("NumericColumn", "key shape default_value dtype normalizer_fn")
):
    """See tf.feature_column.numeric_column."""

    name = read_only("key")
    variable_shape = property(lambda self: tf.TensorShape(self.shape))

    @property
    def parse_example_spec(self):
        return {
            self.key: tf.io.FixedLenFeature(self.shape, self.dtype, self.default_value)
        }

    def transform_feature(self, transformation_cache, state_manager):
        tensor = transformation_cache.get(self.key, state_manager)
        if isinstance(tensor, tf.SparseTensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. "
                f"SparseTensor is not supported. key: {self.key}"
            )
        if self.normalizer_fn is not None:
            tensor = self.normalizer_fn(tensor)
        return tf.cast(tensor, tf.float32)

    def get_dense_tensor(self, transformation_cache, state_manager):
        return transformation_cache.get(self, state_manager)


def bucketized_column(source_column, boundaries):
    """Numbers as the buckets that they are in: below the first boundary, between two
    (the lower one included), from the last one on.

    `source_column` is a numeric_column of at most one dimension, `boundaries` a sorted
    list of numbers; ValueError otherwise. Dense, it gives rows of ones and zeros,
    [batch, *shape, len(boundaries) + 1]; it is also a categorical column.
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            "source_column must be a column generated with numeric_column(). "
            f"Given: {source_column}"
        )
    if len(source_column.shape) > 1:
        raise ValueError(
            f"source_column must be one-dimensional column. Given: {source_column}"
        )
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    if not isinstance(boundaries, (list, tuple)) or any(
        a >= b for a, b in zip(boundaries, boundaries[1:])
    ):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))


class BucketizedColumn(
    DenseColumn,
    CategoricalColumn,
    fields("BucketizedColumn", "source_column boundaries"),
):
    """See tf.feature_column.bucketized_column."""

    name = property(lambda self: f"{self.source_column.name}_bucketized")
    parse_example_spec = read_only("source_column.parse_example_spec")

    @property
    def _count(self):
        return len(self.boundaries) + 1

    @property
    def variable_shape(self):
        return tf.TensorShape([*self.source_column.shape, self._count])

    @property
    def num_buckets(self):
        return self._count * self.source_column.shape[0]

    def transform_feature(self, transformation_cache, state_manager):
        source = transformation_cache.get(self.source_column, state_manager)
        boundaries = [float(b) for b in self.boundaries]
        return tf.raw_ops.Bucketize(input=source, boundaries=boundaries)

    def get_dense_tensor(self, transformation_cache, state_manager):
        buckets = transformation_cache.get(self, state_manager)
        return tf.one_hot(tf.cast(buckets, tf.int64), depth=self._count)

    def get_sparse_tensors(self, transformation_cache, state_manager):
        buckets = transformation_cache.get(self, state_manager)
        batch, width = tf.shape(buckets)[0], self.source_column.shape[0]
        rows = tf.repeat(tf.range(batch), width)
        places = tf.tile(tf.range(width), [batch])
        # Each place of the source has buckets of its own.
        ids = tf.reshape(buckets, [-1]) + self._count * places
        sparse = tf.SparseTensor(
            tf.cast(tf.stack([rows, places], axis=1), tf.int64),
            tf.cast(ids, tf.int64),
            tf.cast(tf.stack([batch, width]), tf.int64),
        )
        return self.IdWeightPair(sparse, None)
