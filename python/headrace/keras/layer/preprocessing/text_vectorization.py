"""TextVectorization: sentences as numbers of their words."""

from headrace import _api as tf
from headrace.keras.layer.parts import takes
from headrace.keras.layer.preprocessing.adapting import PreprocessingLayer, as_tensor
from headrace.keras.layer.preprocessing.encoding import OTHER_MODES
from headrace.keras.layer.preprocessing.index_lookup import StringLookup

_PUNCTUATION = r'[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']'
_STANDARDS = ("lower_and_strip_punctuation", "lower", "strip_punctuation")
_SPLITS = ("whitespace", "character")
_OUTPUTS = ("int", "count", "multi_hot", "tf_idf")
# the configuration: what is kept here, and what the lookup keeps
_OWN = ("standardize", "split", "ngrams", "output_mode", "output_sequence_length")
_OWN += ("ragged",)
_OF_LOOKUP = ("max_tokens", "pad_to_max_tokens", "sparse", "vocabulary", "idf_weights")
_OF_LOOKUP += ("encoding", "vocabulary_size")
_CALLABLE = (
    "If restoring a model and `{0}` is a custom callable, please ensure the callable is "
    "registered as a custom object. See https://www.tensorflow.org/guide/keras/"
    "save_and_serialize#registering_the_custom_object for details. "
)


def _check(argument, value, allowed, extra):
    if value is not None and value not in allowed and not callable(value):
        extra = extra.format(argument)
        or_callable = ", a `Callable`" if extra else ""
        raise ValueError(
            f"Unkown value for `{argument}` argument of layer TextVectorization. {extra}"
            f"Allowed values are: `None`{or_callable}, or one of the following values: "
            f"{allowed}. Received: {value}"
        )


