"""Dataset.save, load and snapshot: folders as upstream lays them out."""

import os
import threading

import headrace as tf
import numpy as np
import pytest


def _values(dataset):
    return [x.tolist() for x in dataset.as_numpy_iterator()]


@pytest.mark.parametrize("compression", [None, "NONE", "GZIP", "SNAPPY"])
def test_save_and_load(tmp_path, compression):
    d = tf.data.Dataset.range(300).map(lambda x: x * 3)
    d.save(str(tmp_path / "d"), compression=compression)
    loaded = tf.data.Dataset.load(str(tmp_path / "d"), compression=compression)
    assert loaded.element_spec == d.element_spec
    assert _values(loaded) == _values(d)


def test_compression_makes_files_smaller(tmp_path):
    d = tf.data.Dataset.from_tensors(np.zeros(20000, np.float32))

    def size(compression):
        path = tmp_path / str(compression)
        d.save(str(path), compression=compression)
        return sum(f.stat().st_size for f in path.rglob("*.snapshot"))

    assert size("GZIP") < size(None) / 10


def test_structures(tmp_path):
    d = tf.data.Dataset.from_tensor_slices(
        {"a": [[1.0, 2.0], [3.0, 4.0]], "b": (["x", "yy"], [True, False])}
    )
    d.save(str(tmp_path / "d"))
    loaded = tf.data.Dataset.load(str(tmp_path / "d"))
    assert loaded.element_spec == d.element_spec
    first = next(iter(loaded))
    assert first["a"].numpy().tolist() == [1.0, 2.0]
    assert first["b"][0].numpy() == b"x"


def test_reader_func_and_refusals(tmp_path):
    d = tf.data.Dataset.range(5)
    d.save(str(tmp_path / "d"))
    loaded = tf.data.Dataset.load(
        str(tmp_path / "d"), reader_func=lambda shards: shards.flat_map(lambda s: s)
    )
    assert _values(loaded) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError):
        d.save(str(tmp_path / "e"), compression="LZ4")
    with pytest.raises(NotImplementedError):
        d.save(str(tmp_path / "e"), checkpoint_args={"checkpoint_interval": 1})
    with pytest.raises(tf.errors.NotFoundError):
        tf.data.Dataset.load(str(tmp_path / "nothing"))


@pytest.mark.parametrize("compression", ["AUTO", "GZIP", "SNAPPY", None])
def test_snapshots(tmp_path, compression):
    made = []

    def note(x):
        made.append(int(x))
        return x

    d = tf.data.Dataset.range(4).map(lambda x: tf.py_function(note, [x], tf.int64))
    path = str(tmp_path / "s")
    for _ in range(2):
        assert _values(d.snapshot(path, compression=compression)) == [0, 1, 2, 3]
    assert made == [0, 1, 2, 3]
    assert os.listdir(path) == ["elements.index"]


def test_shards_are_what_the_function_says(tmp_path):
    path = tmp_path / "d"
    tf.data.Dataset.range(9).save(str(path), shard_func=lambda x: x % 2 + 3)
    assert sorted(p.name for p in path.rglob("*.shard")) == [
        "00000003.shard",
        "00000004.shard",
    ]
    assert sorted(_values(tf.data.Dataset.load(str(path)))) == list(range(9))
    one_behind_another = tf.data.Dataset.load(
        str(path), reader_func=lambda shards: shards.flat_map(lambda d: d)
    )
    assert _values(one_behind_another) == [0, 2, 4, 6, 8, 1, 3, 5, 7]
    pairs = tf.data.Dataset.from_tensor_slices(([1, 2], [3.0, 4.0]))
    pairs.save(str(tmp_path / "p"), shard_func=lambda a, b: tf.cast(a, tf.int64))
    assert len(list(tf.data.Dataset.load(str(tmp_path / "p")))) == 2


def test_shards_are_numbers(tmp_path):
    d = tf.data.Dataset.range(3)
    for shard_func, message in [
        (lambda x: tf.constant(5), "must return a scalar int64"),
        (lambda x: [x], "must return a scalar int64"),
        (lambda x: x - 1, "-1, which is negative"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            d.save(str(tmp_path / "d"), shard_func=shard_func)
    with pytest.raises(tf.errors.NotFoundError):
        tf.data.Dataset.load(str(tmp_path / "d"))


def test_load_waits_for_what_is_being_saved(tmp_path):
    path = str(tmp_path / "d")
    d = tf.data.Dataset.range(3)
    late = threading.Timer(0.3, lambda: d.save(path))
    late.start()
    loaded = tf.data.Dataset.load(path, d.element_spec, wait=True)
    assert _values(loaded) == [0, 1, 2]
    late.join()
