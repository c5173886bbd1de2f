"""Fourier transforms over chosen axes against NumPy, with gradients."""

import headrace as tf
import numpy as np
import pytest

RANDOM = np.random.default_rng(8)
AXES = [(0,), (1,), (2,), (0, 2), (2, 0), (1, 2), (0, 1), (-2, -3), (0, 1, 2)]


def complex_data(*shape):
    parts = RANDOM.standard_normal((2, *shape))
    return parts[0] + 1j * parts[1]


def wanted(name, x, lengths, axes, norm=None):
    return getattr(np.fft, name[:-2] + "n")(x, lengths, axes, norm)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("change", [None, 1, -1])
def test_axes(axes, norm, change):
    z = complex_data(4, 5, 6)
    lengths = None if change is None else [z.shape[a] + change for a in axes]
    for name in ("fftnd", "ifftnd", "rfftnd", "irfftnd"):
        x = z.real if name == "rfftnd" else z
        for kind, room in (("f8", 1e-11), ("f4", 1e-3)):
            cast = x.astype(
                kind if name == "rfftnd" else {"f8": "c16", "f4": "c8"}[kind]
            )
            want = wanted(name, x, lengths, axes, norm)
            got = getattr(tf.signal, name)(tf.constant(cast), lengths, axes, norm)
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=0, atol=room)


def test_all_axes_by_default_or_the_last_ones():
    x = complex_data(3, 4, 6)
    np.testing.assert_allclose(
        tf.signal.fftnd(tf.constant(x)), np.fft.fftn(x), atol=1e-12
    )
    got = tf.signal.rfftnd(tf.constant(x.real), [3, 4])
    np.testing.assert_allclose(got, np.fft.rfftn(x.real, [3, 4], (1, 2)), atol=1e-12)


@pytest.mark.parametrize("axes", [(0,), (2, 0), (1, 2)])
@pytest.mark.parametrize("change", [0, -1])
def test_gradients(axes, change):
    x = tf.constant(RANDOM.standard_normal((4, 5, 6)))
    lengths = [x.shape[a] + change for a in axes]
    weight = complex_data(*wanted("rfftnd", x.numpy(), lengths, axes).shape)

    def real(v):
        half = tf.signal.rfftnd(v, lengths, axes) * weight
        return tf.reduce_sum(tf.signal.irfftnd(half, lengths, axes) ** 3)

    def both(v):
        y = tf.signal.fftnd(tf.complex(v, v * v), lengths, axes)
        y = tf.signal.ifftnd(y * y, lengths, axes)
        return tf.reduce_sum(tf.abs(y) ** 2)

    unknown = tf.TensorSpec([None, None, None], tf.float64)
    for f in (real, both, tf.function(both, input_signature=[unknown])):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = f(x)
        slope = tape.gradient(value, x).numpy()
        step = RANDOM.standard_normal(x.shape) * 1e-6
        moved = (f(x + step) - f(x - step)).numpy()
        np.testing.assert_allclose(moved, 2 * np.sum(slope * step), rtol=1e-4)


def test_wrong_arguments_are_told():
    raw = tf.raw_ops
    z = tf.zeros([4, 3], tf.complex64)
    for lengths, axes, text in (
        ([4], [2], "axis|dimension"),
        ([4, 4], [0, 0], "twice"),
        ([-1], [0], ">= 0"),
        ([9], [0], "length of at least 9"),
        ([4, 3], [0], "equal"),
        ([[4]], [0], "rank 1"),
    ):
        for op in (raw.FFTND, raw.IFFTND):
            with pytest.raises(tf.errors.InvalidArgumentError, match=text):
                op(input=z, fft_length=lengths, axes=axes)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least 5"):
        raw.IRFFTND(input=z, fft_length=[9], axes=[0])
    with pytest.raises(tf.errors.ResourceExhaustedError):
        raw.IRFFTND(input=z, fft_length=[2**31 - 1] * 2, axes=[1, 0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="in=1 out=18"):
        raw.RFFTND(
            input=tf.zeros([4]), fft_length=[4], axes=[0], Tcomplex=tf.complex128
        )
    with pytest.raises(ValueError, match="norm"):
        tf.signal.fftnd(z, norm="x")
    same = raw.FFTND(input=z, fft_length=tf.zeros([0], tf.int32), axes=[])
    np.testing.assert_array_equal(same, z)
    assert raw.RFFTND(input=tf.zeros([0, 2]), fft_length=[8], axes=[0]).shape == (5, 2)
