"""tf.io.parse_example and its kin; values and messages as upstream's."""

import headrace as tf
import numpy as np
import pytest

io, t = tf.io, tf.train


def feature(values):
    if isinstance(values, bytes):  # no strings
        return t.Feature(bytes_list=t.BytesList())
    if values and isinstance(values[0], bytes):
        return t.Feature(bytes_list=t.BytesList(value=values))
    if values and isinstance(values[0], float):
        return t.Feature(float_list=t.FloatList(value=values))
    return t.Feature(int64_list=t.Int64List(value=values))


def features(**values):
    return t.Features(feature={k: feature(v) for k, v in values.items()})


def example(**values):
    return t.Example(features=features(**values)).SerializeToString()


A = example(age=[3], s=[1.0, 2.0], n=[b"x"])
EMPTY = example()


def test_dense():
    wanted = {
        "age": io.FixedLenFeature([], tf.int64, default_value=-1),
        "s": io.FixedLenFeature([2], tf.float32, default_value=[0.0, 5.0]),
        "n": io.FixedLenFeature([1], tf.string, default_value=["none"]),
    }
    found = io.parse_example([A, EMPTY], wanted)
    assert found["age"].numpy().tolist() == [3, -1]
    assert found["s"].numpy().tolist() == [[1, 2], [0, 5]]
    assert found["n"].numpy().tolist() == [[b"x"], [b"none"]]
    single = io.parse_single_example(A, wanted)
    assert single["age"].shape == [] and single["s"].numpy().tolist() == [1, 2]


def test_sequence_of_rows():
    wanted = {"s": io.FixedLenSequenceFeature([1], tf.float32, True, default_value=7.0)}
    found = io.parse_example([A, EMPTY], wanted)["s"]
    assert found.numpy().tolist() == [[[1], [2]], [[7], [7]]]


def test_sparse_and_ragged():
    wanted = {"s": io.VarLenFeature(tf.float32), "age": io.RaggedFeature(tf.int64)}
    found = io.parse_example([EMPTY, A], wanted)
    assert found["s"].indices.numpy().tolist() == [[1, 0], [1, 1]]
    assert found["s"].dense_shape.numpy().tolist() == [2, 2]
    assert found["age"].to_list() == [[], [3]]
    assert found["age"].row_splits.dtype == tf.int32
    single = io.parse_single_example(A, wanted)
    assert single["s"].indices.numpy().tolist() == [[0], [1]]
    assert single["age"].numpy().tolist() == [3]


def test_traced():
    @tf.function
    def parse(x):
        return io.parse_example(
            x,
            {
                "s": io.FixedLenFeature([2], tf.float32),
                "n": io.VarLenFeature(tf.string),
            },
        )

    found = parse(tf.constant([A, A]))
    assert found["s"].numpy().tolist() == [[1, 2], [1, 2]]
    assert found["n"].values.numpy().tolist() == [b"x", b"x"]
    spec = parse.get_concrete_function(tf.TensorSpec([None], tf.string))
    assert spec.structured_outputs["s"].shape.as_list() == [None, 2]


@pytest.mark.parametrize(
    "kind,part",
    [
        ("RowLengths", [[1, 0, 2], [2]]),
        ("RowSplits", [[0, 1, 1, 3], [0, 2]]),
        ("RowStarts", [[0, 1, 1], [0]]),
        ("RowLimits", [[1, 1, 3], [2]]),
        ("ValueRowIds", [[0, 2, 2], [0, 0]]),
    ],
)
def test_partitions(kind, part):
    wanted = io.RaggedFeature(
        tf.float32, "v", [getattr(io.RaggedFeature, kind)("p")], validate=True
    )
    batch = [
        example(v=[1.0, 2.0, 3.0], p=part[0]),
        EMPTY,
        example(v=[4.0, 5.0], p=part[1]),
    ]
    found = io.parse_example(batch, {"r": wanted})["r"]
    assert found.to_list() == [[[1], [], [2, 3]], [], [[4, 5]]]
    one = io.parse_single_example(batch[0], {"r": wanted})["r"]
    assert one.to_list() == [[1], [], [2, 3]]


def test_uniform_partition():
    wanted = io.RaggedFeature(
        tf.float32, "s", [io.RaggedFeature.UniformRowLength(2)], tf.int64
    )
    found = io.parse_example([A, EMPTY], {"r": wanted})["r"]
    assert found.to_list() == [[[1, 2]], []]


def test_sparse_feature():
    data = example(v=[1.0, 2.0, 3.0], ix=[5, 1, 3])
    wanted = {"sp": io.SparseFeature("ix", "v", tf.float32, 10)}
    found = io.parse_example([data], wanted)["sp"]
    assert found.indices.numpy().tolist() == [[0, 1], [0, 3], [0, 5]]
    assert found.values.numpy().tolist() == [2, 3, 1]
    assert found.dense_shape.numpy().tolist() == [1, 10]


def _context():
    return features(id=[4])


def sequence(steps, words):
    lists = {}
    if steps is not None:
        lists["fr"] = t.FeatureList(feature=[feature(s) for s in steps])
    if words is not None:
        lists["w"] = t.FeatureList(feature=[feature(s) for s in words])
    return t.SequenceExample(
        context=_context(), feature_lists=t.FeatureLists(feature_list=lists)
    ).SerializeToString()


