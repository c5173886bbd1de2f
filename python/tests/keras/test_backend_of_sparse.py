"""tf.keras.backend's functions of sparse and ragged tensors; values are tf_keras 2.21's."""

import headrace as tf

K = tf.keras.backend
S = tf.sparse.from_dense([[1.0, 0], [0, 2.0]])
D = tf.constant([[1.0, 2], [3, 4]])


def test_products_of_sparse_matrices():
    assert K.dot(S, D).numpy().tolist() == [[1, 2], [6, 8]]
    x = tf.keras.Input((2,), sparse=True)
    model = tf.keras.Model(x, tf.keras.layers.Lambda(lambda x: K.dot(x, D))(x))
    assert model(S).numpy().tolist() == [[1, 2], [6, 8]]


def test_values_of_sparse_tensors_have_their_zeros():
    assert K.eval(S).tolist() == [[1, 0], [0, 2]]
    with tf.Graph().as_default():
        s = tf.sparse.from_dense([[1.0, 0], [0, 2.0]])
        assert K.eval(s).tolist() == [[1, 0], [0, 2]]


def test_concatenation_keeps_the_kind_that_all_share():
    across, below = K.concatenate([S, S]), K.concatenate([S, S], 0)
    assert across.indices.numpy().tolist() == [[0, 0], [0, 2], [1, 1], [1, 3]]
    assert across.values.numpy().tolist() == [1, 1, 2, 2]
    assert across.dense_shape.numpy().tolist() == [2, 4]
    assert below.indices.numpy().tolist() == [[0, 0], [1, 1], [2, 0], [3, 1]]
    mixed = K.concatenate([S, D])
    assert mixed.numpy().tolist() == [[1, 0, 1, 2], [0, 2, 3, 4]]
    rows = tf.ragged.constant([[1.0], [2.0, 3.0]])
    assert K.concatenate([rows, rows]).to_list() == [[1, 1], [2, 3, 2, 3]]
