"""Variables whose first value follows from what a trace computes."""

import pytest

import headrace as tf


def _calls(make, after):
    """What three calls of a function give that makes a variable in its first trace."""
    box = []

    @tf.function
    def f(x):
        if not box:
            box.append(make(x))
        return after(box[0], x)

    return [float(f(tf.constant(x))) for x in (2.0, 3.0, 5.0)]


def test_first_values_from_arguments():
    assert _calls(lambda x: tf.Variable(x * 2), lambda v, x: v.assign_add(x)) == [
        6.0,
        9.0,
        14.0,
    ]
    given = lambda x: tf.Variable(lambda: x * 3)
    assert _calls(given, lambda v, x: v * x) == [12.0, 18.0, 30.0]
    other = lambda x: tf.Variable(tf.Variable(x) * 2)
    assert _calls(other, lambda v, x: v + x) == [6.0, 7.0, 9.0]


def test_what_a_first_value_follows_from_happens_once_and_in_its_place():
    count = tf.Variable(10.0)

    def make(x):
        return tf.Variable(count.assign_add(1.0) * x)

    assert _calls(make, lambda v, x: v + 0.0) == [22.0, 22.0, 22.0]
    assert float(count) == 11.0

    seen = []
    made = lambda x: tf.Variable(
        tf.py_function(lambda z: seen.append(float(z)) or z, [x], tf.float32)
        * tf.ones_like(x)
    )
    _calls(made, lambda v, x: v + 0.0)
    assert seen == [2.0]

    generator, same = (tf.random.Generator.from_seed(1) for _ in range(2))
    drawn = _calls(lambda x: tf.Variable(generator.uniform([])), lambda v, x: v + 0.0)
    assert drawn == [float(same.uniform([]))] * 3
    assert generator.state.numpy().tolist() == same.state.numpy().tolist()


def test_effects_in_front_of_a_first_value_are_seen_by_it():
    count = tf.Variable(0.0)

    def make(x):
        count.assign(x)
        return tf.Variable(count.read_value())

    assert _calls(make, lambda v, x: v + 0.0) == [2.0, 2.0, 2.0]


def test_gradients_of_the_first_call():
    box = []

    @tf.function
    def f(x):
        if not box:
            box.append(tf.Variable(x * 2))
        return box[0] * x

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(y) == 18.0
    assert float(tape.gradient(y, box[0])) == 3.0


def test_with_input_signature():
    box = []

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def f(x):
        if not box:
            box.append(tf.Variable(x * 2))
        return box[0] + x

    assert [float(f(1.0)), float(f(5.0))] == [3.0, 7.0]


def test_traces_that_no_call_is_for():
    box = []

    @tf.function
    def f():
        if not box:
            box.append(tf.Variable(tf.ones([2]) * 3))
        return box[0] + 0.0

    assert f.get_concrete_function()().numpy().tolist() == [3.0, 3.0]

    inner_box = []

    @tf.function
    def inner():
        if not inner_box:
            inner_box.append(tf.Variable(tf.ones([]) * 3))
        return inner_box[0].assign_add(1.0)

    outer = tf.function(lambda: inner() + 0.0)
    assert [float(outer()), float(outer())] == [4.0, 5.0]

    @tf.function
    def taking(x):
        if len(box) < 2:
            box.append(tf.Variable(x * 2))
        return box[1] + x

    with pytest.raises(ValueError, match="init_scope"):
        taking.get_concrete_function(tf.TensorSpec([], tf.float32))
