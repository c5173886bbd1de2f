"""Tensors: conversion, printing, operators, indexing, NumPy."""

import copy
import pickle

import numpy as np
import pytest

import headrace as tf


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"),
        (2**40, "int64"),
        (1.0, "float32"),
        (True, "bool"),
        ("a", "string"),
        (1j, "complex128"),
        ([1, 2.5], "float32"),
        ([np.float64(1)], "float64"),
        ([np.int64(1)], "int32"),
        ([np.float16(1), 2.5], "float16"),
        ([[], []], "float32"),
        (np.array([1, 2]), "int64"),
        (range(3), "int32"),
    ],
)
def test_inferred_dtype(value, dtype):
    assert tf.constant(value).dtype.name == dtype


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: tf.constant(2.5, tf.int32), TypeError, "Cannot convert 2.5 to Eager"),
        (lambda: tf.constant([[1, 2], [3]]), ValueError, "non-rectangular"),
        (lambda: tf.constant([True, 1]), ValueError, "mixed types"),
        (lambda: tf.constant(2**64), ValueError, "out-of-range"),
        (lambda: tf.constant(None), ValueError, "unsupported type"),
        (lambda: tf.constant({1}), ValueError, "unsupported type"),
        (lambda: tf.constant([1, 2, 3], shape=[2, 2]), TypeError, "3 elements"),
    ],
)
def test_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_printing():
    t = tf.constant([[1.0, 2.0]])
    assert str(t) == "tf.Tensor([[1. 2.]], shape=(1, 2), dtype=float32)"
    assert repr(t) == (
        "<tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[1., 2.]], dtype=float32)>"
    )
    assert f"{tf.constant(1.5):.2f}" == "1.50"


def test_numpy_round_trip():
    for dtype in [
        "float32",
        "int8",
        "bool",
        "complex64",
        "bfloat16",
        "float16",
        "uint64",
    ]:
        x = tf.cast(tf.constant([0, 1, 1]), dtype)
        again = tf.constant(x.numpy())
        assert again.dtype == x.dtype
        assert (again.numpy() == x.numpy()).all()
    view = np.asarray(tf.constant([1, 2]))
    assert not view.flags.writeable
    assert tf.constant([1, 2]).numpy().flags.writeable
    assert memoryview(tf.constant([1, 2])).format == "i"
    assert tf.constant(["a", "b"]).numpy().tolist() == [b"a", b"b"]


def test_view_outlives_tensor():
    view = np.asarray(tf.constant(np.arange(1000.0)))
    assert view.sum() == 499500


def test_operators():
    a = tf.constant([1, 2, 3])
    assert (a + 1).numpy().tolist() == [2, 3, 4]
    assert (10 - a).numpy().tolist() == [9, 8, 7]
    assert (a / 2).dtype == tf.float64
    assert (a // 2).numpy().tolist() == [0, 1, 1]
    assert (2**a).numpy().tolist() == [2, 4, 8]
    assert (-a).numpy().tolist() == [-1, -2, -3]
    assert (a == [1, 0, 3]).numpy().tolist() == [True, False, True]
    assert (a != None) is True  # noqa: E711
    assert (np.array([1.0, 2.0]) + tf.constant(1.0)).dtype == tf.float32
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a int32"):
        a + 1.5
    with pytest.raises(TypeError, match="Cannot convert 2.5"):
        2.5 + a


class _Reflected:
    def __radd__(self, other):
        return "mine"


def test_reflected_operator_of_other_types():
    assert tf.constant(1) + _Reflected() == "mine"


def test_indexing_matches_numpy():
    n = np.arange(24).reshape(2, 3, 4)
    t = tf.constant(n)
    keys = [
        0,
        -1,
        slice(None),
        (slice(None), 1),
        (Ellipsis, 2),
        (1, slice(0, 3, 2), slice(None, None, -1)),
        (None, 0, Ellipsis),
        (slice(5, None), 0),
    ]
    for key in keys:
        assert np.array_equal(t[key].numpy(), n[key]), key
    assert np.array_equal(t[tf.constant(1), 0].numpy(), n[1, 0])
    assert np.array_equal(t[t > 11].numpy(), n[n > 11])
    with pytest.raises(TypeError, match="valid indices"):
        t[1.5]
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        t[9]


def test_python_protocols():
    assert len(tf.constant([1, 2])) == 2
    assert [int(x) for x in tf.constant([1, 2])] == [1, 2]
    assert [10, 20][tf.constant(1)] == 20
    assert bool(tf.constant(0)) is False
    with pytest.raises(TypeError, match="unhashable"):
        hash(tf.constant(1))
    with pytest.raises(TypeError, match="scalar tensor"):
        iter(tf.constant(1))
    a = tf.constant([1])
    assert a.ref() == a.ref()
    assert a.ref() != tf.constant([1]).ref()
    assert copy.deepcopy(a).numpy().tolist() == [1]
    assert pickle.loads(pickle.dumps(a)).numpy().tolist() == [1]


def test_attributes_and_weak_references():
    import gc
    import weakref

    a = tf.constant(1)
    a.note = [a]
    seen = weakref.ref(a)
    del a
    gc.collect()
    assert seen() is None


def test_dlpack():
    assert np.from_dlpack(tf.constant([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_registered_conversion():
    class Box:
        def __init__(self, value):
            self.value = value

    tf.register_tensor_conversion_function(
        Box, lambda v, dtype=None, name=None, as_ref=False: tf.constant(v.value, dtype)
    )
    assert (tf.constant(1.0) + Box(2.0)).numpy() == 3.0
    assert tf.stack([Box(1.0), tf.constant(2.0)]).numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_text_is_joined_by_plus(wrap):
    text, variable = tf.constant(["a", "b"]), tf.Variable("v")
    ways = [
        (lambda: text + "c", [b"ac", b"bc"]),
        (lambda: "c" + text, [b"ca", b"cb"]),
        (lambda: ["c", "d"] + text, [b"ca", b"db"]),
        (lambda: text + text, [b"aa", b"bb"]),
        (lambda: "c" + variable, b"cv"),
        (lambda: tf.add(text, "c"), [b"ac", b"bc"]),
        (lambda: tf.add("c", "d"), b"cd"),
        (lambda: tf.add(np.array(["c"]), text), [b"ca", b"cb"]),
    ]
    for way, wanted in ways:
        found = wrap(way)().numpy()
        assert np.array_equal(found, wanted), (found, wanted)
