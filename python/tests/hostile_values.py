"""Arguments no sane caller would give: values, shapes and attributes of every kind.

All choices come from the generator that is handed in, so that a case is known by
its op and number.
"""

import headrace as tf
import numpy as np

SHAPES = [(), (0,), (1,), (2,), (3,), (5,), (2, 3), (3, 2), (2, 2), (0, 3), (3, 0)]
SHAPES += [(1, 1), (2, 3, 2), (0, 0, 0), (1, 4, 4, 2), (2, 2, 2, 3), (1, 2, 3, 2, 1)]
SHAPES += [(0, 4, 4, 1), (1,) * 9]
INTEGERS = [0, 1, -1, 2, 3, 7, -7, 2**31 - 1, -(2**31), 2**31, 2**62, -(2**63)]
INTEGERS += [2**63 - 1, 10**6, 2**33, -(2**33)]
FLOATS = [0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, -1e30, np.nan, np.inf, -np.inf]
STRINGS = [b"", b"a", b"%s", b"\xff\x00", b"NHWC", b"SAME", b"12", b"(", b"x" * 300]
_REAL = ["float32", "float64", "int32", "int64", "uint8", "int8", "int16", "uint16"]
_REAL += ["uint32", "uint64", "float16", "bfloat16"]
_MORE = ["bool", "string", "complex64", "complex128", "qint8", "quint8", "qint32"]
TYPES = [getattr(tf, name) for name in _REAL + _MORE]


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


def _integers(rng, dtype, count):
    """Small indices, small numbers of both signs, or the ends of the dtype."""
    info = np.iinfo(dtype)
    how = int(rng.integers(4))
    if how == 0:
        return rng.integers(0, 4, count).astype(dtype)
    if how == 1:
        return np.sort(rng.integers(0, 3, count)).astype(dtype)
    values = rng.integers(-2, 6, count) if how == 2 else rng.choice(INTEGERS, count)
    return np.clip(values.astype(object), info.min, info.max).astype(dtype)


def _floats(rng, count):
    values = rng.normal(size=count)
    if rng.integers(2):
        at = rng.integers(0, max(count, 1), (count + 2) // 3)
        values[at[:count]] = rng.choice(FLOATS, len(at[:count]))
    return values


def array(rng, dtype, shape):
    """A tensor of the dtype; None where such tensors cannot be made from data."""
    count = int(np.prod(shape))
    if dtype == tf.string:
        return tf.constant(
            np.array([pick(rng, STRINGS) for _ in range(count)], object).reshape(shape)
        )
    if dtype == tf.bool:
        return tf.constant(rng.integers(0, 2, count).astype(bool).reshape(shape))
    if dtype.is_quantized:
        plain = tf.as_dtype(dtype.name.removeprefix("q"))
        return tf.bitcast(array(rng, plain, shape), dtype)
    if dtype.is_integer and dtype.size >= 1 and dtype.name not in ("int4", "uint4"):
        values = _integers(rng, dtype.as_numpy_dtype, count)
        return tf.constant(values.reshape(shape))
    if dtype.is_complex or dtype.is_floating:
        values = _floats(rng, count).reshape(shape)
        return tf.cast(tf.constant(values), dtype)
    return None


def _resources(rng):
    """Handles of objects that never make their users wait."""
    queue = tf.raw_ops.FIFOQueueV2(component_types=[tf.float32])
    tf.raw_ops.QueueCloseV2(handle=queue, cancel_pending_enqueues=True)
    table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.float32)
    values = array(rng, tf.float32, pick(rng, SHAPES))
    kept = tf.Variable(values)
    of_int = tf.Variable(array(rng, tf.int64, pick(rng, SHAPES)))
    array_handle, _ = tf.raw_ops.TensorArrayV3(size=2, dtype=tf.float32)
    stack = tf.raw_ops.StackV2(max_size=2, elem_type=tf.float32)
    # The variables come too, so that they live as long as their handles.
    return [queue, table, kept.handle, of_int.handle, array_handle, stack], kept, of_int


def resource(rng, keep):
    handles, *owners = _resources(rng)
    keep.extend(owners)
    return pick(rng, handles)


def variant(rng):
    """A tensor list, with or without elements, or a vector of two."""
    size = pick(rng, [0, 1, 3])
    made = tf.raw_ops.TensorListReserve(
        element_shape=tf.constant(pick(rng, [[], [2], -1]), tf.int32),
        num_elements=size,
        element_dtype=pick(rng, [tf.float32, tf.int32]),
    )
    if size and rng.integers(2):
        made = tf.raw_ops.TensorListFromTensor(
            tensor=array(rng, tf.float32, (size, 2)), element_shape=tf.constant([2])
        )
    return tf.raw_ops.Pack(values=[made, made]) if rng.integers(4) == 0 else made
