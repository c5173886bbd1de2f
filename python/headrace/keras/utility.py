"""tf.keras.utils: sequences of batches and small helpers."""

import numpy as np

from headrace import _api as tf
from headrace.keras import initializer as initializers


class Sequence:
    """Batches by number: subclasses have __getitem__ and __len__."""

    def __getitem__(self, index):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def on_epoch_end(self):
        """Called at the end of every epoch."""

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]


def _classes(y, count):
    """(class numbers in a row, their shape, how many classes there are)."""
    y = np.array(y, dtype="int")
    shape = y.shape
    if shape and shape[-1] == 1 and len(shape) > 1:
        shape = shape[:-1]
    y = y.reshape(-1)
    return y, shape, count or np.max(y) + 1


def to_categorical(y, num_classes=None, dtype="float32"):
    """Class numbers as rows with a single one."""
    y, shape, num_classes = _classes(y, num_classes)
    out = np.zeros((y.shape[0], num_classes), dtype=dtype)
    out[np.arange(y.shape[0]), y] = 1
    return out.reshape((*shape, num_classes))


def normalize(x, axis=-1, order=2):
    """x divided by its norms along an axis."""
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return x / np.expand_dims(norms, axis)


def to_ordinal(y, num_classes=None, dtype="float32"):
    """Class numbers as rows with as many ones: 2 of 4 classes is [1, 1, 0]."""
    y, shape, num_classes = _classes(y, num_classes)
    out = np.arange(num_classes - 1)[None] < y[:, None]
    return out.astype(dtype).reshape((*shape, num_classes - 1))


def pad_sequences(
    sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre", value=0.0
):
    """Lists as rows of one length, filled up or cut before or behind."""
    if not hasattr(sequences, "__len__"):
        raise ValueError("`sequences` must be iterable.")
    for row in sequences:
        if not hasattr(row, "__len__"):
            raise ValueError(
                f"`sequences` must be a list of iterables. Found non-iterable: {row!s}"
            )
    for name, side in (("Truncating", truncating), ("Padding", padding)):
        if side not in ("pre", "post"):
            raise ValueError(f'{name} type "{side}" not understood')
    if maxlen is None:
        maxlen = max(map(len, sequences), default=0)
    inner = next((np.asarray(row).shape[1:] for row in sequences if len(row)), ())
    text = np.issubdtype(dtype, np.str_)
    if isinstance(value, str) and dtype != object and not text:
        raise ValueError(
            f"`dtype` {dtype} is not compatible with `value`'s type: {type(value)}\nYou "
            "should set `dtype=object` for variable length strings."
        )
    out = np.full((len(sequences), maxlen, *inner), value, dtype=dtype)
    for i, row in enumerate(sequences):
        if not len(row) or not maxlen:
            continue
        kept = np.asarray(row[-maxlen:] if truncating == "pre" else row[:maxlen], dtype)
        if kept.shape[1:] != inner:
            raise ValueError(
                f"Shape of sample {kept.shape[1:]} of sequence at position {i} is "
                f"different from expected shape {inner}"
            )
        if padding == "pre":
            out[i, maxlen - len(kept) :] = kept
        else:
            out[i, : len(kept)] = kept
    return out


def warmstart_embedding_matrix(
    base_vocabulary,
    new_vocabulary,
    base_embeddings,
    new_embeddings_initializer="uniform",
):
    """Embeddings of a new vocabulary [words, width]: those of words that the base has
    from its rows, the others' from an initializer.

    Vocabularies are lists of words, or paths of files with a word a line.
    """
    base, new = map(_words, (base_vocabulary, new_vocabulary))
    embeddings = np.asarray(base_embeddings)
    make = initializers.get(new_embeddings_initializer)
    out = np.array(make(shape=(len(new), embeddings.shape[1]), dtype=embeddings.dtype))
    rows = {word: i for i, word in enumerate(base)}
    for i, word in enumerate(new):
        if word in rows:
            out[i] = embeddings[rows[word]]
    return tf.constant(out)


def _words(vocabulary):
    if isinstance(vocabulary, str):
        with tf.io.gfile.GFile(vocabulary) as file:
            return file.read().splitlines()
    return [w.decode() if isinstance(w, bytes) else w for w in vocabulary]
