"""Ragged tensors: making, indexing, arithmetic, dense and sparse forms."""

import headrace as tf
import numpy as np
import pytest

NESTED = [[[1, 2], [3]], [[4]], []]


def nested():
    return tf.ragged.constant(NESTED)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3]),
        lambda: tf.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1]),
        lambda: tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2]),
        lambda: tf.RaggedTensor.from_row_starts([1, 2, 3], [0, 2, 2]),
        lambda: tf.RaggedTensor.from_row_limits([1, 2, 3], [2, 2, 3]),
        lambda: tf.RaggedTensor.from_tensor([[1, 2], [0, 0], [3, 0]], padding=0),
        lambda: tf.RaggedTensor.from_tensor(
            [[1, 2], [9, 9], [3, 9]], lengths=[2, 0, 1]
        ),
    ],
)
def test_factories_agree(make):
    assert make().to_list() == [[1, 2], [], [3]]


@pytest.mark.parametrize(
    "splits", [[1, 3], [0, 5, 3], [0, 2], [0, 4]], ids=["zero", "falls", "few", "many"]
)
def test_bad_splits(splits):
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.RaggedTensor.from_row_splits([1, 2, 3], splits)


@pytest.mark.parametrize(
    "key",
    [0, -1, slice(1, None), slice(None, None, 2), (1, 0), (0, 0, 1)],
    ids=str,
)
def test_rows(key):
    want = NESTED
    for k in key if isinstance(key, tuple) else (key,):
        want = want[k]
    got = nested()[key]
    assert (got.to_list() if hasattr(got, "to_list") else got.numpy().tolist()) == want


def test_slices_of_rows():
    r = tf.ragged.constant([[1, 2, 3], [], [4, 5]])
    for part in (
        slice(1, None),
        slice(None, -1),
        slice(None, None, -1),
        slice(0, 9, 2),
    ):
        assert r[:, part].to_list() == [row[part] for row in r.to_list()]
    with pytest.raises(ValueError, match="inner ragged dimension"):
        r[:, 0]


def test_dense_and_back():
    r = nested()
    dense = r.to_tensor(-1)
    assert dense.shape == [3, 2, 2]
    assert dense.numpy()[2].tolist() == [[-1, -1], [-1, -1]]
    assert r.to_tensor(shape=[2, 1, 1]).numpy().tolist() == [[[1]], [[4]]]
    s = tf.ragged.constant([[1, 2], [], [3]]).to_sparse()
    assert tf.RaggedTensor.from_sparse(s).to_list() == [[1, 2], [], [3]]


def test_row_splits_dtype():
    x = tf.reshape(tf.range(12), [2, 3, 2])
    for made in (
        tf.RaggedTensor.from_tensor(x, ragged_rank=2, row_splits_dtype=tf.int32),
        tf.RaggedTensor.from_tensor(x, lengths=[1, 2], row_splits_dtype=tf.int32),
        tf.RaggedTensor.from_sparse(
            tf.sparse.from_dense([[1, 2], [3, 0]]), row_splits_dtype=tf.int32
        ),
    ):
        assert {s.dtype for s in made.nested_row_splits} == {tf.int32}
    made = tf.RaggedTensor.from_tensor(x, row_splits_dtype=tf.int32)
    assert made.uniform_row_length.dtype == tf.int32 and made.shape == [2, 3, 2]
    assert tf.RaggedTensor.from_tensor(x).row_splits.dtype == tf.int64
    with pytest.raises(ValueError, match="int32 or int64"):
        made.with_row_splits_dtype(tf.float32)


def test_arithmetic():
    r = tf.ragged.constant([[1, 2], [3]])
    assert (r + 1).to_list() == [[2, 3], [4]]
    assert (2 * r - r).to_list() == [[1, 2], [3]]
    assert (r * [[10], [20]]).to_list() == [[10, 20], [60]]
    assert tf.cast(r, tf.float32).dtype == tf.float32
    with pytest.raises(tf.errors.InvalidArgumentError):
        r + tf.ragged.constant([[1], [2, 3]])


def test_reductions():
    r = nested()
    assert tf.reduce_sum(r).numpy() == 10
    assert tf.reduce_sum(r, 2).to_list() == [[3, 3], [4], []]
    assert tf.reduce_max(r, 1).to_list() == [[3, 2], [4], []]
    rows = tf.ragged.constant([[1, 2], [], [3]])
    assert tf.reduce_sum(rows, 1).numpy().tolist() == [3, 0, 3]
    assert tf.reduce_sum(rows, 0).numpy().tolist() == [4, 2]


