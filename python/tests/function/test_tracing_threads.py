"""Traces in several threads at a time."""

import threading

import headrace as tf


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
