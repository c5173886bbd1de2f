"""Words as numbers: keras.preprocessing.text."""

import collections
import hashlib
import json

import numpy as np

from headrace.keras.classes import takes

# what a Tokenizer learns of texts
_COUNTED = ("word_counts", "word_docs", "index_docs", "index_word", "word_index")
_PLAIN = ("num_words", "filters", "lower", "split", "char_level", "oov_token")
_PLAIN += ("document_count",)
_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(input_text, filters=_FILTERS, lower=True, split=" "):
    """A list of the words of a text; characters of `filters` part them."""
    text = input_text.lower() if lower else input_text
    text = text.translate({ord(c): split for c in filters})
    return [word for word in text.split(split) if word]


def one_hot(input_text, n, filters=_FILTERS, lower=True, split=" ", analyzer=None):
    """Numbers from 1 below n for words, by Python's hash: not those of other runs."""
    return hashing_trick(input_text, n, hash, filters, lower, split, analyzer)


def hashing_trick(
    text, n, hash_function=None, filters=_FILTERS, lower=True, split=" ", analyzer=None
):
    """Numbers from 1 below n for words, by a hash: a function, "md5" or Python's."""
    if hash_function is None:
        hash_function = hash
    elif hash_function == "md5":
        hash_function = lambda word: int(hashlib.md5(word.encode()).hexdigest(), 16)
    if analyzer is None:
        words = text_to_word_sequence(text, filters, lower, split)
    else:
        words = analyzer(text)
    return [hash_function(word) % (n - 1) + 1 for word in words]


@takes(
    f"num_words=None, filters={_FILTERS!r}, lower=True, split=' ', char_level=False, "
    "oov_token=None, analyzer=None, **kwargs"
)
class Tokenizer:
    """Numbers words by how often they are in texts: 1 is the most frequent one's.

    Only the `num_words` - 1 most frequent ones are used; others are left out, or are
    `oov_token`, which has number 1 then.
    """

    def _further(self, arguments):
        self.document_count = arguments.pop("document_count", 0)
        if arguments:
            raise TypeError(f"Unrecognized keyword arguments: {arguments}")

    def _begin(self):
        self.word_counts = collections.OrderedDict()
        self.word_docs = collections.defaultdict(int)
        self.index_docs = collections.defaultdict(int)
        self.word_index, self.index_word = {}, {}

    def _words(self, text):
        if self.char_level or isinstance(text, list):
            if not self.lower:
                return text
            if isinstance(text, list):
                return [word.lower() for word in text]
            return text.lower()
        if self.analyzer is not None:
            return self.analyzer(text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts):
        """Counts the words of texts (or lists of words) and numbers them."""
        for text in texts:
            self.document_count += 1
            words = self._words(text)
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        ranked = sorted(self.word_counts, key=self.word_counts.get, reverse=True)
        if self.oov_token is not None:
            ranked.insert(0, self.oov_token)
        self.word_index = {word: i + 1 for i, word in enumerate(ranked)}
        self.index_word = {i: word for word, i in self.word_index.items()}
        for word, count in self.word_docs.items():
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences):
        """Counts in how many sequences each number is."""
        self.document_count += len(sequences)
        for sequence in sequences:
            for i in set(sequence):
                self.index_docs[i] += 1

    def texts_to_sequences(self, texts):
        """A list of numbers for each text."""
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts):
        """The same, one after the other."""
        oov = self.word_index.get(self.oov_token)
        for text in texts:
            found = []
            for word in self._words(text):
                i = self.word_index.get(word)
                if i is None or (self.num_words and i >= self.num_words):
                    i = oov
                if i is not None:
                    found.append(i)
            yield found

    def sequences_to_texts(self, sequences):
        """A text of words and spaces for each list of numbers."""
        return list(self.sequences_to_texts_generator(sequences))

    def sequences_to_texts_generator(self, sequences):
        """The same, one after the other."""
        oov = self.word_index.get(self.oov_token)
        for sequence in sequences:
            words = []
            for i in sequence:
                word = self.index_word.get(i)
                if word is None or (self.num_words and i >= self.num_words):
                    word = None if oov is None else self.index_word[oov]
                if word is not None:
                    words.append(word)
            yield " ".join(words)

    def texts_to_matrix(self, texts, mode="binary"):
        """sequences_to_matrix() of texts."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences, mode="binary"):
        """A row for each list of numbers, a column for each number: whether it is there
        ("binary"), how often ("count", "freq") or its "tfidf". ValueError for others.
        """
        if not self.num_words and not self.word_index:
            raise ValueError(
                "Specify a dimension (`num_words` argument), or fit on some text data "
                "first."
            )
        columns = self.num_words or len(self.word_index) + 1
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Fit the Tokenizer on some data before using tfidf mode.")
        if mode not in ("binary", "count", "freq", "tfidf"):
            raise ValueError(f"Unknown vectorization mode: {mode}")
        out = np.zeros((len(sequences), columns))
        for row, sequence in zip(out, sequences):
            counts = collections.Counter(i for i in sequence if i < columns)
            for i, count in counts.items():
                row[i] = self._weight(i, count, len(sequence), mode)
        return out

    def _weight(self, i, count, length, mode):
        if mode == "binary":
            return 1
        if mode == "count":
            return count
        if mode == "freq":
            return count / length
        rarity = np.log(1 + self.document_count / (1 + self.index_docs.get(i, 0)))
        return (1 + np.log(count)) * rarity

    def get_config(self):
        """A dict of the arguments and of what was counted, as JSON."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: json.dumps(getattr(self, name)) for name in _COUNTED},
        }

    def to_json(self, **kwargs):
        """The class's name and get_config() as JSON, for tokenizer_from_json()."""
        config = {"class_name": type(self).__name__, "config": self.get_config()}
        return json.dumps(config, **kwargs)


def tokenizer_from_json(json_string):
    """The Tokenizer that to_json() wrote."""
    config = json.loads(json_string)["config"]
    counted = {name: json.loads(config.pop(name)) for name in _COUNTED}
    for name in ("index_docs", "index_word"):
        counted[name] = {int(k): v for k, v in counted[name].items()}
    made = Tokenizer(**config)
    for name, value in counted.items():
        setattr(made, name, value)
    return made
