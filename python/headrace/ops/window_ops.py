"""tf.signal: windows, frames of signals, and their sum."""

import math

import headrace as tf


def _length(window_length):
    made = tf.convert_to_tensor(window_length)
    if made.shape.rank not in (0, None):
        raise ValueError(f"window_length must be a scalar. Received: {made.shape}")
    return tf.cast(made, tf.int32)


def _check(dtype):
    dtype = tf.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {dtype}")
    return dtype


def _raised_cosine(name, a, b):
    def window(window_length, periodic=True, dtype=tf.float32, name=name):
        with tf.name_scope(name):
            dtype = _check(dtype)
            length = _length(window_length)
            # Odd lengths are the same either way.
            more = tf.cast(periodic, tf.int32) * (1 - length % 2)
            n = tf.cast(tf.maximum(length + more - 1, 1), dtype)
            at = tf.cast(tf.range(length), dtype)
            made = a - b * tf.cos(tf.constant(2 * math.pi, dtype) * at / n)
            return tf.where(tf.equal(length, 1), tf.ones_like(made), made)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"{a} - {b} cos: periodic for spectra, or symmetric for filters."
    return window


hann_window = _raised_cosine("hann_window", 0.5, 0.5)
hamming_window = _raised_cosine("hamming_window", 0.54, 0.46)


def kaiser_window(window_length, beta=12.0, dtype=tf.float32, name=None):
    """Kaiser's window of the shape `beta`."""
    with tf.name_scope(name or "kaiser_window"):
        dtype = _check(dtype)
        length = _length(window_length)
        half = (tf.cast(length, dtype) - 1) / 2
        beta = tf.cast(beta, dtype)
        at = (tf.cast(tf.range(length), dtype) - half) / tf.maximum(half, 0.5)
        root = beta * tf.sqrt(tf.nn.relu(1 - at * at))
        i0e = tf.math.bessel_i0e
        return tf.exp(root - beta) * i0e(root) / i0e(beta)


def kaiser_bessel_derived_window(window_length, beta=12.0, dtype=tf.float32, name=None):
    """The window of even length that Kaiser's gives for the MDCT."""
    with tf.name_scope(name or "kaiser_bessel_derived_window"):
        half = _length(window_length) // 2
        sums = tf.cumsum(kaiser_window(half + 1, beta, dtype))
        rising = tf.sqrt(sums[:-1] / sums[-1])
        return tf.concat([rising, tf.reverse(rising, [0])], 0)


def vorbis_window(window_length, dtype=tf.float32, name=None):
    """Vorbis's window, whose square and its mirror sum to one."""
    with tf.name_scope(name or "vorbis_window"):
        dtype = _check(dtype)
        length = _length(window_length)
        at = tf.cast(tf.range(length), dtype) + 0.5
        inner = tf.sin(math.pi / tf.cast(length, dtype) * at)
        return tf.sin(tf.constant(math.pi / 2, dtype) * inner * inner)


def frame(
    signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1, name=None
):
    """Overlapping pieces of `signal` along `axis`, as a new dimension before it."""
    with tf.name_scope(name or "frame"):
        signal = tf.convert_to_tensor(signal)
        length, step = _length(frame_length), _length(frame_step)
        signal.shape.with_rank_at_least(1)
        known = signal.shape.rank
        rank = tf.rank(signal) if known is None else known
        if known is not None or axis < 0:
            axis = axis % rank
        count = tf.shape(signal)[axis]
        if pad_end:
            frames = -(-count // step)
            more = tf.maximum(0, length + step * (frames - 1) - count)
            if known is None:
                ends = tf.one_hot(axis, rank, dtype=tf.int32) * more
                widths = tf.stack([tf.zeros_like(ends), ends], 1)
            else:
                widths = [[0, more if k == axis else 0] for k in range(rank)]
            signal = tf.pad(signal, widths, constant_values=pad_value)
        else:
            frames = tf.maximum(0, 1 + (count - length) // step)
        begins = tf.expand_dims(tf.range(frames) * step, 1)
        # a reshape in between: the gradient is a tensor, not slices
        signal = tf.reshape(signal, tf.shape(signal))
        return tf.gather(signal, begins + tf.range(length), axis=axis)


def overlap_and_add(signal, frame_step, name=None):
    """The signal of frames (the last two dimensions) that lie `frame_step` apart."""
    with tf.name_scope(name or "overlap_and_add"):
        signal = tf.convert_to_tensor(signal)
        if signal.shape.rank is not None and signal.shape.rank < 2:
            raise ValueError("Input shape should be at least rank 2")
        step = tf.convert_to_tensor(frame_step)
        if not step.dtype.is_integer:
            raise ValueError(f"frame_step must be an integer. Got {step.dtype}")
        step = tf.cast(step, tf.int32)
        sizes = tf.shape(signal)
        frames, length = sizes[-2], sizes[-1]
        total = tf.maximum(0, (frames - 1) * step + length)
        places = tf.expand_dims(tf.range(frames) * step, 1) + tf.range(length)
        flat = tf.reshape(signal, [-1, frames * length])
        sums = tf.math.unsorted_segment_sum(
            tf.transpose(flat), tf.reshape(places, [-1]), total
        )
        shape = tf.concat([sizes[:-2], [total]], 0)
        return tf.reshape(tf.transpose(sums), shape)
