"""tf.map_fn over ragged and sparse tensors, and to them."""

import headrace as tf
import numpy as np
import pytest

RAGGED = tf.ragged.constant([[1, 2, 3], [], [4, 5], [6]])
DEEP = tf.ragged.constant([[[1, 2], [3]], [[4]], []])
VECTOR = tf.RaggedTensorSpec([None], tf.int32)


@pytest.fixture(params=[lambda f: f, tf.function], ids=["eager", "traced"])
def wrap(request):
    return request.param


def test_rows_to_numbers(wrap):
    def f():
        return tf.map_fn(tf.reduce_sum, RAGGED, fn_output_signature=tf.int32)

    assert wrap(f)().numpy().tolist() == [6, 0, 9, 6]


def test_numbers_to_rows(wrap):
    def f(n):
        return tf.map_fn(tf.range, n, fn_output_signature=VECTOR)

    assert wrap(f)(tf.constant([3, 0, 2])).to_list() == [[0, 1, 2], [], [0, 1]]


def test_rows_like_rows(wrap):
    assert wrap(lambda: tf.map_fn(lambda r: r * 2, DEEP))().to_list() == [
        [[2, 4], [6]],
        [[8]],
        [],
    ]

    def sums():
        rows = tf.map_fn(
            lambda r: tf.reduce_sum(r, 1), DEEP, fn_output_signature=VECTOR
        )
        return rows

    assert wrap(sums)().to_list() == [[3, 3], [4], []]


def test_beside_a_dense_tensor(wrap):
    def f():
        pair = (RAGGED, tf.constant([1, 2, 3, 4]))
        return tf.map_fn(lambda p: p[0] + p[1], pair, fn_output_signature=VECTOR)

    assert wrap(f)().to_list() == [[2, 3, 4], [], [7, 8], [10]]


def test_sparse(wrap):
    sparse = tf.sparse.SparseTensor([[0, 0], [2, 0], [2, 1]], [2, 3, 4], [4, 4])

    def sums():
        return tf.map_fn(tf.sparse.reduce_sum, sparse, fn_output_signature=tf.int32)

    assert wrap(sums)().numpy().tolist() == [2, 0, 7, 0]

    def eyes():
        spec = tf.SparseTensorSpec(None, tf.float32)
        return tf.map_fn(tf.sparse.eye, tf.constant([2, 3]), fn_output_signature=spec)

    dense = tf.sparse.to_dense(wrap(eyes)()).numpy()
    assert np.array_equal(dense[1], np.eye(3)) and dense[0].sum() == 2


def test_gradient(wrap):
    x = tf.ragged.constant([[1.0, 2.0], [3.0], []])

    def f():
        with tf.GradientTape() as tape:
            tape.watch(x.values)
            y = tf.map_fn(
                lambda r: tf.reduce_sum(r * r), x, fn_output_signature=tf.float32
            )
        return tape.gradient(y, x.values)

    assert wrap(f)().numpy().tolist() == [2.0, 4.0, 6.0]


def test_rows_must_be_vectors():
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank >= 1"):
        tf.map_fn(tf.reduce_sum, RAGGED)


def test_forged_gradient():
    rows = tf.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[[0, 1, 2]], rt_dense_values=[1.0, 2.0], batched_input=True
    )
    gradient = tf.raw_ops.RaggedTensorToVariantGradient
    for splits, shape in (([0, 2], [2]), ([0, 1, 9], [2]), ([0, 2, 1], [2]), (0, [7])):
        if splits == 0:
            assert gradient(
                encoded_ragged_grad=rows,
                row_splits=tf.constant(splits, tf.int64),
                dense_values_shape=shape,
                Tvalues=tf.float32,
            ).numpy().tolist() == [1, 2, 0, 0, 0, 0, 0]
            continue
        with pytest.raises(tf.errors.InvalidArgumentError):
            gradient(
                encoded_ragged_grad=rows,
                row_splits=tf.constant(splits, tf.int64),
                dense_values_shape=shape,
                Tvalues=tf.float32,
            )
