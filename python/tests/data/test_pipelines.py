"""Datasets and iterators; values are those of TensorFlow 2.21."""

import numpy as np
import pytest

import headrace as tf

Dataset = tf.data.Dataset


def values(dataset):
    return [tf.nest.map_structure(_plain, x) for x in dataset.as_numpy_iterator()]


def _plain(x):
    return x.tolist() if hasattr(x, "tolist") else x


def test_range_map_batch():
    d = Dataset.range(5).map(lambda x: x * 2).batch(2)
    assert values(d) == [[0, 2], [4, 6], [8]]
    assert repr(d) == (
        "<_BatchDataset element_spec=TensorSpec(shape=(None,), dtype=tf.int64, "
        "name=None)>"
    )
    assert values(Dataset.range(10, 0, -3)) == [10, 7, 4, 1]
    assert values(Dataset.range(3, output_type=tf.float32)) == [0.0, 1.0, 2.0]
    dropped = Dataset.range(5).batch(2, drop_remainder=True)
    assert dropped.element_spec.shape == [2] and len(dropped) == 2


def test_slices_keep_their_structure():
    d = Dataset.from_tensor_slices(({"a": [1, 2]}, ["x", "y"]))
    assert values(d) == [({"a": 1}, b"x"), ({"a": 2}, b"y")]
    assert d.element_spec == (
        {"a": tf.TensorSpec([], tf.int32)},
        tf.TensorSpec([], tf.string),
    )
    assert values(Dataset.from_tensors([1, 2])) == [[1, 2]]
    assert values(Dataset.from_tensor_slices(np.eye(2)).batch(2)) == [
        [[1.0, 0.0], [0.0, 1.0]]
    ]


@pytest.mark.parametrize(
    "buffer, first, second",
    [
        (10, [0, 9, 5, 1, 2, 7, 3, 8, 6, 4], [8, 9, 7, 5, 4, 6, 2, 1, 0, 3]),
        (3, [1, 3, 0, 5, 2, 6, 7, 8, 9, 4], [1, 3, 0, 5, 4, 6, 8, 9, 2, 7]),
    ],
)
def test_shuffle_order_is_upstreams(buffer, first, second):
    d = Dataset.range(10).shuffle(buffer, seed=1)
    assert values(d) == first and values(d) == second
    fixed = Dataset.range(10).shuffle(buffer, seed=1, reshuffle_each_iteration=False)
    assert values(fixed) == values(fixed)


def test_interleave_and_flat_map():
    d = Dataset.range(4).interleave(
        lambda x: Dataset.from_tensors(x).repeat(x), cycle_length=3, block_length=2
    )
    assert values(d) == [1, 2, 2, 3, 3, 3]
    d = Dataset.range(1, 6).interleave(
        lambda x: Dataset.from_tensors(x).repeat(6), cycle_length=2, block_length=4
    )
    assert values(d) == [
        *[1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4],
        *[3, 3, 4, 4, 5, 5, 5, 5, 5, 5],
    ]
    assert values(Dataset.range(4).flat_map(Dataset.range)) == [0, 0, 1, 0, 1, 2]


def test_filter_concatenate_enumerate():
    d = Dataset.range(10).filter(lambda x: x % 3 == 0).concatenate(Dataset.range(2))
    d = d.enumerate().prefetch(2)
    assert values(d) == [(0, 0), (1, 3), (2, 6), (3, 9), (4, 0), (5, 1)]
    assert values(Dataset.range(9).take_while(lambda x: x < 3)) == [0, 1, 2]
    assert values(Dataset.range(7).shard(3, 1)) == [1, 4]
    assert values(Dataset.range(7).skip(5)) == [5, 6]
    assert values(Dataset.range(2).repeat(2).take(3)) == [0, 1, 0]


