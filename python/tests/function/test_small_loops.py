"""Loops on small values: traced, each has the bits of the same turns made one by one."""

import numpy as np
import pytest

import headrace as tf


def turn_by_turn(cond, body, state):
    while bool(cond(*state)):
        state = [tf.convert_to_tensor(v) for v in body(*state)]
    return state


def check(cond, body, *state):
    state = [tf.constant(v) for v in state]
    want = turn_by_turn(cond, body, list(state))

    @tf.function
    def loop(*args):
        return tf.while_loop(cond, body, args)

    for _ in range(2):  # memory is used again
        got = loop(*state)
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype and g.shape == w.shape
            assert g.numpy().tobytes() == w.numpy().tobytes()
    return loop


VECTOR = np.linspace(-2, 3, 7, dtype=np.float32)
MATRIX = np.arange(6, dtype=np.float64).reshape(2, 3) / 4


def mixed(i, y, z):
    big = tf.reduce_sum(y) > 3.0
    z = tf.where(big, z * 0.5, z + tf.cast(i, tf.float32))
    return i + 1, tf.tanh(y) * 1.5 + z, z


def matrices(i, m, v):
    v = tf.reduce_max(m, 1) - v
    return i + 1, tf.clip_by_value(m * 1.01 + v[:, None], -5.0, 5.0), v


def swapped(i, a, b):
    return i + 1, b, a * 0.5 + b


def views(i, a):
    rows = tf.reshape(a, [2, 3])
    return i + 1, tf.reshape(tf.transpose(rows) + 1.0, [6])


def softmaxes(i, a):
    return i + 1, tf.nn.softmax(a) + tf.cumsum(a) * 0.1


@pytest.mark.parametrize(
    "body, state",
    [
        (mixed, (VECTOR, np.float32(0.1))),
        (matrices, (MATRIX, np.zeros(2))),
        (swapped, (VECTOR, VECTOR[::-1].copy())),
        (views, (np.arange(6, dtype=np.float32),)),
        (softmaxes, (VECTOR,)),
        (
            lambda i, h: (i + 1, h * np.float16(1.01) + np.float16(0.1)),
            (np.float16([1, 2, 3]),),
        ),
        (lambda i, c: (i + 1, c * np.complex64(0.6 + 0.8j)), (np.complex64([1, 1j]),)),
        (
            lambda i, k: (i + 1, tf.where(k % 2 == 0, k // 2, 3 * k + 1)),
            (np.int32([7, 27, 97]),),
        ),
        (
            lambda i, b: (i + 1, tf.math.logical_xor(b, i % 3 == 0)),
            (np.array([True, False]),),
        ),
        (lambda i, u: (i + np.int32(1), u + np.uint8(200)), (np.uint8([1, 255]),)),
        (
            lambda i, x: (i + 1, tf.random.stateless_uniform([3], [i, 2]) + x),
            (VECTOR[:3],),
        ),
    ],
)
def test_bits_of_the_turns_one_by_one(body, state):
    check(lambda i, *_: i < 25, body, np.int32(0), *state)


def test_many_sizes():
    for n in (1, 2, 15, 16, 17, 511, 512, 513, 3000):
        x = np.linspace(-1, 1, n, dtype=np.float32)
        check(
            lambda i, _: i < 6,
            lambda i, x: (i + 1, tf.exp(-x * x) * 1.5),
            np.int32(0),
            x,
        )


def test_values_from_outside_stay_theirs():
    weights = tf.constant(np.random.default_rng(0).normal(size=(64, 64)).astype("f"))
    x = tf.constant(VECTOR)
    before = x.numpy().copy()

    def body(i, y):
        scale = tf.reduce_mean(tf.matmul(weights, weights))  # the same in every turn
        return i + 1, y * scale + weights[i, :7]

    check(lambda i, _: i < 30, body, np.int32(0), VECTOR)
    loop = tf.function(lambda x: tf.while_loop(lambda i, _: i < 3, body, [0, x])[1])
    first = loop(x)
    kept = first.numpy().copy()
    loop(x + 1)
    assert (x.numpy() == before).all() and (first.numpy() == kept).all()


def test_no_turn_and_the_most_turns():
    loop = check(lambda i: i < 0, lambda i: (i + 1,), np.int32(5))
    assert int(loop(tf.constant(7))[0]) == 7
    f = tf.function(
        lambda x: tf.while_loop(
            lambda x: x > 0.0, lambda x: (x * 2,), [x], maximum_iterations=10
        )
    )
    assert float(f(tf.constant(1.0))[0]) == 1024


def test_a_turn_that_fails_says_so_and_the_next_run_is_well():
    @tf.function
    def f(x):
        return tf.while_loop(
            lambda i, _: i < 5, lambda i, y: (i + 1, y + 100 // (x - i)), [0, 0]
        )[1]

    for _ in range(2):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="Integer division by zero"
        ):
            f(tf.constant(3))
        assert int(f(tf.constant(10))) == 10 + 11 + 12 + 14 + 16


def test_gradients_agree_with_the_turns_one_by_one():
    def f(x):
        return tf.while_loop(
            lambda i, _: i < 12, lambda i, y: (i + 1, tf.sin(y) * 1.1 + x), [0, x]
        )[1]

    def plain(x):
        y = x
        for _ in range(12):
            y = tf.sin(y) * 1.1 + x
        return y

    slopes = []
    for g in (tf.function(f), plain):
        x = tf.constant(VECTOR)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = g(x)
        slopes.append((y.numpy(), tape.gradient(y, x).numpy()))
    np.testing.assert_array_equal(slopes[0][0], slopes[1][0])
    np.testing.assert_allclose(slopes[0][1], slopes[1][1], rtol=1e-5)


def test_effects_run_in_every_turn():
    v = tf.Variable(0)

    @tf.function
    def f():
        def body(i):
            v.assign_add(i)
            return i + 1

        return tf.while_loop(lambda i: i < 10, lambda i: (body(i),), [0])[0]

    f()
    assert int(v) == 45


def test_shapes_that_are_known_when_it_runs_alone():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 2), [0, x])[1]

    for n in (3, 3, 3, 5, 0):
        np.testing.assert_array_equal(f(tf.ones([n])), np.full(n, 8.0))


