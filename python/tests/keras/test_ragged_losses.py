"""Losses, metrics and training with ragged targets; the values are tf_keras 2.21's, but
for losses that it refuses, which are those of the rows one by one."""

import headrace as tf
import numpy as np
import pytest

K = tf.keras
L = K.losses
CLASSES = tf.ragged.constant([[0, 1], [2]])
ONE_HOT = tf.ragged.constant([[[1.0, 0, 0], [0, 1.0, 0]], [[0, 0, 1.0]]], ragged_rank=1)
SHARES = tf.ragged.constant(
    [[[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]], [[0.5, 0.25, 0.25]]], ragged_rank=1
)
ROWS, GUESSES = (
    tf.ragged.constant([[1.0, 0.0], [1.0]]),
    tf.ragged.constant([[0.8, 0.3], [0.4]]),
)
STEPS = tf.ragged.constant([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]], ragged_rank=1)

# Of ONE_HOT and SHARES; of ROWS and GUESSES, whose last axis is ragged.
VALUES = {
    "MeanSquaredError": (0.3283333, [0.065, 0.36]),
    "MeanAbsoluteError": (0.5222222, [0.25, 0.6]),
    "MeanAbsolutePercentageError": (2.6111115e08, [1.5000002e08, 60.000004]),
    "MeanSquaredLogarithmicError": (0.1638819, [0.03996789, 0.12721704]),
    "BinaryCrossentropy": (0.9075884, [0.2899091, 0.9162905]),
    "BinaryFocalCrossentropy": (0.45986688, [0.02051323, 0.3298646]),
    "CategoricalCrossentropy": (1.6309508, [0.3184537, 1.192093e-07]),
    "CategoricalFocalCrossentropy": (0.26956925, [0.0059216586, 0.0]),
    "Huber": (0.16416664, [0.0325, 0.18]),
}
REFUSED_THERE = ("Hinge", "SquaredHinge", "CategoricalHinge", "LogCosh", "KLDivergence")
REFUSED_THERE += ("Poisson", "CosineSimilarity")


