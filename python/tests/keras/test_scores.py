"""Scores, focal losses and padded sequences give tf-keras' values."""

import headrace as tf
import measure_cases as cases
import numpy as np
import pytest
import recorded

metrics = tf.keras.metrics


@pytest.mark.parametrize("name", recorded.names(cases))
def test_as_recorded(name):
    recorded.check(cases, name, tf)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: metrics.F1Score(average="x"), "Invalid `average` argument"),
        (lambda: metrics.FBetaScore(beta=0.0), "It should be > 0"),
        (lambda: metrics.F1Score(threshold=2.0), "0 < threshold <= 1"),
        (lambda: metrics.F1Score()([1, 0], [0.2, 0.3]), "expects 2D inputs"),
        (lambda: metrics.PrecisionAtRecall(-1.0), "`recall` must be in the range"),
        (lambda: metrics.RecallAtPrecision(0.5, 0), "must be an integer > 0"),
        (lambda: metrics.IoU(2, [2]), "is out of range"),
        (lambda: tf.keras.utils.pad_sequences([[1]], padding="x"), "not understood"),
    ],
)
def test_errors(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_configurations():
    for metric in (
        metrics.IoU(3, [1], ignore_class=2),
        metrics.OneHotMeanIoU(3),
        metrics.BinaryIoU([0], 0.3),
        metrics.F1Score("micro", 0.5),
        metrics.SensitivityAtSpecificity(0.3, num_thresholds=7),
        metrics.RecallAtPrecision(0.3),
    ):
        copy = metrics.deserialize(metrics.serialize(metric))
        assert copy.get_config() == metric.get_config()


def test_losses_of_ragged_rows():
    losses = tf.keras.losses
    true, made = tf.ragged.constant([[1.0, 0.0], [1.0]]), [[0.8, 0.1], [0.6]]
    made = tf.ragged.constant(made)
    each = losses.MeanSquaredError(reduction="none")(true, made)
    np.testing.assert_allclose(each, [0.025, 0.16], rtol=1e-5)
    np.testing.assert_allclose(losses.MeanSquaredError()(true, made), 0.0925, rtol=1e-5)
    padded = losses.mean_squared_error(true.to_tensor(), made)
    np.testing.assert_allclose(padded, [0.025, 0.08], rtol=1e-5)
    np.testing.assert_allclose(
        tf.keras.metrics.MeanSquaredError()(true, made), 0.07, 1e-5
    )

    # Rows of vectors: a value a vector.
    true = tf.ragged.constant([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0]]], ragged_rank=1)
    made = [[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4]]]
    made = tf.ragged.constant(made, ragged_rank=1)
    values = [[0.2231435, 0.3566749], [0.5108256]]
    for name, labels in (
        ("BinaryCrossentropy", true),
        ("CategoricalCrossentropy", true),
        ("SparseCategoricalCrossentropy", tf.ragged.constant([[0, 1], [0]])),
    ):
        kind = getattr(losses, name)
        each = kind(reduction="none")(labels, made)
        np.testing.assert_allclose(each.to_tensor()[0], values[0], rtol=1e-5)
        np.testing.assert_allclose(each[1], values[1], rtol=1e-5)
        np.testing.assert_allclose(kind()(labels, made), 0.3635480, rtol=1e-5)
        for weight, want in (([1.0, 2.0], 0.5338232), ([[1.0, 2.0], [3.0]], 0.8229900)):
            weight = tf.ragged.constant(weight)
            got = kind()(labels, made, sample_weight=weight)
            np.testing.assert_allclose(got, want, rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="identical ragged splits"):
        losses.mean_squared_error(true, made[::-1])


def test_a_model_of_ragged_rows_learns():
    rows = tf.keras.Input([None, 2], ragged=True)
    layer = tf.keras.layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Model(rows, tf.ragged.map_flat_values(layer, rows))
    model.compile("sgd", "mse", metrics=["mae"])
    x = tf.ragged.constant([[[1.0, 2.0], [0.0, 1.0]], [[3.0, 1.0]]], ragged_rank=1)
    y = tf.ragged.constant([[[1.0], [1.0]], [[2.0]]], ragged_rank=1)
    loss, error = model.evaluate(x, y, verbose=0)
    np.testing.assert_allclose([loss, error], [8 / 3, 4 / 3], rtol=1e-5)