def test_cardinality():
    d = Dataset.range(10)
    assert len(d) == 10 and int(d.batch(3).cardinality()) == 4
    assert int(d.repeat().cardinality()) == tf.data.INFINITE_CARDINALITY
    unknown = d.filter(lambda x: x > 3)
    assert int(unknown.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    with pytest.raises(TypeError, match="The dataset is infinite."):
        len(d.repeat())
    with pytest.raises(TypeError, match="The dataset length is unknown."):
        len(unknown)
    assert int(Dataset.zip((d, d.take(4), d.repeat())).cardinality()) == 4


def test_reduce_eagerly_and_traced():
    d = Dataset.range(5)
    assert int(d.reduce(np.int64(0), lambda s, x: s + x)) == 10

    @tf.function
    def f(n):
        d = Dataset.range(n).map(lambda x: x * x)
        return d.reduce(tf.constant(0, tf.int64), lambda a, b: a + b)

    assert int(f(tf.constant(10, tf.int64))) == 285


def test_inputs_that_are_shared_are_counted_once():
    joined = zipped = Dataset.range(3)
    for _ in range(60):
        joined = joined.concatenate(joined)
        zipped = Dataset.zip((zipped, zipped)).map(lambda a, b: a)
    assert int(joined.cardinality()) == 3 * 2**60
    assert int(zipped.cardinality()) == 3


def test_iterator_in_a_function():
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def consume(it):
        total.assign_add(next(it))

    it = iter(Dataset.range(1, 5))
    seen = []
    for _ in range(3):
        consume(it)
        seen.append(int(total))
    assert seen == [1, 3, 6]


def test_end_of_sequence():
    it = iter(Dataset.range(1))
    next(it)
    with pytest.raises(StopIteration):
        next(it)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        it.get_next()
    assert not bool(it.get_next_as_optional().has_value())
    optional = iter(Dataset.range(3, 4)).get_next_as_optional()
    assert bool(optional.has_value()) and int(optional.get_value()) == 3


def test_captures():
    v = tf.Variable(3, dtype=tf.int64)
    k = tf.constant(10, tf.int64)
    d = Dataset.range(3).map(lambda x: x * v + k)
    assert values(d) == [10, 13, 16]
    v.assign(1)
    assert values(d) == [10, 11, 12]


@pytest.mark.parametrize("file", [False, True])
def test_cache(file, tmp_path):
    calls = tf.Variable(0)

    def count(x):
        calls.assign_add(1)
        return x

    name = str(tmp_path / "cache") if file else ""
    d = Dataset.range(4).map(count).cache(name)
    assert values(d) == [0, 1, 2, 3] and values(d) == [0, 1, 2, 3]
    assert int(calls) == 4


def test_iterator_state():
    def make():
        d = Dataset.range(20).shuffle(8, seed=3).map(lambda x: x * 10)
        d = d.batch(3).prefetch(2).repeat(2)
        d = Dataset.zip((d, Dataset.range(40).filter(lambda x: x % 2 == 0)))
        return iter(d.enumerate())

    for taken in (0, 1, 5, 9, 13):
        it = make()
        for _ in range(taken):
            next(it)
        state = tf.raw_ops.SerializeIterator(resource_handle=it._resource)
        rest = [tf.nest.map_structure(lambda t: t.numpy().tolist(), x) for x in it]
        again = make()
        tf.raw_ops.DeserializeIterator(
            resource_handle=again._resource, serialized=state
        )
        assert rest == [
            tf.nest.map_structure(lambda t: t.numpy().tolist(), x) for x in again
        ]


def test_the_place_of_a_longer_range():
    long, short = (iter(Dataset.range(n).batch(4)) for n in (50, 10))
    for _ in range(5):
        next(long)
    state = tf.raw_ops.SerializeIterator(resource_handle=long._resource)
    tf.raw_ops.DeserializeIterator(resource_handle=short._resource, serialized=state)
    assert list(short) == []


@pytest.mark.parametrize(
    "error, text, make",
    [
        (ValueError, "only supported for rank >= 1", lambda d: d.from_tensor_slices(1)),
        (
            ValueError,
            "Dimensions 2 and 3 are not compatible",
            lambda d: d.from_tensor_slices(([1, 2], [1, 2, 3])),
        ),
        (
            tf.errors.InvalidArgumentError,
            "Batch size must be greater than zero.",
            lambda d: d.batch(0),
        ),
        (
            tf.errors.InvalidArgumentError,
            "buffer_size must be greater than zero or UNKNOWN_CARDINALITY",
            lambda d: d.shuffle(0),
        ),
        (ValueError, "Invalid `predicate`", lambda d: d.filter(lambda x: x)),
        (
            TypeError,
            "Incompatible dataset elements",
            lambda d: d.concatenate(Dataset.from_tensors("a")),
        ),
        (TypeError, "Invalid input to `zip`", lambda d: Dataset.zip([1, 2])),
        (TypeError, "must return a `Dataset`", lambda d: d.flat_map(lambda x: x)),
        (
            tf.errors.InvalidArgumentError,
            "Integer division by zero",
            lambda d: list(d.map(lambda x: 1 // x)),
        ),
    ],
)
def test_errors(error, text, make):
    with pytest.raises(error, match=text):
        make(Dataset.range(3))


def test_checkpoints_keep_the_exact_place(tmp_path):
    def make():
        a = Dataset.range(4).interleave(
            lambda x: Dataset.from_tensors(x).repeat(5), cycle_length=2, block_length=2
        )
        b = Dataset.range(100).filter(lambda x: x % 3 == 0).skip(2)
        b = b.window(2).flat_map(lambda w: w.batch(2))
        c = Dataset.range(40).shuffle(7).map(lambda x: -x, num_parallel_calls=2)
        return iter(Dataset.zip((a, b, c)).enumerate().prefetch(2))

    def plain(element):
        return tf.nest.map_structure(lambda t: t.numpy().tolist(), element)

    tf.random.set_seed(3)
    it = make()
    for _ in range(5):
        next(it)
    path = tf.train.Checkpoint(it=it).save(str(tmp_path / "ckpt"))
    rest = [plain(x) for x in it]
    names = dict(tf.train.list_variables(path))
    assert "it/.ATTRIBUTES/ITERATOR_STATE" in names
    tf.random.set_seed(4)
    again = make()
    next(again)
    tf.train.Checkpoint(it=again).restore(path)
    assert [plain(x) for x in again] == rest and len(rest) == 11