def test_for_over_a_range_turns_as_while_loop_does():
    def turns(shape):
        return tf.function(
            lambda x: tf.while_loop(
                lambda i, _: i < 10_000,
                lambda i, y: (i + 1, y * 1.0001 + 0.5),
                [0, x],
                shape_invariants=[tf.TensorShape([]), tf.TensorShape(shape)],
            )[1]
        )

    @tf.function
    def for_over_a_range(x):
        for _ in tf.range(10_000):
            x = x * 1.0001 + 0.5
        return x

    x = tf.constant(VECTOR[:4])
    wanted = for_over_a_range(x).numpy().tobytes()
    assert turns([4])(x).numpy().tobytes() == wanted
    assert turns([None])(x).numpy().tobytes() == wanted  # shapes looked at in each turn


def written(x, n=6):
    """What loops write into arrays, in every way that is seen from outside."""
    cells = tf.TensorArray(tf.float32, size=n, element_shape=[])
    rows = tf.TensorArray(tf.float32, size=n, element_shape=[7], clear_after_read=False)
    rows = rows.write(2, x)
    total = tf.constant(0.0)
    for i in tf.range(n):
        total = total * 0.5 + x[i]
        if total > 0.0:
            rows = rows.write(i, x * total)
        else:
            rows = rows.write(n - 1 - i, x + rows.read(2))
        cells = cells.write(i, total)
    return cells.stack(), rows.stack(), rows.gather([2, 0])


def nested(x):
    rows = tf.map_fn(lambda v: tf.map_fn(lambda w: w * v + 1.0, x), x)
    return (tf.scan(lambda a, row: a * 0.5 + tf.reduce_max(row), rows),)


def scanned(x):
    return tf.scan(lambda a, v: (a[0] * 0.9 + v, tf.tanh(a[1] - v)), x, (x[0], x[1]))


@pytest.mark.parametrize("f", [written, nested, scanned])
def test_lists_are_what_they_are_turn_by_turn(f):
    x = tf.constant(VECTOR)
    traced = tf.function(f)
    for _ in range(2):
        for got, want in zip(traced(x), f(x), strict=True):
            assert got.numpy().tobytes() == want.numpy().tobytes()


@pytest.mark.parametrize("f", [written, nested, scanned])
def test_gradients_through_lists(f):
    slopes = []
    for g in (tf.function(f), f):
        x = tf.constant(VECTOR)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.add_n([tf.reduce_sum(part * part) for part in g(x)])
        slopes.append(tape.gradient(y, x).numpy())
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-5)


def test_an_array_from_before_a_loop_keeps_its_elements():
    @tf.function
    def f(x):
        first = tf.TensorArray(tf.float32, size=3, element_shape=[7]).write(1, x)
        rows = first
        for i in tf.range(3):
            rows = rows.write(i, x * 2.0)
        return first.stack(), rows.stack()

    first, rows = f(tf.constant(VECTOR))
    np.testing.assert_array_equal(first, [VECTOR * 0, VECTOR, VECTOR * 0])
    np.testing.assert_array_equal(rows, [VECTOR * 2] * 3)


def test_elements_outside_an_array_in_a_loop():
    def f(x):
        cells = tf.TensorArray(tf.float32, size=3, element_shape=[])
        for i in tf.range(5):
            cells = cells.write(i, x[i])
        return cells.stack()

    with pytest.raises(
        tf.errors.InvalidArgumentError, match="modify element 3 in a list"
    ):
        tf.function(f)(tf.constant(VECTOR))


# Of known sizes, and made by their kernels all the same.
MADE_ANEW = {
    "segments of chosen rows": lambda a: tf.sparse.segment_sum(
        a, [1, 2, 3], [0, 0, 2], num_segments=4
    ),
    "their means": lambda a: tf.sparse.segment_mean(
        a, [1, 2, 3], [0, 1, 3], num_segments=4
    ),
    "transform": lambda a: tf.math.real(tf.signal.fftnd(tf.cast(a, tf.complex64), [2])),
    "real transform": lambda a: tf.math.real(tf.signal.rfftnd(a, [2], axes=[1])),
    "one piece": lambda a: tf.split(a, 1)[0] * 0.5,
    "greatest": lambda a: tf.raw_ops.SegmentMaxV2(
        data=a, segment_ids=[0, 1, 1, 3], num_segments=4
    ),
}


@pytest.mark.parametrize("make", MADE_ANEW.values(), ids=MADE_ANEW.keys())
def test_results_that_kernels_make_anew_reach_the_next_turn(make):
    start = np.arange(8, dtype=np.float32).reshape(4, 2) / 4

    def body(i, a):
        return i + 1, make(a + tf.cast(i, tf.float32))

    check(lambda i, a: i < 3, body, 0, start)
