"""tf.keras.datasets from small files that stand in the cache. Texts and splits of the
same arrays are TensorFlow's."""

import gzip
import hashlib
import json
import pickle
import tarfile

import headrace as tf
import numpy as np
import pytest
from headrace.keras import dataset

D = tf.keras.datasets


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of the cache, and what makes a file in it the right one."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    folder = tmp_path / "datasets"
    folder.mkdir()

    def keep(name, path=None):
        data = (path or folder / name).read_bytes()
        found = hashlib.sha256(data).hexdigest()
        monkeypatch.setitem(dataset._HASHES, name, found)

    return folder, keep


def texts(*rows):
    array = np.empty(len(rows), object)
    array[:] = [list(row) for row in rows]
    return array


TEXTS = texts([3, 9], [5, 1, 2], [4], [9, 9, 8, 7], [2, 2], [6])
LABELS = np.array([0, 1, 0, 1, 1, 0])


@pytest.fixture
def stored(cache):
    folder, keep = cache
    parts = {"x_train": TEXTS[:4], "y_train": LABELS[:4]}
    parts |= {"x_test": TEXTS[4:], "y_test": LABELS[4:]}
    np.savez(folder / "imdb.npz", **parts)
    np.savez(folder / "reuters.npz", x=TEXTS, y=LABELS)
    for name in ("imdb.npz", "reuters.npz"):
        keep(name)


def shown(found):
    return [part.tolist() for pair in found for part in pair]


@pytest.mark.parametrize(
    ("arguments", "imdb", "reuters"),
    [
        (
            {},
            [
                [[1, 2, 2, 11, 10], [1, 7], [1, 6, 2], [1, 8, 4, 5]],
                [1, 0, 0, 1],
                [[1, 9], [1, 5, 5]],
                [0, 1],
            ],
            [
                [[1, 8, 4, 5], [1, 6, 2], [1, 2, 2, 11, 10], [1, 7]],
                [1, 0, 1, 0],
                [[1, 5, 5], [1, 9]],
                [1, 0],
            ],
        ),
        (
            {"num_words": 9, "seed": 3},
            [
                [[1, 2, 2, 2, 2], [1, 8, 4, 5], [1, 6, 2], [1, 7]],
                [1, 1, 0, 0],
                [[1, 5, 5], [1, 2]],
                [1, 0],
            ],
            [
                [[1, 2, 2, 2, 2], [1, 2], [1, 5, 5], [1, 8, 4, 5]],
                [1, 0, 1, 1],
                [[1, 6, 2], [1, 7]],
                [0, 0],
            ],
        ),
        (
            {"num_words": 9, "skip_top": 5, "oov_char": None},
            [[[], [7], [6], [8, 5]], [1, 0, 0, 1], [[], [5, 5]], [0, 1]],
            [[[8, 5], [6], [], [7]], [1, 0, 1, 0], [[5, 5], []], [1, 0]],
        ),
        (
            {"maxlen": 4},
            [[[1, 7], [1, 6, 2]], [0, 0], [[1, 9], [1, 5, 5]], [0, 1]],
            [[[1, 6, 2], [1, 7], [1, 5, 5]], [0, 0, 1], [[1, 9]], [0]],
        ),
        (
            {"skip_top": 8, "oov_char": 0, "start_char": None},
            [
                [[0, 0, 11, 10], [0], [0, 0], [8, 0, 0]],
                [1, 0, 0, 1],
                [[9], [0, 0]],
                [0, 1],
            ],
            [
                [[8, 0, 0], [0, 0], [0, 0, 11, 10], [0]],
                [1, 0, 1, 0],
                [[0, 0], [9]],
                [1, 0],
            ],
        ),
    ],
)
def test_texts(stored, arguments, imdb, reuters):
    assert shown(D.imdb.load_data(**arguments)) == imdb
    assert shown(D.reuters.load_data(**arguments)) == reuters


def test_texts_refuse(stored):
    with pytest.raises(
        ValueError, match="sequences shorter than maxlen=1, no sequence"
    ):
        D.imdb.load_data(maxlen=1)
    with pytest.raises(TypeError, match="Unrecognized keyword arguments: {'a': 1}"):
        D.reuters.load_data(a=1)
    assert shown(D.imdb.load_data(nb_words=7)) == shown(D.imdb.load_data(num_words=7))


def test_words_and_topics(cache):
    folder, keep = cache
    for data in (D.imdb, D.reuters):
        name = f"{data.__name__.rpartition('.')[2]}_word_index.json"
        (folder / name).write_text(json.dumps({"film": 1}))
        keep(name)
        assert data.get_word_index() == {"film": 1}
    names = D.reuters.get_label_names()
    assert len(names) == 46 and names[0] == "cocoa" and names[-1] == "lead"


