"""Learning rates of tf.compat.v1.train that fall with the step."""

import headrace as tf
import numpy as np
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


# Step: cosine_decay_restarts(0.1, step, 10) plain, with t_mul=1.5, m_mul=0.7, alpha=0.1, and
# that with t_mul=1; linear_cosine_decay(0.1, step, 20) plain, and of two periods.
WAVES = [
    (0, [0.1, 0.1, 0.1, 0.1001, 0.111]),
    (3, [0.0793893, 0.0814503, 0.0814503, 0.0804678, 0.0338217]),
    (10, [0.1, 0.073, 0.073, 0.0251, 0.061]),
    (25, [0.0146447, 0.0541, 0.03205, 0.0001, 0.011]),
    (100, [0.0691342, 0.0250839, 0.0125423, 0.0001, 0.011]),
]


@pytest.mark.parametrize(("step", "wanted"), WAVES)
def test_waves(step, wanted):
    train = tf.compat.v1.train
    lower = {"m_mul": 0.7, "alpha": 0.1}
    two = {"num_periods": 2.0, "alpha": 0.1, "beta": 0.01}

    def rates(step):
        return [
            train.cosine_decay_restarts(0.1, step, 10),
            train.cosine_decay_restarts(0.1, step, 10, t_mul=1.5, **lower),
            train.cosine_decay_restarts(0.1, step, 10, t_mul=1.0, **lower),
            train.linear_cosine_decay(0.1, step, 20),
            train.linear_cosine_decay(0.1, step, 20, **two),
            train.noisy_linear_cosine_decay(0.1, step, 20, initial_variance=0.0),
        ]

    wanted = [*wanted, wanted[3]]  # without variance there is no noise
    np.testing.assert_allclose([rate() for rate in rates(step)], wanted, rtol=1e-4)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = rates(tf.compat.v1.placeholder_with_default(step, []))
        np.testing.assert_allclose(session.run(made), wanted, rtol=1e-4)
        names = [made[i].op.name for i in (0, 3, 5)]
        assert names == ["SGDRDecay", "LinearCosineDecay", "NoisyLinearCosineDecay"]


def test_noise_falls_with_the_step():
    noisy = tf.compat.v1.train.noisy_linear_cosine_decay
    spreads = [
        np.std([float(noisy(1.0, step, 10**6)()) for _ in range(200)])
        for step in (0, 1000)
    ]
    assert spreads[0] > 3 * spreads[1] > 0
