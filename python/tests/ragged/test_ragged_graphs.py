"""Ragged tensors in graphs, sessions, traced functions, datasets, and by tapes."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1
RT = tf.RaggedTensor
F = tf.ragged.constant([[1.0, 2.0], [], [3.0, 4.0, 5.0]])


def test_sessions_give_values():
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.ragged.constant([[[1], []], [], [[2, 3]]])
        value, twice = session.run([x, x * 2])
        assert isinstance(value, v1.ragged.RaggedTensorValue)
        assert value.to_list() == [[[1], []], [], [[2, 3]]]
        assert twice.to_list()[2] == [[4, 6]] and twice.ragged_rank == 2
        assert value.shape == (3, None, None) and value.dtype == np.int32
        flat = session.run(x.flat_values)
        assert flat.tolist() == [1, 2, 3]
        slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([2]))
        assert session.run(slices).indices.tolist() == [2]


def test_sessions_are_fed():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.ragged.placeholder(tf.int32, 2)
        y = v1.ragged.placeholder(tf.float32, 1, value_shape=[2])
        value = v1.ragged.constant_value([[[1, 2]], [[3], []]])
        got = session.run(tf.reduce_sum(x, axis=2), {x: value})
        assert got.to_list() == [[3], [3, 0]]
        rows = v1.ragged.constant_value([[[1.0, 2.0]], []], ragged_rank=1)
        assert session.run(y + 1.0, {y: rows}).to_list() == [[[2, 3]], []]
        # They are keys, and compare by identity.
        assert {x: 1}[x] == 1 and (x == y) is False and (x != y) is True


def test_values_stand_for_ragged_tensors():
    mask = v1.ragged.constant_value([[True, False], [True]])
    x = v1.ragged.constant_value([["a", "b"], ["c"]])
    assert tf.where(mask, x, "z").to_list() == [[b"a", b"z"], [b"c"]]
    assert tf.strings.upper(x).to_list() == [[b"A", b"B"], [b"C"]]
    assert tf.ragged.boolean_mask(x, mask).to_list() == [[b"a"], [b"c"]]
    assert tf.concat([x, x], 1).to_list()[1] == [b"c", b"c"]


@pytest.mark.parametrize(
    ("make", "partition"),
    [
        (RT.from_row_splits, [0, 2, 1, 3]),
        (RT.from_row_splits, [1, 2, 3]),
        (RT.from_row_splits, [0, 4]),
        (RT.from_row_lengths, [1, -1, 3]),
        (RT.from_row_lengths, [1, 1]),
        (RT.from_value_rowids, [0, 2, 1]),
        (RT.from_value_rowids, [0, 1]),
        (RT.from_value_rowids, [-1, 0, 1]),
        (RT.from_row_limits, [1, 2]),
        (RT.from_row_starts, [1, 2]),
        (RT.from_uniform_row_length, 2),
    ],
)
def test_partitions_are_checked_in_runs(make, partition):
    values = [1, 2, 3]
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        make(values, partition)
    spec = tf.TensorSpec(None, tf.int64)
    traced = tf.function(
        lambda v, p: make(v, p).flat_values, input_signature=[spec] * 2
    )
    rank = np.ndim(partition)
    with tf.Graph().as_default(), v1.Session() as session:
        v = v1.placeholder(tf.int64, [None])
        p = v1.placeholder(tf.int64, [None] * rank)
        x = make(v, p)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(x, {v: values, p: partition})
    if rank:  # a scalar's rank must be known
        with pytest.raises(tf.errors.InvalidArgumentError):
            traced(values, partition)


def test_static_shapes():
    with tf.Graph().as_default():
        x = tf.ragged.constant([[1], [2, 3]])
        assert x.shape.as_list() == [2, None]
        assert (x + 1).shape.as_list() == [2, None]
        assert tf.concat([x, x], 1).shape.as_list() == [2, None]
        assert tf.expand_dims(x, 1).shape.as_list() == [2, 1, None]
        assert tf.reduce_sum(x, 1).shape.as_list() == [2]
        ids = RT.from_value_rowids([1, 2], [0, 1], nrows=4)
        assert ids.shape.as_list() == [4, None]
        lengths = tf.constant([1, 1], tf.int64)
        assert RT.from_row_lengths([1, 2], lengths).row_lengths() is lengths
    spec = tf.RaggedTensorSpec([2, 3, None], tf.float32, 2)
    seen = []

    @tf.function(input_signature=[{"x": [spec]}])
    def f(d):
        seen.append(d["x"][0].shape.as_list())
        return tf.nest.map_structure(lambda r: r * 2.0, d)

    rows = tf.ragged.constant([[1.0], [], [2.0, 3.0]] * 2)
    value = RT.from_uniform_row_length(rows, 3)
    assert f({"x": [value]})["x"][0].to_list() == (value * 2.0).to_list()
    assert seen == [[2, 3, None]]


def dense_and_ragged(of_ragged, of_rows):
    """Gradients of a function of ragged rows, and of the rows by themselves."""
    x = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])

    def rows(v):
        return RT.from_row_splits(v, [0, 2, 2, 5])

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = of_ragged(rows(x))
        y = y.flat_values if isinstance(y, RT) else y
        loss = tf.reduce_sum(y * y)
    found = tf.convert_to_tensor(tape.gradient(loss, x))
    traced = tf.function(lambda v: tf.reduce_sum(tf.square(_flat(of_ragged(rows(v))))))
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = traced(x)
    again = tf.convert_to_tensor(tape.gradient(loss, x))
    np.testing.assert_allclose(again, found, rtol=1e-5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        parts = [of_rows(x[:2]), of_rows(x[2:])]
        loss = tf.add_n([tf.reduce_sum(p * p) for p in parts])
    return found.numpy(), tf.convert_to_tensor(tape.gradient(loss, x)).numpy()


def _flat(y):
    return y.flat_values if isinstance(y, RT) else y


@pytest.mark.parametrize(
    ("of_ragged", "of_rows"),
    [
        (lambda r: tf.exp(r) / 10.0, lambda x: tf.exp(x) / 10.0),
        (lambda r: tf.reduce_sum(r, 1), tf.reduce_sum),
        (lambda r: tf.reduce_prod(r, 1)[::2], tf.reduce_prod),
        (lambda r: tf.reduce_logsumexp(r, 1)[::2], tf.reduce_logsumexp),
        (lambda r: tf.math.reduce_variance(r, 1)[::2], tf.math.reduce_variance),
        (tf.nn.softmax, tf.nn.softmax),
        (lambda r: tf.cumsum(r, axis=1), tf.cumsum),
        (lambda r: tf.reverse(r, [1]), lambda x: x[::-1]),
        (lambda r: tf.concat([r, r * r], 1), lambda x: tf.concat([x, x * x], 0)),
        (lambda r: tf.tile(r, [1, 2]), lambda x: tf.tile(x, [2])),
        (lambda r: r[:, 1:], lambda x: x[1:]),
        (
            lambda r: tf.where(r > 2.0, r, -2.0 * r),
            lambda x: tf.where(x > 2.0, x, -2 * x),
        ),
        (lambda r: tf.gather(r, [0, 2]), lambda x: x),
        (
            lambda r: tf.gather(r, tf.ragged.constant([[1], [], [0, 2]]), batch_dims=1),
            lambda x: x[1:] if x.shape[0] == 2 else tf.gather(x, [0, 2]),
        ),
    ],
)
def test_gradients(of_ragged, of_rows):
    found, expected = dense_and_ragged(of_ragged, of_rows)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_gradients_are_ragged():
    with tf.GradientTape() as tape:
        tape.watch(F)
        y = F * F
    gradient = tape.gradient(y, F, output_gradients=F)
    assert gradient.to_list() == [[2, 8], [], [18, 32, 50]]
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.ragged.constant([[1.0], [2.0, 3.0]])
        (g,) = tf.gradients(tf.stack([x, x * x]), x)
        assert session.run(g).to_list() == [[3], [5, 7]]
        assert tf.gradients(tf.constant(1.0), x) == [None]


def test_variants():
    x = tf.ragged.constant([[[1], [2, 3]], [[]]])
    spec = tf.type_spec_from_value(x)
    rows = spec._to_batched_tensor_list(x)[0]
    assert rows.shape == [2] and rows.dtype == tf.variant
    row = spec._unbatch()._from_tensor_list([rows[0]])
    assert row.to_list() == [[1], [2, 3]]
    assert RT._from_variant(x._to_variant(), tf.int32, 2).to_list() == x.to_list()
    with pytest.raises(ValueError, match="must be equal to"):
        RT._from_variant(rows, tf.int32, 1, input_ragged_rank=1)


def test_datasets():
    data = tf.data.Dataset.from_tensors(tf.ragged.constant([[[0], [1, 5]], [[2]]]))
    assert [e.to_list() for e in data.unbatch()] == [[[0], [1, 5]], [[2]]]
    rows = data.unbatch().unbatch()
    assert rows.element_spec == tf.RaggedTensorSpec([None], tf.int32, 0)
    assert [e.numpy().tolist() for e in rows] == [[0], [1, 5], [2]]
    assert [e.numpy().tolist() for e in rows.unbatch()] == [0, 1, 5, 2]
    assert [e.to_list() for e in rows.batch(2)] == [[[0], [1, 5]], [[2]]]
    mapped = data.map(lambda r: tf.reduce_sum(r, 2))
    assert [e.to_list() for e in mapped] == [[[0, 6], [2]]]


def test_variants_of_several_dimensions():
    rows = tf.ragged.constant([[0], [1, 2], [], [3]])
    grid = tf.reshape(rows._to_variant(batched_input=True), [2, 2])
    decoded = RT._from_variant(grid, tf.int32, 2)
    assert decoded.to_list() == [[[0], [1, 2]], [[], [3]]]
    cube = tf.reshape(grid, [2, 1, 2])
    assert RT._from_variant(cube, tf.int32, 3).shape.rank == 4
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="must be rank 1 but is rank 0"
    ):
        tf.raw_ops.RaggedTensorToVariant(
            rt_nested_splits=[0, 1], rt_dense_values=[0], batched_input=True
        )


@pytest.mark.parametrize("ragged", [False, True])
def test_gradients_by_constants_that_maps_capture(ragged):
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(3.0)
        rows = tf.ragged.constant([[1.0, 2.0], [4.0]]) if ragged else tf.constant([7.0])
        y = tf.map_fn(
            lambda r: tf.reduce_sum(r * x), rows, fn_output_signature=tf.float32
        )
        (gradient,) = tf.gradients(tf.reduce_sum(y), x)
        assert session.run(gradient) == 7


def test_weights_of_counts():
    ids = tf.ragged.constant([[1, 2], [0]])
    with pytest.raises(ValueError, match="must be a RaggedTensor if"):
        tf.math.bincount(ids, weights=[1.0, 1.0, 1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="same row splits"):
        tf.sparse.bincount(
            ids, weights=tf.ragged.constant([[1.0], [2.0, 3.0]]), axis=-1
        )
    with pytest.raises(ValueError, match="must be a SparseTensor if"):
        tf.math.bincount(tf.sparse.from_dense([[1]]), weights=ids)


def test_images_of_different_sizes():
    images = tf.ragged.stack([tf.ones([4, 4, 3]), tf.ones([3, 5, 3])])
    assert tf.image.resize(images, [2, 2]).shape == [2, 2, 2, 3]
    assert v1.image.resize(images, [2, 6]).shape == [2, 2, 6, 3]
    assert tf.image.resize(images[:0], [2, 2]).shape == [0, 2, 2, 3]
    with pytest.raises(ValueError, match="must be 4 if images is ragged"):
        tf.image.resize(F, [2, 2])


def test_texts():
    words = v1.ragged.constant_value([["ab c", "d"], []])
    assert tf.strings.bytes_split(words).to_list()[0][1] == [b"d"]
    assert tf.strings.split(words).to_list() == [[[b"ab", b"c"], [b"d"]], []]
    many = tf.ragged.constant([[1, 2, 3, 4, 5, 6, 7, 8], []])
    text = "[[1, 2, 3, ..., 6, 7, 8], []] of 2"
    assert tf.strings.format("{} of {}", (many, 2)).numpy().decode() == text
    traced = tf.function(lambda x: tf.strings.format("{}", [x], summarize=-1))
    assert traced(many).numpy() == b"[[1, 2, 3, 4, 5, 6, 7, 8], []]"


def test_ranges_that_are_too_long():
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="total range size overflow"
    ):
        tf.ragged.range([0, 0], [2**31 - 1, 1], row_splits_dtype=tf.int32)