@takes(
    "max_tokens=None, standardize='lower_and_strip_punctuation', split='whitespace', "
    "ngrams=None, output_mode='int', output_sequence_length=None, "
    "pad_to_max_tokens=False, vocabulary=None, idf_weights=None, sparse=False, "
    "ragged=False, encoding='utf-8', **kwargs"
)
class TextVectorization(PreprocessingLayer):
    """Standardizes, splits, joins to n-grams and looks up."""

    _config_names = ()
    _config_attributes = {name: f"_{name}" for name in _OWN}

    def _before(self, given):
        _check("standardize", given["standardize"], _STANDARDS, _CALLABLE)
        _check("split", given["split"], _SPLITS, _CALLABLE)
        mode, ngrams = given["output_mode"], given["ngrams"]
        mode = given["output_mode"] = OTHER_MODES.get(mode, mode)
        _check("output_mode", mode, _OUTPUTS, "")
        wide = isinstance(ngrams, tuple) and all(isinstance(n, int) for n in ngrams)
        if ngrams is not None and not isinstance(ngrams, int) and not wide:
            raise ValueError(
                "`ngrams` must be None, an integer, or a tuple of integers. Received: "
                f"ngrams={ngrams}"
            )
        length = given["output_sequence_length"]
        if mode != "int" and length is not None:
            raise ValueError(
                "`output_sequence_length` must not be set if `output_mode` is not 'int'. "
                f"Received output_sequence_length={length}."
            )
        if given["ragged"] and mode != "int":
            raise ValueError(
                "`ragged` must not be true if `output_mode` is `'int'`. Received: "
                f"ragged={given['ragged']} and output_mode={mode}"
            )
        given["ngrams"] = (
            tuple(range(1, ngrams + 1)) if isinstance(ngrams, int) else ngrams
        )
        dtype = given.get("dtype")
        if dtype is not None and tf.as_dtype(dtype) != tf.string:
            raise ValueError(
                "`TextVectorization` may only have a dtype of string. Received dtype: "
                f"{dtype}."
            )
        given["dtype"] = tf.string
        self._lookup_layer = StringLookup(
            vocabulary_size=given.pop("vocabulary_size", None),  # of a configuration
            **{name: given.pop(name) for name in _OF_LOOKUP if name in given},
            mask_token="" if mode == "int" else None,
            output_mode=mode,
        )

    @property
    def _saves_weights(self):
        return self._lookup_layer.input_vocabulary is None

    # --- the vocabulary ---

    def get_vocabulary(self, include_special_tokens=True):
        """The words by their numbers."""
        return self._lookup_layer.get_vocabulary(include_special_tokens)

    def vocabulary_size(self):
        """How many numbers there are."""
        return self._lookup_layer.vocabulary_size()

    def set_vocabulary(self, vocabulary, idf_weights=None):
        """Takes words; special tokens may come first."""
        self._lookup_layer.set_vocabulary(vocabulary, idf_weights)

    @property
    def _signature_dtype(self):
        return self._lookup_layer._computed

    def save_assets(self, dir_path):
        """Writes vocabulary.txt, a word a line, unless the configuration has it."""
        self._lookup_layer.save_assets(dir_path)

    def load_assets(self, dir_path):
        """Reads what save_assets() wrote."""
        self._lookup_layer.load_assets(dir_path)

    def save_own_variables(self, store):
        """Puts the weights of tf-idf into a store, under "idf_weights"."""
        self._lookup_layer.save_own_variables(store)

    def load_own_variables(self, store):
        """Reads what save_own_variables() put into a store."""
        self._lookup_layer.load_own_variables(store)

    def _check_adaptable(self):
        self._lookup_layer._check_adaptable()

    def reset_state(self):
        self._lookup_layer.reset_state()

    def update_state(self, data):
        self._lookup_layer.built = True
        self._lookup_layer.update_state(self._tokens(data))

    def finalize_state(self):
        self._lookup_layer.finalize_state()

    # --- computing ---

    def _standard(self, texts):
        kind = self._standardize
        if callable(kind):
            return kind(texts)
        if kind in ("lower", "lower_and_strip_punctuation"):
            texts = tf.strings.lower(texts)
        if kind in ("strip_punctuation", "lower_and_strip_punctuation"):
            texts = tf.strings.regex_replace(texts, _PUNCTUATION, "")
        return texts

    def _tokens(self, inputs):
        inputs = self._standard(as_tensor(inputs, tf.string))
        if self._split is not None:
            if inputs.shape.rank > 1:
                if inputs.shape[-1] != 1:
                    raise ValueError(
                        "When using `TextVectorization` to tokenize strings, the input "
                        "rank must be 1 or the last shape dimension must be 1. Received: "
                        f"inputs.shape={inputs.shape} with rank={inputs.shape.rank}"
                    )
                inputs = tf.squeeze(inputs, -1)
            if callable(self._split):
                inputs = self._split(inputs)
            elif self._split == "whitespace":
                inputs = tf.strings.split(inputs)
            else:
                inputs = tf.strings.unicode_split(inputs, "UTF-8")
        if self._ngrams is not None:
            inputs = tf.strings.ngrams(inputs, ngram_width=self._ngrams, separator=" ")
        return inputs

    def call(self, inputs):
        ids = self._lookup_layer(self._tokens(inputs))
        if self._output_mode != "int":
            return ids
        length = self._output_sequence_length
        if self._ragged:
            return ids if length is None else ids[..., :length]
        if isinstance(ids, tf.RaggedTensor):
            rank = ids.shape.rank
            shape = None if length is None else [None] * (rank - 1) + [length]
            return ids.to_tensor(default_value=0, shape=shape)
        if length is None:
            return ids
        missing = tf.maximum(length - tf.shape(ids)[-1], 0)
        before = [[0, 0]] * (ids.shape.rank - 1)
        padded = tf.pad(ids[..., :length], [*before, [0, missing]])
        return tf.ensure_shape(padded, [*ids.shape.as_list()[:-1], length])

    def get_config(self):
        lookup = self._lookup_layer.get_config()
        return {
            **super().get_config(),
            **{name: getattr(self, f"_{name}") for name in _OWN},
            **{name: lookup[name] for name in _OF_LOOKUP},
        }
