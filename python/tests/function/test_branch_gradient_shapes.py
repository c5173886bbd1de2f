"""Static shapes of gradients through branches, in functions and in graphs."""

import headrace as tf
import pytest

v1 = tf.compat.v1


def _positive(x):
    return tf.reduce_sum(x) > 0


def _cond(x, true, false):
    return tf.cond(_positive(x), true, false)


_ROWS = [
    ("differ in a size", lambda x: _cond(x, lambda: x[:1], lambda: x), [[2, 3]]),
    ("differ in rank", lambda x: _cond(x, lambda: x[0], lambda: x), [[2, 3]]),
    ("know one size", lambda x: _cond(x, lambda: x * 2.0, lambda: x), [[None, 3]]),
    ("know nothing", lambda x: _cond(x, lambda: x * 2.0, lambda: x), [None]),
    ("read one each", lambda x, y: _cond(x, lambda: x, lambda: y), [[2, 3], [2, 3]]),
    (
        "reshape",
        lambda x: _cond(x, lambda: tf.reshape(x, [6]), lambda: tf.reshape(x, [-1])),
        [[2, 3]],
    ),
    (
        "lie in branches",
        lambda x: _cond(x, lambda: _cond(x[:1], lambda: x, lambda: -x), lambda: x * x),
        [[2, 3]],
    ),
    (
        "hold a loop",
        lambda x: _cond(
            x,
            lambda: tf.while_loop(
                lambda i, a: i < 3, lambda i, a: (i + 1, a * a), [0, x]
            )[1],
            lambda: x,
        ),
        [[2, 3]],
    ),
    (
        "lie in a loop",
        lambda x: tf.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, _cond(a, lambda: a * a, lambda: a)),
            [0, x],
        )[1],
        [[2, 3]],
    ),
    (
        "are a case",
        lambda x, y: tf.case(
            [
                (_positive(x), lambda: x @ y),
                (_positive(y), lambda: tf.zeros([2, 4])),
            ],
            default=lambda: x @ y * 2.0,
        ),
        [[None, 3], [3, None]],
    ),
    (
        "exclude each other",
        lambda x: tf.case(
            [(_positive(x), lambda: x), (_positive(-x), lambda: x * 3.0)],
            default=lambda: -x,
            exclusive=True,
        ),
        [[5]],
    ),
    (
        "are chosen by number",
        lambda x: tf.switch_case(
            tf.cast(tf.reduce_sum(x), tf.int32),
            {0: lambda: x, 1: lambda: x * 2.0},
            default=lambda: x[::-1],
        ),
        [[2, 3]],
    ),
    (
        "may be constant",
        lambda x: tf.switch_case(
            tf.cast(tf.reduce_sum(x), tf.int32),
            [lambda: x, lambda: x * 2.0, lambda: tf.ones([2, 3])],
        ),
        [[2, 3]],
    ),
]


def _as_list(shape):
    return None if shape.rank is None else shape.as_list()


@pytest.mark.parametrize(
    "function, shapes", [r[1:] for r in _ROWS], ids=[r[0] for r in _ROWS]
)
def test_the_gradient_has_the_shape_of_what_it_is_for(function, shapes):
    specs = [tf.TensorSpec(s, tf.float32) for s in shapes]
    told = []

    @tf.function(autograph=False, input_signature=specs)
    def traced(*args):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(args)
            with tf.GradientTape() as tape:
                tape.watch(args)
                y = function(*args)
            first = tape.gradient(y, list(args), unconnected_gradients="zero")
        second = outer.gradient(first, list(args), unconnected_gradients="zero")
        told.extend(_as_list(g.shape) for g in [*first, *second])
        return first

    outputs = traced.get_concrete_function().output_shapes
    assert told == shapes * 2
    assert [_as_list(s) for s in outputs] == shapes
    with tf.Graph().as_default():
        args = [v1.placeholder(tf.float32, s) for s in shapes]
        gradients = tf.gradients(function(*args), args)
        assert [_as_list(g.shape) for g in gradients] == shapes
