"""StringLookup and IntegerLookup: numbers for the words of a vocabulary."""

import collections
import os

import numpy as np

from headrace import _api as tf
from headrace.keras.layer.parts import takes
from headrace.keras.layer.preprocessing.adapting import as_tensor
from headrace.keras.layer.preprocessing.encoding import (
    MODES,
    OTHER_MODES,
    Encoded,
    on_values,
    take_older,
)

_WORDS = "vocabulary.txt"  # the file of a model's file, as tf_keras names it


@takes(
    "max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, "
    "invert, output_mode, sparse, pad_to_max_tokens, **kwargs"
)
class _IndexLookup(Encoded):
    """What both share. Numbers begin with the mask's token, where there is one, and
    those of unknown words."""

    _saves_weights = True  # as checkpoints count layers
    _config_names = ("invert", "max_tokens", "num_oov_indices", "oov_token")
    _config_names += ("mask_token", "output_mode", "sparse", "pad_to_max_tokens")
    _config_attributes = {
        name: f"input_{name}" for name in ("vocabulary", "idf_weights")
    }
    _last_config = ()  # the names of what a subclass has besides
    _word_dtype = tf.string

    _modes = MODES

    def _before(self, given):
        max_tokens, num_oov_indices = given["max_tokens"], given["num_oov_indices"]
        if max_tokens is not None and max_tokens <= 1:
            raise ValueError(
                "If set, `max_tokens` must be greater than 1. Received: "
                f"max_tokens={max_tokens}"
            )
        if given["pad_to_max_tokens"] and max_tokens is None:
            raise ValueError(
                "If pad_to_max_tokens is True, must set `max_tokens`. Received: "
                f"max_tokens={max_tokens}"
            )
        if num_oov_indices < 0:
            raise ValueError(
                "`num_oov_indices` must be greater than or equal to 0. Received: "
                f"num_oov_indices={num_oov_indices}"
            )
        mode, idf_weights = given["output_mode"], given["idf_weights"]
        mode = given["output_mode"] = OTHER_MODES.get(mode, mode)
        if given["invert"] and mode in MODES[1:]:
            raise ValueError(
                "`output_mode` must be `'int'` when `invert` is true. Received: "
                f"output_mode={mode}"
            )
        if idf_weights is not None and mode in MODES[:-1]:
            raise ValueError(
                "`idf_weights` should only be set if `output_mode` is `'tf_idf'`. "
                f"Received: idf_weights={idf_weights} and output_mode={mode}"
            )
        told = given.pop("vocabulary_size", None)  # of a configuration
        object.__setattr__(self, "_told_size", told)

    def _begin(self):
        self._words, self._table, self._idf = [], None, None
        if self.input_vocabulary is not None:
            self.set_vocabulary(self.input_vocabulary, self.input_idf_weights)
        else:
            with tf.init_scope():
                self.token_counts = tf.lookup.experimental.MutableHashTable(
                    self._word_dtype, tf.int64, 0
                )
        self.reset_state()

    # --- the vocabulary ---

    def _special(self):
        mask = [] if self.mask_token is None else [self.mask_token]
        return mask + [self.oov_token] * self.num_oov_indices

    def _word(self, value):
        """A word as Python's."""
        raise NotImplementedError

    def get_vocabulary(self, include_special_tokens=True):
        """The words by their numbers."""
        special = self._special() if include_special_tokens else []
        return special + list(self._words)

    def vocabulary_size(self):
        """How many numbers there are."""
        return len(self._special()) + len(self._words)

    vocab_size = vocabulary_size

    def set_vocabulary(self, vocabulary, idf_weights=None):
        """Takes words (a list, or a file of lines); special tokens may come first."""
        if self.output_mode != "tf_idf" and idf_weights is not None:
            raise ValueError(
                "`idf_weights` should only be set if output_mode is `'tf_idf'`. "
                f"Received: output_mode={self.output_mode} and idf_weights={idf_weights}"
            )
        if isinstance(vocabulary, str):
            if not tf.io.gfile.exists(vocabulary):
                raise ValueError(f"Vocabulary file {vocabulary} does not exist.")
            with tf.io.gfile.GFile(vocabulary) as f:
                vocabulary = f.read().splitlines()
        words = [self._word(v) for v in np.asarray(vocabulary, object).reshape(-1)]
        if not words:
            raise ValueError(
                f"Cannot set an empty vocabulary, you passed {list(vocabulary)}."
            )
        special = self._special()
        skipped = len(special) if words[: len(special)] == special else 0
        words = words[skipped:]
        self._check_words(words, special)
        if self.output_mode == "tf_idf":
            self._take_idf(idf_weights, words, skipped)
        self._words = words
        self._make_table()

    def _check_words(self, words, special):
        repeated = [w for w, n in collections.Counter(words).items() if n > 1]
        if repeated:
            raise ValueError(
                "The passed vocabulary has at least one repeated term. Please uniquify "
                f"your dataset. The repeated terms are {repeated}"
            )
        for kind, token in (("mask", self.mask_token), ("OOV", self.oov_token)):
            if kind == "OOV" and not (self.invert and self.num_oov_indices):
                continue
            if token is not None and token in words:
                raise ValueError(
                    f"Found reserved {kind} token at unexpected location in "
                    "`vocabulary`. Note that passed `vocabulary` does not need to "
                    "include the OOV and mask tokens. Either remove all mask and OOV "
                    "tokens, or include them only at the start of the vocabulary in "
                    f"precisely this order: {special}. Received: {kind}_token={token} "
                    f"at vocabulary index {[words.index(token)]}"
                )
        size = len(words) + len(special)
        if self.max_tokens is not None and size > self.max_tokens:
            raise ValueError(
                "Attempted to set a vocabulary larger than the maximum vocab size. "
                f"Passed vocab size is {size}, max vocab size is {self.max_tokens}."
            )

    def _take_idf(self, weights, words, skipped):
        if weights is None:
            raise ValueError("`idf_weights` must be set if output_mode is TF_IDF")
        weights = np.asarray(weights, np.float32).reshape(-1)
        weights = weights[skipped:] if len(weights) == len(words) + skipped else weights
        if len(weights) != len(words):
            raise ValueError(
                "`idf_weights` must be the same length as vocabulary. len(idf_weights) "
                f"is {len(weights)}; len(vocabulary) is {len(words)}"
            )
        self._set_idf(weights)

    def _set_idf(self, weights):
        """Weights of the words; unknown ones have the mean."""
        unknown = np.full(len(self._special()), weights.mean(), np.float32)
        full = np.concatenate([unknown, weights])
        if self.pad_to_max_tokens:
            full = np.pad(full, (0, self.max_tokens - len(full)))
        with tf.init_scope():
            self._idf = tf.constant(full, self._computed)

    def _make_table(self):
        first = len(self._special())
        numbers = np.arange(first, first + len(self._words), dtype=np.int64)
        words = list(self._words)
        if self.mask_token is not None:
            words, numbers = [self.mask_token, *words], np.append([0], numbers)
        with tf.init_scope():
            words = tf.constant(words, self._word_dtype)
            rows = (numbers, words) if self.invert else (words, numbers)
            rows = tf.lookup.KeyValueTensorInitializer(*map(tf.constant, rows))
            default = self.oov_token if self.invert else -1
            self._table = tf.lookup.StaticHashTable(rows, default)

    # --- the vocabulary that was learned, in files of models ---

    def save_assets(self, dir_path):
        """Writes vocabulary.txt, a word a line, unless the configuration has it."""
        if self.input_vocabulary is None:
            words = map(str, self.get_vocabulary())
            with tf.io.gfile.GFile(os.path.join(dir_path, _WORDS), "w") as f:
                f.write("\n".join(words))

    def load_assets(self, dir_path):
        """Reads what save_assets() wrote."""
        if self.input_vocabulary is not None:
            return
        with tf.io.gfile.GFile(os.path.join(dir_path, _WORDS)) as f:
            words = f.read().split("\n")
        idf = None if self._idf is None else self._idf.numpy()[: len(words)]
        self.set_vocabulary(words, idf)

    def save_own_variables(self, store):
        """Puts the weights of tf-idf into a store, under "idf_weights"."""
        if self._idf is not None:
            store["idf_weights"] = self._idf.numpy()

    def load_own_variables(self, store):
        """Reads what save_own_variables() put into a store."""
        if self.output_mode == "tf_idf":
            with tf.init_scope():
                self._idf = tf.constant(
                    np.asarray(store["idf_weights"]), self._computed
                )

    # --- learning it ---

    def _check_adaptable(self):
        if self.input_vocabulary is not None:
            raise ValueError(
                f"Cannot adapt {type(self).__name__} layer after setting a static "
                "vocabulary via init argument or `set_vocabulary`."
            )

    def reset_state(self):
        self._found, self._documents = collections.Counter(), collections.Counter()
        self._seen = 0

    def update_state(self, data):
        values, rows, count = self._flat(as_tensor(data))
        distinct, places, counts = tf.unique_with_counts(values, tf.int64)
        words = [self._word(v) for v in distinct.numpy()]
        for word, number in zip(words, counts.numpy().tolist(), strict=True):
            self._found[word] += number
        if self.output_mode == "tf_idf":
            pairs = np.unique(rows * len(words) + places.numpy()) % max(len(words), 1)
            documents = np.bincount(pairs, minlength=len(words)).tolist()
            for word, number in zip(words, documents, strict=True):
                self._documents[word] += number
            self._seen += count

    @staticmethod
    def _flat(data):
        """All values in a row, the document that each is of, and how many documents
        there are."""
        count = 1
        if isinstance(data, tf.RaggedTensor):
            count = int(data.nrows())
            values = tf.reshape(data.flat_values, [-1])
            starts = data.row_splits
            for inner in data.nested_row_splits[1:]:
                starts = tf.gather(inner, starts)
            sizes = np.diff(starts.numpy()) * int(np.prod(data.flat_values.shape[1:]))
            return values, np.repeat(np.arange(count), sizes), count
        if isinstance(data, tf.SparseTensor):
            data = data.values
        values = tf.reshape(data, [-1])
        if data.shape.rank > 1:
            count = data.shape[0]
        size = values.shape[0]
        return values, np.repeat(np.arange(count), size // max(count, 1)), count

    def finalize_state(self):
        if self.input_vocabulary is not None or not (self.built and self._found):
            return
        for special in (self.mask_token, self.oov_token):
            self._found.pop(special, None)
        ordered = sorted(self._found, key=lambda w: (self._found[w], w), reverse=True)
        if self.max_tokens is not None:
            ordered = ordered[: max(self.max_tokens - len(self._special()), 0)]
        self._words = ordered
        if self.output_mode == "tf_idf":
            counts = np.array([self._documents[w] for w in ordered], np.float32)
            self._set_idf(np.log(1.0 + self._seen / (1.0 + counts)).astype(np.float32))
        self._make_table()
        self.reset_state()

    # --- computing ---

    @property
    def _signature_dtype(self):
        return self._word_dtype if self.invert else self._computed

    def _found_in_table(self, keys):
        """What the table has for keys. A graph that is built before there is one asks a
        table without values, so that a run of it is the same error."""
        if self._table is not None:
            return self._table.lookup(keys)
        kinds = (tf.int64, tf.string) if self.invert else (self._word_dtype, tf.int64)
        empty = tf.raw_ops.HashTableV2(
            key_dtype=kinds[0], value_dtype=kinds[1], shared_name=f"empty_{id(self)}"
        )
        default = tf.constant("" if self.invert else -1, kinds[1])
        return tf.raw_ops.LookupTableFindV2(
            table_handle=empty, keys=keys, default_value=default
        )

    def call(self, inputs):
        inputs = as_tensor(inputs, None if not self.invert else tf.int64)
        if not self.invert and inputs.dtype != self._word_dtype:
            inputs = tf.cast(inputs, self._word_dtype)
        if self._table is None and tf.executing_eagerly():
            raise tf.errors.FailedPreconditionError._of(
                "Table not initialized. [Op:LookupTableFindV2] name: "
            )
        if self.invert:
            return on_values(self._found_in_table, inputs)
        ids = on_values(self._numbers, inputs)
        depth = self.max_tokens if self.pad_to_max_tokens else self.vocabulary_size()
        idf = self._idf
        if (
            self._table is None
        ):  # a model of a file is described before its words are read
            depth = self._told_size or depth
            idf = tf.zeros([depth], self._computed)
        return self._encoded(ids, depth, idf=idf)

    def _numbers(self, words):
        ids = self._found_in_table(words)
        unknown = tf.equal(ids, -1)
        count, first = self.num_oov_indices, int(self.mask_token is not None)
        if count == 0:
            missing = tf.boolean_mask(words, unknown)
            text = tf.strings.format(
                "When `num_oov_indices=0` all inputs should be in vocabulary, found OOV "
                "values {}, consider setting `num_oov_indices=1`.",
                missing,
            )
            none = tf.equal(tf.size(missing), 0)
            with tf.control_dependencies([tf.debugging.Assert(none, [text])]):
                return tf.identity(ids)
        if count == 1:
            return tf.where(unknown, tf.constant(first, tf.int64), ids)
        if words.dtype == tf.string:
            bucket = tf.strings.to_hash_bucket_fast(words, count)
        else:
            bucket = tf.cast(
                tf.math.floormod(words, tf.cast(count, words.dtype)), tf.int64
            )
        return tf.where(unknown, bucket + first, ids)

    def get_config(self):
        """Adds the arguments, those that adapt() found included."""
        given = self.input_vocabulary
        idf = self.input_idf_weights
        if given is not None and not isinstance(given, str):
            given = [self._word(v) for v in np.asarray(given, object).reshape(-1)]
        return {
            **super().get_config(),
            "idf_weights": None if idf is None else np.asarray(idf).tolist(),
            "vocabulary": given,
            "vocabulary_size": self.vocabulary_size(),
            **{name: getattr(self, name) for name in self._last_config},
        }


@takes(
    "max_tokens=None, num_oov_indices=1, mask_token=None, oov_token='[UNK]', "
    "vocabulary=None, idf_weights=None, encoding='utf-8', invert=False, "
    "output_mode='int', sparse=False, pad_to_max_tokens=False, **kwargs"
)
class StringLookup(_IndexLookup):
    """Numbers for strings, or the strings of numbers (`invert`)."""

    _last_config = ("encoding",)

    def _before(self, given):
        object.__setattr__(self, "encoding", given["encoding"])

    def _word(self, value):
        value = value.numpy() if hasattr(value, "numpy") else value
        return value.decode(self.encoding) if isinstance(value, bytes) else str(value)


@takes(
    "max_tokens=None, num_oov_indices=1, mask_token=None, oov_token=-1, "
    "vocabulary=None, vocabulary_dtype='int64', idf_weights=None, invert=False, "
    "output_mode='int', sparse=False, pad_to_max_tokens=False, **kwargs"
)
class IntegerLookup(_IndexLookup):
    """Numbers from 0 on for integers, or the integers of numbers (`invert`)."""

    _last_config = ("vocabulary_dtype",)

    def _before(self, given):
        take_older(
            given,
            max_values="max_tokens",
            mask_value="mask_token",
            oov_value="oov_token",
        )
        most, oov = given["max_tokens"], given["num_oov_indices"]
        if most is not None and most <= 1:
            raise ValueError(
                "If `max_tokens` is set for `IntegerLookup`, it must be greater than 1. "
                f"Received: max_tokens={most}."
            )
        if oov < 0:
            raise ValueError(
                "The value of `num_oov_indices` argument for `IntegerLookup` must >= 0. "
                f"Received num_oov_indices={oov}."
            )
        vocabulary_dtype = given["vocabulary_dtype"]
        if vocabulary_dtype not in ("int64", "int32"):
            raise ValueError(
                "`vocabulary_dtype` must be one of `int64` or `int32`. Received: "
                f"vocabulary_dtype={vocabulary_dtype}"
            )
        object.__setattr__(self, "_word_dtype", tf.as_dtype(vocabulary_dtype))

    def _word(self, value):
        return int(value)
