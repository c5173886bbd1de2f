"""Keras's models in rings of which some workers are TensorFlow's, as test_mixed_rings has
them: what they give is what one process gives, and the same on all workers."""

import os

import headrace as tf
import numpy as np
import pytest
import ring_keras
import test_mixed_rings

_PROGRAM = os.path.join(os.path.dirname(__file__), "ring_keras.py")


@pytest.fixture(scope="module")
def alone():
    """What one process finds, by what is asked for."""
    kept = {}

    def found(what):
        if what not in kept:
            kept[what] = dict(ring_keras.found_by(ring_keras.Models(tf), what))
        return kept[what]

    return found


@pytest.mark.slow
@pytest.mark.parametrize("what", ["fit", "ways", "more"])
@pytest.mark.parametrize("modules", test_mixed_rings.GROUPS)
def test_models(modules, what, alone):
    found, codes = test_mixed_rings.run(what, modules, _PROGRAM)
    assert codes == [0] * len(modules) and all(other == found[0] for other in found)
    wanted = alone(what)
    assert found[0].keys() == wanted.keys()
    for name, values in wanted.items():
        assert len(found[0][name]) == len(values)
        for got, want in zip(found[0][name], values):
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6, err_msg=name)
