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
@pytest.mark.parametrize("modules", test_mixed_rings.GROUPS)
def test_fit(modules, alone):
    compare("fit", modules, alone)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["ways", "more"])
@pytest.mark.parametrize("modules", test_mixed_rings.GROUPS[:3])
def test_more(modules, what, alone):
    compare(what, modules, alone)


def compare(what, modules, alone):
    """What all workers find is what one process finds."""
    found, codes = test_mixed_rings.run(what, modules, _PROGRAM)
    assert codes == [0] * len(modules)
    wanted = dict(alone(what))
    if "norms" in wanted:  # which are of the rows that each worker has
        wanted["norms"] = found[0]["norms"]
    for worker in found:
        assert worker.keys() == wanted.keys()
        for name, values in wanted.items():
            assert len(worker[name]) == len(values)
            for got, want in zip(worker[name], values):
                near = {"rtol": 2e-6, "atol": 1e-6, "err_msg": name}
                np.testing.assert_allclose(got, want, **near)
