"""Scores, focal losses and padded sequences give tf-keras' values."""

import headrace as tf
import measure_cases as cases
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
