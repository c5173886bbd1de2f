"""Fourier transforms against NumPy, with gradients."""

import numpy as np
import pytest

import headrace as tf

RANDOM = np.random.default_rng(5)


def complex_data(*shape):
    parts = RANDOM.standard_normal((2, *shape))
    return parts[0] + 1j * parts[1]


@pytest.mark.parametrize("n", [1, 2, 5, 12, 31, 37, 64, 74, 127, 360, 1009])
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_any_length(n, name):
    x = complex_data(3, n)
    wanted = getattr(np.fft, name)(x)
    got = getattr(tf.signal, name)(tf.constant(x)).numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


# Rows that are cut in two, with all vectors full or not, and such that are not
# cut: primes, products of large primes.
@pytest.mark.parametrize("n", [2048, 2050, 4095, 4489, 6000, 6007, 40000])
@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("kind", ["c8", "c16"])
def test_long_rows(n, rows, kind):
    x = complex_data(rows, n).astype(kind)
    room = {"c8": 1e-5, "c16": 1e-13}[kind] * np.sqrt(n)
    for name in ("fft", "ifft"):
        wanted = getattr(np.fft, name)(x.astype("c16"))
        got = getattr(tf.signal, name)(tf.constant(x)).numpy()
        assert got.dtype == x.dtype
        scale = 1 if name == "fft" else n
        np.testing.assert_allclose(got * scale, wanted * scale, rtol=0, atol=room)
    half = tf.signal.rfft(tf.constant(x.real))
    np.testing.assert_allclose(half, np.fft.rfft(x.real.astype("f8")), atol=room)
    back = tf.signal.irfft(half, [n])
    np.testing.assert_allclose(back, x.real, atol=room)


# Batches that fill vectors, leave some lanes empty, and whose columns cross
# from one matrix to the next.
@pytest.mark.parametrize("shape", [(7, 40), (33, 18), (3, 5, 16, 32), (4, 9, 3, 5)])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_batches(shape, kind):
    x = complex_data(*shape).astype("c8" if kind == "f4" else "c16")
    room = {"f4": 1e-4, "f8": 1e-12}[kind]
    for rank in range(1, min(3, len(shape)) + 1):
        suffix = "" if rank == 1 else f"{rank}d"
        axes = tuple(range(-rank, 0))
        for way in ("fft", "ifft"):
            got = getattr(tf.signal, way + suffix)(tf.constant(x))
            wanted = getattr(np.fft, way + "n")(x, axes=axes)
            np.testing.assert_allclose(got, wanted, rtol=0, atol=room)
        cut = [max(1, s - 2) for s in shape[-rank:]]
        real = x.real.astype(kind)
        kept = real[(..., *(slice(c) for c in cut))]
        half = getattr(tf.signal, "rfft" + suffix)(tf.constant(real), cut)
        np.testing.assert_allclose(
            half, np.fft.rfftn(kept, axes=axes), rtol=0, atol=room
        )
        back = getattr(tf.signal, "irfft" + suffix)(half, cut)
        np.testing.assert_allclose(back, kept, rtol=0, atol=room)


@pytest.mark.parametrize("rank", [2, 3])
def test_more_dimensions(rank):
    x = complex_data(2, 3, 4, 6)
    axes = tuple(range(-rank, 0))
    for name, wanted in (("fft", np.fft.fftn), ("ifft", np.fft.ifftn)):
        got = getattr(tf.signal, f"{name}{rank}d")(tf.constant(x))
        np.testing.assert_allclose(got, wanted(x, axes=axes), atol=1e-9)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("last", [5, 8])
def test_real_transforms(rank, last):
    x = RANDOM.standard_normal((2, 3, 4, last))
    suffix = "" if rank == 1 else f"{rank}d"
    axes = tuple(range(-rank, 0))
    half = getattr(tf.signal, "rfft" + suffix)(tf.constant(x))
    np.testing.assert_allclose(half, np.fft.rfftn(x, axes=axes), atol=1e-9)
    back = getattr(tf.signal, "irfft" + suffix)(half, x.shape[-rank:])
    np.testing.assert_allclose(back, x, atol=1e-9)


def test_lengths_pad_and_cut():
    x = RANDOM.standard_normal(6)
    for n in (4, 6, 9):
        got = tf.signal.rfft(tf.constant(x), [n])
        np.testing.assert_allclose(got, np.fft.rfft(x, n), atol=1e-12)
        half = np.fft.rfft(x)
        np.testing.assert_allclose(
            tf.signal.irfft(tf.constant(half), [n]), np.fft.irfft(half, n), atol=1e-12
        )
    back = tf.signal.irfft(tf.constant(half))
    np.testing.assert_allclose(back, np.fft.irfft(half), atol=1e-12)


