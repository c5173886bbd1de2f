"""Conditions of one element in any shape, also one that only the run knows. Results are
TensorFlow's."""

import pytest

import headrace as tf


def shapes(value):
    rank = value.shape.rank
    return [value.shape, tf.TensorShape(None), tf.TensorShape([None] * rank)]


def branch(p):
    return tf.cond(p, lambda: tf.constant(1), lambda: tf.constant(0))


def converted(p):
    found = 0
    if p:
        found = tf.constant(1)
    return found


def leaves(p):
    count = tf.constant(0)
    for _ in tf.range(3):
        count += 1
        if p:
            break
    return 3 - count


def loop(p):
    count = tf.constant(0)
    while p:
        count += 1
        p = tf.zeros_like(p)
    return count


@pytest.mark.parametrize("function", [branch, converted, leaves, loop])
@pytest.mark.parametrize("value", [[[False]], [[True]], [True], [False], True, False])
def test_the_element_decides(function, value):
    value = tf.constant(value)
    holds = bool(tf.reduce_all(value))
    expected = (2 if holds else 0) if function is leaves else int(holds)
    for shape in shapes(value):
        spec = tf.TensorSpec(shape, tf.bool)
        traced = tf.function(function, input_signature=[spec])
        assert int(traced(value)) == expected, shape


@pytest.mark.parametrize("value", [[False, True], [False, False], []])
def test_several_elements_or_none_are_no_condition(value):
    value = tf.constant(value, tf.bool)
    for function in (branch, converted, leaves):
        for shape in shapes(value)[1:]:
            spec = tf.TensorSpec(shape, tf.bool)
            traced = tf.function(function, input_signature=[spec])
            with pytest.raises(tf.errors.InvalidArgumentError):
                traced(value)


def test_a_decoder_stops_where_its_token_says_so():
    table = tf.reshape(tf.range(80.0), (20, 4))

    @tf.function
    def decode(last):
        tokens = tf.TensorArray(tf.int64, 0, dynamic_size=True).write(0, [1])
        for i in tf.range(5):
            q = tf.gather(table, tf.transpose(tokens.stack()))[:, -1:, :]
            q = tf.argmax(q, axis=-1)
            tokens = tokens.write(i + 1, q[0])
            if q == last:
                break
        return tf.transpose(tokens.stack())

    last = tf.constant(2, tf.int64)
    assert decode(last).numpy().tolist() == [[1, 3, 3, 3, 3, 3]]
    assert decode(last + 1).numpy().tolist() == [[1, 3]]
