"""Kernels with a quick way for common cases, against plain ones in NumPy."""

import headrace as tf
import numpy as np
import pytest

RANDOM = np.random.RandomState(5)


def address(t):
    return np.from_dlpack(t).__array_interface__["data"][0]


def test_parts_along_the_first_axis_are_views():
    x = tf.constant(RANDOM.randn(64, 64).astype("float32"))
    for parts, rows in ((tf.split(x, 2), 32), (tf.split(x, [16, 32, 16]), None)):
        at = 0
        for part in parts:
            rows = part.shape[0]
            assert address(part) == address(x) + at * 256
            np.testing.assert_array_equal(part, x[at : at + rows])
            at += rows
    wide = tf.reshape(x, [2, 2048])
    assert [address(p) - address(x) for p in tf.unstack(wide)] == [0, 8192]


def test_small_and_crooked_parts_are_copies():
    x = tf.constant(RANDOM.randn(8, 1031).astype("float32"))
    parts = tf.unstack(x)
    assert all(address(p) % 64 == 0 for p in parts)
    np.testing.assert_array_equal(tf.stack(parts), x)
    small = tf.split(tf.reshape(x[:, :16], [-1]), 2)[0]
    assert address(small) % 64 == 0


def test_views_keep_their_values():
    start = RANDOM.randn(64, 64).astype("float32")
    v = tf.Variable(start)
    top, bottom = tf.split(v, 2)
    v.assign_add(tf.ones_like(v))
    np.testing.assert_array_equal(top, start[:32])
    del v
    np.testing.assert_array_equal(bottom, start[32:])
    names = tf.constant([f"a string of some length {i}" for i in range(600)])
    first, second = tf.split(names, 2)
    del names
    assert second[299].numpy() == b"a string of some length 599"
    assert first[0].numpy() == b"a string of some length 0"


def test_views_within_functions():
    x = tf.constant(RANDOM.randn(64, 64).astype("float32"))

    @tf.function
    def mixed(x):
        a, b = tf.split(x * 2.0, 2)
        c = tf.unstack(tf.reshape(x, [2, 32, 64]))
        return a + c[1], b, c[0] * b

    for _ in range(3):
        got = mixed(x)
        np.testing.assert_allclose(got[0], x[:32] * 2 + x[32:], rtol=1e-6)
        np.testing.assert_allclose(got[1], x[32:] * 2)
        np.testing.assert_allclose(got[2], x[:32] * x[32:] * 2, rtol=1e-6)


