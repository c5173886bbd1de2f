"""Random ops, traces and gradients leave memory flat.

HEADRACE_MEMORY_SECONDS sets how long the program runs (10 here; 600 for the
long run).
"""

import gc
import os
import time

import headrace as tf
import numpy as np
from headrace._load import _headrace


def _resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


_UNARY = [tf.tanh, tf.sigmoid, tf.exp, tf.square, tf.nn.relu, tf.abs]
_BINARY = [tf.add, tf.multiply, tf.maximum, tf.subtract]


def _value(rng, x):
    """A few random ops on a matrix, its shape kept."""
    y = x
    for _ in range(rng.integers(2, 6)):
        kind = rng.integers(4)
        if kind == 0:
            y = _UNARY[rng.integers(len(_UNARY))](y * 0.1)
        elif kind == 1:
            y = _BINARY[rng.integers(len(_BINARY))](y, x)
        elif kind == 2:
            y = tf.matmul(y, tf.transpose(x)) @ x * 0.01
        else:
            y = y - tf.reduce_mean(y, axis=int(rng.integers(2)), keepdims=True)
    return y


def _round(rng):
    """Eager, traced and differentiated, all of it dropped at the end."""
    x = tf.constant(rng.normal(size=rng.integers(1, 40, 2)).astype("f4"))
    v = tf.Variable(x)
    seed = int(rng.integers(1 << 30))

    def body(x):
        return tf.reduce_sum(_value(np.random.default_rng(seed), x) * v)

    f = tf.function(body)
    g = tf.function(lambda x: f(x) + f(2.0 * x))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = g(x)
        dx, _ = tape.gradient(y, [x, v])
    outer.gradient(dx, x)
    with tf.GradientTape() as tape:
        y = body(x)
    tape.gradient(y, v)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = f(x)
        v.assign_sub(0.1 * tape.gradient(y, v))
        return y

    step(x)


def test_flat():
    seconds = float(os.environ.get("HEADRACE_MEMORY_SECONDS", "10"))
    rng = np.random.default_rng(1)
    end = time.monotonic() + seconds
    # What pools, caches and arenas come to in the end.
    while time.monotonic() < end - seconds * 0.7:
        _round(rng)
    gc.collect()
    functions, before = _headrace.count_functions(), _resident()
    rounds = 0
    while time.monotonic() < end:
        _round(rng)
        rounds += 1
    gc.collect()
    assert rounds > 10
    assert _headrace.count_functions() <= functions
    assert _resident() - before < 16 << 20, f"grew in {rounds} rounds"


def test_a_dropped_function_frees_its_graphs():
    gc.collect()
    before = _headrace.count_functions()
    v = tf.Variable(2.0)
    inner = tf.function(lambda x: x * x * v)
    f = tf.function(lambda x: inner(x) + inner(x + 1.0))
    with tf.GradientTape() as tape:
        y = f(tf.constant(3.0))
    assert tape.gradient(y, v).numpy() == 25.0
    assert _headrace.count_functions() > before
    del inner, tape, y
    assert f(tf.constant(3.0)).numpy() == 50.0
    del f
    gc.collect()
    assert _headrace.count_functions() == before


def test_a_dropped_loop_frees_its_functions():
    if not hasattr(tf, "while_loop"):
        return
    gc.collect()
    before = _headrace.count_functions()

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, y = tf.while_loop(
                lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (tf.constant(0), x)
            )
        return tape.gradient(y, x)

    assert f(tf.constant(2.0)).numpy() == 32.0
    del f
    gc.collect()
    assert _headrace.count_functions() == before
