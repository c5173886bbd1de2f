"""tf.experimental.Cancellation and tf.function(timeout=...): calls that end early."""

import asyncio
import threading

import headrace as tf
import pytest

Cancellation = tf.experimental.Cancellation


@tf.function
def _endless(i):
    while i >= 0:
        i = i * 0
    return i


def _ends(call):
    """A call that has no end ends with the deadline."""
    with pytest.raises(tf.errors.DeadlineExceededError):
        with Cancellation(timeout=0.02):
            call()


def test_functions_and_gradients():
    _ends(lambda: _endless(tf.constant(0)))
    concrete = _endless.get_concrete_function(tf.constant(0.0))
    _ends(lambda: concrete(tf.constant(0.0)))
    x = tf.constant(0.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.custom_gradient(lambda x: (x + 1, _endless))(x)
    _ends(lambda: tape.gradient(y, x))


def test_eager_operations():
    def turns():
        x = tf.constant(1.0)
        while True:
            x = x * 1.0

    _ends(turns)


@pytest.mark.parametrize("first", [0, 1])
def test_the_earlier_deadline_wins(first):
    requests = [Cancellation(timeout=3600), Cancellation(timeout=3600)]
    requests[first] = Cancellation(timeout=0.02)
    with pytest.raises(tf.errors.DeadlineExceededError):
        with requests[0], requests[1]:
            _endless(tf.constant(0))
    assert [r.cancelled for r in requests] == [first == 0, first == 1]


def test_a_request_from_another_thread():
    request = Cancellation()
    timer = threading.Timer(0.02, request.cancel)
    timer.start()
    with pytest.raises(tf.errors.CancelledError):
        with request:
            _endless(tf.constant(0))
    timer.join()
    assert request.cancelled
    with pytest.raises(tf.errors.CancelledError), request:
        tf.constant(1) + 1


def test_nothing_is_left_behind():
    with pytest.raises(tf.errors.DeadlineExceededError):
        with Cancellation(timeout=0):
            tf.constant(1) + 1
    assert int(tf.constant(1) + 1) == 2
    with Cancellation(timeout=60) as request:
        assert int(tf.constant(1) + 1) == 2
    assert not request.cancelled


def test_other_threads_do_not_listen():
    found = []
    with Cancellation(timeout=0):
        thread = threading.Thread(target=lambda: found.append(tf.constant(1) + 1))
        thread.start()
        thread.join()
    assert [int(x) for x in found] == [2]


def test_coroutines_have_their_own():
    async def bound(inside, go_on):
        with Cancellation(timeout=0):
            inside.set()
            await go_on.wait()
            with pytest.raises(tf.errors.DeadlineExceededError):
                tf.constant(1) + 1

    async def free(inside, go_on):
        await inside.wait()
        result = int(tf.constant(1) + 1)
        go_on.set()
        return result

    async def both():
        events = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(bound(*events), free(*events))

    assert asyncio.run(both())[1] == 2


def test_blocks_that_are_left_in_another_order():
    def block():
        with Cancellation(timeout=0):
            yield

    a, b = block(), block()
    next(a), next(b)
    a.close()
    with pytest.raises(tf.errors.DeadlineExceededError):
        tf.constant(1) + 1
    b.close()
    assert int(tf.constant(1) + 1) == 2


def test_iterators_go_on_behind_a_deadline():
    iterator = iter(tf.data.Dataset.range(5).map(lambda x: x + 1))
    assert int(next(iterator)) == 1
    with pytest.raises(tf.errors.DeadlineExceededError):
        with Cancellation(timeout=0):
            next(iterator)
    assert [int(x) for x in iterator] == [2, 3, 4, 5]


def test_a_timeout_of_each_call():
    @tf.function(timeout=0.5)
    def maybe(i, forever):
        while forever:
            i = i * 0
        return i + 1

    with pytest.raises(tf.errors.DeadlineExceededError):
        maybe(tf.constant(0), tf.constant(True))
    # Half a second after the first call began.
    assert int(maybe(tf.constant(1), tf.constant(False))) == 2


def test_a_timeout_of_concrete_functions_and_without_traces():
    f = tf.function(_endless.python_function, timeout=0.02)
    with pytest.raises(tf.errors.DeadlineExceededError):
        f.get_concrete_function(tf.constant(0))(tf.constant(0))
    tf.config.run_functions_eagerly(True)
    try:
        with pytest.raises(tf.errors.DeadlineExceededError):
            f(tf.constant(0))
    finally:
        tf.config.run_functions_eagerly(False)


def test_no_time_at_all():
    f = tf.function(lambda x: x + 1, timeout=0)
    f.get_concrete_function(tf.constant(1))  # tracing does not count
    with pytest.raises(tf.errors.DeadlineExceededError):
        f(tf.constant(1))
    outer = tf.function(lambda x: f(x))  # a part of another's call
    assert int(outer(tf.constant(1))) == 2


@pytest.mark.parametrize("timeout", ["1", True, [1]])
def test_timeouts_are_numbers(timeout):
    with pytest.raises(TypeError, match="timeout"):
        Cancellation(timeout=timeout)
    with pytest.raises(TypeError, match="timeout"):
        tf.function(lambda x: x, timeout=timeout)


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_timeouts_are_not_negative(timeout):
    with pytest.raises(ValueError, match="timeout"):
        Cancellation(timeout=timeout)


def test_timeouts_beyond_the_clock():
    for timeout in (1e300, float("inf")):
        with Cancellation(timeout=timeout):
            assert int(tf.constant(1) + 1) == 2
        assert int(tf.function(lambda x: x + 1, timeout=timeout)(tf.constant(1))) == 2
