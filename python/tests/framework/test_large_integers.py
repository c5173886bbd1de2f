"""Python integers of more than 32 and more than 64 bits: none is cut in silence."""

import headrace as tf
import numpy as np
import pytest

OUT_OF_RANGE = "Can't convert Python sequence with out-of-range integer to Tensor."
C = tf.constant([1, 2, 3])
RANGE = tf.data.Dataset.range(5)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: C[n],
        lambda n: C[-n],
        lambda n: C[:n],
        lambda n: C[n:],
        lambda n: C[::n],
        lambda n: tf.Variable([1, 2, 3])[n],
        lambda n: tf.constant(1, tf.int64) + n,
        lambda n: n - tf.constant(1, tf.int64),
        lambda n: tf.constant(1) * n,
        lambda n: tf.constant(1) == n,
        lambda n: tf.constant(n),
        lambda n: tf.constant(-n, tf.int8),
        lambda n: tf.constant(n, tf.int64),
        lambda n: tf.constant(n, tf.uint64),
        lambda n: tf.constant([1, n], tf.int32),
        lambda n: tf.constant([[1.0], [n**40]]),
        lambda n: tf.constant(n**40, tf.complex128),
        lambda n: tf.cast(n, tf.int32),
        lambda n: tf.reshape(C, [n]),
        lambda n: tf.zeros([n]),
        lambda n: tf.fill([n], 1),
        lambda n: tf.range(n),
        lambda n: tf.one_hot([1], n),
        lambda n: tf.tile(C, [n]),
        lambda n: tf.reduce_sum(C, axis=n),
        lambda n: tf.random.normal([n]),
        lambda n: tf.random.stateless_uniform([2], [n, 1]),
        lambda n: RANGE.take(n),
        lambda n: RANGE.skip(n),
        lambda n: RANGE.batch(n),
        lambda n: RANGE.repeat(n),
        lambda n: RANGE.shuffle(n),
        lambda n: RANGE.prefetch(n),
        lambda n: RANGE.window(n),
        lambda n: RANGE.shard(n, 0),
        lambda n: tf.data.Dataset.range(n),
    ],
)
@pytest.mark.parametrize("number", [2**64, 2**64 + 1, 2**70])
def test_more_than_64_bits(call, number):
    with pytest.raises(ValueError) as raised:
        call(number)
    assert str(raised.value) == OUT_OF_RANGE


def test_edges_of_64_bits():
    assert tf.constant(2**63 - 1).numpy() == 2**63 - 1
    assert tf.constant(-(2**63)).numpy() == -(2**63)
    assert tf.constant(2**64 - 1, tf.uint64).numpy() == 2**64 - 1
    assert tf.constant(1, tf.uint64) + 2**63 == tf.constant(2**63 + 1, tf.uint64)
    for number, dtype in [
        (2**63, None),
        (2**63, tf.int8),
        (-(2**63) - 1, tf.int64),
        (-1, tf.uint64),
        (2**63, tf.uint32),
    ]:
        with pytest.raises(ValueError, match="out-of-range integer"):
            tf.constant(number, dtype)
    # Fewer bits wrap around, as upstream's do, and floats round.
    assert tf.constant(300, tf.uint8).numpy() == 44
    assert (tf.constant(1) + 2**40).numpy() == 1
    assert (tf.constant(1.0) + 2**70).numpy() == np.float32(2**70)
    with pytest.raises(OverflowError):
        C[(None,) * 300]
    with pytest.raises(ValueError, match="Error converting unicode string"):
        tf.constant("\ud800")


LARGE = 2**40


@pytest.mark.parametrize(
    "draw",
    [
        lambda s: tf.random.normal(s),
        lambda s: tf.random.uniform(s),
        lambda s: tf.random.truncated_normal(s),
        lambda s: tf.random.uniform(s, 0, 9, tf.int32),
        lambda s: tf.random.gamma(s, 1.0),
        lambda s: tf.random.poisson(s, 1.0),
        lambda s: tf.random.stateless_normal(s, [1, 2]),
        lambda s: tf.random.Generator.from_seed(1).normal(s),
        lambda s: tf.zeros(s),
        lambda s: tf.ones(s),
        lambda s: tf.fill(s, 1.0),
        lambda s: tf.broadcast_to(1.0, s),
    ],
)
@pytest.mark.parametrize("shape", [[LARGE], (2, LARGE), np.array([LARGE])])
def test_shapes_that_need_int64(draw, shape):
    with pytest.raises(tf.errors.ResourceExhaustedError):
        draw(shape)
    if isinstance(shape, list):
        with tf.Graph().as_default():
            assert draw(shape).shape == [LARGE]


def test_ranges_that_need_int64():
    with pytest.raises(tf.errors.ResourceExhaustedError):
        tf.range(LARGE)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        tf.constant(np.broadcast_to(np.float32(1), [LARGE]))
    with pytest.raises(tf.errors.ResourceExhaustedError):
        tf.repeat(C, LARGE)
    found = tf.range(0, 2**31, 2**30)
    assert found.dtype == tf.int64
    np.testing.assert_array_equal(found, [0, 2**30])
    np.testing.assert_array_equal(tf.range(-LARGE, -LARGE + 2), [-LARGE, 1 - LARGE])
    assert tf.range(5).dtype == tf.int32
    with tf.Graph().as_default():
        assert tf.range(2**33).dtype == tf.int64
        assert tf.zeros(np.array([LARGE])).shape == [LARGE]
