"""Memory shared by DLPack."""

import gc

import numpy as np
import pytest

import headrace as tf

dlpack = tf.experimental.dlpack
KINDS = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 "
    "float64 complex64 complex128"
).split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 7)])
def test_round_trips(kind, shape):
    tensor = tf.cast(tf.reshape(tf.range(int(np.prod(shape))), shape), kind)
    expected = tensor.numpy()
    capsule = dlpack.to_dlpack(tensor)
    del tensor
    gc.collect()
    other = dlpack.from_dlpack(capsule)
    assert other.dtype == tf.as_dtype(kind) and other.shape == shape
    assert (other.numpy() == expected).all()


def test_memory_is_shared_and_lives_on():
    array = np.arange(3.0)
    tensor = dlpack.from_dlpack(array.__dlpack__())
    array[0] = 7
    assert tensor.numpy().tolist() == [7, 1, 2]
    del array
    gc.collect()
    assert (tensor + 1).numpy().tolist() == [8, 2, 3]


def test_capsules_that_nobody_uses_and_those_used_twice():
    dlpack.to_dlpack(tf.ones([1000]))
    capsule = dlpack.to_dlpack(tf.ones([2]))
    dlpack.from_dlpack(capsule)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most once"):
        dlpack.from_dlpack(capsule)


def test_refusals():
    for value in ([1], np.ones(2), tf.Variable(1.0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be a TF tensor"):
            dlpack.to_dlpack(value)
    for tensor in (tf.constant("a"), tf.constant([1], tf.qint16)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not supported by"):
            dlpack.to_dlpack(tensor)
    with pytest.raises(TypeError, match="capsule"):
        dlpack.from_dlpack(3)
    for array in (np.ones((4, 6))[::2], np.ones((2, 3)).T):
        with pytest.raises(tf.errors.InvalidArgumentError, match="strides"):
            dlpack.from_dlpack(array.__dlpack__())


def test_bytes_of_bools_are_zero_and_one():
    raw = np.array([0, 2, 255], np.uint8).view(np.bool_)
    assert dlpack.from_dlpack(raw.__dlpack__()).numpy().view(np.uint8).tolist() == [
        *(0, 1, 1)
    ]
