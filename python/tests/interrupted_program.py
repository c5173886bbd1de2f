"""Long calls, each ended by a signal: what test_interrupts.py runs in a process of its own.

Prints a line a call: its name, the seconds from the signal to the exception, and the
exception with the names of the functions in its traceback.
"""

import signal
import sys
import time
import traceback

import headrace as tf

v1 = tf.compat.v1
DELAY = 0.25
uniform = tf.random.stateless_uniform


def prepared(make):
    """Marks what makes the call, instead of being it."""
    make.prepared = True
    return make


def endless():
    return tf.data.Dataset.range(2**62)


@tf.function
def count_for_ever():
    return tf.while_loop(lambda i: i >= 0, lambda i: i - i + 1, [tf.constant(0)])


def while_in_function():
    count_for_ever()


def while_in_session():
    with tf.Graph().as_default():
        i = tf.constant(0)
        out = tf.while_loop(lambda i: i >= 0, lambda i: i - i + 1, [i])
        v1.Session().run(out)


def while_in_map():
    loop = count_for_ever.get_concrete_function()
    next(iter(endless().map(lambda x: loop())))


def while_in_parallel_map():
    loop = count_for_ever.get_concrete_function()
    next(iter(endless().map(lambda x: loop(), num_parallel_calls=2)))


def for_ever(op, *args, **options):
    """A call again and again: made of its arguments before the signal is due."""

    def call():
        while True:
            op(*args, **options)

    return call


@prepared
def matmul():
    return for_ever(tf.matmul, tf.ones([6000, 6000]), tf.ones([6000, 6000]))


@prepared
def matmul_in_function():
    product = tf.function(lambda a: tf.matmul(tf.matmul(tf.matmul(a, a), a), a))
    product(tf.ones([4, 4]))
    return for_ever(product, tf.ones([4000, 4000]))


@prepared
def svd():
    return for_ever(tf.linalg.svd, uniform([1500, 1500], [1, 2]))


@prepared
def cholesky():
    x = uniform([3000, 3000], [1, 2])
    x = tf.matmul(x, x, transpose_b=True) + 100 * tf.eye(3000)
    return for_ever(tf.linalg.cholesky, x)


@prepared
def solve():
    x = uniform([2500, 2500], [1, 2], dtype=tf.float64)
    return for_ever(tf.linalg.solve, x, x)


@prepared
def convolution():
    x, w = tf.ones([4, 512, 512, 32]), tf.ones([5, 5, 32, 64])
    return for_ever(tf.nn.conv2d, x, w, 1, "SAME")


@prepared
def convolution_gradient():
    return for_ever(
        tf.raw_ops.Conv2DBackpropFilter,
        input=tf.ones([8, 256, 256, 32]),
        filter_sizes=[5, 5, 32, 64],
        out_backprop=tf.ones([8, 256, 256, 64]),
        strides=[1, 1, 1, 1],
        padding="SAME",
    )


@prepared
def sort():
    return for_ever(tf.sort, uniform([1 << 23], [1, 2], dtype=tf.float64))


@prepared
def unique():
    x = uniform([1 << 24], [1, 2], maxval=2**40, dtype=tf.int64)
    return for_ever(tf.unique, x)


@prepared
def draw():
    return for_ever(tf.random.normal, [1 << 26])


@prepared
def shuffle_rows():
    return for_ever(tf.random.shuffle, tf.range(1 << 23))


@prepared
def fft():
    x = tf.cast(uniform([64, 1 << 18], [1, 2]), tf.complex64)
    return for_ever(tf.signal.fft, x)


@prepared
def elementwise():
    return for_ever(tf.math.lgamma, uniform([1 << 26], [1, 2]))


@prepared
def reduction():
    return for_ever(tf.reduce_logsumexp, uniform([1 << 13, 1 << 13], [1, 2]), axis=0)


def filter_all():
    next(iter(endless().filter(lambda x: x < 0)))


def filter_behind_prefetch():
    next(iter(endless().filter(lambda x: x < 0).prefetch(2)))


def shuffle_all():
    next(iter(endless().map(lambda x: x % 7).shuffle(2**40)))


def skip_all():
    next(iter(endless().map(lambda x: x + 1).skip(2**60)))


def batch_all():
    next(iter(endless().map(lambda x: x + 1).batch(2**60)))


def reduce_all():
    endless().reduce(tf.constant(0, tf.int64), lambda s, x: s ^ x)


def dequeue():
    tf.queue.FIFOQueue(2, [tf.int32]).dequeue()


def dequeue_in_function():
    queue = tf.queue.FIFOQueue(2, [tf.int32])
    tf.function(queue.dequeue)()


def enqueue_in_session():
    with tf.Graph().as_default():
        queue = v1.FIFOQueue(1, [tf.int32], [[]])
        with v1.Session() as session:
            session.run(queue.enqueue([1]))
            session.run(queue.enqueue([1]))


@tf.function
def long_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(
            lambda i, y: i < 30_000_000, lambda i, y: (i + 1, tf.sin(y)), [0, x]
        )[1]
    return tape.gradient(y, x)


def gradient_of_loop():
    long_gradient(tf.constant(1.0))


def generator():
    def values():
        while True:
            time.sleep(0.01)
            yield 1

    spec = tf.TensorSpec([], tf.int32)
    data = tf.data.Dataset.from_generator(values, output_signature=spec)
    next(iter(data.filter(lambda x: x < 0).ignore_errors()))


def py_function():
    tf.function(lambda: tf.py_function(lambda: time.sleep(60) or 1, [], tf.int32))()


def numpy_function_in_map():
    def slow(x):
        time.sleep(60)
        return x

    data = endless().map(lambda x: tf.numpy_function(slow, [x], tf.int64))
    next(iter(data.ignore_errors()))


def keras_fit():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4)])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensors((tf.ones([2, 3]), tf.ones([2, 4]))).repeat()
    model.fit(data, steps_per_epoch=10**9, verbose=0)


def end(call):
    run = call() if getattr(call, "prepared", False) else call
    signal.setitimer(signal.ITIMER_REAL, DELAY)
    begin = time.monotonic()
    try:
        run()
        told = "returned"
    except BaseException as e:  # noqa: BLE001
        frames = [f.name for f in traceback.extract_tb(e.__traceback__)]
        told = f"{type(e).__name__} in {','.join(frames)}"
    late = time.monotonic() - begin - DELAY
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert float(tf.reduce_sum(tf.ones([300, 300]) @ tf.ones([300, 300]))) == 27e6
    print(f"{call.__name__} {late:.3f} {told}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for name in sys.argv[1:]:
        end(globals()[name])
