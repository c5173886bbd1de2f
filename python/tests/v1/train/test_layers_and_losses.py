"""tf.compat.v1.layers, losses and metrics."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
LABELS = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], np.float32)
GUESSES = np.array([[0.1, 0.8, 0.3], [0.7, 0.2, 0.4]], np.float32)
LOGITS = np.array([[-1.0, 2.0, 0.5], [1.0, -0.3, 0.2]], np.float32)


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as s:
        yield s


def test_layers_name_variables_by_scope(session):
    x = v1.placeholder(tf.float32, [None, 8, 8, 3])
    y = v1.layers.conv2d(x, 4, 3, kernel_initializer=v1.ones_initializer())
    y = v1.layers.max_pooling2d(y, 2, 2)
    on = v1.placeholder_with_default(True, [])
    y = v1.layers.batch_normalization(y, training=on)
    y = v1.layers.dense(
        v1.layers.flatten(y),
        5,
        kernel_initializer=v1.ones_initializer(),
        kernel_regularizer=lambda w: tf.reduce_sum(w * w),
    )
    with v1.variable_scope("s"):
        one = v1.layers.dense(y, 2, name="out")
        two = v1.layers.dense(y, 2, name="out", reuse=True)
        with pytest.raises(ValueError, match="already exists"):
            v1.layers.dense(y, 2, name="out")
    v1.layers.dense(y, 2)
    moving = ["moving_mean", "moving_variance"]
    names = [
        "conv2d/kernel",
        "conv2d/bias",
        *(f"batch_normalization/{n}" for n in ["gamma", "beta", *moving]),
        "dense/kernel",
        "dense/bias",
        "s/out/kernel",
        "s/out/bias",
        "dense_1/kernel",
        "dense_1/bias",
    ]
    assert [v.op.name for v in v1.global_variables()] == names
    trained = [v.op.name for v in v1.trainable_variables()]
    assert trained == [n for n in names if "moving" not in n]
    session.run(v1.global_variables_initializer())
    feed = {x: np.arange(384, dtype=np.float32).reshape(2, 8, 8, 3) / 100}
    # Values of TensorFlow 2.21.
    np.testing.assert_allclose(
        session.run(y, feed), [[-33.292] * 5, [33.292] * 5], rtol=1e-4
    )
    updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2
    session.run(updates, feed)
    np.testing.assert_allclose(
        session.run(y, {**feed, on: False}), [[340.7] * 5, [952.4] * 5], rtol=1e-3
    )
    assert len(v1.losses.get_regularization_losses()) == 1
    np.testing.assert_array_equal(session.run(one, feed), session.run(two, feed))


# Values of TensorFlow 2.21.
LOSSES = {
    "mean_squared_error": (GUESSES, 0.13833334),
    "absolute_difference": (GUESSES, 0.31666666),
    "log_loss": (GUESSES, 0.43718663),
    "hinge_loss": (LOGITS, 0.4),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(session, name):
    given, wanted = LOSSES[name]
    loss = getattr(v1.losses, name)(LABELS, given)
    assert session.run(loss) == pytest.approx(wanted, rel=1e-5)
    assert v1.losses.get_losses() == [loss]
    assert session.run(v1.losses.get_total_loss()) == pytest.approx(wanted, rel=1e-5)


def test_reductions_of_weighted_losses(session):
    modes = v1.losses.Reduction
    wanted = {
        modes.SUM: 0.54,
        modes.SUM_BY_NONZERO_WEIGHTS: 0.18,
        modes.MEAN: 0.18,
        modes.SUM_OVER_BATCH_SIZE: 0.09,
    }
    for mode, value in wanted.items():
        loss = v1.losses.mean_squared_error(
            LABELS, GUESSES, weights=[[1.0], [0.0]], reduction=mode
        )
        assert session.run(loss) == pytest.approx(value, rel=1e-5)
    with pytest.raises(ValueError, match="Invalid Reduction Key"):
        v1.losses.mean_squared_error(LABELS, GUESSES, reduction="x")
    with pytest.raises(ValueError, match="can not be broadcast"):
        v1.losses.mean_squared_error(LABELS, GUESSES, weights=np.ones([3, 3]))


def test_cross_entropies(session):
    rows = np.array([[0, 1, 0], [0, 0, 1]], np.float32)
    numbers = v1.losses.sparse_softmax_cross_entropy([1, 2], LOGITS)
    whole = v1.losses.softmax_cross_entropy(rows, LOGITS)
    np.testing.assert_allclose(*session.run([numbers, whole]), rtol=1e-6)
    smooth = v1.losses.softmax_cross_entropy(rows, LOGITS, label_smoothing=0.3)
    even = v1.losses.softmax_cross_entropy(rows * 0.7 + 0.1, LOGITS)
    np.testing.assert_allclose(*session.run([smooth, even]), rtol=1e-6)
    one = v1.losses.sigmoid_cross_entropy(LABELS, LOGITS)
    probabilities = 1 / (1 + np.exp(-LOGITS))
    plain = -np.log(np.where(LABELS > 0, probabilities, 1 - probabilities))
    assert session.run(one) == pytest.approx(plain.mean(), rel=1e-5)


def streamed(session, metric, batches):
    """The metric's value after the batches, and its updates."""
    labels = v1.placeholder(tf.float32, [None])
    guesses = v1.placeholder(tf.float32, [None])
    value, update = metric(labels, guesses)
    session.run(v1.local_variables_initializer())
    updates = [session.run(update, {labels: y, guesses: p}) for y, p in batches]
    assert session.run(value) == pytest.approx(updates[-1], rel=1e-6)
    return updates


