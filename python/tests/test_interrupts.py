"""Signals, deadlines and what else ends work early."""

import os
import subprocess
import sys

import pytest

import headrace as tf

v1 = tf.compat.v1
PROGRAM = os.path.join(os.path.dirname(__file__), "interrupted_program.py")
LOOPS = [
    "while_in_function",
    "while_in_session",
    "while_in_map",
    "while_in_parallel_map",
    "gradient_of_loop",
    "keras_fit",
]
KERNELS = [
    "matmul",
    "matmul_in_function",
    "svd",
    "cholesky",
    "solve",
    "convolution",
    "convolution_gradient",
    "sort",
    "unique",
    "draw",
    "shuffle_rows",
    "fft",
    "elementwise",
    "reduction",
]
DATASETS = [
    "filter_all",
    "filter_behind_prefetch",
    "shuffle_all",
    "skip_all",
    "batch_all",
    "reduce_all",
]
WAITS = [
    "dequeue",
    "dequeue_in_function",
    "enqueue_in_session",
    "generator",
    "py_function",
    "numpy_function_in_map",
]
MOST = 3.0  # seconds; a tenth where nothing else runs


@pytest.mark.parametrize("calls", [LOOPS, KERNELS, DATASETS, WAITS])
def test_signals_end_calls(calls):
    """KeyboardInterrupt soon after the signal, and ops work after it."""
    done = subprocess.run(
        [sys.executable, PROGRAM, *calls], capture_output=True, text=True, timeout=120
    )
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert [name for name, _, _ in lines] == calls, done.stdout + done.stderr
    for name, late, told in lines:
        frame = "call" if calls is KERNELS else name
        assert told.startswith(f"KeyboardInterrupt in end,{frame}"), (name, told)
        assert float(late) < MOST, (name, late)


ONE_SIGINT = """
import os, signal, sys, threading, time
import headrace as tf
# (Whoever started the tests in the background has signals of the keyboard ignored.)
signal.signal(signal.SIGINT, signal.default_int_handler)
x = tf.random.stateless_uniform([1200, 1200], [1, 2])
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        tf.linalg.svd(x)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_sigint():
    done = subprocess.run(
        [sys.executable, "-c", ONE_SIGINT], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "interrupted\n", done.stderr


def _raise(error):
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit(3)])
def test_interrupts_of_functions_stay(error):
    """What is no Exception passes ops that call Python as it is."""
    kind = error if isinstance(error, type) else type(error)
    spec = tf.TensorSpec([], tf.int32)

    @tf.custom_gradient
    def halves(x):
        return x / 2, lambda dy: _raise(error)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = halves(x)
        return tape.gradient(y, x)

    def mapped(**options):
        data = tf.data.Dataset.range(3)
        return data.map(
            lambda x: tf.numpy_function(lambda _: _raise(error), [x], tf.int64),
            **options,
        )

    def generated():
        yield 1
        raise error

    data = tf.data.Dataset.from_generator(generated, output_signature=spec)
    calls = [
        lambda: tf.py_function(lambda: _raise(error), [], tf.int32),
        tf.function(lambda: tf.py_function(lambda: _raise(error), [], tf.int32)),
        tf.function(lambda: tf.numpy_function(lambda: _raise(error), [], tf.int32)),
        tf.function(lambda: _raise(error)),
        lambda: list(data),
        lambda: list(data.prefetch(2)),
        lambda: list(mapped()),
        lambda: list(mapped(num_parallel_calls=2)),
        lambda: list(mapped().ignore_errors()),
        lambda: tf.map_fn(lambda _: _raise(error), tf.zeros([2])),
        lambda: gradient(tf.constant(1.0)),
        lambda: tf.function(gradient)(tf.constant(1.0)),
        lambda: tf.data.Dataset.range(3).map(lambda _: _raise(error)),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(kind) as raised:
            call()
        assert getattr(raised.value, "code", 3) == 3, number
        assert float(tf.reduce_sum(tf.ones([4]))) == 4
    assert [int(x) for x in tf.data.Dataset.range(2).prefetch(1)] == [0, 1]


def test_session_deadlines():
    """timeout_in_ms and operation_timeout_in_ms act within kernels, loops, waits."""
    options = v1.RunOptions(timeout_in_ms=100)
    config = v1.ConfigProto(operation_timeout_in_ms=100)

    def loop():
        i = tf.constant(0)
        return tf.while_loop(lambda i: i >= 0, lambda i: i - i + 1, [i])

    def wait():
        return v1.FIFOQueue(2, [tf.int32], [[]]).dequeue()

    def product():
        x = tf.ones([6000, 6000])
        return tf.matmul(x, x)

    def walk():
        data = tf.data.Dataset.range(2**62).filter(lambda x: x < 0)
        return v1.data.make_one_shot_iterator(data).get_next()

    def reduction():
        data = tf.data.Dataset.range(2**62)
        return data.reduce(tf.constant(0, tf.int64), lambda s, x: s ^ x)

    for make in (loop, wait, product, walk, reduction):
        with tf.Graph().as_default():
            fetch, one = make(), tf.constant(1)
            for settings, run_options in ((None, options), (config, None)):
                with v1.Session(config=settings) as session:
                    with pytest.raises(tf.errors.DeadlineExceededError):
                        session.run(fetch, options=run_options)
                    assert session.run(one) == 1


def test_closed_session_ends_its_runs():
    import threading

    with tf.Graph().as_default():
        fetch = v1.FIFOQueue(2, [tf.int32], [[]]).dequeue()
        session = v1.Session()
        threading.Timer(0.2, session.close).start()
        with pytest.raises(tf.errors.CancelledError):
            session.run(fetch)
