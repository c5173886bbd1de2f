"""Kernels at odd sizes, with nothing in them, and with NaNs."""

import headrace as tf
import numpy as np
import pytest

_RNG = np.random.default_rng(3)


def _joined(x, ids, count):
    out = np.zeros((count, *x.shape[ids.ndim :]), np.float64)
    flat = x.reshape(ids.size, *out.shape[1:])
    for row, i in zip(flat, ids.ravel(), strict=True):
        if i >= 0:
            out[i] += row
    return out


@pytest.mark.parametrize("ids_dtype", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "count"),
    [((1000, 65), 37), ((3, 500), 900), ((0, 4), 5), ((7, 0), 3), ((50,), 1)],
)
def test_unsorted_segment_sum(shape, count, ids_dtype):
    x = _RNG.normal(size=shape).astype("f4")
    ids = _RNG.integers(-1, count, shape[0]).astype(ids_dtype)
    got = tf.raw_ops.UnsortedSegmentSum(data=x, segment_ids=ids, num_segments=count)
    np.testing.assert_allclose(got, _joined(x, ids, count), rtol=1e-4, atol=1e-4)


# Few segments are joined while rows stream by, many by lists of rows; both in
# the order of the rows.
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("width", [1, 3, 16, 33, 64, 130])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "i8", "u1"])
def test_unsorted_segments_bit_by_bit(dtype, width, many):
    count = 600_000 // width if many else 7
    x = (_RNG.normal(size=(300, width)) * 3).astype("i8").astype(dtype)
    ids = _RNG.integers(-1, 7, 300).astype("i4" if width % 2 else "i8")
    limits = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
    joins = {
        "sum": (np.add, 0),
        "max": (np.maximum, limits.min),
        "min": (np.minimum, limits.max),
    }
    if dtype != "f2":
        joins["prod"] = (np.multiply, 1)
    for name, (join, empty) in joins.items():
        wanted = np.full((count, width), empty, dtype)
        for row, i in zip(x, ids, strict=True):
            if i >= 0:
                wanted[i] = join(wanted[i], row)
        got = getattr(tf.math, "unsorted_segment_" + name)(x, ids, count)
        np.testing.assert_array_equal(got, wanted, name)


def test_unsorted_segment_of_several_dimensions_and_nan():
    x = np.ones((4, 5, 3), "f4")
    x[2, 1, 0] = np.nan
    ids = np.arange(20).reshape(4, 5) % 6
    got = tf.math.unsorted_segment_sum(x, ids, 6).numpy()
    assert np.isnan(got).sum() == 1
    assert np.isnan(got[ids[2, 1], 0])


def test_segment_errors():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[1\] = 9 is out"):
        tf.math.unsorted_segment_sum(np.ones(3, "f4"), [0, 9, 1], 4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not increasing"):
        tf.math.segment_sum(np.ones(3, "f4"), [0, 2, 1])


def test_segment_mean_of_narrow_types_leaves_gaps_empty():
    got = tf.math.segment_mean(tf.constant([[1, 2], [3, 5]], tf.bfloat16), [0, 2])
    assert got.numpy().astype("f4").tolist() == [[1, 2], [0, 0], [3, 5]]


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
def test_gelu_is_the_same_eagerly_and_traced(dtype, approximate):
    x = tf.constant([-np.inf, -9, -3, -1, -0.0, 0.5, 3, 9, np.inf, np.nan], dtype)

    def both(x):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.nn.gelu(x, approximate)
            slope = tape.gradient(y, x)
        return y, slope, outer.gradient(slope, x)

    loose = 1e-12 if dtype == tf.float64 else 1e-5 if dtype == tf.float32 else 4e-2
    for eager, traced in zip(both(x), tf.function(both)(x), strict=True):
        assert eager.dtype == dtype
        a, b = (t.numpy().astype("f8")[1:8] for t in (eager, traced))
        np.testing.assert_allclose(a, b, rtol=loose, atol=loose)
    assert np.isnan(tf.nn.gelu(x, approximate).numpy()[-1])
    assert tf.nn.gelu(tf.zeros([0, 3], dtype), approximate).shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 50, 101])
def test_cholesky_of_complex_matrices(n, dtype):
    a = _RNG.normal(size=(n, n)) + 1j * _RNG.normal(size=(n, n))
    a = (a @ a.conj().T + n * np.eye(n)).astype(dtype)
    got = tf.linalg.cholesky(a)
    np.testing.assert_allclose(got, np.linalg.cholesky(a), rtol=1e-3, atol=1e-4)


def test_large_variables_are_saved_over_an_older_checkpoint(tmp_path):
    a, b = tf.Variable(tf.zeros([5_000_000])), tf.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(a=a, b=b)
    for k in range(3):
        a.assign(tf.fill([5_000_000], float(k)))
        path = checkpoint.write(str(tmp_path / "c"))
    a.assign(tf.zeros([5_000_000]))
    checkpoint.read(path)
    assert float(tf.reduce_min(a)) == float(tf.reduce_max(a)) == 2.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (65, 33), (2, 17, 40)])
def test_svd(shape, full, dtype):
    a = _RNG.normal(size=shape).astype(dtype)
    s, u, v = (t.numpy() for t in tf.linalg.svd(a, full_matrices=full))
    np.testing.assert_allclose(s, np.linalg.svd(a)[1], rtol=1e-4, atol=1e-5)
    k = s.shape[-1]
    back = (u[..., :k] * s[..., None, :]) @ v[..., :k].swapaxes(-1, -2)
    np.testing.assert_allclose(back, a, rtol=1e-4, atol=2e-5)
    for q in (u, v):
        eye = np.eye(q.shape[-1])
        assert np.abs(q.swapaxes(-1, -2) @ q - eye).max() < 1e-4
    assert u.shape[-1] == (shape[-2] if full else k)


@pytest.mark.parametrize("scale", [0.0, 1e-36, 1e30])
def test_svd_of_equal_zero_and_extreme_values(scale):
    a = (np.add.outer(np.arange(30), np.arange(20)) * scale).astype("f4")
    s, u, v = (t.numpy().astype("f8") for t in tf.linalg.svd(a))
    np.testing.assert_allclose(u * s @ v.T, a, atol=1e-4 * scale)
    np.testing.assert_allclose(u.T @ u, np.eye(20), atol=1e-5)


def test_svd_of_nothing_and_nan():
    s, u, _ = tf.linalg.svd(np.zeros((3, 0), "f4"), full_matrices=True)
    assert s.shape == (0,)
    np.testing.assert_array_equal(u, np.eye(3))
    a = np.ones((3, 2), "f4")
    a[1, 1] = np.nan
    assert all(np.isnan(t.numpy()).all() for t in tf.linalg.svd(a))
