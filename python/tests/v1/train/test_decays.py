"""Learning rates of tf.compat.v1.train that fall with the step."""

import headrace as tf
import pytest

v1 = tf.compat.v1
train = v1.train

RATES = {
    "exponential": lambda s: train.exponential_decay(0.1, s, 10, 0.5),
    "stairs": lambda s: train.exponential_decay(0.1, s, 10, 0.5, staircase=True),
    "natural": lambda s: train.natural_exp_decay(0.1, s, 10, 0.5),
    "inverse": lambda s: train.inverse_time_decay(0.1, s, 10, 0.5),
    "polynomial": lambda s: train.polynomial_decay(0.1, s, 20, 0.01, 2.0),
    "cosine": lambda s: train.cosine_decay(0.1, s, 20, 0.1),
    "pieces": lambda s: train.piecewise_constant(s, [3, 10], [1.0, 0.5, 0.1]),
}
# Of TensorFlow 2.21, at steps 3 and 25.
EXPECTED = {
    "exponential": (0.081225, 0.017678),
    "stairs": (0.1, 0.025),
    "natural": (0.086071, 0.02865),
    "inverse": (0.086957, 0.044444),
    "polynomial": (0.075025, 0.01),
    "cosine": (0.095095, 0.01),
    "pieces": (1.0, 0.1),
}


@pytest.mark.parametrize("name", RATES)
def test_rates(name):
    for step, wanted in zip((3, 25), EXPECTED[name]):
        with tf.Graph().as_default(), v1.Session() as session:
            rate = RATES[name](tf.constant(step, tf.int64))
            assert session.run(rate) == pytest.approx(wanted, rel=1e-4)
        assert float(RATES[name](tf.Variable(step))()) == pytest.approx(wanted, 1e-4)


def test_a_step_is_needed():
    with pytest.raises(ValueError, match="must not be None"):
        train.exponential_decay(0.1, None, 10, 0.5)
