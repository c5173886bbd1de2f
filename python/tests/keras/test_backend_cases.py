"""tf.keras.backend's convolutions, normalization, loops and functions of tensors."""

import json
import pathlib

import backend_cases as cases
import headrace as tf
import numpy as np
import pytest

K = tf.keras.backend
GOLDEN = pathlib.Path(__file__).parents[3] / "tests/golden/keras/backend.json"
WANTED = json.loads(GOLDEN.read_text())


def check(found, wanted):
    if isinstance(found, (list, tuple)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted):
            check(one, other)
    else:
        np.testing.assert_allclose(found.numpy(), wanted, atol=2e-5)


@pytest.mark.parametrize("name", list(cases.windows(tf)))
def test_windows(name):
    check(cases.windows(tf)[name](), WANTED[name])


@pytest.mark.parametrize("name", list(cases.loops(tf)))
def test_loops(name):
    call, sequence = cases.loops(tf)[name], tf.constant(cases.SEQUENCE)
    check(call(sequence), WANTED[f"rnn_{name}"])
    if name == "unroll":
        return
    spec = tf.TensorSpec([2, None, 2])
    check(tf.function(call, input_signature=[spec])(sequence), WANTED[f"rnn_{name}"])


def test_wrong_arguments():
    x, kernel = tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1])
    for call, words in (
        (lambda: K.depthwise_conv2d(x, kernel, padding="x"), "Invalid padding: x"),
        (
            lambda: K.depthwise_conv2d(x, kernel, data_format="x"),
            "Unknown data_format: x",
        ),
        (lambda: K.resize_volumes(x, 1, 2, 1, "x"), "Invalid data_format: x"),
        (lambda: K.rnn(lambda x, s: (x, s), x[0, 0], []), "must have rank at least 3"),
        (lambda: K.placeholder(sparse=True, ragged=True), "Cannot set both sparse and"),
        (
            lambda: K.function([], [], updates=[1]),
            "`updates` argument is not supported",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="`strides` is a tuple"):
        K.depthwise_conv2d(x, kernel, strides=2)
    with pytest.raises(ValueError, match="Unrolling requires a fixed number of timest"):
        tf.function(
            lambda x: K.rnn(lambda x, s: (x, s), x, [], unroll=True)[0],
            input_signature=[tf.TensorSpec([2, None, 2])],
        )(cases.SEQUENCE)
    with pytest.raises(RuntimeError, match="tf.gradients is not supported when eager"):
        K.gradients(x, [x])


def test_phases():
    assert K.in_test_phase(1.0, 2.0, training=False) == 1.0
    assert K.in_test_phase(lambda: 1.0, lambda: 2.0, training=True) == 2.0
    with K.learning_phase_scope(1):
        assert K.learning_phase() == 1 and K.in_test_phase(1.0, 2.0) == 2.0
    assert K.learning_phase() == 0
    with pytest.raises(ValueError, match="Expected learning phase to be 0 or 1."):
        with K.learning_phase_scope(3):
            pass


def test_functions_of_models():
    x = tf.keras.Input((2,))
    found = K.function([x], [x * 2.0])([np.float32([[0, 1]])])
    assert isinstance(found, list) and found[0].tolist() == [[0, 2]]
    assert K.function([x], x * 2.0)([np.float32([[0, 1]])]).tolist() == [[0, 2]]
    named = K.function(x, {"y": x * 2.0})(np.float32([[0, 1]]))
    assert named["y"].tolist() == [[0, 2]]
    assert K.placeholder((2, 3), name="p").shape.as_list() == [2, 3]
    assert K.placeholder(ndim=2).shape.as_list() == [None, None]


def test_functions_of_graphs():
    with tf.Graph().as_default():
        x = K.placeholder((2,))
        gradients = K.gradients(tf.reduce_sum(x * x), [x])
        assert K.function([x], gradients)([[1.0, 2.0]])[0].tolist() == [2.0, 4.0]
    with tf.Graph().as_default():
        v, x = K.variable(1.0), K.placeholder(())
        step = K.function([x], [x * v], updates=[(v, v + x)])
        assert [step([2.0]), step([2.0])] == [[2.0], [6.0]]
        assert K.get_value(v) == 5.0
