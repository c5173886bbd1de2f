"""tf.keras.backend's functions; names of metrics; arrays for attention."""

import headrace as tf
import numpy as np
import pytest

K = tf.keras.backend


@pytest.mark.parametrize(
    "found,expected",
    [
        (lambda: K.one_hot(tf.constant([1]), 3), [[0, 1, 0]]),
        (lambda: K.flatten(tf.ones([2, 2])), [1, 1, 1, 1]),
        (lambda: K.expand_dims(tf.ones(2)), [[1], [1]]),
        (lambda: K.arange(3), [0, 1, 2]),
        (lambda: K.arange(1, 6, 2), [1, 3, 5]),
        (lambda: K.tile(tf.constant([[1, 2]]), 2), [[1, 2, 1, 2], [1, 2, 1, 2]]),
        (lambda: K.repeat(tf.constant([[1, 2]]), 2), [[[1, 2], [1, 2]]]),
        (lambda: K.repeat_elements(tf.constant([1, 2]), 2, 0), [1, 1, 2, 2]),
        (lambda: K.switch(tf.constant(True), tf.ones([]), tf.zeros([])), 1.0),
        (
            lambda: K.switch(
                tf.constant([True, False]), tf.ones([2, 2]), tf.zeros([2, 2])
            ),
            [[1, 1], [0, 0]],
        ),
        (
            lambda: K.binary_crossentropy(tf.constant([1.0]), tf.constant([0.4])),
            [0.9162905],
        ),
        (lambda: K.l2_normalize(tf.constant([3.0, 4.0])), [0.6, 0.8]),
        (lambda: K.elu(tf.constant([-1.0, 1.0]), 2.0), [-1.2642411, 1.0]),
        (lambda: K.any(tf.constant([0, 1])), True),
        (lambda: K.all(tf.constant([0, 1])), False),
        (lambda: K.zeros((2,)), [0, 0]),
        (lambda: K.eye(2), [[1, 0], [0, 1]]),
        (lambda: K.sqrt([-1.0, 4.0]), [0.0, 2.0]),
        (lambda: K.abs([-1, 2]), [1, 2]),
        (lambda: K.maximum([1.0, 2.0], [2.0, 1.0]), [2.0, 2.0]),
        (lambda: K.shape(np.ones((2, 3))), [2, 3]),
        (lambda: next(K.stop_gradient([tf.constant(1.0)])), 1.0),
    ],
)
def test_functions(found, expected):
    np.testing.assert_allclose(found().numpy(), expected, rtol=1e-5)


def test_metrics_of_a_class_have_names_of_their_own():
    tf.keras.backend.clear_session()
    metrics = tf.keras.metrics
    made = [metrics.AUC(), metrics.AUC(), metrics.Precision(), metrics.Precision()]
    assert [m.name for m in made] == ["auc", "auc_1", "precision", "precision_1"]
    assert metrics.Recall(class_id=1).get_config()["class_id"] == 1


def test_attention_takes_arrays():
    x = np.ones((1, 2, 4), "float32")
    layer = tf.keras.layers.MultiHeadAttention(2, 3)
    assert layer(x, x[:, :1]).shape == (1, 2, 4)
