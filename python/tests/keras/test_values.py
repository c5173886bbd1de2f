"""Layers, losses, metrics and optimizers give tf-keras' values (see keras_cases.py)."""

import pathlib

import headrace as tf
import keras_cases as cases
import numpy as np
import pytest

GOLDEN = pathlib.Path(__file__).parents[3] / "tests/golden/keras/values.npz"
GROUPS = cases.groups(tf)


@pytest.fixture(scope="module")
def golden():
    return np.load(GOLDEN)


@pytest.mark.parametrize("group", GROUPS)
def test_group(golden, group):
    found = {cases.key(group, k): v for k, v in GROUPS[group]().items()}
    expected = [k for k in golden.files if k.startswith(group + ":")]
    assert sorted(found) == sorted(expected)
    for name in expected:
        value = golden[name]
        if value.dtype.kind == "U":
            assert str(found[name]) == str(value)
        else:
            assert found[name].shape == value.shape, name
            np.testing.assert_allclose(
                found[name], value, rtol=2e-5, atol=2e-6, err_msg=name
            )


def test_metrics_take_integers():
    true, guess = [[0, 1], [0, 0]], [[1, 1], [0, 0]]
    for name, want in (
        ("MeanSquaredError", 0.25),
        ("MeanAbsoluteError", 0.25),
        ("MeanAbsolutePercentageError", 250000000.0),
        ("LogCoshError", 0.10844523),
        ("Poisson", 0.49999997),
    ):
        metric = getattr(tf.keras.metrics, name)()
        metric.update_state(true, guess)
        np.testing.assert_allclose(metric.result(), want, rtol=1e-5)
    right = tf.keras.metrics.binary_accuracy([[1], [1], [0]], [[1], [0], [0]])
    assert right.numpy().tolist() == [1.0, 0.0, 1.0]