@pytest.mark.parametrize("name", ["fft", "ifft", "fft2d", "ifft3d"])
def test_gradients_of_complex_transforms(name):
    x = tf.constant(complex_data(2, 3, 4))
    weight = tf.constant(complex_data(2, 3, 4))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = getattr(tf.signal, name)(x)
        loss = tf.reduce_sum(tf.math.real(y * weight))
    slope = tape.gradient(loss, x)
    step = tf.constant(complex_data(2, 3, 4) * 1e-6)

    def value(v):
        moved = getattr(tf.signal, name)(v)
        return tf.reduce_sum(tf.math.real(moved * weight)).numpy()

    moved = value(x + step) - value(x - step)
    expected = 2 * np.sum((np.conj(slope.numpy()) * step.numpy()).real)
    np.testing.assert_allclose(moved, expected, rtol=1e-5)


@pytest.mark.parametrize("n", [5, 6])
def test_gradients_of_real_transforms(n):
    x = tf.constant(RANDOM.standard_normal((2, n)))
    weight = complex_data(2, n // 2 + 1)

    def loss(v):
        half = tf.signal.rfft(v)
        return tf.reduce_sum(tf.math.real(half * weight) ** 2)

    def inverse(v):
        half = tf.signal.rfft(v) * weight
        return tf.reduce_sum(tf.signal.irfft(half, [n]) ** 2)

    for f in (loss, inverse, tf.function(loss)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = f(x)
        slope = tape.gradient(value, x).numpy()
        step = RANDOM.standard_normal(x.shape) * 1e-6
        moved = (f(x + step) - f(x - step)).numpy()
        np.testing.assert_allclose(moved, 2 * np.sum(slope * step), rtol=1e-4)


def test_shifts():
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(tf.signal.fftshift(x), np.fft.fftshift(x))
    np.testing.assert_array_equal(tf.signal.ifftshift(x, 1), np.fft.ifftshift(x, 1))


def test_wrong_arguments_are_told():
    raw = tf.raw_ops
    with pytest.raises(tf.errors.InvalidArgumentError, match="length of at least 5"):
        raw.IRFFT(input=tf.zeros([4], tf.complex64), fft_length=[8])
    with pytest.raises(tf.errors.InvalidArgumentError, match=">= 0"):
        raw.RFFT(input=tf.zeros([4]), fft_length=[-1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least rank 2"):
        raw.FFT2D(input=tf.zeros([4], tf.complex64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="in=1 out=18"):
        raw.RFFT(input=tf.zeros([4]), fft_length=[4], Tcomplex=tf.complex128)
    with pytest.raises(tf.errors.InvalidArgumentError, match="in=8 out=2"):
        x = tf.zeros([3], tf.complex64)
        raw.IRFFT(input=x, fft_length=[4], Treal=tf.float64)
    empty = raw.RFFT(input=tf.zeros([0]), fft_length=[8])
    np.testing.assert_array_equal(empty, np.zeros(5))


def test_gradients_of_frames_are_tensors():
    x = tf.random.stateless_normal([40], [1, 2])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        frames = tf.signal.frame(x, 8, 4)
        power = tf.reduce_sum(tf.abs(tf.signal.stft(x, 16, 8)) ** 2)
        pairs = tf.repeat(x, [2] * 40) * 3.0
    counts = tape.gradient(frames, x)[:9].numpy()
    assert counts.tolist() == [1.0] * 4 + [2.0] * 5
    assert isinstance(tape.gradient(power, x), tf.Tensor)
    assert tape.gradient(pairs, x)[3].numpy() == 6.0


@pytest.mark.parametrize("name", ["rfft", "irfft", "rfft2d", "irfft2d"])
def test_ranks_and_lengths_that_do_not_fit(name):
    transform = getattr(tf.signal, name)
    rank = 2 if name.endswith("2d") else 1
    dtype = tf.float32 if name[0] == "r" else tf.complex64
    x = np.ones([4] * rank)

    def call(lengths=None, x=x):
        return transform(tf.cast(x, dtype), lengths)

    for way in (call, tf.function(call)):
        with pytest.raises(ValueError, match=f"must have rank at least {rank}"):
            way(x=np.ones([4] * (rank - 1)))
        with pytest.raises(ValueError, match=r"Shape \(1, 1\) must have rank 1"):
            way([[4]])
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"shape \[{rank}\]"):
        call([4] * (rank + 1))
    with pytest.raises(ValueError, match=f"must be {rank} but is {rank + 1}"):
        tf.function(call)([4] * (rank + 1))
