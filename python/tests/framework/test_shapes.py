"""tf.TensorShape, tf.TensorSpec, tf.DType, tf.nest."""

import collections

import numpy as np
import pytest

import headrace as tf


def test_tensor_shape():
    a, b = tf.TensorShape([2, None]), tf.TensorShape([None, 3])
    assert str(a.merge_with(b)) == "(2, 3)"
    assert repr(a + b) == "TensorShape([2, None, None, 3])"
    assert a[0] == 2
    assert a[1] is None
    assert a.num_elements() is None
    assert tf.TensorShape(None).rank is None
    assert tf.TensorShape([2, 3]).is_subtype_of(a)
    with pytest.raises(ValueError, match="not compatible"):
        tf.TensorShape([2]).merge_with([3])
    with pytest.raises(ValueError, match=">= 0"):
        tf.TensorShape([-2])


def test_dtypes():
    assert tf.as_dtype(np.float32) is tf.float32
    assert tf.as_dtype("bfloat16").size == 2
    assert tf.int8.min == -128
    assert tf.float32 == np.float32
    assert tf.float32 != tf.float64
    assert repr(tf.half) == "tf.float16"
    with pytest.raises(TypeError, match="floaty"):
        tf.as_dtype("floaty")


def test_tensor_spec():
    spec = tf.TensorSpec([None, 3])
    assert spec.is_compatible_with(tf.zeros([2, 3]))
    assert not spec.is_compatible_with(tf.zeros([2, 4]))
    assert spec.most_specific_common_supertype(
        [tf.TensorSpec([2, 2])]
    ) == tf.TensorSpec([None, None])
    assert hash(spec) == hash(tf.TensorSpec([None, 3]))


def test_nest():
    point = collections.namedtuple("point", "x y")
    structure = {"b": [1, 2], "a": point(3, None)}
    assert tf.nest.flatten(structure) == [3, None, 1, 2]
    packed = tf.nest.pack_sequence_as(structure, [5, 6, 7, 8])
    assert packed == {"b": [7, 8], "a": point(5, 6)}
    assert tf.nest.map_structure(lambda x, y: x + y, [1, (2,)], [3, (4,)]) == [4, (6,)]
    with pytest.raises(ValueError, match="same nested structure"):
        tf.nest.assert_same_structure([1, 2], [1, [2]])


def test_dimensions():
    d = tf.compat.v1.Dimension
    shape = tf.TensorShape([None, 2])
    assert repr(shape.dims) == "[Dimension(None), Dimension(2)]"
    assert shape.dims[1].value == 2 and tf.TensorShape(None).dims is None
    assert (d(3) + 1 == 4) and (7 - d(3)).value == 4 and (d(7) // d(2)).value == 3
    assert str(d(None) * 2) == "?" and (d(None) == 3) is None and d(2) < 3
    assert list(range(5))[d(3)] == 3 and tf.TensorShape([d(3)]) == (3,)
    assert d(None).merge_with(4).value == 4
    with pytest.raises(ValueError, match="Dimensions 3 and 4 are not compatible"):
        d(3).merge_with(4)
    with pytest.raises(TypeError, match="please use // instead"):
        d(3) / 2
    for make in (d, lambda n: tf.TensorShape([n])):
        with pytest.raises(ValueError, match="Dimension -1 must be >= 0"):
            make(-1)
