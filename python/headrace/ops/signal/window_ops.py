"""tf.signal: windows, frames of signals, and their sum."""

import math

from headrace.framework import conversion, dtypes, name_scopes
from headrace.framework.support import signatures
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.ops.nn import nn_ops


def _length(window_length):
    made = conversion.convert_to_tensor(window_length)
    if made.shape.rank not in (0, None):
        raise ValueError(f"window_length must be a scalar. Received: {made.shape}")
    return math_ops.cast(made, dtypes.int32)


def _check(dtype):
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {dtype}")
    return dtype


def _raised_cosine(name, a, b):
    default = name

    def window(window_length, periodic=True, dtype=dtypes.float32, name=None):
        with name_scopes.name_scope(name or default):
            dtype = _check(dtype)
            length = _length(window_length)
            # Odd lengths are the same either way.
            more = math_ops.cast(periodic, dtypes.int32) * (1 - length % 2)
            n = math_ops.cast(elementwise_ops.maximum(length + more - 1, 1), dtype)
            at = math_ops.cast(array_ops.range(length), dtype)
            made = a - b * elementwise_ops.cos(
                conversion.constant(2 * math.pi, dtype) * at / n
            )
            return array_ops.where(
                math_ops.equal(length, 1), array_ops.ones_like(made), made
            )

    doc = f"{a} - {b} cos: periodic for spectra, or symmetric for filters."
    return signatures.called(window, name, doc)


hann_window = _raised_cosine("hann_window", 0.5, 0.5)
hamming_window = _raised_cosine("hamming_window", 0.54, 0.46)


def kaiser_window(window_length, beta=12.0, dtype=dtypes.float32, name=None):
    """Kaiser's window of the shape `beta`."""
    with name_scopes.name_scope(name or "kaiser_window"):
        dtype = _check(dtype)
        length = _length(window_length)
        half = (math_ops.cast(length, dtype) - 1) / 2
        beta = math_ops.cast(beta, dtype)
        at = (
            math_ops.cast(array_ops.range(length), dtype) - half
        ) / elementwise_ops.maximum(half, 0.5)
        root = beta * elementwise_ops.sqrt(nn_ops.relu(1 - at * at))
        i0e = elementwise_ops.bessel_i0e
        return elementwise_ops.exp(root - beta) * i0e(root) / i0e(beta)


def kaiser_bessel_derived_window(
    window_length, beta=12.0, dtype=dtypes.float32, name=None
):
    """The window of even length that Kaiser's gives for the MDCT."""
    with name_scopes.name_scope(name or "kaiser_bessel_derived_window"):
        half = _length(window_length) // 2
        sums = reduction_ops.cumsum(kaiser_window(half + 1, beta, dtype))
        rising = elementwise_ops.sqrt(sums[:-1] / sums[-1])
        return array_ops.concat([rising, array_ops.reverse(rising, [0])], 0)


def vorbis_window(window_length, dtype=dtypes.float32, name=None):
    """Vorbis's window, whose square and its mirror sum to one."""
    with name_scopes.name_scope(name or "vorbis_window"):
        dtype = _check(dtype)
        length = _length(window_length)
        at = math_ops.cast(array_ops.range(length), dtype) + 0.5
        inner = elementwise_ops.sin(math.pi / math_ops.cast(length, dtype) * at)
        return elementwise_ops.sin(
            conversion.constant(math.pi / 2, dtype) * inner * inner
        )


def frame(
    signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1, name=None
):
    """Overlapping pieces of `signal` along `axis`, as a new dimension before it."""
    with name_scopes.name_scope(name or "frame"):
        signal = conversion.convert_to_tensor(signal)
        length, step = _length(frame_length), _length(frame_step)
        signal.shape.with_rank_at_least(1)
        known = signal.shape.rank
        rank = array_ops.rank(signal) if known is None else known
        if known is not None or axis < 0:
            axis = axis % rank
        count = array_ops.shape(signal)[axis]
        if pad_end:
            frames = -(-count // step)
            more = elementwise_ops.maximum(0, length + step * (frames - 1) - count)
            if known is None:
                ends = array_ops.one_hot(axis, rank, dtype=dtypes.int32) * more
                widths = array_ops.stack([array_ops.zeros_like(ends), ends], 1)
            else:
                widths = [[0, more if k == axis else 0] for k in range(rank)]
            signal = array_ops.pad(signal, widths, constant_values=pad_value)
        else:
            frames = elementwise_ops.maximum(0, 1 + (count - length) // step)
        begins = array_ops.expand_dims(array_ops.range(frames) * step, 1)
        # a reshape in between: the gradient is a tensor, not slices
        signal = array_ops.reshape(signal, array_ops.shape(signal))
        return array_ops.gather(signal, begins + array_ops.range(length), axis=axis)


def overlap_and_add(signal, frame_step, name=None):
    """The signal of frames (the last two dimensions) that lie `frame_step` apart."""
    with name_scopes.name_scope(name or "overlap_and_add"):
        signal = conversion.convert_to_tensor(signal)
        signal.shape.with_rank_at_least(2)
        step = conversion.convert_to_tensor(frame_step)
        if not step.dtype.is_integer:
            raise ValueError(f"frame_step must be an integer. Got {step.dtype}")
        step = math_ops.cast(step, dtypes.int32)
        sizes = array_ops.shape(signal)
        frames, length = sizes[-2], sizes[-1]
        total = elementwise_ops.maximum(0, (frames - 1) * step + length)
        places = array_ops.expand_dims(
            array_ops.range(frames) * step, 1
        ) + array_ops.range(length)
        flat = array_ops.reshape(signal, [-1, frames * length])
        sums = reduction_ops.unsorted_segment_sum(
            array_ops.transpose(flat), array_ops.reshape(places, [-1]), total
        )
        shape = array_ops.concat([sizes[:-2], [total]], 0)
        return array_ops.reshape(array_ops.transpose(sums), shape)