def pooled(x, size, stride, pads, join, empty):
    """Windows over the middle axis of [rows, width, channels], then over rows."""
    h, w = ((n + sum(p) - size) // stride + 1 for n, p in zip(x.shape, pads))
    y = np.empty((h, w, x.shape[2]), "float32")
    for i in range(h):
        for j in range(w):
            at = [i * stride - pads[0][0], j * stride - pads[1][0]]
            seen = x[max(at[0], 0) : at[0] + size, max(at[1], 0) : at[1] + size]
            y[i, j] = join(seen, axis=(0, 1)) if seen.size else empty
    return y


@pytest.mark.parametrize("channels", [1, 3, 15, 17])
@pytest.mark.parametrize("size, stride", [(2, 2), (3, 1), (3, 2), (5, 1), (1, 3)])
def test_pools_of_few_channels(channels, size, stride):
    x = RANDOM.randn(9, 37, channels).astype("float32")
    pads = [(0, 1), (1, 0)] if size > 1 else [(0, 0), (0, 0)]
    got = tf.nn.max_pool2d(x[None], size, stride, [[0, 0], *pads, [0, 0]])[0]
    np.testing.assert_array_equal(got, pooled(x, size, stride, pads, np.max, 0))
    none = [(0, 0), (0, 0)]
    got = tf.nn.avg_pool2d(x[None], size, stride, "VALID")[0]
    want = pooled(x, size, stride, none, np.mean, 0)
    np.testing.assert_allclose(got, want, atol=1e-6)
    if stride == 1:
        before = (size - 1) // 2
        same = [(before, size - 1 - before)] * 2
        got = tf.nn.avg_pool2d(x[None], size, stride, "SAME")[0]
        want = pooled(x, size, stride, same, np.mean, 0)
        np.testing.assert_allclose(got, want, atol=1e-6)


def test_pools_of_few_channels_see_nans_and_volumes():
    x = RANDOM.randn(1, 6, 40, 3).astype("float32")
    x[0, 2, 7, 1] = np.nan
    got = tf.nn.max_pool2d(x, 3, 1, "VALID").numpy()
    assert np.isnan(got[0, :3, 5:8, 1]).all() and np.isnan(got).sum() == 9
    volume = RANDOM.randn(2, 4, 6, 8, 2).astype("float32")
    blocks = volume.reshape(2, 2, 2, 3, 2, 4, 2, 2)
    got = tf.nn.max_pool3d(volume, 2, 2, "VALID")
    np.testing.assert_array_equal(got, blocks.max(axis=(2, 4, 6)))
    got = tf.nn.avg_pool3d(volume, 2, 2, "VALID")
    np.testing.assert_allclose(got, blocks.mean(axis=(2, 4, 6)), atol=1e-6)


@pytest.mark.parametrize("beta", [0.5, 0.75, 1.0])
@pytest.mark.parametrize("channels, radius", [(4, 5), (9, 2), (3, 0)])
def test_local_response_normalization(channels, radius, beta):
    x = RANDOM.randn(2, 7, 300, channels).astype("float32")
    got = tf.nn.local_response_normalization(x, radius, 1.5, 0.3, beta)
    sums = np.stack(
        [
            (x[..., max(k - radius, 0) : k + radius + 1] ** 2).sum(-1)
            for k in range(channels)
        ],
        -1,
    )
    np.testing.assert_allclose(got, x / (1.5 + 0.3 * sums) ** beta, rtol=3e-6)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride, rate", [(1, 1), (2, 1), (1, 2), (2, 3)])
def test_dilation(padding, stride, rate):
    x = RANDOM.randn(2, 11, 13, 3).astype("float32")
    kernel = RANDOM.randn(3, 2, 3).astype("float32")
    got = tf.nn.dilation2d(
        x, kernel, [1, stride, stride, 1], padding, "NHWC", [1, rate, rate, 1]
    ).numpy()
    reach = [2 * rate + 1, rate + 1]
    pads = [[0, 0], [0, 0]]
    if padding == "SAME":
        for i in range(2):
            out = -(-x.shape[1 + i] // stride)
            need = max((out - 1) * stride + reach[i] - x.shape[1 + i], 0)
            pads[i] = [need // 2, need - need // 2]
    full = np.pad(x, [[0, 0], *pads, [0, 0]], constant_values=-np.inf)
    h, w = got.shape[1:3]
    want = np.full(got.shape, -np.inf, "float32")
    for i in range(3):
        for j in range(2):
            rows = full[:, i * rate :: stride][:, :h]
            want = np.maximum(
                want, rows[:, :, j * rate :: stride][:, :, :w] + kernel[i, j]
            )
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", [tf.qint8, tf.quint8, tf.qint16, tf.qint32])
@pytest.mark.parametrize(
    "mode, rounding",
    [
        ("MIN_COMBINED", "HALF_AWAY_FROM_ZERO"),
        ("SCALED", "HALF_AWAY_FROM_ZERO"),
        ("SCALED", "HALF_TO_EVEN"),
    ],
)
def test_levels(kind, mode, rounding):
    bits = {"8": 8, "6": 16, "2": 32}[kind.name[-1]]
    signed = kind.name.startswith("qint")
    low = -(2 ** (bits - 1)) if signed else 0
    x = np.concatenate([RANDOM.randn(4001), [-9, 9, 0.5, -0.5]]).astype("float32")
    x = np.append(x, np.float32(np.nan))
    got = tf.quantization.quantize(x, -2.0, 2.0, kind, mode, rounding)
    levels = tf.bitcast(got[0], kind.name.replace("q", "")).numpy().astype("int64")
    first, last = float(got[1]), float(got[2])
    inside = np.clip(np.nan_to_num(x, nan=first), first, last).astype("float64")
    if mode == "SCALED":
        want = inside * ((2**bits - 1 + low) / last)
    else:
        want = (inside - first) * ((2.0**bits - 1) / (last - first)) + low
    # The float beyond the last level of 32 bits becomes the lowest.
    sure = want < 2**bits + low - 2.0 ** (bits - 22)
    assert np.abs(levels - want)[sure].max() <= 0.5 + 2.0 ** (bits - 22)
    assert sure.sum() > 3500


def test_ties_of_levels():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, 0.49999997], "float32")
    for rounding, want in (
        ("HALF_AWAY_FROM_ZERO", [1, 2, 3, -1, -2, -3, 127, 0]),
        ("HALF_TO_EVEN", [0, 2, 2, 0, -2, -2, 126, 0]),
    ):
        got = tf.quantization.quantize(x, -127.0, 127.0, tf.qint8, "SCALED", rounding)
        assert tf.bitcast(got[0], tf.int8).numpy().tolist() == want


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, n, k", [(8, 8, 8), (2, 3, 5), (5, 16, 32), (3, 17, 4)])
def test_batches_of_small_products(m, n, k, dtype):
    a = RANDOM.randn(7, m, k).astype(dtype)
    b = RANDOM.randn(7, k, n).astype(dtype)
    want = np.einsum("bij,bjk->bik", a.astype("float64"), b)
    ta, tb = a.transpose(0, 2, 1).copy(), b.transpose(0, 2, 1).copy()
    for got in (
        tf.matmul(a, b),
        tf.matmul(ta, b, transpose_a=True),
        tf.matmul(a, tb, transpose_b=True),
        tf.matmul(ta, tb, transpose_a=True, transpose_b=True),
        tf.einsum("bij,bjk->bik", a, b),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "int32", "float64", "complex128", "bool"])
