"""Dataset.save, load and snapshot: folders as upstream lays them out."""

import collections
import os
import threading

import headrace as tf
import numpy as np
import pytest
from headrace.data import saved_spec


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
    with pytest.raises(ValueError, match="not allowed to include 'checkpoint'"):
        d.save(str(tmp_path / "e"), checkpoint_args={"checkpoint": None})
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
    assert len(os.listdir(path)) == 1


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


def test_saving_in_steps(tmp_path):
    """What a walk that broke off had written is gone on with."""
    path, folder = tmp_path / "d", str(tmp_path / "steps")
    seen = []

    def note(x):
        seen.append(int(x))
        if len(seen) == 7:
            raise ValueError("broken off")
        return x

    def save():
        d = tf.data.Dataset.range(12).map(
            lambda x: tf.py_function(note, [x], tf.int64), num_parallel_calls=None
        )
        counter = tf.Variable(0, dtype=tf.int64)
        args = {
            "directory": folder,
            "max_to_keep": 2,
            "step_counter": counter,
            "checkpoint_interval": 2,
        }
        d.save(str(path), checkpoint_args=args)

    with pytest.raises(tf.errors.OpError):
        save()
    assert not (path / "snapshot.metadata").exists()
    save()
    assert seen.count(0) == 1 and seen[-1] == 11
    spec = tf.TensorSpec([], tf.int64)
    assert _values(tf.data.Dataset.load(str(path), spec)) == list(range(12))


def test_snapshots_of_other_pipelines_lie_apart(tmp_path):
    path = str(tmp_path / "s")
    for n in (4, 6, 4):
        assert _values(tf.data.Dataset.range(n).snapshot(path)) == list(range(n))
    assert len(os.listdir(path)) == 2
    folder = tmp_path / "s" / os.listdir(path)[0]
    assert len(list(folder.rglob("*.snapshot"))) == len(list(folder.rglob("*.shard")))


def test_snapshots_in_shards(tmp_path):
    def snapshot(**functions):
        return tf.data.Dataset.range(10).snapshot(
            str(tmp_path / "s"), shard_func=lambda x: x % 3, **functions
        )

    assert _values(snapshot()) == list(range(10))
    behind = snapshot(reader_func=lambda shards: shards.flat_map(lambda d: d))
    assert _values(behind) == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]
    with pytest.raises(TypeError, match="must return `tf.int64` scalar"):
        tf.data.Dataset.range(3).snapshot("s", shard_func=lambda x: 1.5)


@pytest.mark.parametrize("written", [False, True])
def test_places_in_snapshots(tmp_path, written):
    d = tf.data.Dataset.range(20).snapshot(str(tmp_path / "s"))
    if written:
        assert len(list(d)) == 20
    iterator = iter(d)
    first = [int(next(iterator)) for _ in range(7)]
    saved = tf.train.Checkpoint(i=iterator).write(str(tmp_path / "c"))
    again = iter(d)
    next(again)
    tf.train.Checkpoint(i=again).read(saved)
    assert first + [int(x) for x in again] == list(range(20))
    assert _values(d) == list(range(20))


def test_places_in_several_shards(tmp_path):
    path = str(tmp_path / "d")
    tf.data.Dataset.range(9).save(path, shard_func=lambda x: x % 3)
    d = tf.data.Dataset.load(path)
    iterator = iter(d)
    first = [int(next(iterator)) for _ in range(4)]
    saved = tf.train.Checkpoint(i=iterator).write(str(tmp_path / "c"))
    again = iter(d)
    tf.train.Checkpoint(i=again).read(saved)
    assert first + [int(x) for x in again] == _values(d)
    assert int(d.cardinality()) == 9


def test_composites(tmp_path):
    r = tf.data.Dataset.range(3)
    sparse = r.map(lambda x: tf.sparse.from_dense([x, 0, x]))
    sparse.save(str(tmp_path / "s"))
    loaded = tf.data.Dataset.load(str(tmp_path / "s"))
    assert loaded.element_spec == sparse.element_spec
    dense = [tf.sparse.to_dense(x).numpy().tolist() for x in loaded]
    assert dense == [[0, 0, 0], [1, 0, 1], [2, 0, 2]]
    ragged = r.map(lambda x: tf.RaggedTensor.from_row_lengths(tf.range(x), [x]))
    ragged.save(str(tmp_path / "r"))
    loaded = tf.data.Dataset.load(str(tmp_path / "r"))
    assert loaded.element_spec == ragged.element_spec
    assert [x.to_list() for x in loaded] == [[[]], [[0]], [[0, 1]]]
    pairs = r.map(lambda x: (x, None))
    pairs.save(str(tmp_path / "p"))
    loaded = tf.data.Dataset.load(str(tmp_path / "p"))
    assert loaded.element_spec == pairs.element_spec


def test_damaged_files_are_refused(tmp_path):
    tf.data.Dataset.range(3).save(str(tmp_path / "d"))
    (file,) = (tmp_path / "d").rglob("*.snapshot")
    whole = file.read_bytes()
    for cut in (5, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        with pytest.raises(tf.errors.DataLossError):
            list(tf.data.Dataset.load(str(tmp_path / "d")))
    (tmp_path / "d" / "snapshot.metadata").write_bytes(b"\x12\x02..")
    with pytest.raises(tf.errors.DataLossError):
        tf.data.Dataset.load(str(tmp_path / "d"))


def test_named_tuples_keep_their_names(tmp_path):
    pair = collections.namedtuple("Pair", "low high")
    d = tf.data.Dataset.from_tensor_slices(pair([1, 2], {"x": [3.0, 4.0]}))
    d.save(str(tmp_path / "d"))
    loaded = tf.data.Dataset.load(str(tmp_path / "d"))
    first = next(iter(loaded))
    assert type(first).__name__ == "Pair" and first._fields == ("low", "high")
    assert first.low.numpy() == 1 and first.high["x"].numpy() == 3.0


def test_composites_keep_their_specs(tmp_path):
    d = tf.data.Dataset.from_tensors(
        (tf.ragged.constant([[1], [2, 3]]), tf.sparse.from_dense([[0, 1]]), None)
    )
    d.save(str(tmp_path / "d"))
    loaded = tf.data.Dataset.load(str(tmp_path / "d"))
    assert loaded.element_spec == d.element_spec
    assert next(iter(loaded))[0].to_list() == [[1], [2, 3]]


def test_damaged_specs(tmp_path):
    """A spec that is cut anywhere, or has another byte, is told by its file."""
    d = tf.data.Dataset.from_tensors(
        {"r": tf.ragged.constant([[1], [2, 3]]), "s": tf.sparse.from_dense([[0, 1]])}
    )
    d.save(str(tmp_path / "d"))
    file = tmp_path / "d" / "dataset_spec.pb"
    whole = file.read_bytes()
    damaged = [whole[:n] for n in range(len(whole))]
    damaged += [
        whole[:i] + bytes([whole[i] ^ bit]) + whole[i + 1 :]
        for i in range(len(whole))
        for bit in (1, 8, 128)
    ]
    told = 0
    for data in damaged:
        file.write_bytes(data)
        try:
            saved_spec.read(str(tmp_path / "d"))
        except (tf.errors.DataLossError, NotImplementedError) as e:
            assert "dataset_spec.pb" in str(e)
            told += 1
    assert told > len(whole)
