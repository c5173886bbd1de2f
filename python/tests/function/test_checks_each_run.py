"""Checks of numbers look at each run's values, also where nobody reads what they
hand on and where the plan knows all shapes."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


def _behind(x):
    y = tf.math.log(x)
    with tf.control_dependencies([tf.debugging.check_numerics(y, "seen")]):
        return tf.identity(x)


def _within(x):
    return tf.debugging.check_numerics(tf.math.log(x), "seen") + 1.0


def _viewed(x):
    checked = tf.debugging.check_numerics(tf.reshape(tf.math.log(x), [1, 2]), "seen")
    return tf.reshape(checked, [2]) * 2.0


def _newer(x):
    log = tf.math.log(x)
    return tf.raw_ops.CheckNumericsV2(tensor=log, message="seen") + 1.0


def _halves(x):
    parts = tf.split(tf.cast(tf.math.log(x), tf.float16), 2)
    checks = [tf.debugging.check_numerics(part, "seen") for part in parts]
    with tf.control_dependencies(checks):
        return tf.identity(x)


_RUNS = [
    ([1.0, 2.0], True),
    ([-1.0, 2.0], False),
    ([3.0, 1.0], True),
    ([1.0, 0.0], False),
]


@pytest.mark.parametrize("body", [_behind, _within, _viewed, _newer, _halves])
def test_each_run_is_checked(body):
    traced = tf.function(body, autograph=False)
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2])
        y = body(x)
    session = v1.Session(graph=graph)
    in_session = session.make_callable(y, [x])
    for value, fine in _RUNS * 2:
        for run in (lambda v: traced(tf.constant(v)), in_session):
            if fine:
                assert np.isfinite(np.asarray(run(value))).all()
                continue
            with pytest.raises(tf.errors.InvalidArgumentError, match="seen : Tens"):
                run(value)
