"""Generators of strategies. The numbers are TensorFlow's."""

import headrace as tf
import numpy as np
import pytest

FIRST = [0.81355, 0.27735, 0.56301]  # of replicas that share a generator of seed 3


def _drawn(strategy, generator):
    made = strategy.run(lambda: generator.normal([1]))
    return [float(x[0]) for x in strategy.experimental_local_results(made)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_replicas_draw_different_numbers(count):
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])
    with strategy.scope():
        generator = tf.random.Generator.from_seed(3)
    np.testing.assert_allclose(_drawn(strategy, generator), FIRST[:count], atol=1e-5)
    # Outside of replicas it is as one of no strategy, and all copies move on.
    assert generator.normal([1]).numpy()[0] == pytest.approx(0.13718, abs=1e-5)
    copies = strategy.experimental_local_results(generator.state)
    assert [c.numpy().tolist() for c in copies] == [[515, 0, 0]] * count
    traced = tf.function(lambda: strategy.run(lambda: generator.normal([1])))
    found = strategy.experimental_local_results(traced())
    assert len({float(x[0]) for x in found}) == count


def test_one_of_no_strategy():
    generator = tf.random.Generator.from_seed(3)
    one = tf.distribute.OneDeviceStrategy("CPU:0")
    assert _drawn(one, generator) == [pytest.approx(-0.43641, abs=1e-5)]
