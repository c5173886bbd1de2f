"""Windows, frames, short-time spectra and cosine transforms, by their definitions."""

import headrace as tf
import numpy as np
import pytest

S = tf.signal
X = np.random.RandomState(0).randn(2, 23).astype("f")


def _cosine(length, periodic, a, b):
    n = max(length + (periodic and length % 2 == 0) - 1, 1)
    made = a - b * np.cos(2 * np.pi * np.arange(length) / n)
    return made if length > 1 else np.ones(1)


@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_windows(length):
    for periodic in (True, False):
        want = _cosine(length, periodic, 0.5, 0.5)
        np.testing.assert_allclose(S.hann_window(length, periodic), want, atol=1e-6)
        want = _cosine(length, periodic, 0.54, 0.46)
        np.testing.assert_allclose(S.hamming_window(length, periodic), want, atol=1e-6)
    want = np.kaiser(length, 5.0)
    made = S.kaiser_window(length, 5.0, tf.float64)
    np.testing.assert_allclose(made, want, rtol=1e-6)
    inner = np.sin(np.pi / length * (np.arange(length) + 0.5)) ** 2
    np.testing.assert_allclose(
        S.vorbis_window(length), np.sin(np.pi / 2 * inner), rtol=1e-5
    )
    if length % 2 == 0:
        made = S.kaiser_bessel_derived_window(length).numpy()
        np.testing.assert_allclose(made, made[::-1], rtol=1e-6)
        squares = made[: length // 2] ** 2 + made[length // 2 :] ** 2
        np.testing.assert_allclose(squares, 1, rtol=1e-5)


@pytest.mark.parametrize("length, step", [(5, 3), (4, 6), (30, 2), (4, 2)])
@pytest.mark.parametrize("pad_end", [False, True])
def test_frames(length, step, pad_end):
    count = -(-23 // step) if pad_end else max(0, 1 + (23 - length) // step)
    padded = np.concatenate([X, np.full((2, 40), 9, "f")], 1)
    want = [padded[:, i * step : i * step + length] for i in range(count)]
    want = np.stack(want, 1) if want else np.zeros((2, 0, length))
    made = S.frame(X, length, step, pad_end, 9.0)
    np.testing.assert_array_equal(made, want)
    traced = tf.function(lambda x: S.frame(x, length, step, pad_end, 9.0))(X)
    np.testing.assert_array_equal(traced, want)
    along = S.frame(X.T, length, step, pad_end, 9.0, axis=0)
    np.testing.assert_array_equal(along, want.transpose(1, 2, 0))


@pytest.mark.parametrize("length, step", [(8, 8), (8, 16), (6, 8)])
def test_windows_that_do_not_overlap_undo_nothing_where_they_are_zero(length, step):
    forward = S.hann_window(length).numpy()
    made = S.inverse_stft_window_fn(step)(length, dtype=tf.float32).numpy()
    assert made[0] == 0 == forward[0]
    np.testing.assert_allclose(made[1:] * forward[1:], 1, rtol=1e-6)


@pytest.mark.parametrize("step", [1, 2, 4, 7])
def test_frames_are_added(step):
    frames = np.random.RandomState(2).randn(2, 4, 6).astype("f")
    want = np.zeros((2, 3 * step + 6))
    for i in range(4):
        want[:, i * step : i * step + 6] += frames[:, i]
    np.testing.assert_allclose(
        S.overlap_and_add(frames, step), want, rtol=1e-4, atol=1e-5
    )


def test_short_time_spectra():
    window = _cosine(8, True, 0.5, 0.5)
    frames = np.stack([X[:, i : i + 8] for i in range(0, 16, 4)], 1) * window
    made = S.stft(X, 8, 4)
    np.testing.assert_allclose(made, np.fft.rfft(frames), atol=1e-4)
    assert S.stft(X, 7, 3, fft_length=10, window_fn=None, pad_end=True).shape == [
        2,
        8,
        6,
    ]
    undo = S.inverse_stft_window_fn(4)
    again = S.inverse_stft(made, 8, 4, window_fn=undo).numpy()
    np.testing.assert_allclose(again[:, 4:-4], X[:, 4:16], atol=1e-5)


@tf.function
def _magnitude(x):
    return tf.reduce_sum(tf.abs(S.stft(x, 8, 4)))


def test_spectra_have_gradients():
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = _magnitude(x)
    slope = tape.gradient(y, x).numpy()
    step = np.zeros_like(X)
    step[0, 9] = 1e-2
    numeric = (_magnitude(X + step) - _magnitude(X - step)) / 2e-2
    np.testing.assert_allclose(slope[0, 9], numeric, rtol=2e-2)


def _matrix(kind, n):
    k, j = np.arange(n)[:, None], np.arange(n)
    if kind == 1:
        m = 2 * np.cos(np.pi * k * j / (n - 1))
        m[:, [0, -1]] /= 2
        return m
    if kind == 2:
        return 2 * np.cos(np.pi * k * (2 * j + 1) / (2 * n))
    if kind == 3:
        m = 2 * np.cos(np.pi * (2 * k + 1) * j / (2 * n))
        m[:, 0] /= 2
        return m
    return 2 * np.cos(np.pi * (2 * k + 1) * (2 * j + 1) / (4 * n))


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_transforms(kind):
    want = X @ _matrix(kind, 23).T
    # TensorFlow's third type is half of what is common.
    scale = 0.5 if kind == 3 and abs(S.dct(X, 3)[0, 0] * 2 - want[0, 0]) < 1e-3 else 1
    np.testing.assert_allclose(S.dct(X, kind), scale * want, atol=1e-3)
    for n in (10, 30):
        x = np.concatenate([X, np.zeros((2, 9), "f")], 1)[:, :n]
        np.testing.assert_allclose(S.dct(X, kind, n=n), S.dct(x, kind), atol=1e-4)
    if kind == 1:
        with pytest.raises(ValueError, match="not supported for the Type-I"):
            S.dct(X, 1, norm="ortho")
        return
    again = S.idct(S.dct(X, kind, norm="ortho"), kind, norm="ortho")
    np.testing.assert_allclose(again, X, atol=1e-5)


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize(
    "window", [S.vorbis_window, S.kaiser_bessel_derived_window, None]
)
def test_modified_transforms_give_back_the_inside(norm, window):
    x = X[:, :20]
    made = S.mdct(x, 8, norm=norm, window_fn=window)
    assert made.shape == [2, 4, 4]
    again = S.inverse_mdct(made, norm=norm, window_fn=window).numpy()
    np.testing.assert_allclose(again[:, 4:-4], x[:, 4:-4], atol=1e-5)


def test_mel_scale():
    made = S.linear_to_mel_weight_matrix(5, 20, 8000, 60, 3000.0).numpy()
    mel = lambda f: 1127 * np.log1p(np.asarray(f) / 700)  # noqa: E731
    edges = np.linspace(mel(60), mel(3000), 7)
    at = mel(np.linspace(0, 4000, 20))
    want = np.stack([np.interp(at, edges[i : i + 3], [0, 1, 0]) for i in range(5)], 1)
    np.testing.assert_allclose(made, want, atol=1e-5)
    made = S.mfccs_from_log_mel_spectrograms(X)
    np.testing.assert_allclose(made, S.dct(X) / np.sqrt(46), rtol=1e-5)
    for text, bad in (
        ("Nyquist", {"upper_edge_hertz": 5000.0}),
        ("num_mel_bins must be positive. Got: 0$", {"num_mel_bins": 0}),
        ("must be non-negative. Got: -1.0$", {"lower_edge_hertz": -1.0}),
        ("lower_edge_hertz 3800.0 >= upper", {"lower_edge_hertz": 3800.0}),
        ("a floating point type. Got: <dtype: 'int32'>", {"dtype": tf.int32}),
    ):
        with pytest.raises(ValueError, match=text):
            S.linear_to_mel_weight_matrix(**bad)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [None, 3, 9])
def test_cosine_transforms_of_unknown_length(kind, n):
    x = np.random.RandomState(0).rand(2, 6)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float64)])
    def traced(x):
        return tf.signal.dct(x, kind, n)

    np.testing.assert_allclose(traced(x), tf.signal.dct(x, kind, n), atol=1e-12)
    with pytest.raises(ValueError, match="greater than one"):
        tf.signal.dct(x[:, :1], 1)
