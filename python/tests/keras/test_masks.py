"""Steps that a mask hides count in no loss and no metric. The numbers are tf_keras'."""

import headrace as tf
import numpy as np
import pytest

K = tf.keras
IDS = np.array([[1, 2, 0, 0], [3, 1, 2, 0]])
LABELS = np.array([[0, 1, 1, 1], [1, 0, 1, 0]])
STEPS = np.array([[1, 2, 3, 4], [0.5, 1, 2, 3]])


def around(step, cycle, least):
    """Numbers that go around: src/cc/layer/masks_test.cc has the same."""

    def make(shape, dtype=None):
        values = np.arange(np.prod(shape)) * step % cycle / 2 + least
        return tf.constant(values.reshape(shape), tf.float32)

    return make


def tagger():
    embedding = K.layers.Embedding(5, 3, around(7, 5, -1), mask_zero=True)
    dense = K.layers.Dense(2, "softmax", kernel_initializer=around(3, 4, -0.5))
    return K.Sequential([embedding, dense])


def squares(y, p):
    return tf.square(p[..., 0] - tf.cast(y, tf.float32))


def mean_of_squares(y, p):
    return tf.reduce_mean(squares(y, p))


class Squares(K.losses.Loss):
    def call(self, y_true, y_pred):
        return squares(y_true, y_pred)


CASES = {
    "sparse_categorical_crossentropy": [0.682713, 0.352841],
    K.losses.SparseCategoricalCrossentropy(reduction="sum"): [3.413567, 1.544116],
    K.losses.SparseCategoricalCrossentropy(ignore_class=1): [0.07889, 0.054775],
    squares: [0.482292, 0.458685],
    mean_of_squares: [0.395183, 0.380957],
    Squares(): [0.482292, 0.458685],
}
WEIGHTED = {
    "sparse_categorical_crossentropy": [1.258292, 0.295825],
    squares: [0.441711, 0.42236],
    mean_of_squares: [0.513738, 0.49005],
}


@pytest.mark.parametrize("loss", CASES, ids=lambda f: getattr(f, "__name__", None))
def test_losses_of_fit(loss):
    model = tagger()
    model.compile(K.optimizers.SGD(0.5), loss)
    history = model.fit(IDS, LABELS, epochs=2, shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["loss"], CASES[loss], rtol=2e-5)


@pytest.mark.parametrize("loss", WEIGHTED, ids=lambda f: getattr(f, "__name__", None))
def test_losses_of_weighted_steps(loss):
    model = tagger()
    model.compile(K.optimizers.SGD(0.5), loss)
    history = model.fit(
        IDS, LABELS, epochs=2, shuffle=False, verbose=0, sample_weight=STEPS
    ).history
    np.testing.assert_allclose(history["loss"], WEIGHTED[loss], rtol=2e-5)


def test_losses_that_are_called():
    p = tf.constant([[[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]]])
    p._keras_mask = tf.constant([[True, True, False]])
    y = np.array([[0, 1, 0]])
    sparse = K.losses.SparseCategoricalCrossentropy
    assert float(sparse()(y, p)) == pytest.approx(0.510826, rel=1e-5)
    assert float(sparse(ignore_class=1)(y, p)) == pytest.approx(0.105361, rel=1e-5)
    assert float(sparse(reduction="sum")(y, p)) == pytest.approx(1.021651, rel=1e-5)
    none = sparse(reduction="none")(y, p).numpy()
    np.testing.assert_allclose(none, [[0.105361, 0.916291, 0]], rtol=1e-5)
    halves = sparse()(y, p, sample_weight=[0.5])
    assert float(halves) == pytest.approx(0.255413, rel=1e-5)


@pytest.mark.parametrize("weights", [None, STEPS], ids=["plain", "weighted"])
def test_metrics_that_give_one_number(weights):
    """A function that means over the batch itself, as guides' masked accuracy does."""
    model = tagger()
    metrics = [mean_of_squares, squares]
    model.compile(
        "sgd", squares, metrics=metrics, weighted_metrics=["accuracy", *metrics]
    )
    logs = model.evaluate(
        IDS, LABELS, sample_weight=weights, verbose=0, return_dict=True
    )
    found = (
        {
            "loss": 0.48229,
            "mean_of_squares": 0.39518,
            "squares": 0.48229,
            "accuracy": 0.6,
            "weighted_mean_of_squares": 0.39518,
            "weighted_squares": 0.48229,
        }
        if weights is None
        else {
            "loss": 0.44171,
            "mean_of_squares": 0.39518,
            "squares": 0.48229,
            "accuracy": 0.38462,
            "weighted_mean_of_squares": 0.39518,
            "weighted_squares": 0.33978,
        }
    )
    assert {k: round(v, 5) for k, v in logs.items()} == pytest.approx(found, abs=2e-5)


def test_means_refuse_weights_of_more_axes():
    mean = K.metrics.Mean()
    mean.update_state(2.0, sample_weight=[[1.0, 3.0]])
    assert (float(mean.total), float(mean.count)) == (8.0, 4.0)
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        mean.update_state([1.0, 2.0], sample_weight=[[1.0, 2.0], [3.0, 4.0]])
