"""Tensors of graphs used outside of them: which error it is."""

import headrace as tf
import pytest
from headrace.context import errors

TEXT = "is out of scope and cannot be used here"


def within(t, n):
    return t + n


def in_a_loop(t, n):
    for _ in tf.range(n):
        n += t
    return n


def in_a_branch(t, n):
    if n > 2:
        n = t
    return n


def in_a_function(t, n):
    return tf.function(lambda: t + n)()


def as_the_result(t, n):
    return t


@pytest.mark.parametrize(
    "use", [within, in_a_loop, in_a_branch, in_a_function, as_the_result]
)
def test_in_the_function_that_the_part_belongs_to(use):
    @tf.function
    def f(n):
        kept = []
        for i in tf.range(n):
            kept.append(i + 1)
        return use(kept[0], n)

    with pytest.raises(errors.InaccessibleTensorError, match=TEXT):
        f(tf.constant(3))


def leaked():
    """Tensors of a function, of a branch and of a loop."""
    kept = []

    @tf.function
    def f(n):
        kept.append(n + 1)
        if n > 2:
            kept.append(n + 1)
        for i in tf.range(n):
            kept.append(i)
        return n

    f(tf.constant(3))
    assert len(kept) == 3
    return f, kept


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t + 1,
        lambda t: tf.stack([t, 1]),
        lambda t: tf.function(lambda: t + 1)(),
        lambda t: tf.function(
            lambda n: tf.while_loop(lambda i: i < n, lambda i: i + t, [0])
        )(tf.constant(3)),
        lambda t: tf.function(lambda t: t + 1)(t),
        lambda t: tf.function(lambda d: d["a"] + 1)({"a": t}),
        lambda t: tf.function(lambda t: t + 1).get_concrete_function(tf.constant(1))(t),
    ],
)
def test_anywhere_else(use):
    _, tensors = leaked()
    for t in tensors:
        with pytest.raises(TypeError, match=TEXT):
            use(t)
