"""tf.debugging.enable_check_numerics."""

import threading

import numpy as np
import pytest

import headrace as tf

X = [0.0, 1.0, -1.0]


@pytest.fixture
def checks():
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


def test_error_of_an_op_that_runs(checks):
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        tf.math.log(tf.constant(X))
    assert str(e.value).startswith(
        """

!!! Detected Infinity or NaN in output 0 of eagerly-executing op "Log" (# of outputs: 1) !!!
  dtype: <dtype: 'float32'>
  shape: (3,)
  # of -Inf elements: 1
  # of +NaN elements: 1

  Input tensor: tf.Tensor([ 0.  1. -1.], shape=(3,), dtype=float32)

 : Tensor had -Inf and NaN values [Op:CheckNumericsV2]"""
    )
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        tf.constant(1.0) / tf.constant(X)
    assert """
  # of +Inf elements: 1

  Input tensors (2):
         0: tf.Tensor(1.0, shape=(), dtype=float32)
         1: tf.Tensor([ 0.  1. -1.], shape=(3,), dtype=float32)

 : Tensor had +Inf values""" in str(e.value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floating_dtypes(checks, dtype):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"dtype: .*'{dtype}'"):
        tf.math.log(tf.constant([0.0], dtype))
    assert tf.math.log(tf.constant([2.0], dtype)).dtype == dtype


def test_complex_numbers_are_not_looked_at(checks):
    assert not np.isfinite(tf.math.log(tf.constant([0j])).numpy()).any()


@pytest.mark.parametrize(
    "move",
    [
        tf.identity,
        tf.transpose,
        tf.unstack,
        lambda x: tf.reshape(x, [4]),
        lambda x: tf.concat([x, x], 0),
        lambda x: tf.expand_dims(x[0], 0),
        lambda x: tf.minimum(x, tf.fill([2, 2], np.float32(np.inf))),
    ],
)
def test_ops_that_only_hand_numbers_on(checks, move):
    move(tf.constant([[np.inf, 1.0], [2.0, np.nan]]))


def test_traced_functions(checks):
    @tf.function
    def f(a):
        return tf.math.log(a * 2)

    assert np.isfinite(f(tf.constant([1.0])).numpy()).all()
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        f(tf.constant(X))
    text = str(e.value)
    for line in (
        '!!! Detected Infinity or NaN in output 0 of graph op "Log" (# of outputs: 1) !!!',
        "  Input tensor: Tensor(",
        '  Graph name: "f"',
        '  Stack trace of op\'s creation ("->": inferred user code):',
        " -> |   return tf.math.log(a * 2)",
        " : Tensor had -Inf and NaN values",
    ):
        assert line in text
    tf.debugging.disable_check_numerics()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Detected Infinity"):
        f(tf.constant(X))  # a trace keeps its checks


def test_functions_that_were_traced_before():
    f = tf.function(tf.math.log)
    f(tf.constant(X))
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match='op "__inference_'):
            f(tf.constant(X))
    finally:
        tf.debugging.disable_check_numerics()
    assert np.isnan(f(tf.constant(X)).numpy()).any()


def test_gradients(checks):
    x = tf.constant([0.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sqrt(x)
    with pytest.raises(tf.errors.InvalidArgumentError, match='op "SqrtGrad"'):
        tape.gradient(y, x)

    @tf.function
    def f(x):
        return tf.gradients(tf.sqrt(x), x)

    assert f(tf.constant([4.0]))[0].numpy().tolist() == [0.25]
    with pytest.raises(tf.errors.InvalidArgumentError, match='op "SqrtGrad"'):
        f(x)


def test_sessions(checks):
    with tf.Graph().as_default() as graph:
        p = tf.compat.v1.placeholder(tf.float32, [3])
        y = tf.math.log(p)
        assert y.name == "Log/CheckNumericsV2:0"
        with tf.compat.v1.Session() as session:
            assert session.run(y, {p: [1.0, 1.0, 1.0]}).tolist() == [0.0] * 3
            with pytest.raises(tf.errors.InvalidArgumentError, match='graph op "Log"'):
                session.run(y, {p: X})
    assert graph.get_operation_by_name("Log").type == "Log"


def test_training_goes_on_as_without(checks):
    layer = tf.keras.layers.Dense(2)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(layer(x) ** 2)
        gradients = tape.gradient(loss, layer.trainable_variables)
        for v, g in zip(layer.trainable_variables, gradients):
            v.assign_sub(0.1 * g)
        return loss

    losses = [float(step(tf.ones([3, 4]))) for _ in range(3)]
    assert losses == sorted(losses, reverse=True)


def test_limits_and_switches_are_of_one_thread():
    tf.debugging.enable_check_numerics(stack_height_limit=1, path_length_limit=8)
    try:
        with tf.Graph().as_default() as graph:
            tf.math.log(tf.constant([1.0]))
        message = graph.get_operation_by_name("Log/CheckNumericsV2").get_attr("message")
        lines = message.decode().splitlines()
        assert len([x for x in lines if x.startswith("    + ")]) == 1
        assert any(x.startswith("    + ...hecks.py (L") for x in lines)
        found = []
        other = threading.Thread(
            target=lambda: found.append(tf.math.log(tf.constant(0.0)).numpy())
        )
        other.start()
        other.join()
        assert np.isinf(found[0])
    finally:
        tf.debugging.disable_check_numerics()
        tf.debugging.enable_check_numerics(30, 50)
        tf.debugging.disable_check_numerics()
    assert np.isinf(tf.math.log(tf.constant(0.0)).numpy())
