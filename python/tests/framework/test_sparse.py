"""Sparse tensors."""

import headrace as tf
import numpy as np
import pytest


def some():
    return tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1.0, 2.0, 3.0], [2, 3])


DENSE = np.array([[0, 1, 0], [2, 0, 3]], np.float32)


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (lambda s: s, DENSE),
        (lambda s: tf.sparse.add(s, s), DENSE * 2),
        (tf.sparse.transpose, DENSE.T),
        (lambda s: tf.sparse.reshape(s, [3, -1]), DENSE.reshape(3, 2)),
        (lambda s: tf.sparse.slice(s, [0, 1], [2, 2]), DENSE[:, 1:]),
        (lambda s: tf.sparse.concat(1, [s, s]), np.concatenate([DENSE, DENSE], 1)),
        (lambda s: tf.sparse.split(s, 2, axis=1)[0], DENSE[:, :2]),
        (lambda s: tf.sparse.expand_dims(s, 0), DENSE[None]),
        (lambda s: tf.sparse.retain(s, s.values > 1.5), DENSE * (DENSE > 1.5)),
        (lambda s: tf.sparse.maximum(s, -s), DENSE),
        (lambda s: s * [[2.0], [3.0]], DENSE * [[2], [3]]),
        (lambda s: -s, -DENSE),
        (lambda s: tf.sparse.from_dense(tf.sparse.to_dense(s)), DENSE),
    ],
)
def test_functions(function, want):
    np.testing.assert_allclose(tf.sparse.to_dense(function(some())), want)


def test_products_and_sums():
    s, b = some(), np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_allclose(tf.sparse.sparse_dense_matmul(s, b), DENSE @ b)
    np.testing.assert_allclose(
        tf.sparse.sparse_dense_matmul(s, b.T[:, :2], adjoint_a=True),
        DENSE.T @ b.T[:, :2],
    )
    np.testing.assert_allclose(tf.sparse.add(s, DENSE), DENSE * 2)
    for axis in (None, 0, 1):
        np.testing.assert_allclose(tf.sparse.reduce_sum(s, axis), DENSE.sum(axis))


def test_gradients():
    values, b = tf.constant([1.0, 2.0, 3.0]), tf.ones([3, 2])
    with tf.GradientTape() as tape:
        tape.watch([values, b])
        y = tf.sparse.sparse_dense_matmul(some().with_values(values), b)
    dv, db = tape.gradient(y, [values, b])
    np.testing.assert_allclose(dv, [2, 2, 2])
    np.testing.assert_allclose(db, [[2, 2], [1, 1], [3, 3]])


def test_hostile():
    with pytest.raises(ValueError):
        tf.SparseTensor([0, 1], [1], [3])
    bad = tf.SparseTensor([[5]], [1], [3])
    for function in (tf.sparse.to_dense, tf.sparse.reduce_sum):
        with pytest.raises(tf.errors.InvalidArgumentError):
            function(bad)
    huge = tf.SparseTensor([[0, 0]], [1.0], [2**62, 4])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.sparse.to_dense(huge)


def test_tables_and_queues():
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
    table.insert([1, 2], [[1.0, 2.0], [3.0, 4.0]])
    assert table.lookup([2, 7]).numpy().tolist() == [[3, 4], [0, 0]]
    table.remove([1])
    assert table.size().numpy() == 1
    queue = tf.queue.FIFOQueue(5, [tf.int32], shapes=[[]])
    queue.enqueue_many([[1, 2, 3]])
    assert queue.dequeue_many(2).numpy().tolist() == [1, 2]
    queue.close()
    assert queue.dequeue_up_to(9).numpy().tolist() == [3]
    with pytest.raises(tf.errors.OutOfRangeError):
        queue.dequeue()


def test_reset_shape():
    diagonal = tf.sparse.eye(2)
    assert tf.sparse.reset_shape(diagonal, [4, 3]).shape == [4, 3]
    none = tf.SparseTensor(np.zeros([0, 2], np.int64), [], [3, 4])
    assert tf.sparse.reset_shape(none).dense_shape.numpy().tolist() == [0, 0]
    for shape, text in [([1, 2], "dimension sizes >= sp_input.shape"), ([2], "incomp")]:
        with pytest.raises(ValueError, match=text):
            tf.sparse.reset_shape(diagonal, shape)

    @tf.function(
        input_signature=[tf.SparseTensorSpec(None), tf.TensorSpec(None, "int64")]
    )
    def late(x, shape):
        return tf.sparse.to_dense(tf.sparse.reset_shape(x, shape))

    want = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert late(diagonal, tf.constant([2, 3], tf.int64)).numpy().tolist() == want
    for shape in ([1, 2], [2, 2, 2]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            late(diagonal, tf.constant(shape, tf.int64))
