"""Loops that read rows by number: the bits and errors of the same turns made one by one."""

import threading

import numpy as np
import pytest

import headrace as tf

TABLE = np.arange(720, dtype=np.float32).reshape(20, 6, 6) / 7
LARGE = np.linspace(-3, 3, 600 * 4, dtype=np.float64).reshape(600, 4)

READS = [
    ("x[i]", lambda x, i: x[i, 0, 0]),
    ("row", lambda x, i: x[i]),
    ("column", lambda x, i: x[:, i % 6, 1]),
    ("behind", lambda x, i: x[-1 - i]),
    ("some", lambda x, i: x[i, ::2, tf.newaxis]),
    ("back", lambda x, i: x[i, ::-1, i % 6]),
    ("rest", lambda x, i: x[..., i % 6]),
    ("gather", lambda x, i: tf.gather(x, i)),
    ("gather axis", lambda x, i: tf.gather(x, i % 6, axis=1)),
    ("gather some", lambda x, i: tf.gather(x, [i, 0, i // 2])),
    ("gather_nd", lambda x, i: tf.gather_nd(x, [i, i % 6])),
    ("slice", lambda x, i: tf.slice(x, [i, i % 3, 0], [1, 2, 6])),
    ("int64", lambda x, i: x[tf.cast(i, tf.int64)]),
    ("expanded", lambda x, i: tf.expand_dims(x[i], 0)),
    ("reshaped", lambda x, i: tf.reshape(tf.squeeze(x[i : i + 1], 0), [36])),
]


@pytest.mark.parametrize("read", [r for _, r in READS], ids=[n for n, _ in READS])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex128])
def test_reads(read, dtype):
    x = tf.constant(TABLE.astype(dtype))
    want = tf.zeros_like(read(x, tf.constant(0)))
    for i in range(18):
        want = want + read(x, tf.constant(i))

    @tf.function
    def loop(x, first):
        y = first
        for i in tf.range(18):
            y = y + read(x, i)
        return y

    for _ in range(2):
        got = loop(x, tf.zeros_like(want))
        assert got.shape == want.shape
        assert got.numpy().tobytes() == want.numpy().tobytes()


def summed(x, count):
    y = tf.zeros(x.shape[1:], x.dtype)
    for i in tf.range(count):
        y += x[i]
    return y


def test_an_index_that_is_too_large_in_a_late_turn():
    loop = tf.function(summed)
    x = tf.constant(LARGE[:500])
    np.testing.assert_allclose(loop(x, 500), LARGE[:500].sum(0))
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        loop(x, 501)
    assert "slice index 500 of dimension 0 out of bounds." in str(e.value)
    np.testing.assert_allclose(loop(x, 500), LARGE[:500].sum(0))

    @tf.function
    def gathered(x, count):
        y = tf.zeros([4], x.dtype)
        for i in tf.range(count):
            y += tf.gather(x, i)
        return y

    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"500 is not in \[0, 500\)"
    ):
        gathered(x, 501)


def test_gradients():
    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.zeros([4], x.dtype)
            for i in tf.range(7):
                y += x[2 * i] * tf.cast(i, x.dtype)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, x)

    x = LARGE[:20]
    y = sum(x[2 * i] * i for i in range(7))
    want = np.zeros_like(x)
    for i in range(7):
        want[2 * i] = 2 * y * i
    np.testing.assert_allclose(gradient(tf.constant(x)), want, rtol=1e-12)


def test_a_table_that_changes():
    @tf.function
    def loop(x):
        for i in tf.range(50):
            x = tf.concat([x[1:], [x[i % 3] * 0.5 + x[4]]], 0)
        return x

    x = np.arange(5, dtype=np.float32)
    want = list(x)
    for i in range(50):
        want = want[1:] + [want[i % 3] * np.float32(0.5) + want[4]]
    np.testing.assert_array_equal(loop(tf.constant(x)), np.array(want, np.float32))


def test_threads_read_tables_of_their_own():
    loop = tf.function(summed)
    x = np.ones([600, 4])
    loop(tf.constant(x), 600)
    wrong = []

    def work(k):
        for _ in range(20):
            if loop(tf.constant(x * k), 600).numpy()[1] != 600 * k:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
