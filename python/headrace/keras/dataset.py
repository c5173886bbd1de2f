"""tf.keras.datasets: small datasets of the web, kept in the cache of get_file."""

import gzip
import json
import os
import pickle
import zipfile

import numpy as np

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.keras.downloads import get_file

_STORE = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
_CIFAR = "https://www.cs.toronto.edu/~kriz/"
# sha256, or md5, of the files.
_HASHES = {
    "mnist.npz": "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
    "imdb.npz": "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f",
    "imdb_word_index.json": "bfafd718b763782e994055a2d397834f",
    "reuters.npz": "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916",
    "reuters_word_index.json": "4d44cc38712099c9e383dc6e5f11a921",
    "boston_housing.npz": (
        "f553886a1f8d56431e820c5b82552d9d95cfcb96d1e678153f8839538947dff5"
    ),
    "cifar-10-python.tar.gz": (
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
    ),
    "cifar-100-python.tar.gz": (
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
    ),
}


class _Arrays(pickle.Unpickler):
    """Reads pickles of arrays, lists, dicts, numbers and text, and of nothing that runs
    code."""

    _NAMES = ("_reconstruct", "ndarray", "dtype", "scalar", "encode", "_frombuffer")

    def find_class(self, module, name):
        if name in self._NAMES and module.split(".")[0] in ("numpy", "_codecs"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a dataset")


def _stored(path, name, cache_dir=None):
    """The arrays of an npz file of the store: {name: array}."""
    path = get_file(
        path, origin=_STORE + name, file_hash=_HASHES[name], cache_dir=cache_dir
    )
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            with archive.open(member) as file:
                found[member.removesuffix(".npy")] = _array(file)
    return found


def _array(file):
    """The array of an npy file, whose objects are lists."""
    version = np.lib.format.read_magic(file)
    read = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
    shape, by_columns, dtype = read(file)
    if dtype.hasobject:
        return _Arrays(file, encoding="ASCII").load().reshape(shape)
    flat = np.frombuffer(file.read(), dtype, int(np.prod(shape)))
    return flat.reshape(shape, order="F" if by_columns else "C").copy()


def load_mnist(path="mnist.npz", cache_dir=None):
    """Handwritten digits, ((60000 images, labels), (10000 images, labels)): uint8
    [28, 28], 0 to 9."""
    found = _stored(path, "mnist.npz", cache_dir)
    return (found["x_train"], found["y_train"]), (found["x_test"], found["y_test"])


def load_fashion_mnist(cache_dir=None):
    """Pictures of clothes, ((60000 images, labels), (10000 images, labels)): uint8
    [28, 28], 0 to 9."""

    def read(name, header):
        path = get_file(
            name,
            origin=_STORE + name,
            cache_dir=cache_dir,
            cache_subdir=os.path.join("datasets", "fashion-mnist"),
        )
        with gzip.open(path) as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)

    def both(kind):
        labels = read(f"{kind}-labels-idx1-ubyte.gz", 8)
        images = read(f"{kind}-images-idx3-ubyte.gz", 16)
        return images.reshape(len(labels), 28, 28), labels

    return both("train"), both("t10k")


def _cifar(which, files, label, cache_dir):
    """(images, labels) of the files of an archive."""
    archive = f"cifar-{which}-python.tar.gz"
    folder = get_file(
        f"cifar-{which}" + ("-batches-py" if which == 10 else "-python"),
        origin=_CIFAR + archive,
        untar=True,
        file_hash=_HASHES[archive],
        cache_dir=cache_dir,
    )
    images, labels = [], []
    for name in files:
        with open(os.path.join(folder, name), "rb") as file:
            batch = _Arrays(file, encoding="bytes").load()
        images.append(np.asarray(batch[b"data"]).reshape(-1, 3, 32, 32))
        labels += list(batch[label])
    images = np.concatenate(images)
    if tf.keras.backend.image_data_format() == "channels_last":
        images = images.transpose(0, 2, 3, 1)
    return images, np.reshape(labels, (len(labels), 1))


def load_cifar10(cache_dir=None):
    """Pictures of ten kinds, ((50000 images, labels), (10000 images, labels)): uint8
    [32, 32, 3], 0 to 9 as [1]."""
    files = [f"data_batch_{i}" for i in range(1, 6)]
    train, test = (
        _cifar(10, names, b"labels", cache_dir) for names in (files, ["test_batch"])
    )
    return tuple((images, labels.astype("uint8")) for images, labels in (train, test))


def load_cifar100(label_mode="fine", cache_dir=None):
    """Pictures of a hundred kinds, or ("coarse") of twenty: ((50000 images, labels),
    (10000 images, labels)), uint8 [32, 32, 3] and int64 [1]."""
    if label_mode not in ("fine", "coarse"):
        raise ValueError(
            '`label_mode` must be one of `"fine"`, `"coarse"`. Received: label_mode='
            f"{label_mode}."
        )
    label = f"{label_mode}_labels".encode()
    return tuple(_cifar(100, [name], label, cache_dir) for name in ("train", "test"))


