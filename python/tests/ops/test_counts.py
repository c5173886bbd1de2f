"""Counts of values, maps of tensors and other small ops; what is expected is what
TensorFlow 2.21 gives."""

import gzip
import zlib

import headrace as tf
import numpy as np
import pytest

R = tf.raw_ops
NONE = tf.constant([], tf.int64)
SPARSE = {
    "indices": [[0, 0], [0, 1], [2, 0]],
    "values": [1, 1, 3],
    "dense_shape": [3, 2],
}


def _lists(made):
    return [m.numpy().tolist() for m in made]


@pytest.mark.parametrize(
    "made, want",
    [
        (
            lambda: R.DenseCountSparseOutput(
                values=[[1, 1, 2], [0, 0, 0]], weights=NONE, binary_output=False
            ),
            [[[0, 1], [0, 2], [1, 0]], [2, 1, 3], [2, 3]],
        ),
        (
            lambda: R.DenseCountSparseOutput(
                values=[1, 1, 5],
                weights=[0.5, 1.0, 2.0],
                binary_output=False,
                minlength=4,
            ),
            [[[1], [5]], [1.5, 2], [6]],
        ),
        (
            lambda: R.DenseCountSparseOutput(
                values=[1, 1, 5], weights=NONE, binary_output=True, maxlength=4
            ),
            [[[1]], [1], [4]],
        ),
        (
            lambda: R.SparseCountSparseOutput(
                **SPARSE, weights=NONE, binary_output=False
            ),
            [[[0, 1], [2, 3]], [2, 1], [3, 4]],
        ),
        (
            lambda: R.SparseCountSparseOutput(
                **SPARSE, weights=[1.0, 2.0, 3.0], binary_output=False
            ),
            [[[0, 1], [2, 3]], [3, 3], [3, 4]],
        ),
        (
            lambda: R.RaggedCountSparseOutput(
                splits=[0, 2, 3], values=[1, 1, 0], weights=NONE, binary_output=False
            ),
            [[[0, 1], [1, 0]], [2, 1], [2, 2]],
        ),
        (
            lambda: [R.SparseBincount(**SPARSE, size=3, weights=NONE)],
            [[[0, 2, 0], [0, 0, 0], [0, 0, 0]]],
        ),
        (
            lambda: [
                R.RaggedBincount(
                    splits=[0, 2, 3], values=[1, 1, 0], size=3, weights=NONE
                )
            ],
            [[[0, 2, 0], [1, 0, 0]]],
        ),
    ],
)
def test_counts(made, want):
    assert _lists(made()) == want


