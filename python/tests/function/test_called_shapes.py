"""What a trace knows of the results of the functions that it calls."""

import headrace as tf
import pytest

ANY = tf.TensorSpec(None, tf.float32)


def shapes_of(function, *specs):
    """The shapes of what `function` gives, as the trace for the specs knows them."""
    concrete = tf.function(function).get_concrete_function(*specs)
    return [
        t.shape.as_list() if t.shape.rank is not None else None
        for t in concrete.outputs
    ]


@pytest.fixture
def any_shape():
    return tf.function(lambda x: tf.concat([x, x], -1) * 2.0, input_signature=[ANY])


def test_shapes_of_the_call(any_shape):
    assert shapes_of(lambda x: any_shape(x), tf.TensorSpec([2, 3])) == [[2, 6]]
    assert shapes_of(lambda x: any_shape(x), tf.TensorSpec([None, 3])) == [[None, 6]]
    assert shapes_of(lambda x: any_shape(x), ANY) == [None]


def test_functions_that_call_functions(any_shape):
    outer = tf.function(lambda x: any_shape(x) + 1.0, input_signature=[ANY])
    assert shapes_of(lambda x: outer(x), tf.TensorSpec([4, 1])) == [[4, 2]]


def test_values_of_the_call():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def filled(dims):
        return tf.zeros(dims), tf.zeros(tf.concat([dims, [7]], 0))

    def constant():
        return filled(tf.constant([3, 5]))

    assert shapes_of(constant) == [[3, 5], [3, 5, 7]]

    def pieces(x):
        return filled(tf.stack([tf.shape(x)[0], 2]))[0]

    assert shapes_of(pieces, tf.TensorSpec([6, None])) == [[6, 2]]


def test_what_the_trace_was_told_stays():
    @tf.function(input_signature=[ANY])
    def told(x):
        y = tf.where(x > 0.0)
        y.set_shape([None, 2])
        return tf.cast(y, tf.float32) + tf.zeros([1, 2])

    assert shapes_of(lambda x: told(x), tf.TensorSpec([3, 3])) == [[None, 2]]


def test_concrete_functions_in_other_traces(any_shape):
    concrete = any_shape.get_concrete_function()
    assert shapes_of(lambda x: concrete(x), tf.TensorSpec([2, 3])) == [[2, 6]]
    assert concrete.outputs[0].shape.rank is None


def test_functions_that_call_themselves():
    @tf.function(input_signature=[ANY, tf.TensorSpec([], tf.int32)])
    def halved(x, turns):
        return tf.cond(turns > 0, lambda: x * 0.5, lambda: x)

    assert shapes_of(lambda x: halved(x, 3), tf.TensorSpec([2])) in ([[2]], [None])
    assert float(halved(tf.constant(8.0), 2)) == 4.0


def test_values_are_those_of_the_shapes(any_shape):
    @tf.function
    def caller(x):
        y = any_shape(x)
        assert y.shape == [2, 4]
        return tf.reshape(y, [y.shape[0] * y.shape[1]])

    assert caller(tf.ones([2, 2])).numpy().tolist() == [2.0] * 8