BATCHES = [([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.6]), ([1, 0], [0.8, 0.2])]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("mean_squared_error", [0.185, 0.1366667]),
        ("mean_absolute_error", [0.35, 0.3]),
        ("root_mean_squared_error", [0.430116, 0.369685]),
        ("auc", [0.75, 0.888889]),
    ],
)
def test_metrics_stream(session, name, wanted):
    found = streamed(session, getattr(v1.metrics, name), BATCHES)
    np.testing.assert_allclose(found, wanted, rtol=1e-3)
    assert all("/" in v.name for v in v1.local_variables())
    assert not v1.global_variables()


def test_metrics_of_answers(session):
    batches = [([0, 1, 1, 0], [0, 1, 0, 1]), ([1, 0], [1, 0])]
    for name, wanted in (
        ("accuracy", [0.5, 4 / 6]),
        ("precision", [0.5, 2 / 3]),
        ("recall", [0.5, 2 / 3]),
        ("true_positives", [1, 2]),
        ("false_negatives", [1, 1]),
    ):
        found = streamed(session, getattr(v1.metrics, name), batches)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_means_with_weights(session):
    value, update = v1.metrics.mean([1.0, 2.0, 6.0], weights=[1.0, 1.0, 0.0])
    session.run(v1.local_variables_initializer())
    assert session.run(update) == 1.5 and session.run(value) == 1.5
    names = [v.op.name for v in v1.get_collection(v1.GraphKeys.METRIC_VARIABLES)]
    assert names == ["mean/total", "mean/count"]


def test_keras_metrics_in_graphs(session):
    metric = tf.keras.metrics.Mean()
    update = metric.update_state([1.0, 3.0])
    assert update.type == "NoOp" and metric.updates == [update]
    assert not v1.global_variables()
    session.run(v1.variables_initializer(metric.variables))
    session.run(update)
    session.run(update)
    assert session.run(metric.result()) == 2.0


PAIRS = ([[1.0, 2, 3], [4, 5, 7]], [[1.5, 2, 1], [4, 4, 2]])


@pytest.mark.parametrize(
    ("weights", "wanted"),
    [
        (1.0, 17.5),
        (2.0, 35.0),
        ([[1.0], [3.0]], 45.5),
        ([[1.0, 0, 2], [0, 0, 1]], 18.75),
        ([[0.0], [0.0]], 0.0),
    ],
)
def test_mean_pairwise_squared_error(session, weights, wanted):
    loss = v1.losses.mean_pairwise_squared_error(*PAIRS, weights)
    assert loss.op.name == "mean_pairwise_squared_error/value_2"
    assert v1.losses.get_losses() == [loss]
    assert session.run(loss) == pytest.approx(wanted)


def test_wrong_weights_of_losses(session):
    text = "weights can not be broadcast to values. values.rank=2. weights.rank=1."
    with pytest.raises(ValueError, match=text):
        v1.losses.mean_pairwise_squared_error(*PAIRS, [1.0, 3.0])
    with pytest.raises(ValueError, match="Shapes .* are incompatible"):
        v1.losses.mean_pairwise_squared_error(PAIRS[0], PAIRS[1][:1])
    with pytest.raises(ValueError, match="Mismatch at dim 0. values.shape=.2 3., weig"):
        v1.losses.absolute_difference(*PAIRS, [[1.0], [2.0], [3.0]])