Q = sequence([[1.0, 2.0], [3.0, 4.0]], [[b"a"], [b"b", b"c"], b""])
Q2 = sequence([[1.0, 2.0]], None)


def test_one_sequence():
    context, lists = io.parse_single_sequence_example(
        Q,
        {"id": io.FixedLenFeature([], tf.int64)},
        {
            "fr": io.FixedLenSequenceFeature([2], tf.float32),
            "w": io.RaggedFeature(tf.string),
        },
    )
    assert int(context["id"]) == 4
    assert lists["fr"].numpy().tolist() == [[1, 2], [3, 4]]
    assert lists["w"].to_list() == [[b"a"], [b"b", b"c"], []]


def test_batch_of_sequences():
    context, lists, lengths = io.parse_sequence_example(
        [Q, Q2],
        {"id": io.VarLenFeature(tf.int64)},
        {
            "fr": io.FixedLenSequenceFeature([2], tf.float32),
            "w": io.VarLenFeature(tf.string),
        },
    )
    assert context["id"].values.numpy().tolist() == [4, 4]
    assert lists["fr"].numpy().tolist() == [[[1, 2], [3, 4]], [[1, 2], [0, 0]]]
    assert lengths["fr"].numpy().tolist() == [2, 1]
    w = lists["w"]
    assert w.indices.numpy().tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert w.dense_shape.numpy().tolist() == [2, 3, 2]


@pytest.mark.parametrize(
    "wanted,text",
    [
        (
            {"x": io.FixedLenFeature([], tf.int64)},
            r"Feature: x \(data type: int64\) is required but could not be found",
        ),
        (
            {"age": io.FixedLenFeature([], tf.float32)},
            "Key: age, Index: 0.  Data types don't match. Data type: int64 but exp",
        ),
        ({"age": io.VarLenFeature(tf.float32)}, "Expected type: float, Actual type"),
        (
            {"s": io.FixedLenFeature([3], tf.float32)},
            r"Number of float values != expected.  Values size: 2 but",
        ),
        (
            {"s": io.FixedLenSequenceFeature([3], tf.float32, True)},
            "not a multiple of stride length. Saw 2 values",
        ),
    ],
)
def test_refused(wanted, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        io.parse_example([A], wanted)


def test_wrong_requests():
    for wanted, text in [
        ({}, "cannot be None or falsy"),
        ({"a": 3}, "Unsupported int 3 for key 'a'"),
        ({"a": io.VarLenFeature(None)}, "Missing type for feature a"),
        ({"a": io.FixedLenFeature([None], tf.int64)}, "Consider using FixedLenSeq"),
        ({"a": io.FixedLenSequenceFeature([], tf.int64)}, "allow_missing to be True"),
    ]:
        with pytest.raises(ValueError, match=text):
            io.parse_example([A], wanted)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is required but could"):
        io.parse_single_sequence_example(
            Q2, None, {"w": io.FixedLenSequenceFeature([], tf.string)}
        )


def test_damaged_bytes():
    """No bytes crash the parser: each prefix and each flipped byte."""
    wanted = {
        "age": io.VarLenFeature(tf.int64),
        "s": io.RaggedFeature(tf.float32),
        "n": io.FixedLenFeature([], tf.string, ""),
    }
    lists = {"fr": io.VarLenFeature(tf.float32), "w": io.RaggedFeature(tf.string)}

    def attempt(parse, data, *wanted):
        try:
            parse([data], *wanted)
        except tf.errors.InvalidArgumentError:
            pass

    rng = np.random.default_rng(0)
    for whole, parse, args in [
        (A, io.parse_example, (wanted,)),
        (Q, io.parse_sequence_example, ({"id": io.VarLenFeature(tf.int64)}, lists)),
    ]:
        for i in range(len(whole)):
            attempt(parse, whole[:i], *args)
            byte = bytes([rng.integers(256)])
            attempt(parse, whole[:i] + byte + whole[i + 1 :], *args)


def test_serialized_tensors():
    for value in ([1.5, 2.5], [b"a", b"bb"], [True], 3):
        tensor = tf.constant(value)
        again = io.parse_tensor(io.serialize_tensor(tensor), tensor.dtype)
        np.testing.assert_array_equal(again.numpy(), tensor.numpy())
    with pytest.raises(tf.errors.InvalidArgumentError, match="Type mismatch"):
        io.parse_tensor(io.serialize_tensor([1.0]), tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse"):
        io.parse_tensor(b"\xff", tf.int32)


def test_order_of_results():
    wanted = {
        "z": io.VarLenFeature(tf.int64),
        "b": io.SparseFeature("z", "v", tf.float32, 9),
        "a": io.RaggedFeature(
            tf.float32, "s", [io.RaggedFeature.UniformRowLength(1)], tf.int64
        ),
        "s": io.RaggedFeature(tf.float32, row_splits_dtype=tf.int64),
        "x": io.FixedLenFeature([], tf.int64, 0),
    }
    # What the op gives, kind by kind, then what is put together of that.
    assert [*io.parse_example([EMPTY], wanted)] == ["z", "x", "s", "a", "b"]
