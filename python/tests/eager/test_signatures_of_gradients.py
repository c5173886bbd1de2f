"""What inspect tells of functions with gradients of their own: the parameters of what they
were made of. Expected: TensorFlow 2.21."""

import copy
import inspect

import headrace as tf
import pytest


@tf.custom_gradient
def _tripled(x, *, k=1):
    return x * k, lambda dy: dy * 3.0


def test_functions_with_a_gradient_of_their_own():
    assert str(inspect.signature(_tripled)) == "(x, *, k=1)"
    spec = inspect.getfullargspec(_tripled)
    assert (spec.args, spec.kwonlyargs, spec.kwonlydefaults) == (["x"], ["k"], {"k": 1})
    with pytest.raises(AttributeError, match="'Bind' object has no attribute 'nosuch'"):
        _ = _tripled.nosuch
    assert copy.copy(_tripled).__name__ == "_tripled"


def test_functions_that_are_computed_again():
    again = tf.recompute_grad(lambda a, b=2: a * b)
    assert str(inspect.signature(again)) == "(a, b=2)"
    spec = inspect.getfullargspec(again)
    assert (spec.args, spec.defaults) == (["a", "b"], (2,))


def test_gradients_of_what_is_computed_again_twice():
    square = tf.recompute_grad(tf.recompute_grad(lambda x: x * x))
    for function, expected in ((square, 6.0), (tf.recompute_grad(_tripled), 3.0)):
        x = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = function(x)
        assert float(tape.gradient(y, x)) == expected


def test_builtins_have_none():
    wrapped = tf.custom_gradient(min)
    with pytest.raises(ValueError, match="signature"):
        inspect.signature(wrapped)
