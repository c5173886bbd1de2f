"""tf.signal: short-time spectra, cosine transforms, the mel scale."""

import functools
import math

from headrace.framework import conversion, dtypes, execution, name_scopes, tensor
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.ops.signal import signal_ops, window_ops


def _enclosing_power(value):
    known = execution.get_static_value(value)
    if known is not None:
        return 1 << max(int(known) - 1, 0).bit_length()
    logs = elementwise_ops.log(math_ops.cast(value, dtypes.float32)) / math.log(2.0)
    return math_ops.cast(
        elementwise_ops.pow(2.0, elementwise_ops.ceil(logs)), value.dtype
    )


def stft(
    signals,
    frame_length,
    frame_step,
    fft_length=None,
    window_fn=window_ops.hann_window,
    pad_end=False,
    name=None,
):
    """The spectrum of each frame: [..., frames, fft_length / 2 + 1]."""
    with name_scopes.name_scope(name or "stft"):
        signals = conversion.convert_to_tensor(signals)
        if fft_length is None:
            fft_length = _enclosing_power(conversion.convert_to_tensor(frame_length))
        frames = window_ops.frame(signals, frame_length, frame_step, pad_end=pad_end)
        if window_fn is not None:
            frames = frames * window_fn(frame_length, dtype=frames.dtype)
        return signal_ops.rfft(frames, [fft_length])