@pytest.mark.parametrize("width", [0, 1, 3])
def test_rows_dealt_out_and_stitched(dtype, width):
    x = RANDOM.randint(0, 99, (50, width)[: 1 + bool(width)]).astype(dtype)
    to = RANDOM.randint(0, 4, 50).astype("int32")
    parts = tf.dynamic_partition(x, to, 4)
    for k in range(4):
        np.testing.assert_array_equal(parts[k], x[to == k])
    places = tf.dynamic_partition(tf.range(50), to, 4)
    np.testing.assert_array_equal(tf.dynamic_stitch(places, parts), x)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16", "string"])
def test_sets(dtype):
    wide = 10**9 if dtype in ("int32", "int64") else 90
    for top in (20, wide):
        a, b = (RANDOM.randint(0, top, (3, n)) for n in (40, 7))
        a[:, :3] = b[:, :3]
        if dtype == "string":
            a, b = a.astype("str"), b.astype("str")
        else:
            a, b = a.astype(dtype), b.astype(dtype)
        for op, of in (
            (tf.sets.intersection, np.intersect1d),
            (tf.sets.difference, np.setdiff1d),
            (tf.sets.union, np.union1d),
        ):
            got = op(tf.constant(a.tolist(), dtype), tf.constant(b.tolist(), dtype))
            rows = [of(x, y) for x, y in zip(a, b)]
            want = [v.encode() if dtype == "string" else v for r in rows for v in r]
            assert got.values.numpy().tolist() == want
            assert got.dense_shape.numpy().tolist() == [3, max(map(len, rows))]
    edge = tf.constant([[-128, 127, 0, 127]], "int8")
    assert tf.sets.union(edge, edge).values.numpy().tolist() == [-128, 0, 127]


def test_base64_of_all_lengths():
    for n in range(9):
        data = bytes(RANDOM.randint(0, 256, n).astype("uint8"))
        for pad in (False, True):
            text = tf.io.encode_base64(data, pad=pad)
            assert tf.io.decode_base64(text).numpy() == data
    for wrong in ("A", "QU=D", "QUJD=", "Q+==", "QUI/", "\xff\xff"):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.decode_base64(wrong)


def test_characters_are_counted_in_whole_words():
    texts = ["", "a", "é" * 9, "aé漢🎉" * 7, "x" * 63 + "漢"]
    got = tf.strings.length(texts, unit="UTF8_CHAR").numpy()
    assert got.tolist() == [len(t) for t in texts]
    got = tf.strings.substr(texts[2:], 3, 5, unit="UTF8_CHAR").numpy()
    assert [g.decode() for g in got] == [t[3:8] for t in texts[2:]]


def test_scripts_of_all_blocks():
    points = np.array([-1, 0x110000, 0x41, 0x5B, 0x3B1, 0x4E2D, 0x10FFFF, 0xE01F0])
    got = tf.strings.unicode_script(points.astype("int32")).numpy()
    assert got.tolist() == [-1, -1, 25, 0, 14, 17, 103, 103]


@pytest.mark.parametrize("n", [0, 1, 2, 33, 5000])
def test_serialized_content(n):
    for dtype in ("float32", "int8", "bool", "complex64"):
        x = tf.cast(tf.constant(RANDOM.randint(0, 9, n)), dtype)
        text = tf.io.serialize_tensor(x).numpy()
        if n > 1 and dtype in ("float32", "int8"):  # else by typed lists there
            assert text == tf.make_tensor_proto(x.numpy()).SerializeToString()
        np.testing.assert_array_equal(tf.io.parse_tensor(text, dtype), x)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_systems(dtype):
    a = (RANDOM.randn(2, 40, 40) + 1j * RANDOM.randn(2, 40, 40)).astype(dtype)
    eye = np.eye(40)
    tol = 1e-3 if dtype == "complex64" else 1e-10
    np.testing.assert_allclose(tf.linalg.inv(a) @ a, [eye] * 2, atol=tol)
    got = tf.linalg.inv(a, adjoint=True).numpy()
    np.testing.assert_allclose(got @ a.conj().transpose(0, 2, 1), [eye] * 2, atol=tol)
    b = a[..., :3]
    np.testing.assert_allclose(a @ tf.linalg.solve(a, b).numpy(), b, atol=tol)
    for wrong in (np.zeros((3, 3), dtype), np.full((3, 3), np.nan, dtype)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
            tf.linalg.inv(wrong)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("m, n", [(9, 4), (4, 9), (5, 5)])
def test_least_squares_by_normal_equations(m, n, dtype):
    a, b = RANDOM.randn(m, n).astype(dtype), RANDOM.randn(m, 2).astype(dtype)
    if dtype == "complex128":
        a, b = a + 1j * RANDOM.randn(m, n), b + 1j * RANDOM.randn(m, 2)
    want = np.linalg.lstsq(a, b, rcond=None)[0]
    np.testing.assert_allclose(tf.linalg.lstsq(a, b), want, rtol=1e-6, atol=1e-8)
