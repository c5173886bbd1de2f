"""tf.lookup.StaticVocabularyTable: numbers for words, for unknown ones by hash."""

from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes
from headrace.framework.trackable import TrackableResource
from headrace.lookup.tables import StaticHashTable, looked_up
from headrace.ops import array_ops, math_ops, string_ops


class StaticVocabularyTable(TrackableResource):
    """Numbers of an initializer's words; behind them `num_oov_buckets` numbers for
    words that it does not have."""

    _own_handle = False

    def __init__(
        self,
        initializer,
        num_oov_buckets,
        lookup_key_dtype=None,
        name=None,
        experimental_is_anonymous=False,
    ):
        if num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; use StaticHashTable.")
        self._num_oov_buckets, self._name, self._table = num_oov_buckets, name, None
        known = dtypes.string if initializer is None else initializer.key_dtype
        wanted = dtypes.as_dtype(lookup_key_dtype or known)
        if initializer is not None:
            if initializer.value_dtype != dtypes.int64:
                raise TypeError(
                    f"Invalid `value_dtype`, expected {dtypes.int64} but got "
                    f"{initializer.value_dtype}."
                )
            if known.is_integer != wanted.is_integer:
                raise TypeError(
                    "Invalid `key_dtype`, expected "
                    f"{'integer' if wanted.is_integer else 'string'} but got {known}."
                )
            self._table = StaticHashTable(initializer, -1, name)
        if not (wanted.is_integer or wanted == dtypes.string):
            raise TypeError(
                f"Invalid `key_dtype`, expected integer or string, but got {wanted}."
            )
        self._key_dtype = wanted

    def _model_children(self):
        return {} if self._table is None else {"_table": self._table}

    key_dtype = read_only("_key_dtype", "The dtype of the words.")
    name = read_only("_name", "The name that the table was made with, or None.")

    @property
    def value_dtype(self):
        """The dtype of the numbers, tf.int64."""
        return dtypes.int64

    @property
    def initializer(self):
        """What fills the table, in a graph."""
        return None if self._table is None else self._table.initializer

    @property
    def resource_handle(self):
        """The handle of the table of known words; None where all go by hash."""
        return None if self._table is None else self._table.resource_handle

    def size(self, name=None):
        """How many numbers there are, buckets included."""
        buckets = conversion.convert_to_tensor(self._num_oov_buckets, dtypes.int64)
        return buckets if self._table is None else self._table.size(name) + buckets

    def lookup(self, keys, name=None):
        """The numbers of keys: a tensor, also sparse or ragged."""
        return looked_up(self._key_dtype, keys, self._find)

    def _find(self, keys):
        words = keys if keys.dtype == dtypes.string else string_ops.as_string(keys)
        buckets = string_ops.to_hash_bucket_fast(words, self._num_oov_buckets)
        if self._table is None:
            return buckets
        if keys.dtype != self._table.key_dtype:
            keys = math_ops.cast(keys, self._table.key_dtype)
        ids = self._table.lookup(keys)
        unknown = math_ops.equal(ids, -1)
        return array_ops.where(unknown, buckets + self._table.size(), ids)

    __getitem__ = lookup