def test_mnist_and_houses(cache):
    folder, keep = cache
    images = np.arange(3 * 28 * 28).reshape(3, 28, 28).astype("uint8")
    parts = {"x_train": images[:2], "y_train": np.uint8([5, 0])}
    parts |= {"x_test": images[2:], "y_test": np.uint8([4])}
    np.savez(folder / "mnist.npz", **parts)
    x = np.array([0.66, 0.44, 0.15, 0.5, 0.56])
    np.savez(folder / "boston_housing.npz", x=x[:, None], y=np.arange(5.0))
    keep("mnist.npz")
    keep("boston_housing.npz")
    (x_train, y_train), (x_test, y_test) = D.mnist.load_data()
    np.testing.assert_array_equal(np.concatenate([x_train, x_test]), images)
    assert x_train.dtype == np.uint8 and [*y_train, *y_test] == [5, 0, 4]
    assert shown(D.boston_housing.load_data(test_split=0.4, seed=1)) == [
        [[0.15], [0.44], [0.56]],
        [2.0, 1.0, 4.0],
        [[0.66], [0.5]],
        [0.0, 3.0],
    ]
    with pytest.raises(AssertionError, match="test_split"):
        D.boston_housing.load_data(test_split=1.5)


def test_fashion(cache):
    folder, _ = cache
    (folder / "fashion-mnist").mkdir()
    images = np.arange(2 * 28 * 28).astype("uint8")
    for kind in ("train", "t10k"):
        for name, header, data in (
            ("labels-idx1", 8, np.uint8([3, 9])),
            ("images-idx3", 16, images),
        ):
            path = folder / "fashion-mnist" / f"{kind}-{name}-ubyte.gz"
            with gzip.open(path, "wb") as file:
                file.write(b"h" * header + data.tobytes())
    for x, y in D.fashion_mnist.load_data():
        np.testing.assert_array_equal(x.ravel(), images)
        assert x.shape == (2, 28, 28) and y.tolist() == [3, 9]


def pictures(folder, which, files):
    """The archive of a CIFAR, with two pictures a file."""
    name = "cifar-10-batches-py" if which == 10 else "cifar-100-python"
    made = folder / "made" / name
    made.mkdir(parents=True)
    for i, file in enumerate(files):
        data = np.arange(2 * 3072).reshape(2, 3072).astype("uint8") + np.uint8(i)
        batch = {b"data": data, b"labels": [i, 7]}
        batch |= {b"fine_labels": [i, 99], b"coarse_labels": [i, 19]}
        (made / file).write_bytes(pickle.dumps(batch))
    path = folder / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(made, arcname=name)
    return path


def test_cifar(cache):
    folder, keep = cache
    files = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    keep("cifar-10-python.tar.gz", pictures(folder, 10, files))
    (x_train, y_train), (x_test, y_test) = D.cifar10.load_data()
    assert x_train.shape == (10, 32, 32, 3) and x_test.shape == (2, 32, 32, 3)
    assert y_train.dtype == y_test.dtype == x_test.dtype == np.uint8
    assert y_train.ravel().tolist() == [0, 7, 1, 7, 2, 7, 3, 7, 4, 7]
    assert y_test.tolist() == [[5], [7]]
    assert x_train[0, 0, 1].tolist() == [1, 1024 % 256 + 1, 2048 % 256 + 1]


def test_cifar_of_a_hundred(cache):
    folder, keep = cache
    keep("cifar-100-python.tar.gz", pictures(folder, 100, ["train", "test"]))
    (x_train, y_train), (_, y_test) = D.cifar100.load_data()
    assert x_train.shape == (2, 32, 32, 3) and y_train.dtype == np.int64
    assert y_train.tolist() == [[0], [99]] and y_test.tolist() == [[1], [99]]
    assert D.cifar100.load_data("coarse")[1][1].tolist() == [[1], [19]]
    tf.keras.backend.set_image_data_format("channels_first")
    try:
        assert D.cifar100.load_data()[0][0].shape == (2, 3, 32, 32)
    finally:
        tf.keras.backend.set_image_data_format("channels_last")
    with pytest.raises(ValueError, match="`label_mode` must be one of"):
        D.cifar100.load_data("x")


class _Runs:
    def __reduce__(self):
        return print, ("ran",)


def test_pickles_run_no_code(cache, capsys):
    folder, keep = cache
    x = np.empty(1, object)
    x[0] = _Runs()
    np.savez(folder / "reuters.npz", x=x, y=np.zeros(1))
    keep("reuters.npz")
    with pytest.raises(pickle.UnpicklingError, match="builtins.print is no part"):
        D.reuters.load_data()
    assert "ran" not in capsys.readouterr().out
