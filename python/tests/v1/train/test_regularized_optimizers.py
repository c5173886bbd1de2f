"""The optimizers with penalties of tf.compat.v1.train, with values of TensorFlow 2.21
after three steps over a vector and rows 0, 2, 0 of a matrix."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
KEPT = {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02}
CASES = {
    "proximal": (
        lambda step: v1.train.ProximalAdagradOptimizer(3.0, 0.1, **KEPT),
        [-0.22750929, -0.0999474],
        [[0.0, 0.07135786], [5.0, 6.0], [1.5948079, 2.3605177]],
        ["accumulator"],
        ["a/ProximalAdagrad:0", "b/ProximalAdagrad:0"],
    ),
    "descent": (
        lambda step: v1.train.ProximalGradientDescentOptimizer(0.1, **KEPT),
        [0.50650936, 1.0154495],
        [[0.642174, 0.8568832], [5.0, 6.0], [3.560151, 4.069092]],
        [],
        [],
    ),
    "averaged": (
        lambda step: v1.train.AdagradDAOptimizer(3.0, step, 0.1, **KEPT),
        [0.04409873, 0.12371848],
        [[-1.03635e-03, -0.23868376], [5.0, 6.0], [-0.92898577, -1.1081856]],
        ["gradient_accumulator", "gradient_squared_accumulator"],
        ["a/AdagradDA:0", "a/AdagradDA_1:0", "b/AdagradDA:0", "b/AdagradDA_1:0"],
    ),
}


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("case", list(CASES))
def test_three_steps(case, resource):
    make, a_then, b_then, slots, names = CASES[case]
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.get_or_create_global_step()
        a = v1.get_variable("a", initializer=[1.0, 2.0], use_resource=resource)
        b = v1.get_variable(
            "b", initializer=[[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], use_resource=resource
        )
        loss = tf.reduce_sum(a * a) + tf.reduce_sum(tf.gather(b, [0, 2, 0]) ** 2)
        optimizer = make(step)
        train = optimizer.minimize(loss, global_step=step)
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        np.testing.assert_allclose(session.run(a), a_then, rtol=1e-5)
        np.testing.assert_allclose(session.run(b), b_then, rtol=1e-4, atol=1e-6)
        assert optimizer.get_slot_names() == slots
        assert sorted(v.name for v in optimizer.variables()) == names


def test_what_they_begin_with_is_positive():
    with pytest.raises(ValueError, match="initial_accumulator_value must be positive"):
        v1.train.ProximalAdagradOptimizer(1.0, initial_accumulator_value=0.0)
    for value in (-1, 0.0):
        with pytest.raises(ValueError, match=f"must be positive: {value}"):
            v1.train.AdagradDAOptimizer(1.0, None, value)