def test_joining():
    r = tf.ragged.constant([[1, 2], [3]])
    assert tf.concat([r, r], 0).to_list() == [[1, 2], [3], [1, 2], [3]]
    assert tf.concat([r, r], 1).to_list() == [[1, 2, 1, 2], [3, 3]]
    assert tf.stack([r, r]).to_list() == [[[1, 2], [3]]] * 2
    assert tf.gather(r, [1, 0, 1]).to_list() == [[3], [1, 2], [3]]
    assert tf.ragged.stack([[1, 2], [3]]).to_list() == [[1, 2], [3]]


def test_gradients():
    values = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        r = tf.RaggedTensor.from_row_splits(values, [0, 2, 3])
        loss = tf.reduce_sum(tf.square(r.to_tensor()))
    np.testing.assert_allclose(tape.gradient(loss, values), [2, 4, 6])


def test_in_functions():
    @tf.function
    def double(r):
        return r * 2

    assert double(nested()).to_list() == [[[2, 4], [6]], [[8]], []]


def test_lengths_of_rows_and_of_their_rows():
    dense = tf.constant([[[5, 0], [7, 0], [0, 0]], [[0, 0], [3, 0], [0, 0]]])
    rows = tf.RaggedTensor.from_tensor(dense, lengths=([2, 0], [1, 2]))
    assert rows.to_list() == [[[5], [7, 0]], []]


def test_dtypes_of_row_splits():
    kind = tf.RaggedTensor
    for made in (
        kind.from_tensor([[1, 0]], padding=0, row_splits_dtype=tf.int32),
        kind.from_tensor([[[1]]], ragged_rank=2, row_splits_dtype=tf.int32),
        kind.from_sparse(tf.sparse.from_dense([[1]]), row_splits_dtype=tf.int32),
    ):
        assert {s.dtype for s in made.nested_row_splits} == {tf.int32}
    assert kind.from_tensor([[1]]).row_splits.dtype == tf.int64


def test_stack_of_dense_tensors():
    a, b = tf.constant([[1, 2, 3], [4, 5, 6]]), tf.constant([[5], [6], [7]])
    made = tf.ragged.stack([a, b], 0)
    assert made.to_list() == [[[1, 2, 3], [4, 5, 6]], [[5], [6], [7]]]
    assert made.ragged_rank == 2
    assert tf.ragged.stack([a[0], b[0]]).ragged_rank == 1


def test_rank_has_a_limit():
    for rank in (254, 2**40, 8968073515812833920):
        with pytest.raises(ValueError, match="at most 254 dimensions"):
            tf.ragged.constant([], ragged_rank=rank)
    assert tf.ragged.constant([], ragged_rank=3).ragged_rank == 3


def test_parts_of_specs():
    spec = tf.RaggedTensorSpec([2, None], tf.int32)
    rows = tf.RaggedTensorSpec([None], tf.int32, 0)
    assert spec._unbatch() == rows and rows._batch(2)._shape.as_list() == [2, None]
    assert spec._flat_tensor_specs == [tf.TensorSpec(None, tf.variant)]
    value = tf.ragged.constant([[1], [2, 3]])
    assert spec._to_tensor_list(value)[0].shape == []
    assert spec._to_batched_tensor_list(value)[0].shape == [2]
    again = spec._from_tensor_list(spec._to_tensor_list(value))
    assert again.to_list() == [[1], [2, 3]]
    joined = spec.most_specific_compatible_type(
        tf.RaggedTensorSpec([3, None], tf.int32)
    )
    assert joined == tf.RaggedTensorSpec([None, None], tf.int32)


def test_shapes_that_are_learnt_later():
    value = tf.ragged.constant([[1], [3]])
    value._set_shape([2, 1])
    assert value.shape.as_list() == [2, 1]
    with pytest.raises(ValueError):
        value._set_shape([3, None])


@pytest.mark.parametrize(
    ("axis", "want"),
    [(0, [[4, 2]]), (1, [[3], [3], [0]]), (None, [[6]])],
)
def test_sums_that_keep_their_dimensions(axis, want):
    made = tf.reduce_sum(tf.ragged.constant([[1, 2], [3], []]), axis, keepdims=True)
    assert (
        made.to_list() if hasattr(made, "to_list") else made.numpy().tolist()
    ) == want
