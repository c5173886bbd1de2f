"""Recurrent cells in one op: what TensorFlow gave, refusals, gradients."""

import headrace as tf
import lstm_cases
import numpy as np
import pytest
import recorded
from lstm_cases import BATCH, CELLS, INPUTS, STEPS

R = tf.raw_ops


@pytest.mark.parametrize("name", recorded.names(lstm_cases))
def test_as_recorded(name):
    half = "half" in name
    tolerance = 2e-2 if half else 2e-5
    recorded.check(lstm_cases, name, tf, rtol=tolerance, atol=tolerance)


def sequence(steps=STEPS, op=R.BlockLSTM, **changed):
    given = {**lstm_cases.inputs(tf, "float32", STEPS), **changed}
    return op(seq_len_max=tf.constant(steps, tf.int64), **given)


def cell(**changed):
    return R.LSTMBlockCell(**{**lstm_cases.inputs(tf, "float32"), **changed})


REFUSED = {
    "too many steps": lambda: sequence(STEPS + 1),
    "steps below zero": lambda: sequence(-1),
    "steps in a vector": lambda: sequence([1]),
    "bias": lambda: sequence(b=tf.zeros([4 * CELLS - 1])),
    "weights": lambda: sequence(w=tf.zeros([INPUTS + CELLS, CELLS])),
    "rows of weights": lambda: sequence(w=tf.zeros([INPUTS, 4 * CELLS])),
    "batch": lambda: sequence(cs_prev=tf.zeros([BATCH + 1, CELLS])),
    "peephole": lambda: sequence(wci=tf.zeros([CELLS + 1])),
    "rank": lambda: sequence(x=tf.zeros([BATCH, INPUTS])),
    "a cell's rank": lambda: cell(x=tf.zeros([STEPS, BATCH, INPUTS])),
    "a cell's state": lambda: cell(h_prev=tf.zeros([BATCH, CELLS + 1])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises(tf.errors.InvalidArgumentError):
        REFUSED[name]()


@pytest.mark.parametrize("op", [R.BlockLSTM, R.BlockLSTMV2])
def test_steps_that_do_not_count_are_zero(op):
    given = lstm_cases.inputs(tf, "float32", STEPS)
    with tf.GradientTape() as tape:
        tape.watch(given["x"])
        made = sequence(2, op, **given)
    assert all(not np.any(v.numpy()[2:]) for v in made)
    gradient = tape.gradient(made.h, given["x"])
    assert not np.any(gradient.numpy()[2:])
    assert np.all(gradient.numpy()[:2])


@pytest.mark.parametrize("op", [R.BlockLSTM, R.BlockLSTMV2])
@pytest.mark.parametrize("name", lstm_cases.NAMES)
def test_gradients_are_slopes(op, name):
    given = lstm_cases.inputs(tf, "float32", STEPS)

    def loss(value):
        made = sequence(4, op, **{**given, name: value}, use_peephole=True)
        return tf.reduce_sum(tf.sin(made.h)) + tf.reduce_sum(made.cs[3] ** 2)

    with tf.GradientTape() as tape:
        tape.watch(given[name])
        value = loss(given[name])
    gradient = tape.gradient(value, given[name]).numpy()
    way = np.cos(np.arange(gradient.size)).reshape(gradient.shape)
    step = np.float32(3e-3 * way)
    slope = (loss(given[name] + step) - loss(given[name] - step)) / 6e-3
    np.testing.assert_allclose(np.sum(gradient * way), slope, rtol=5e-3, atol=5e-3)


def test_empty():
    none = {n: tf.zeros([0, CELLS]) for n in ("cs_prev", "h_prev")}
    made = sequence(x=tf.zeros([STEPS, 0, INPUTS]), **none)
    assert made.h.shape == [STEPS, 0, CELLS]


def test_shapes_of_a_trace():
    given = lstm_cases.inputs(tf, "float32", STEPS)
    given["seq_len_max"] = tf.constant(STEPS, tf.int64)
    specs = {n: tf.TensorSpec([None] * v.shape.rank, v.dtype) for n, v in given.items()}
    for known, shape in ((given, [STEPS, BATCH, CELLS]), (specs, [None] * 3)):
        concrete = tf.function(lambda **k: R.BlockLSTM(**k).h).get_concrete_function(
            **known
        )
        assert concrete.outputs[0].shape.as_list() == shape
        np.testing.assert_array_equal(concrete(**given), sequence().h)