def test_bincounts():
    made = tf.sparse.bincount([[1, 1, 2], [0, 0, 0]], axis=-1)
    assert tf.sparse.to_dense(made).numpy().tolist() == [[0, 2, 1], [3, 0, 0]]
    made = tf.sparse.bincount([1, 1, 2], weights=[0.5, 0.5, 2.0])
    assert tf.sparse.to_dense(made).numpy().tolist() == [0, 1, 2]
    ragged = tf.ragged.constant([[1], [2, 2]])
    made = tf.sparse.bincount(ragged, axis=-1)
    assert tf.sparse.to_dense(made).numpy().tolist() == [[0, 1, 0], [0, 0, 2]]
    assert tf.math.bincount(ragged, axis=-1).numpy().tolist() == [[0, 1, 0], [0, 0, 2]]
    sparse = tf.sparse.from_dense([[1, 1], [2, 0]])
    assert tf.math.bincount(sparse, axis=-1).numpy().tolist() == [[0, 2, 0], [0, 0, 1]]
    assert tf.math.bincount([1, 1, 2]).numpy().tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: R.DenseCountSparseOutput(
                values=[-1], weights=NONE, binary_output=False
            ),
            "must all be non-negative",
        ),
        (
            lambda: R.DenseCountSparseOutput(
                values=[[[1]]], weights=NONE, binary_output=False
            ),
            "1 or 2-dimensional",
        ),
        (
            lambda: R.DenseCountSparseOutput(
                values=[1], weights=[1.0, 2.0], binary_output=False
            ),
            "Weights and values must have the same shape",
        ),
        (
            lambda: R.SparseCountSparseOutput(
                indices=[[9, 0]],
                values=[1],
                dense_shape=[3, 2],
                weights=NONE,
                binary_output=False,
            ),
            "out of bounds",
        ),
        (
            lambda: R.RaggedCountSparseOutput(
                splits=[0, 9, 1], values=[1], weights=NONE, binary_output=False
            ),
            "Splits must be sorted",
        ),
        (
            lambda: R.RaggedCountSparseOutput(
                splits=[0, 2, 4], values=[1, 1, 0], weights=NONE, binary_output=False
            ),
            "Splits must end with the number of values, got 4 instead of 3",
        ),
        (
            lambda: R.RaggedBincount(splits=[1, 1], values=[1], size=3, weights=NONE),
            "Splits must start with 0, not with 1",
        ),
        (lambda: _lookup(tf.constant("b")), "non-existent key. Could not find key .b"),
        (
            lambda: R.TensorMapErase(
                input_handle=_map(), key=1, value_dtype=tf.float32
            ),
            "erase",
        ),
        (lambda: R.TensorMapSize(input_handle=_list()), "not a map"),
    ],
)
def test_errors(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        call()


def _list():
    return R.EmptyTensorList(
        element_shape=-1, max_num_elements=-1, element_dtype=tf.int32
    )


def _map():
    return R.TensorMapInsert(input_handle=R.EmptyTensorMap(), key="a", value=1.5)


def _lookup(key):
    return R.TensorMapLookup(input_handle=_map(), key=key, value_dtype=tf.float32)


def test_maps():
    one = _map()
    two = R.TensorMapInsert(input_handle=one, key="b", value=[1, 2])
    assert R.TensorMapSize(input_handle=one).numpy() == 1
    assert R.TensorMapSize(input_handle=two).numpy() == 2
    assert _lookup("a").numpy() == 1.5
    keys = R.TensorMapStackKeys(input_handle=two, key_dtype=tf.string)
    assert sorted(keys.numpy()) == [b"a", b"b"]
    less = R.TensorMapErase(input_handle=two, key="a", value_dtype=tf.float32)
    has = [R.TensorMapHasKey(input_handle=less, key=k).numpy() for k in ("a", "b")]
    assert has == [False, True]
    again = R.TensorMapInsert(input_handle=one, key="a", value=7)
    made = R.TensorMapLookup(input_handle=again, key="a", value_dtype=tf.int32)
    assert made.numpy() == 7


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16", "uint8"])
def test_isotonic(dtype):
    made = R.IsotonicRegression(input=tf.cast([[3, 2, 2, 4, 1]], dtype))
    np.testing.assert_allclose(made[0], [[3, 8 / 3, 8 / 3, 8 / 3, 1]], rtol=1e-6)
    assert made[1].numpy().tolist() == [[0, 1, 1, 1, 2]]


def test_isotonic_along_axes():
    made = tf.nn.isotonic_regression([[3.0, 1.0, 2.0, 0.5]], decreasing=False)
    assert made[0].numpy().tolist() == [[1.625] * 4]
    made = tf.nn.isotonic_regression([[3.0], [4.0], [2.0]], axis=0)
    assert _lists(made) == [[[3.5], [3.5], [2]], [[0], [0], [1]]]
    x = tf.Variable([[3.0, 1.0, 2.0, 0.5], [1.0, 2.0, 0.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.nn.isotonic_regression(x)[0] * [1.0, 2.0, 3.0, 4.0]
    want = [[1, 2.5, 2.5, 4], [2.5] * 4]
    assert tape.gradient(y, x).numpy().tolist() == want


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_products_of_matrices_with_zeros(ta, tb):
    random = np.random.RandomState(3)
    a, b = random.randn(3, 4).astype("f"), random.randn(4, 2).astype("f")
    a, b = tf.Variable(a.T if ta else a), tf.Variable(b.T if tb else b)
    weights = random.randn(3, 2).astype("f")
    options = {"transpose_a": ta, "transpose_b": tb}
    with tf.GradientTape(persistent=True) as tape:
        made = R.SparseMatMul(a=a, b=b, a_is_sparse=True, **options)
        plain = tf.matmul(a, b, **options)
        sums = [tf.reduce_sum(m * weights) for m in (made, plain)]
    np.testing.assert_allclose(made, plain, rtol=1e-5)
    for x in (a, b):
        slopes = [tape.gradient(s, x) for s in sums]
        np.testing.assert_allclose(*slopes, rtol=1e-5)
    narrow = R.SparseMatMul(a=tf.cast(a, tf.bfloat16), b=b, **options)
    assert narrow.dtype == tf.float32
    np.testing.assert_allclose(narrow, plain, atol=0.05)


def test_unpacking():
    text = bytes(range(256)) * 300
    made = tf.io.decode_compressed([zlib.compress(text), zlib.compress(b"")], "ZLIB")
    assert made.numpy().tolist() == [text, b""]
    assert tf.io.decode_compressed(gzip.compress(text), "GZIP").numpy() == text
    assert tf.io.decode_compressed(["plain"]).numpy().tolist() == [b"plain"]
    for bad in (b"junk", zlib.compress(text)[:-9]):
        with pytest.raises(tf.errors.OpError):
            tf.io.decode_compressed(bad, "ZLIB")
    with pytest.raises(tf.errors.InvalidArgumentError, match="ZLIB, GZIP or NONE"):
        tf.io.decode_compressed(b"", "LZ4")


def test_scripts():
    made = tf.strings.unicode_script([97, 26085, 48, 1078, -1, 0x110000, 0x378])
    assert made.numpy().tolist() == [25, 17, 0, 8, -1, -1, 103]


def test_step_of_a_gated_unit():
    random = np.random.RandomState(8)
    x, h = random.randn(2, 3).astype("f"), random.randn(2, 2).astype("f")
    w_ru, w_c = random.randn(5, 4).astype("f"), random.randn(5, 2).astype("f")
    b_ru, b_c = random.randn(4).astype("f"), random.randn(2).astype("f")
    gates = 1 / (1 + np.exp(-(np.concatenate([x, h], 1) @ w_ru + b_ru)))
    r, u = gates[:, :2], gates[:, 2:]
    c = np.tanh(np.concatenate([x, h * r], 1) @ w_c + b_c)
    made = R.GRUBlockCell(x=x, h_prev=h, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c)
    for got, want in zip(made, (r, u, c, (1 - u) * c + u * h)):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="sizes do not agree"):
        R.GRUBlockCell(x=x, h_prev=h, w_ru=w_c, w_c=w_c, b_ru=b_ru, b_c=b_c)
