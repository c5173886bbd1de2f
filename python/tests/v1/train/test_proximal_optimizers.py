"""Optimizers with penalties; the numbers are TensorFlow 2.21's."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1
train = v1.train
CASES = {
    "adagrad": (
        lambda step: train.ProximalAdagradOptimizer(
            0.5, l1_regularization_strength=0.1, l2_regularization_strength=0.2
        ),
        [0.09660438, -0.8941367, 1.8371184],
        [[1.0, 2.0], [1.885816, 2.8622923]],
    ),
    "descent": (
        lambda step: train.ProximalGradientDescentOptimizer(0.5, 0.1, 0.2),
        [0.0, 0.0, 0.0],
        [[1.0, 2.0], [-2.129602, -2.8809166]],
    ),
    "averaging": (
        lambda step: train.AdagradDAOptimizer(
            0.5, step, l1_regularization_strength=0.01
        ),
        [-0.11860643, 0.26848358, -0.33805966],
        [[1.0, 2.0], [-0.33925986, -0.3772342]],
    ),
}


@pytest.mark.parametrize("use_resource", [True, False])
@pytest.mark.parametrize("case", list(CASES))
def test_three_steps(case, use_resource):
    make, expected, sparse = CASES[case]
    with tf.Graph().as_default(), v1.Session() as session:
        step = train.create_global_step()
        v, w = (
            v1.get_variable(name, initializer=value, use_resource=use_resource)
            for name, value in (
                ("v", [1.0, -2.0, 3.0]),
                ("w", [[1.0, 2.0], [3.0, 4.0]]),
            )
        )
        loss = tf.reduce_sum(v * v) + tf.reduce_sum(tf.gather(w, [1, 1]) ** 2)
        minimize = make(step).minimize(loss, global_step=step)
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(minimize)
        np.testing.assert_allclose(session.run(v), expected, 1e-5, 1e-6)
        np.testing.assert_allclose(session.run(w), sparse, 1e-5)


def test_refusals():
    for make in (train.ProximalAdagradOptimizer, train.AdagradDAOptimizer):
        argument = 0.0 if make is train.ProximalAdagradOptimizer else 1
        with pytest.raises(ValueError, match="must be positive: 0.0"):
            make(0.1, argument, *([0.0] if argument else []))
