"""What tracing says of shapes and types that do not fit, as TensorFlow says it."""

import json
import pathlib

import pytest

import traced_error_cases

import headrace as tf


_GOLDEN = pathlib.Path(__file__).parents[3] / "tests/golden/errors/traced.json"
_ROWS = json.loads(_GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("expression", _ROWS)
def test_error(expression):
    expected = _ROWS[expression]
    assert traced_error_cases.error_of(tf, expression) == expected


@pytest.mark.parametrize(
    "x, y, product",
    [
        (tf.constant([True, False]), tf.constant([True, True]), [True, False]),
        (tf.constant([3, 0]), tf.constant([True, True]), [True, False]),
        (tf.constant([True, True]), 0.0, [False, False]),
    ],
)
def test_products_of_booleans(x, y, product):
    assert (x * y).dtype == tf.bool
    assert (x * y).numpy().tolist() == product


def test_the_right_side_must_be_of_the_left_ones_type():
    with pytest.raises(TypeError, match="Cannot convert 1.5 to EagerTensor of dtype"):
        tf.constant(1) * 1.5
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot compute AddV2"):
        tf.constant(1) + 1.5


def test_zeros_in_graphs_are_named_constants():
    with tf.Graph().as_default():
        assert tf.zeros([2]).op.type == "Const"
        assert tf.zeros([2]).name == "zeros_1:0"
        assert tf.ones([2000]).op.type == "Fill"


def test_grids_in_functions():
    @tf.function(autograph=False)
    def grid(x, y):
        return tf.meshgrid(x, y)

    a, b = grid(tf.constant([1, 2]), tf.constant([3, 4, 5]))
    assert a.numpy().tolist() == [[1, 2]] * 3
    assert b.numpy().tolist() == [[3, 3], [4, 4], [5, 5]]


def test_symbolic_tensors_are_told_apart():
    with tf.Graph().as_default():
        assert tf.is_symbolic_tensor(tf.constant(1))
    assert not tf.is_symbolic_tensor(tf.constant(1))
    assert not tf.is_symbolic_tensor(1)


def test_binding_errors_do_not_show_defaults():
    f = tf.function(lambda x, y=2: x, autograph=False)
    with pytest.raises(TypeError, match=r"\(x, y=<captured_default_value>\)"):
        f()


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x if x > 0 else -x,
        lambda x: [v for v in tf.range(x)],
        lambda x: not x,
        lambda x: tf.range(4)[0] in [x],
    ],
    ids=["if", "for", "not", "in"],
)
def test_where_a_value_is_wanted_the_error_says_what_to_write(use):
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError) as caught:
        tf.function(use, autograph=False)(tf.constant(3))
    text = str(caught.value)
    assert "If you are using AutoGraph, you can try decorating" in text
