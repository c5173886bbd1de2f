"""Operands that tf.sets refuses, in TensorFlow 2.21's words."""

import numpy as np
import pytest

import headrace as tf

S = tf.sets
ROW, OTHER = np.array([[1, 2, 3]]), np.array([[1, 3, 5]])
LINE = np.array([1, 2])
CUBE = np.array([[[1, 2], [3, 4]]])
TWO = np.array([[1, 2], [3, 4]])
CALLS = (S.intersection, S.difference, S.union)
REFUSED = tf.errors.InvalidArgumentError


def sparse(x):
    return tf.sparse.from_dense(x)


@pytest.mark.parametrize("call", CALLS)
def test_ranks(call):
    for pair in ((LINE, LINE), (LINE, ROW), (LINE, sparse(ROW))):
        with pytest.raises(REFUSED, match=r"Shape \[2\] has rank 1 < 2"):
            call(*pair)
    with pytest.raises(REFUSED, match=r"Shape \[\] has rank 0 < 2"):
        call(np.int64(1), np.int64(1))
    with pytest.raises(REFUSED, match=r"Invalid rank 1\."):
        call(sparse(LINE), sparse(LINE))
    pairs = ((ROW, CUBE), (sparse(ROW), sparse(CUBE)), (ROW, sparse(CUBE)))
    for pair in pairs:
        with pytest.raises(REFUSED, match=r"Mismatched shapes \[1\] vs \[1,2\]"):
            call(*pair)
    for pair in ((TWO, ROW), (sparse(TWO), sparse(ROW)), (TWO, sparse(ROW))):
        with pytest.raises(REFUSED, match=r"Mismatched shapes \[2\] vs \[1\]"):
            call(*pair)


def test_ranks_in_graphs():
    def refused(call, message):
        with pytest.raises(ValueError, match=message):
            tf.function(call).get_concrete_function()

    refused(
        lambda: S.union(LINE, LINE), "Shape must be at least rank 2 but is rank 1 for"
    )
    refused(lambda: S.union(ROW, CUBE), "Shape must be rank 2 but is rank 3 for")
    differ = (
        r"Dimension 0 in both shapes must be equal, but are 2 and 1. Shapes are \[2\]"
    )
    refused(lambda: S.union(TWO, ROW), differ)
    refused(
        lambda: S.union(sparse(ROW), sparse(CUBE)), "Dimension must be 2 but is 3 for"
    )
    refused(lambda: S.union(CUBE, sparse(ROW)), "Dimension must be 3 but is 2 for")


def test_size():
    with pytest.raises(REFUSED, match=r"Invalid rank 1\."):
        S.size(sparse(LINE))
    with pytest.raises(TypeError, match="Expected `SparseTensor`, got"):
        S.size(ROW)
    with pytest.raises(TypeError, match="Invalid dtype `<dtype: 'float32'>` not in"):
        S.size(sparse(ROW.astype("float32")))
    assert S.size(sparse(CUBE)).numpy().tolist() == [[2, 2]]


@pytest.mark.parametrize("call", CALLS)
def test_dtypes(call):
    small = ROW.astype("int32")
    expected = "Types don't match, <dtype: 'int32'> vs <dtype: 'int64'>"
    for pair in ((small, ROW), (small, sparse(ROW)), (sparse(small), ROW)):
        with pytest.raises(TypeError, match=expected):
            call(*pair)
    with pytest.raises(TypeError, match="'a' has invalid dtype `<dtype: 'float32'>`"):
        call(ROW.astype("float32"), ROW)


def test_what_is_taken():
    assert S.intersection(ROW, OTHER).values.numpy().tolist() == [1, 3]
    assert S.difference(sparse(ROW), OTHER).values.numpy().tolist() == [2]
    assert S.difference(ROW, sparse(OTHER)).values.numpy().tolist() == [2]
    found = S.difference(sparse(ROW), OTHER, aminusb=False)
    assert found.values.numpy().tolist() == [5]
    assert S.union([["a"]], [["b"]]).values.numpy().tolist() == [b"a", b"b"]
