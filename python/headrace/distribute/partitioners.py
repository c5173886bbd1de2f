"""tf.distribute.experimental.partitioners: into how many parts variables are divided."""

import math

from headrace import _api as tf


class Partitioner:
    """Base of partitioners: called with a variable's shape and dtype, one gives how many
    parts there are along each axis."""

    def __call__(self, shape, dtype, axis=0):
        """A list of numbers of parts, an axis each; subclasses define it."""
        raise NotImplementedError


def _parts(shape, axis, count):
    parts = [1] * len(shape)
    parts[axis] = max(1, min(count, shape[axis])) if shape[axis] else 0
    return parts


def _checked(shape, dtype, bytes_per_string):
    """(the sizes, the bytes of an element). ValueError for sizes that are not known."""
    if not isinstance(shape, tf.TensorShape):
        raise ValueError(f"shape is not a TensorShape: {shape}")
    if not shape.is_fully_defined():
        raise ValueError(f"shape is not fully defined: {shape}")
    dtype = tf.as_dtype(dtype)
    return shape.as_list(), bytes_per_string if dtype == tf.string else dtype.size


def _positive(name, value, mark=":"):
    if value < 1:
        raise ValueError(f"Argument `{name}` must be positive. Received{mark} {value}")


class FixedShardsPartitioner(Partitioner):
    """So many parts, or as many as there are rows."""

    def __init__(self, num_shards):
        self._num_shards = num_shards

    def __call__(self, shape, dtype, axis=0):
        """A list of numbers of parts, an axis each. ValueError for unknown sizes."""
        sizes, _ = _checked(shape, dtype, 1)
        parts = [1] * len(sizes)
        parts[axis] = min(self._num_shards, sizes[axis])
        return parts


class MinSizePartitioner(Partitioner):
    """Parts of at least so many bytes, and at most `max_shards`. ValueError for numbers
    below 1."""

    def __init__(self, min_shard_bytes=256 << 10, max_shards=1, bytes_per_string=16):
        _positive("min_shard_bytes", min_shard_bytes)
        _positive("max_shards", max_shards)
        _positive("bytes_per_string", bytes_per_string)
        self._min_shard_bytes = min_shard_bytes
        self._max_shards = max_shards
        self._bytes_per_string = bytes_per_string

    def __call__(self, shape, dtype, axis=0):
        """A list of numbers of parts, an axis each. ValueError for unknown sizes, and an
        axis that there is not."""
        sizes, size = _checked(shape, dtype, self._bytes_per_string)
        if axis >= len(sizes):
            raise ValueError(
                f"Cannot partition variable along axis {axis} when shape is only {shape}"
            )
        whole = math.ceil(math.prod(sizes) * size / self._min_shard_bytes)
        return _parts(sizes, axis, max(1, min(self._max_shards, whole)))


class MaxSizePartitioner(Partitioner):
    """Parts of at most so many bytes, and at most `max_shards`, if that is given.
    ValueError for numbers below 1."""

    def __init__(self, max_shard_bytes, max_shards=None, bytes_per_string=16):
        _positive("max_shard_bytes", max_shard_bytes, "")
        if max_shards:
            _positive("max_shards", max_shards)
        _positive("bytes_per_string", bytes_per_string)
        self._max_shard_bytes = max_shard_bytes
        self._max_shards = max_shards
        self._bytes_per_string = bytes_per_string

    def __call__(self, shape, dtype, axis=0):
        """A list of numbers of parts, an axis each. ValueError for unknown sizes."""
        sizes, size = _checked(shape, dtype, self._bytes_per_string)
        slice_bytes = math.prod(sizes) // max(1, sizes[axis]) * size
        per_shard = max(1, self._max_shard_bytes // max(1, slice_bytes))
        count = math.ceil(sizes[axis] / per_shard)
        return _parts(sizes, axis, min(count, self._max_shards or count))