def load_boston_housing(
    path="boston_housing.npz", test_split=0.2, seed=113, cache_dir=None
):
    """Houses by 13 numbers, and their prices: ((x, y), (x, y)), of which the second is a
    share of `test_split`, in an order by `seed`."""
    if not 0 <= test_split < 1:
        raise AssertionError(f"test_split is in [0, 1), got {test_split}")
    found = _stored(path, "boston_housing.npz", cache_dir)
    random = np.random.RandomState(seed)
    return _split(*_shuffled(random, found["x"], found["y"]), test_split)


def _shuffled(random, x, y):
    order = np.arange(len(x))
    random.shuffle(order)
    return x[order], y[order]


def _split(x, y, share):
    count = int(len(x) * (1 - share))
    return (x[:count], y[:count]), (x[count:], y[count:])


def _check_further(kwargs):
    if kwargs:
        raise TypeError(f"Unrecognized keyword arguments: {kwargs}.")


def _texts(x, y, maxlen, start_char, index_from):
    """Lists of word numbers, those that are short enough, and their labels."""
    texts = [list(map(int, text)) for text in x]
    if start_char is not None:
        texts = [[start_char, *(w + index_from for w in text)] for text in texts]
    elif index_from:
        texts = [[w + index_from for w in text] for text in texts]
    labels = list(y)
    if maxlen:
        kept = [i for i, text in enumerate(texts) if len(text) < maxlen]
        texts, labels = [texts[i] for i in kept], [labels[i] for i in kept]
    return texts, labels


def _known(texts, num_words, skip_top, oov_char):
    """Texts whose words that are too rare or too frequent are oov_char, or left out
    where that is None."""
    if not num_words:  # as upstream, which leaves out the last word
        num_words = max(max(text) for text in texts)
    if oov_char is None:
        return [[w for w in text if skip_top <= w < num_words] for text in texts]
    return [
        [w if skip_top <= w < num_words else oov_char for w in text] for text in texts
    ]


def _objects(texts):
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


_TEXTS = (
    "num_words=None, skip_top=0, maxlen=None, {}seed=113, start_char=1, oov_char=2, "
    "index_from=3, cache_dir=None, **kwargs"
)


@signatures.having("path='imdb.npz', " + _TEXTS.format(""))
def load_imdb(path, num_words, skip_top, maxlen, seed, oov_char, cache_dir, **kwargs):
    """Reviews of films, and whether they praise: ((25000 texts, labels), (25000 texts,
    labels)), in an order by `seed`.

    A text is a list of word numbers, the more frequent the smaller, each plus
    `index_from`, behind `start_char`. Words below `skip_top` or from `num_words` on are
    `oov_char`, or left out where that is None. Texts of `maxlen` words and more are left
    out.
    """
    given = {n: kwargs.pop(n) for n in ("start_char", "index_from")}
    num_words = kwargs.pop("nb_words", num_words)
    _check_further(kwargs)
    found, random = _stored(path, "imdb.npz", cache_dir), np.random.RandomState(seed)
    parts = []
    for part in ("train", "test"):
        x, y = _shuffled(random, found[f"x_{part}"], found[f"y_{part}"])
        parts.append(_texts(x, y, maxlen, **given))
        if not parts[-1][0]:
            raise ValueError(
                f"After filtering for sequences shorter than maxlen={maxlen}, no "
                "sequence was kept. Increase maxlen."
            )
    texts = _known(parts[0][0] + parts[1][0], num_words, skip_top, oov_char)
    count = len(parts[0][0])
    train, test = _objects(texts[:count]), _objects(texts[count:])
    return (train, np.array(parts[0][1])), (test, np.array(parts[1][1]))


@signatures.having("path='reuters.npz', " + _TEXTS.format("test_split=0.2, "))
def load_reuters(
    path, num_words, skip_top, maxlen, test_split, seed, oov_char, cache_dir, **kwargs
):
    """News by 46 topics: ((texts, labels), (texts, labels)), of which the second is a
    share of `test_split`. Texts are as load_imdb() has them."""
    given = {n: kwargs.pop(n) for n in ("start_char", "index_from")}
    num_words = kwargs.pop("nb_words", num_words)
    _check_further(kwargs)
    found, random = _stored(path, "reuters.npz", cache_dir), np.random.RandomState(seed)
    x, y = _shuffled(random, found["x"], found["y"])
    texts, labels = _texts(x, y, maxlen, **given)
    texts = _known(texts, num_words, skip_top, oov_char)
    return _split(_objects(texts), np.array(labels), test_split)


def _word_index(path, name):
    path = get_file(path, origin=_STORE + name, file_hash=_HASHES[name])
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def imdb_word_index(path="imdb_word_index.json"):
    """{word: number} of the texts of imdb, before `index_from` is added."""
    return _word_index(path, "imdb_word_index.json")


def reuters_word_index(path="reuters_word_index.json"):
    """{word: number} of the texts of reuters, before `index_from` is added."""
    return _word_index(path, "reuters_word_index.json")


def reuters_label_names():
    """The names of the topics of reuters, by label: a tuple."""
    return tuple(_TOPICS.split())


_TOPICS = """
cocoa grain veg-oil earn acq wheat copper housing money-supply coffee sugar trade reserves
ship cotton carcass crude nat-gas cpi money-fx interest gnp meal-feed alum oilseed gold tin
strategic-metal livestock retail ipi iron-steel rubber heat jobs lei bop zinc orange
pet-chem dlr gas silver wpi hog lead
"""
