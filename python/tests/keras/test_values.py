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
