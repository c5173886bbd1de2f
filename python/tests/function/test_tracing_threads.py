"""Traces in several threads at a time."""

import threading

import headrace as tf
import pytest


def test_traces_of_other_threads_make_no_variables_of_this_one():
    """A variable of a plain graph is made while another thread traces a function that
    may make none."""
    inside, made = threading.Event(), threading.Event()

    @tf.function
    def slow(x):
        if x.shape.rank:  # its second trace
            inside.set()
            assert made.wait(20)
        return tf.reduce_sum(x) + 1.0

    slow(tf.constant(1.0))
    results = []
    tracer = threading.Thread(
        target=lambda: results.append(float(slow(tf.constant([1.0]))))
    )
    tracer.start()
    assert inside.wait(20)
    try:
        with tf.Graph().as_default() as graph:
            v = tf.Variable(2.0, name="v")
    finally:
        made.set()
        tracer.join()
    assert results == [2.0]
    assert v.graph is graph


def test_creators_hold_in_their_own_thread():
    asked = []

    def creator(next_creator, **kwargs):
        asked.append(threading.current_thread())
        return next_creator(**kwargs)

    with tf.variable_creator_scope(creator):
        other = threading.Thread(target=lambda: tf.Variable(1.0))
        other.start()
        other.join()
        assert not asked
        tf.Variable(1.0)
    tf.Variable(1.0)
    assert asked == [threading.current_thread()]


def _in_threads(count, body):
    """body(number) in so many threads at once, all of which have to end; their
    results."""
    start = threading.Barrier(count, timeout=60)
    results = [None] * count

    def run(number):
        try:
            start.wait()
            results[number] = body(number)
        except BaseException as error:
            results[number] = error

    threads = [
        threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_sixteen_threads_make_one_trace():
    made = []

    class Model(tf.Module):
        v = None

        @tf.function
        def __call__(self, x):
            made.append(1)
            if self.v is None:
                self.v = tf.Variable(2.0)
            total = tf.zeros([])
            for i in tf.range(3):
                if i % 2 == 0:
                    total += self.v * x
            return total

    model = Model()
    found = _in_threads(16, lambda n: float(model(tf.constant(float(n)))))
    assert found == [4.0 * n for n in range(16)]
    assert len(made) == 2  # with its variable and without
    assert model.__call__.experimental_get_tracing_count() == 2


def test_sixteen_threads_trace_shapes_of_their_own():
    f = tf.function(lambda x: tf.reduce_sum(x * x))

    def calls(n):
        return [float(f(tf.ones([n % 4 + k, 2]))) for k in (1, 2, 3, 1)]

    expected = [[2.0 * (n % 4 + k) for k in (1, 2, 3, 1)] for n in range(16)]
    assert _in_threads(16, calls) == expected
    assert f.experimental_get_tracing_count() == 6


@pytest.mark.parametrize("count", [2, 3, 8])
def test_functions_that_trace_each_other(count):
    """Each waits for the next one's trace: a circle."""
    inside = threading.Barrier(count, timeout=60)
    functions = []

    def make(number):
        @tf.function
        def f(x):
            if x.shape.rank:
                inside.wait()
                following = functions[(number + 1) % count]
                return x + following(tf.reduce_sum(x))
            return x * 10.0**number

        return f

    functions += [make(n) for n in range(count)]
    found = _in_threads(count, lambda n: float(functions[n](tf.constant([2.0]))[0]))
    assert found == [2.0 + 2.0 * 10.0 ** ((n + 1) % count) for n in range(count)]
    for n, f in enumerate(functions):
        assert float(f(tf.constant(3.0))) == 3.0 * 10.0**n


def test_variables_made_by_functions_that_trace_each_other():
    """First traces of a circle: each variable gets its first value once."""
    inside = threading.Barrier(2, timeout=60)

    class Half(tf.Module):
        def __init__(self, start):
            super().__init__()
            self.start, self.v, self.other = start, None, None

        @tf.function
        def get(self, x):
            if self.v is None:
                self.v = tf.Variable(x + self.start)
                inside.wait()
            if x.shape.rank:
                return x + self.other.get(x[0])
            return self.v * x

    one, two = Half(1.0), Half(2.0)
    one.other, two.other = two, one
    found = _in_threads(2, lambda n: (one, two)[n].get(tf.constant([3.0])).numpy())
    assert [len(x) for x in found] == [1, 1]
    assert [float(v) for v in (one.v[0], two.v[0])] == [4.0, 5.0]


def test_a_thread_that_waits_for_a_trace_can_be_stopped():
    held, done = threading.Event(), threading.Event()

    @tf.function
    def f(x):
        held.set()
        assert done.wait(60)
        return x

    tracer = threading.Thread(target=lambda: f(1.0))
    tracer.start()
    assert held.wait(20)
    try:
        with tf.experimental.Cancellation(0.1):
            with pytest.raises(tf.errors.DeadlineExceededError):
                f(2.0)
    finally:
        done.set()
        tracer.join()
    assert float(f(2.0)) == 2.0
