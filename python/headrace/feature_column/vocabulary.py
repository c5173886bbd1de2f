"""Columns of categories that a list or a file numbers."""

import numpy as np

from headrace import _api as tf
from headrace.feature_column import base
from headrace.feature_column.categorical import OfOneFeature
from headrace.feature_column.serialization import fields
from headrace.framework.support import signatures


def _check_buckets(key, default_value, num_oov_buckets):
    """ValueError for a default beside buckets, and for fewer than none of them."""
    if num_oov_buckets:
        if default_value not in (None, -1):
            raise ValueError(
                f"Can't specify both num_oov_buckets and default_value in {key}."
            )
        if num_oov_buckets < 0:
            raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


class _OfVocabulary(OfOneFeature):
    """What the two kinds share: a lookup in a table that is made once."""

    def _initializer(self, key_dtype):
        """What fills the table with words and numbers."""
        raise NotImplementedError

    def _table(self):
        key_dtype = tf.int64 if self.dtype.is_integer else tf.string
        initializer = self._initializer(key_dtype)
        if self.num_oov_buckets:
            return tf.lookup.StaticVocabularyTable(initializer, self.num_oov_buckets)
        return tf.lookup.StaticHashTable(initializer, self.default_value)

    def _numbers(self, sparse, state_manager):
        base.check_values(self, sparse.dtype)
        if sparse.dtype.is_integer:
            sparse = tf.cast(sparse, tf.int64)
        name = f"{self.key}_lookup"
        return base.resource(state_manager, self, name, self._table).lookup(sparse)


def categorical_column_with_vocabulary_list(
    key, vocabulary_list, dtype=None, default_value=-1, num_oov_buckets=0
):
    """A column of texts or integers, numbered by their places in a list.

    Those that are not in it get `default_value`, or one of `num_oov_buckets` numbers
    behind the list's, by a hash. "" and -1 in dense features are no categories.
    ValueError for a list that is empty, has doubles or another dtype, and for a
    default beside buckets.
    """
    base.check_key(key)
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(
            f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}"
        )
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(
            f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}"
        )
    own = tf.as_dtype(np.array(vocabulary_list).dtype)
    if num_oov_buckets:
        _check_buckets(key, default_value, num_oov_buckets)
    base.check_string_or_integer(own, f"column_name: {key} vocabulary")
    dtype = own if dtype is None else tf.as_dtype(dtype)
    base.check_string_or_integer(dtype, f"column_name: {key}")
    if dtype.is_integer != own.is_integer:
        raise ValueError(
            f"dtype {dtype} and vocabulary dtype {own} do not match, column_name: {key}"
        )
    return VocabularyListCategoricalColumn(
        key, tuple(vocabulary_list), dtype, default_value, num_oov_buckets
    )


class VocabularyListCategoricalColumn(
    _OfVocabulary,
    fields(
        "VocabularyListCategoricalColumn",
        "key vocabulary_list dtype default_value num_oov_buckets",
    ),
):
    """See tf.feature_column.categorical_column_with_vocabulary_list."""

    @property
    def num_buckets(self):
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _initializer(self, key_dtype):
        words = tf.constant(list(self.vocabulary_list), key_dtype)
        numbers = tf.range(len(self.vocabulary_list), dtype=tf.int64)
        return tf.lookup.KeyValueTensorInitializer(words, numbers)


_COMPRESSED_RECORDS = "tfrecord_gzip"


def _records(path):
    return tf.compat.v1.io.tf_record_iterator(
        path, tf.io.TFRecordOptions(compression_type="GZIP")
    )


def _count_words(path, file_format):
    if file_format == _COMPRESSED_RECORDS:
        return sum(1 for _ in _records(path))
    with tf.io.gfile.GFile(path, "rb") as file:
        return sum(1 for _ in file)


def categorical_column_with_vocabulary_file(
    key,
    vocabulary_file,
    vocabulary_size=None,
    dtype=tf.string,
    default_value=None,
    num_oov_buckets=0,
    file_format=None,
):
    """A column of texts or integers, numbered by their lines in a file.

    `vocabulary_size` counts the lines that are read, by default all of them. Words that
    are not in the file get `default_value` (by default -1), or one of
    `num_oov_buckets` numbers behind the file's, by a hash. "" and -1 in dense features
    are no categories. `file_format` is "text" or "tfrecord_gzip" (compressed records),
    which it also is by default where the file's name ends in "tfrecord.gz". ValueError
    where there is no such file, and for a default beside buckets.
    """
    base.check_key(key)
    if file_format is None and str(vocabulary_file).endswith("tfrecord.gz"):
        file_format = _COMPRESSED_RECORDS
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        if not tf.io.gfile.exists(vocabulary_file):
            raise ValueError(f"vocabulary_file in {key} does not exist.")
        vocabulary_size = _count_words(vocabulary_file, file_format)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    _check_buckets(key, default_value, num_oov_buckets)
    dtype = tf.as_dtype(dtype)
    base.check_string_or_integer(dtype, f"column_name: {key}")
    return VocabularyFileCategoricalColumn(
        key=key,
        vocabulary_file=vocabulary_file,
        vocabulary_size=vocabulary_size,
        num_oov_buckets=num_oov_buckets or 0,
        dtype=dtype,
        default_value=-1 if default_value is None else default_value,
        file_format=file_format,
    )


categorical_column_with_vocabulary_file_v1 = signatures.twin(
    categorical_column_with_vocabulary_file,
    "categorical_column_with_vocabulary_file_v1",
    """tf.feature_column.categorical_column_with_vocabulary_file with its arguments in
    another order, for files of text.""",
    "key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype",
)


class VocabularyFileCategoricalColumn(
    _OfVocabulary,
    fields(
        "VocabularyFileCategoricalColumn",
        "key vocabulary_file vocabulary_size num_oov_buckets dtype "
        "default_value file_format",
    ),
):
    """See tf.feature_column.categorical_column_with_vocabulary_file."""

    @property
    def num_buckets(self):
        return self.vocabulary_size + self.num_oov_buckets

    def _initializer(self, key_dtype):
        if self.file_format == _COMPRESSED_RECORDS:
            return self._of_records(key_dtype)
        if self.file_format not in (None, "text"):
            raise ValueError(
                f"vocabulary_file of {self.key}: file_format {self.file_format!r} is "
                "not supported; use 'text' or 'tfrecord_gzip'"
            )
        return tf.lookup.TextFileInitializer(
            self.vocabulary_file,
            key_dtype,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
            vocab_size=self.vocabulary_size,
        )

    def _of_records(self, key_dtype):
        words = list(_records(self.vocabulary_file))
        if len(words) < self.vocabulary_size:
            raise tf.errors.FailedPreconditionError._of(
                f"{self.vocabulary_file}: Input dataset was expected to contain "
                f"{self.vocabulary_size} elements but contained only {len(words)} "
                "elements."
            )
        words = words[: self.vocabulary_size]
        keys = tf.constant(words, tf.string)
        if key_dtype != tf.string:
            keys = tf.strings.to_number(keys, key_dtype)
        numbers = tf.range(len(words), dtype=tf.int64)
        return tf.lookup.KeyValueTensorInitializer(keys, numbers)