def inverse_stft_window_fn(
    frame_step, forward_window_fn=window_ops.hann_window, name=None
):
    """The window for inverse_stft that undoes `forward_window_fn`."""

    def window(frame_length, dtype):
        with name_scopes.name_scope(name or "inverse_stft_window_fn"):
            length = math_ops.cast(frame_length, dtypes.int32)
            step = math_ops.cast(frame_step, dtypes.int32)
            forward = forward_window_fn(frame_length, dtype=dtype)
            overlaps = -(-length // step)
            square = array_ops.pad(
                elementwise_ops.square(forward), [[0, overlaps * step - length]]
            )
            sums = reduction_ops.reduce_sum(
                array_ops.reshape(square, [overlaps, step]), 0, True
            )
            sums = array_ops.reshape(
                array_ops.tile(sums, [overlaps, 1]), [overlaps * step]
            )
            # Where no window reaches, it undoes nothing.
            return elementwise_ops.divide_no_nan(forward, sums[:length])

    return window


def inverse_stft(
    stfts,
    frame_length,
    frame_step,
    fft_length=None,
    window_fn=window_ops.hann_window,
    name=None,
):
    """The signal whose frames have these spectra."""
    with name_scopes.name_scope(name or "inverse_stft"):
        stfts = conversion.convert_to_tensor(stfts)
        length = math_ops.cast(frame_length, dtypes.int32)
        if fft_length is None:
            fft_length = _enclosing_power(conversion.convert_to_tensor(frame_length))
        frames = signal_ops.irfft(stfts, [fft_length])[..., :length]
        more = elementwise_ops.maximum(length - fft_length, 0)
        rank = frames.shape.rank
        frames = array_ops.pad(frames, [[0, 0]] * (rank - 1) + [[0, more]])
        if window_fn is not None:
            frames = frames * window_fn(frame_length, dtype=frames.dtype)
        return window_ops.overlap_and_add(frames, frame_step)


def _check_dct(type, n, axis, norm):
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and not tensor.is_tensor(n) and n < 1:
        raise ValueError("n should be a positive integer or None")
    if type not in (1, 2, 3, 4):
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if type == 1 and norm == "ortho":
        raise ValueError("Normalization is not supported for the Type-I DCT.")
    if norm not in (None, "ortho"):
        raise ValueError(
            f"Unknown normalization. Expected None or 'ortho', got: {norm}"
        )


def _last_size(x):
    """The size of the last dimension: a number where it is known."""
    known = x.shape[-1]
    return array_ops.shape(x)[-1] if known is None else known


def _of_length(x, n):
    x = x[..., :n]
    more = elementwise_ops.maximum(n - array_ops.shape(x)[-1], 0)
    return array_ops.pad(x, [[0, 0]] * (x.shape.rank - 1) + [[0, more]])


def _turns(size, real, sign):
    """exp(i * sign * pi k / 2 size), twice."""
    angle = array_ops.range(size, dtype=real) * (sign * math.pi * 0.5 / size)
    return 2.0 * elementwise_ops.exp(
        elementwise_ops.complex(array_ops.zeros([], real), angle)
    )


def _ends(first, others, size, dtype):
    return array_ops.concat(
        [[first], array_ops.fill([size - 1], math_ops.cast(others, dtype))], 0
    )


def dct(input, type=2, n=None, axis=-1, norm=None, name=None):
    """The cosine transform of the last dimension, cut or filled up to `n`."""
    _check_dct(type, n, axis, norm)
    with name_scopes.name_scope(name or "dct"):
        x = conversion.convert_to_tensor(input)
        real = x.dtype
        if type == 1 and x.shape[-1] is not None and x.shape[-1] < 2:
            raise ValueError(
                "Type-I DCT requires the dimension to be greater than one."
            )
        if n is not None:
            x = _of_length(x, n)
        size = _last_size(x)
        wide = math_ops.cast(size, real)
        if type == 1:
            mirrored = array_ops.concat([x, x[..., -2:0:-1]], -1)
            return elementwise_ops.real(signal_ops.rfft(mirrored))
        if type == 4:
            made = dct(x, type=2, n=2 * size)[..., 1::2]
            return (
                made * (math.sqrt(0.5) / elementwise_ops.sqrt(wide)) if norm else made
            )
        if type == 3:
            if norm:
                root = elementwise_ops.sqrt(wide)
                x = x * _ends(root, root * math.sqrt(0.5), size, real)
            else:
                x = x * wide
            turned = _turns(wide, real, 1) * elementwise_ops.complex(
                x, array_ops.zeros([], real)
            )
            return signal_ops.irfft(turned, [2 * size])[..., :size]
        spectrum = signal_ops.rfft(x, [2 * size])[..., :size]
        made = elementwise_ops.real(spectrum * _turns(wide, real, -1))
        if norm:
            first = 0.5 / elementwise_ops.sqrt(wide)
            made = made * _ends(first, first * math.sqrt(2.0), size, real)
        return made


def idct(input, type=2, n=None, axis=-1, norm=None, name=None):
    """The transform that undoes dct's, but for a factor where `norm` is None."""
    _check_dct(type, n, axis, norm)
    inverse = {1: 1, 2: 3, 3: 2, 4: 4}[type]
    return dct(input, inverse, n, axis, norm, name or "idct")


def mdct(
    signals,
    frame_length,
    window_fn=window_ops.vorbis_window,
    pad_end=False,
    norm=None,
    name=None,
):
    """The modified cosine transform of frames that overlap by half."""
    with name_scopes.name_scope(name or "mdct"):
        known = execution.get_static_value(frame_length)
        if known is not None and known % 4:
            raise ValueError("The frame length must be a multiple of 4.")
        step = frame_length // 2
        frames = window_ops.frame(signals, frame_length, step, pad_end)
        if window_fn is not None:
            frames = frames * window_fn(frame_length, dtype=frames.dtype)
        else:
            frames = frames * (1.0 / math.sqrt(2.0))
        a, b, c, d = array_ops.split(frames, 4, -1)
        back = functools.partial(array_ops.reverse, axis=[-1])
        return dct(array_ops.concat([-back(c) - d, a - back(b)], -1), type=4, norm=norm)


def inverse_mdct(mdcts, window_fn=window_ops.vorbis_window, norm=None, name=None):
    """The signal that mdct was made of."""
    with name_scopes.name_scope(name or "inverse_mdct"):
        mdcts = conversion.convert_to_tensor(mdcts)
        half = _last_size(mdcts)
        made = dct(mdcts, type=4, norm=norm)
        if norm is None:
            made = made * (0.5 / math_ops.cast(half, mdcts.dtype))
        low, high = made[..., : half // 2], made[..., half // 2 :]
        back = functools.partial(array_ops.reverse, axis=[-1])
        frames = array_ops.concat([high, -back(high), -back(low), -low], -1)
        if window_fn is not None:
            frames = frames * window_fn(2 * half, dtype=mdcts.dtype)
        else:
            frames = frames * (1.0 / math.sqrt(2.0))
        return window_ops.overlap_and_add(frames, half)


def _mel(hertz):
    return 1127.0 * elementwise_ops.log1p(hertz / 700.0)


def linear_to_mel_weight_matrix(
    num_mel_bins=20,
    num_spectrogram_bins=129,
    sample_rate=8000,
    lower_edge_hertz=125.0,
    upper_edge_hertz=3800.0,
    dtype=dtypes.float32,
    name=None,
):
    """[spectrogram bins, mel bins]: triangles, evenly spaced on the mel scale."""
    if num_mel_bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {num_mel_bins}")
    if lower_edge_hertz < 0.0:
        raise ValueError(
            f"lower_edge_hertz must be non-negative. Got: {lower_edge_hertz}"
        )
    if lower_edge_hertz >= upper_edge_hertz:
        raise ValueError(
            f"lower_edge_hertz {lower_edge_hertz} >= upper_edge_hertz "
            f"{upper_edge_hertz}"
        )
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {dtype}")
    rate = execution.get_static_value(sample_rate)
    if rate is not None and rate <= 0:
        raise ValueError(f"sample_rate must be positive. Got: {sample_rate}")
    if rate is not None and upper_edge_hertz > rate / 2:
        raise ValueError(
            "upper_edge_hertz must not be larger than the Nyquist frequency "
            f"(sample_rate / 2). Got {upper_edge_hertz} for sample_rate: {sample_rate}"
        )
    with name_scopes.name_scope(name or "linear_to_mel_weight_matrix"):
        nyquist = math_ops.cast(sample_rate, dtype) / 2.0
        hertz = array_ops.linspace(
            array_ops.zeros([], dtype), nyquist, num_spectrogram_bins
        )[1:]
        bins = array_ops.expand_dims(_mel(hertz), 1)
        low = _mel(conversion.constant(lower_edge_hertz, dtype))
        high = _mel(conversion.constant(upper_edge_hertz, dtype))
        edges = array_ops.linspace(low, high, num_mel_bins + 2)
        lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
        rising = (bins - lower) / (center - lower)
        falling = (upper - bins) / (upper - center)
        weights = elementwise_ops.maximum(
            array_ops.zeros([], dtype), elementwise_ops.minimum(rising, falling)
        )
        return array_ops.pad(weights, [[1, 0], [0, 0]])


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms, name=None):
    """Mel-frequency cepstral coefficients, as HTK scales them."""
    with name_scopes.name_scope(name or "mfccs_from_log_mel_spectrograms"):
        x = conversion.convert_to_tensor(log_mel_spectrograms)
        if x.shape[-1] == 0:
            raise ValueError(f"num_mel_bins must be positive. Got: {x.shape}")
        bins = _last_size(x)
        return dct(x, type=2) * elementwise_ops.rsqrt(
            math_ops.cast(bins, x.dtype) * 2.0
        )
