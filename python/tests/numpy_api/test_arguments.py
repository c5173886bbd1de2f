"""Functions of tf.experimental.numpy with arguments that they cannot take, and what the
package costs who does not use it."""

import subprocess
import sys

import numpy as np
import pytest

import headrace as tf

n = tf.experimental.numpy
OP_ERRORS = (ValueError, tf.errors.InvalidArgumentError)

REFUSED = [
    (lambda: n.array([[1, 2], [3]]), ValueError, "non-rectangular"),
    (lambda: n.array(None), ValueError, "None"),
    (lambda: n.array(object()), TypeError, "Cannot interpret"),
    (lambda: n.array([1], dtype="no"), TypeError, "not understood"),
    (lambda: n.array(2**70), OP_ERRORS + (OverflowError,), "."),
    (lambda: n.zeros(-1), OP_ERRORS, "-1"),
    (lambda: n.zeros([2, -3]), OP_ERRORS, "-3"),
    (lambda: n.full([2], [1, 2, 3]), OP_ERRORS, "Incompatible"),
    (lambda: n.eye(-1), OP_ERRORS, "-1"),
    (lambda: n.arange(0, 3, 0), ValueError, "non-zero"),
    (lambda: n.linspace(0, 1, -1), ValueError, "non-negative"),
    (lambda: n.vander([1, 2], -1), ValueError, "nonnegative"),
    (lambda: n.vander([[1]]), ValueError, "one-dimensional"),
    (lambda: n.diag_indices(-1), ValueError, "non-negative"),
    (lambda: n.diag_indices(2, -1), ValueError, "non-negative"),
    (lambda: n.diag(1), OP_ERRORS, "one or two"),
    (lambda: n.diag(np.ones([2, 2, 2])), ValueError, "at most 2"),
    (lambda: n.diagonal([1]), OP_ERRORS, "two dimensions"),
    (lambda: n.tril([1, 2]), ValueError, "rank at least 2"),
    (lambda: n.moveaxis([[1]], [0, 1], [0]), ValueError, "must equal"),
    (lambda: n.moveaxis([[1]], 0, 5), ValueError, "destination=5"),
    (lambda: n.swapaxes([[1]], 0, 5), IndexError, "."),
    (lambda: n.flip([1], 5), OP_ERRORS, "5"),
    (lambda: n.rot90([[1]], axes=(0, 1, 1)), ValueError, "must be 2"),
    (lambda: n.rot90([1]), ValueError, "axes=1"),
    (lambda: n.diff([1, 2], axis=3), ValueError, "axis=3"),
    (lambda: n.diff([1, 2], n=-1), ValueError, "-1"),
    (lambda: n.cross([1, 2, 3, 4], [1, 2]), OP_ERRORS, "2 or 3 elements"),
    (lambda: n.concatenate([]), ValueError, "at least one"),
    (lambda: n.concatenate([[1], [2]], axis=4), OP_ERRORS, "4"),
    (lambda: n.stack([[1], [2, 3]]), OP_ERRORS, "match"),
    (lambda: n.split([1, 2, 3], 2), OP_ERRORS, "evenly"),
    (lambda: n.dsplit([[1]], 1), IndexError, "rank 2"),
    (lambda: n.hsplit(1, 1), IndexError, "rank 0"),
    (lambda: n.pad([1], 1, "edge"), ValueError, "Unsupported padding mode: edge"),
    (lambda: n.reshape([1, 2], [3]), OP_ERRORS, "3"),
    (lambda: n.reshape([1, 2], [-1, -1]), OP_ERRORS, "."),
    (lambda: n.reshape([1], [1], order="A"), ValueError, "order"),
    (lambda: n.flatten([1], order="x"), ValueError, "order"),
    (lambda: n.take([1], [0], mode="raise"), ValueError, "raise"),
    (lambda: n.take([1], [0], mode="no"), ValueError, "mode"),
    (lambda: n.take([1], [0], out=1), ValueError, "out"),
    (lambda: n.take_along_axis([[1]], [[0]], 5), OP_ERRORS, "dimension 5"),
    (lambda: n.take_along_axis([[1]], [[7]], 1), OP_ERRORS, "7"),
    (lambda: n.compress([[True]], [1]), ValueError, "1-d"),
    (lambda: n.compress([True, True], [1]), OP_ERRORS, "incompatible"),
    (lambda: n.ix_([[1]]), ValueError, "1-d"),
    (lambda: n.ix_([0.5]), ValueError, "integer and bool"),
    (lambda: n.where([True], 1), ValueError, "Both x and y"),
    (lambda: n.select([], []), ValueError, "non-empty"),
    (lambda: n.select([[True]], []), ValueError, "length"),
    (lambda: n.clip([1], None, None), ValueError, "None"),
    (lambda: n.sign([1], out=1), ValueError, "out"),
    (lambda: n.sign([1], where=1), ValueError, "where"),
    (lambda: n.gcd(1.5, 1), ValueError, "gcd must be integers"),
    (lambda: n.lcm([1.0], 1), ValueError, "lcm must be integers"),
    (lambda: n.sort([1], kind="heapsort"), ValueError, "kind"),
    (lambda: n.argsort([1], order="x"), ValueError, "order"),
    (lambda: n.average([1], axis=(0,)), ValueError, "integer"),
    (lambda: n.average([[1, 2]], weights=[[1, 2, 3]]), OP_ERRORS, "weights"),
    (lambda: n.average([[1, 2]], axis=0, weights=[1, 2]), OP_ERRORS, "weights"),
    (lambda: n.amax([1], out=1), ValueError, "out"),
    (lambda: n.var([1], out=1), ValueError, "out"),
    (lambda: n.size([1], axis=0), NotImplementedError, "axis"),
    (lambda: n.matmul(1, [1]), ValueError, "."),
    (lambda: n.matmul([[1, 2]], [[1, 2]]), ValueError, "incompatible"),
    (lambda: n.dot([1, 2], [1, 2, 3]), OP_ERRORS, "incompatible"),
    (lambda: n.einsum("i->", [1], optimize="no"), ValueError, "optimize"),
    (lambda: n.einsum("i->", [1], casting="no"), ValueError, "casting"),
    (lambda: n.einsum("i->"), ValueError, "0 inputs"),
    (lambda: n.meshgrid([1], sparse=True), ValueError, "sparse"),
    (lambda: n.meshgrid([1], copy=False), ValueError, "copy"),
    (lambda: n.meshgrid([1], [2], indexing="a"), ValueError, "indexing"),
    (lambda: n.broadcast_arrays([1], subok=True), ValueError, "subok"),
    (lambda: n.broadcast_arrays([1, 2], [1, 2, 3]), OP_ERRORS, "Incompatible"),
    (lambda: n.add("a", 1), TypeError, "promoted"),
    (lambda: n.add(None, 1), ValueError, "None"),
    (lambda: n.sin("a"), tf.errors.OpError, "not supported"),
    (lambda: n.result_type(object()), TypeError, "Cannot interpret"),
    (lambda: n.promote_types("int8", "no"), TypeError, "not understood"),
    (lambda: n.finfo(tf.int32), ValueError, "not inexact"),
    (lambda: n.finfo(tf.constant(1.0)), ValueError, "NumPy dtype"),
    (lambda: n.random.seed("a"), ValueError, "invalid literal"),
    (lambda: n.random.seed(None), ValueError, "Only integers"),
    (lambda: n.random.randint(5, 2), OP_ERRORS, "minval < maxval"),
    (lambda: n.random.randint(5, dtype=float), ValueError, "int32"),
    (lambda: n.random.rand(-1), OP_ERRORS, "-1"),
    (lambda: n.sum([1], no=1), TypeError, "unexpected keyword"),
    (lambda: n.add(1), TypeError, "x2"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(number):
    call, error, text = REFUSED[number]
    with pytest.raises(error, match=text):
        call()


def test_random_numbers():
    n.random.seed(7)
    first = n.random.randn(3, 2)
    assert first.shape == [3, 2] and first.dtype == tf.float64
    n.random.seed(7)
    np.testing.assert_array_equal(first, n.random.standard_normal((3, 2)))
    drawn = n.random.uniform([0.0, 10.0], [1.0, 11.0], [100, 2]).numpy()
    assert (drawn.min(0) >= [0, 10]).all() and (drawn.max(0) < [1, 11]).all()
    drawn = n.random.randint(2, 5, size=1000).numpy()
    assert set(drawn.tolist()) == {2, 3, 4}
    assert n.random.randint(3, dtype=np.int32).dtype == tf.int32
    drawn = n.random.poisson([1.0, 50.0], 500).numpy()
    assert drawn.dtype == np.int64 and 0.7 < drawn[:, 0].mean() < 1.3
    assert 47 < drawn[:, 1].mean() < 53
    assert n.random.random(4).shape == [4] and n.random.rand().shape == []


def test_constants_and_types():
    assert (n.pi, n.e, n.inf, n.newaxis) == (np.pi, np.e, np.inf, None)
    assert n.float32 is np.float32 and n.int_ is np.int64 and n.string_ is np.bytes_
    assert n.ndarray is tf.Tensor and n.iinfo(n.uint8).max == 255
    assert n.finfo(tf.float32).eps == np.finfo(np.float32).eps
    assert n.promote_types(tf.bfloat16, tf.float32) == np.float32


def test_tensors_stay_as_they_are_until_asked():
    with pytest.raises(AttributeError, match="experimental_enable_numpy_behavior"):
        tf.constant([1]).astype(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant([1]) + tf.constant([1.0])
    assert not hasattr(tf.constant(1), "T")


def test_nothing_is_loaded_before_its_first_use():
    code = "import sys, headrace as tf; tf.constant(1) + 1; "
    code += "print([m for m in sys.modules if 'numpy_api' in m])"
    found = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert found.strip() == "[]"
