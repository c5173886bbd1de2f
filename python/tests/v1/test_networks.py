"""Layers, cells and loops of TensorFlow 1 have TensorFlow's names, values and errors (see
network_cases.py)."""

import json
import pathlib
import re

import headrace as tf
import network_cases as cases
import numpy as np
import pytest

GOLDEN = pathlib.Path(__file__).parents[3] / "tests" / "golden" / "v1"
FOUND = json.loads((GOLDEN / "networks.json").read_text())
CASES = cases.Cases(tf)
NETWORKS, ERRORS = cases.all_networks(CASES), CASES.errors()


def _close(ours, theirs):
    assert ours[0] == theirs[0]
    scale = max(1.0, *map(abs, theirs[1]), abs(theirs[2])) if theirs[1] else 1.0
    np.testing.assert_allclose(ours[1], theirs[1], atol=3e-5 * scale)
    np.testing.assert_allclose(ours[2], theirs[2], atol=3e-4 * scale)


# Channels first are transposed here; a squeeze comes ahead of the bias.
_OTHER_NAMES = ("conv2d first", "images first", "separable1d")


def _compare(name, ours, theirs):
    for key, value in theirs.items():
        if key == "names" and name.startswith(_OTHER_NAMES):
            continue
        if key in ("values", "gradients"):
            assert len(ours[key]) == len(value)
            for a, b in zip(ours[key], value):
                _close(a, b)
        elif key == "kept":
            assert sorted(ours[key]) == sorted(value)
            for variable, b in value.items():
                _close(ours[key][variable], b)
        else:
            assert ours[key] == value, key


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name):
    _compare(name, cases.measure(tf, NETWORKS[name]), FOUND["networks"][name])


# In frames upstream makes Keras' variables under the loop's name.
_OF_FRAMES = [n for n in NETWORKS if "static" not in n and n != "cell of keras"]


@pytest.mark.parametrize("name", _OF_FRAMES)
def test_networks_of_frames(name):
    tf.compat.v1.disable_control_flow_v2()
    try:
        found = cases.measure(tf, NETWORKS[name])
    finally:
        tf.compat.v1.enable_control_flow_v2()
    _compare(name, found, FOUND["frames"].get(name, FOUND["networks"][name]))


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    ours, theirs = cases.error_of(tf, ERRORS[name]), FOUND["errors"][name]
    assert ours is not None
    assert ours[0] == theirs[0]
    assert re.sub(r"0x\w+", "", ours[1]) == re.sub(r"0x\w+", "", theirs[1])