def near(value, expected):
    np.testing.assert_allclose(value, expected, rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("name", VALUES)
def test_losses(name):
    deep, rows = VALUES[name]
    loss = getattr(L, name)
    near(loss()(ONE_HOT, SHARES), deep)
    near(loss(reduction="none")(ROWS, GUESSES), rows)
    near(loss()(ROWS, GUESSES), np.mean(rows))
    near(loss(reduction="sum")(ROWS, GUESSES), np.sum(rows))
    near(tf.function(loss())(ONE_HOT, SHARES), deep)


@pytest.mark.parametrize("name", [*REFUSED_THERE, *VALUES])
def test_losses_are_those_of_rows(name):
    loss = getattr(L, name)(reduction="none")
    found = loss(ONE_HOT, SHARES)
    assert found.to_list()[1] == loss(ONE_HOT[1], SHARES[1]).numpy().tolist()
    near(found.flat_values, loss(ONE_HOT.values, SHARES.values))
    near(loss(ROWS, GUESSES)[0], loss(ROWS[:1].to_tensor(), GUESSES[:1].to_tensor())[0])


def test_class_numbers():
    near(L.SparseCategoricalCrossentropy()(CLASSES, SHARES), 1.6309508)
    near(L.SparseCategoricalCrossentropy(from_logits=True)(CLASSES, SHARES), 1.2300295)
    values = L.sparse_categorical_crossentropy(CLASSES, SHARES)
    near(values.flat_values, [2.3025851, 1.2039728, 1.3862944])
    assert values.row_splits.numpy().tolist() == [0, 2, 3]


def test_rows_of_rows():
    deep = tf.ragged.constant([[[1.0, 2.0], [3.0]], [[4.0]]])
    assert L.mean_squared_error(deep, deep * 0.5).to_list() == [[0.625, 2.25], [4.0]]
    assert L.mean_absolute_error(deep, deep * 0.5).to_list() == [[0.75, 1.5], [2.0]]


def test_weights_and_kinds():
    mse = L.MeanSquaredError()
    near(mse(ONE_HOT, SHARES, sample_weight=CLASSES[:, :] + 1), 0.60499996)
    near(mse(ROWS, GUESSES, sample_weight=[1.0, 2.0]), 0.3925)
    near(mse(ONE_HOT, SHARES, sample_weight=2.0), 0.6566666)
    near(mse(tf.cast(ROWS, tf.int32), GUESSES), 0.2125)
    smooth = L.BinaryCrossentropy(from_logits=True, label_smoothing=0.1)
    near(smooth(ROWS, GUESSES), 0.5791216)
    # Predictions of dense targets are filled up.
    near(mse(np.ones([2, 2], np.float32), GUESSES), 0.4725)


def test_gradients():
    with tf.GradientTape() as tape:
        tape.watch(GUESSES.flat_values)
        loss = L.MeanSquaredError()(ROWS, GUESSES)
    near(tape.gradient(loss, GUESSES.flat_values), [-0.1, 0.15, -0.6])


def test_unlike_partitions():
    other = tf.ragged.constant([[0.8], [0.4, 0.3]])
    for loss in (L.mean_squared_error, L.MeanSquaredError(), tf.function(L.mse)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="identical ragged"):
            loss(ROWS, other)
    with pytest.raises(tf.errors.InvalidArgumentError, match="identical ragged"):
        L.mse(GUESSES, np.ones([2, 2], np.float32))
    with pytest.raises(ValueError, match="ragged rank of 1, y_pred of 2"):
        L.mse(ROWS, tf.ragged.constant([[[0.8], [0.3]], [[0.4]]]))


def test_metrics():
    M = K.metrics
    for metric, given, expected in (
        (M.SparseCategoricalAccuracy(), (CLASSES, SHARES), 0.0),
        (M.SparseTopKCategoricalAccuracy(2), (CLASSES, SHARES), 2 / 3),
        (M.BinaryAccuracy(), (ROWS, GUESSES), 2 / 3),
        (M.MeanSquaredError(), (ROWS, GUESSES), 0.16333334),
        (M.BinaryCrossentropy(), (ROWS, GUESSES), 0.4987029),
        # TensorFlow gives 4e-8, as it takes each share for a row.
        (M.CategoricalCrossentropy(), (ONE_HOT, SHARES), 1.6309508),
        (M.Precision(), (ROWS, GUESSES), 1.0),
        (M.RootMeanSquaredError(), (ROWS, GUESSES), 0.4041452),
    ):
        metric.update_state(*given)
        near(metric.result(), expected)
    metric = M.MeanAbsoluteError()
    metric.update_state(ROWS, GUESSES, tf.ragged.constant([[1.0, 2.0], [3.0]]))
    near(metric.result(), 0.43333337)
    with pytest.raises(TypeError, match="not tf.RaggedTensor"):
        metric.update_state(ROWS, GUESSES, [1.0, 2.0])


def model(loss="mse", **given):
    inputs = K.Input([None, 2], ragged=True)
    dense = K.layers.Dense(2, kernel_initializer="ones")
    made = K.Model(inputs, K.layers.TimeDistributed(dense)(inputs))
    made.compile("sgd", loss, **given)
    return made


def test_training():
    m = model(metrics=["mae"])
    near(m.evaluate(STEPS, STEPS, verbose=0), [15.166667, 3.5])
    found = m.fit(STEPS, STEPS, verbose=0).history
    near([found["loss"][0], found["mae"][0]], [15.166667, 3.5])
    data = tf.data.Dataset.from_tensors((STEPS, STEPS))
    near(m.fit(data, verbose=0).history["loss"], [7.229074478])
    near(m.train_on_batch(STEPS, STEPS), [3.458172798, 1.647489190])
    for loss, expected in (
        ("mape", 110.2777786),
        ("categorical_crossentropy", 4.85203),
    ):
        near(model(loss).fit(STEPS, STEPS, verbose=0).history["loss"], [expected])
    weights = np.array([1.0, 2.0])
    found = model().fit(STEPS, STEPS, sample_weight=weights, verbose=0).history
    near(found["loss"], [25.33333397])


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_batches_of_predictions_are_joined(batch):
    steps = tf.concat([STEPS, [[[1.0, 1.0]]]], 0)
    found = model().predict(steps, batch_size=batch, verbose=0)
    assert found.to_list() == [[[3.0, 3.0], [7.0, 7.0]], [[11.0, 11.0]], [[2.0, 2.0]]]
    inputs = K.Input([3], sparse=True)
    doubled = K.Model(inputs, K.layers.Lambda(lambda x: x * 2.0)(inputs))
    given = np.diag([1.0, 2, 3]).astype(np.float32)
    found = doubled.predict(tf.sparse.from_dense(given), batch_size=batch, verbose=0)
    near(tf.sparse.to_dense(found), given * 2)
