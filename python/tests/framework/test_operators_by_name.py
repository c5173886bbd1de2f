"""Operators that programs take from tf.Tensor itself, for classes of their own."""

import pytest

import headrace as tf


def test_the_operators_have_names():
    names = tf.Tensor.OVERLOADABLE_OPERATORS
    assert len(names) == 34
    assert {"__add__", "__rdiv__", "__getitem__", "__invert__", "__rxor__"} <= names
    assert "__iter__" not in names
    assert all(callable(getattr(tf.Tensor, name)) for name in names)


def test_division_by_its_old_name():
    t = tf.constant([7.0, -7.0])
    assert t.__div__(2.0).numpy().tolist() == [3.5, -3.5]
    assert t.__rdiv__(14.0).numpy().tolist() == [2.0, -2.0]
    assert tf.constant(7).__div__(2).numpy() == 3
    assert tf.constant([7]).__rdiv__(9).numpy().tolist() == [1]

    v = tf.Variable([7.0, 8.0])
    assert v.__div__(2.0).numpy().tolist() == [3.5, 4.0]
    assert v.__rdiv__(14.0).numpy().tolist() == [2.0, 1.75]
    rows = tf.ragged.constant([[7, 8], [9]])
    assert rows.__div__(2).to_list() == [[3, 4], [4]]
    assert rows.__rdiv__(63).to_list() == [[9, 7], [7]]


def test_the_class_itself_is_asked():
    rows = list(tf.Tensor.__iter__(tf.constant([1.0, 2.0])))
    assert [r.numpy() for r in rows] == [1.0, 2.0]
    with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
        tf.Tensor.__iter__(tf.constant(3.0))
    for name in ("__bool__", "__nonzero__"):
        with pytest.raises(
            tf.errors.OperatorNotAllowedInGraphError, match="as a Python `bool`"
        ):
            getattr(tf.Tensor, name)(tf.constant(1.0))
    assert bool(tf.constant(1.0)) and len(tf.constant([1, 2])) == 2


@tf.function(autograph=False)
def _ask(name, x):
    getattr(tf.Tensor, name)(x)


@pytest.mark.parametrize(
    "name, error, text",
    [
        ("__len__", TypeError, "len is not well defined for a symbolic Tensor"),
        ("__array__", NotImplementedError, "Cannot convert a symbolic tf.Tensor"),
        ("__iter__", TypeError, "Iterating over a symbolic `tf.Tensor`"),
    ],
)
def test_tensors_of_graphs_refuse_by_the_class(name, error, text):
    with pytest.raises(error, match=text):
        _ask(name, tf.constant([1.0]))
