"""Windows, batches of odd shapes, groups, choices; values are TensorFlow's."""

import numpy as np
import pytest

import headrace as tf

Dataset = tf.data.Dataset


def values(dataset):
    return [tf.nest.map_structure(_plain, x) for x in dataset.as_numpy_iterator()]


def _plain(x):
    return x.tolist() if hasattr(x, "tolist") else x


def triangle():
    return Dataset.range(1, 4).map(lambda x: tf.fill([x], x))


def test_windows():
    d = Dataset.range(7)
    assert [values(w) for w in d.window(3, shift=2)] == [
        [0, 1, 2],
        [2, 3, 4],
        [4, 5, 6],
        [6],
    ]
    assert [values(w) for w in d.window(3, 1, 2, True)] == [
        [0, 2, 4],
        [1, 3, 5],
        [2, 4, 6],
    ]
    assert [values(w) for w in d.window(2, shift=3)] == [[0, 1], [3, 4], [6]]
    pairs = Dataset.zip((Dataset.range(3), Dataset.range(3, 6))).window(3)
    joined = pairs.flat_map(lambda a, b: Dataset.zip((a.batch(3), b.batch(3))))
    assert values(joined) == [([0, 1, 2], [3, 4, 5])]


def test_padded_batch():
    assert values(triangle().padded_batch(2)) == [[[1, 0], [2, 2]], [[3, 3, 3]]]
    d = triangle().map(lambda x: (x, tf.strings.as_string(x)))
    padded = d.padded_batch(3, ([4], [None]), (np.int64(-1), "-"))
    assert values(padded) == [
        (
            [[1, -1, -1, -1], [2, 2, -1, -1], [3, 3, 3, -1]],
            [[b"1", b"-", b"-"], [b"2", b"2", b"-"], [b"3", b"3", b"3"]],
        )
    ]
    with pytest.raises(tf.errors.DataLossError, match="pad to a smaller size"):
        values(triangle().padded_batch(3, padded_shapes=[2]))


def test_other_batches():
    assert values(Dataset.range(7).batch(3).unbatch()) == list(range(7))
    assert values(Dataset.range(7).batch(4).rebatch(3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert [e.to_list() for e in triangle().ragged_batch(3)] == [
        [[1], [2, 2], [3, 3, 3]]
    ]
    with pytest.raises(tf.errors.InvalidArgumentError, match="different shapes"):
        values(triangle().batch(2))


def test_composite_elements():
    sparse = tf.sparse.from_dense([[0, 1], [2, 3]])
    (batch,) = Dataset.from_tensor_slices(sparse).batch(2)
    assert tf.sparse.to_dense(batch).numpy().tolist() == [[0, 1], [2, 3]]
    ragged = tf.ragged.constant([[1], [2, 3], []])
    d = Dataset.from_tensor_slices(ragged).batch(2)
    assert [e.to_list() for e in d] == [[[1], [2, 3]], [[]]]


def test_scan_unique_and_errors():
    d = Dataset.range(5).scan(np.int64(0), lambda s, x: (s + x, s * x))
    assert values(d) == [0, 0, 2, 9, 24]
    assert values(Dataset.from_tensor_slices([1, 2, 1, 3, 2]).unique()) == [1, 2, 3]
    assert values(Dataset.range(3).map(lambda x: 6 // x).ignore_errors()) == [6, 3]


def test_groups():
    d = Dataset.range(10).group_by_window(lambda x: x % 2, lambda k, w: w.batch(3), 3)
    assert values(d) == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    rows = [[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20]]
    d = Dataset.from_generator(lambda: iter([*rows, [21, 22]]), tf.int64, [None])
    d = d.bucket_by_sequence_length(lambda e: tf.shape(e)[0], [3, 5], [2, 2, 2])
    assert values(d) == [
        [[1, 2, 3, 4], [5, 6, 7, 0]],
        [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]],
        [[0, 0], [21, 22]],
    ]


def test_random_choices():
    assert values(Dataset.random(seed=4).take(2)) == values(
        Dataset.random(seed=4).take(2)
    )
    parts = [Dataset.from_tensors(i).repeat(20) for i in range(3)]
    d = Dataset.sample_from_datasets(parts, weights=[0.2, 0.3, 0.5], seed=5)
    assert len(values(d)) == 60
    d = Dataset.choose_from_datasets(
        [Dataset.from_tensors("a").repeat(), Dataset.from_tensors("b").repeat(2)],
        Dataset.range(2).repeat(4),
    )
    assert values(d) == [b"a", b"b", b"a", b"b", b"a"]


def test_generators():
    def rows(n):
        for i in range(n):
            yield {"x": i, "y": [i, i]}

    d = Dataset.from_generator(
        rows,
        args=(3,),
        output_types={"x": tf.int64, "y": tf.float32},
        output_shapes={"x": [], "y": [2]},
    )
    assert values(d.batch(2)) == [
        {"x": [0, 1], "y": [[0.0, 0.0], [1.0, 1.0]]},
        {"x": [2], "y": [[2.0, 2.0]]},
    ]
    spec = tf.TensorSpec([], tf.int32)
    d = Dataset.from_generator(lambda: iter([1, 2]), output_signature=spec)
    assert values(d.repeat(2).prefetch(1)) == [1, 2, 1, 2]
    bad = Dataset.from_generator(lambda: iter(["a"]), output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected type was int32"):
        values(bad)


def test_parallel_maps():
    d = Dataset.range(200).map(lambda x: x * x, num_parallel_calls=4)
    assert values(d) == [x * x for x in range(200)]
    d = Dataset.range(2000).map(
        lambda x: x * x, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False
    )
    assert sorted(values(d)) == [x * x for x in range(2000)]
    it = iter(Dataset.range(100).map(lambda x: 2 * x, num_parallel_calls=3))
    first = [int(next(it)) for _ in range(10)]
    state = tf.raw_ops.SerializeIterator(resource_handle=it._resource)
    again = iter(Dataset.range(100).map(lambda x: 2 * x, num_parallel_calls=3))
    tf.raw_ops.DeserializeIterator(resource_handle=again._resource, serialized=state)
    assert first + [int(x) for x in again] == list(range(0, 200, 2))


def test_files(tmp_path):
    text = tmp_path / "t.txt"
    text.write_bytes(b"a\nbb\r\n\nccc")
    assert values(tf.data.TextLineDataset(str(text))) == [b"a", b"bb", b"", b"ccc"]
    fixed = tmp_path / "f.bin"
    fixed.write_bytes(b"HH" + bytes(range(9)) + b"F")
    d = tf.data.FixedLengthRecordDataset(str(fixed), 3, 2, 1)
    assert values(d) == [b"\0\1\2", b"\3\4\5", b"\6\7\10"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not an exact multiple"):
        values(tf.data.FixedLengthRecordDataset(str(fixed), 4, 2, 1))
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        values(tf.data.TFRecordDataset(str(tmp_path / "nowhere")))
    names = values(Dataset.list_files(str(tmp_path / "*"), shuffle=False))
    assert names == [str(fixed).encode(), str(text).encode()]


def test_save_and_load(tmp_path):
    path = str(tmp_path / "saved")
    d = Dataset.range(4).map(lambda x: {"a": x, "b": tf.strings.as_string(x)})
    d.save(path)
    loaded = Dataset.load(path)
    assert loaded.element_spec == d.element_spec and values(loaded) == values(d)
