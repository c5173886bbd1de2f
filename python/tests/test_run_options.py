"""A session's deadlines and step times."""

import time

import headrace as tf
import pytest

v1 = tf.compat.v1


def _endless():
    """A loop that nothing ends."""
    graph = tf.Graph()
    with graph.as_default():
        i = tf.while_loop(lambda i: i >= 0, lambda i: (i * 0,), [tf.constant(0)])
    return graph, i


def test_a_deadline_ends_a_loop():
    graph, i = _endless()
    with v1.Session(graph=graph) as session:
        start = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(i, options=v1.RunOptions(timeout_in_ms=50))
        assert 0.04 < time.monotonic() - start < 20


def test_a_sessions_own_deadline():
    graph, i = _endless()
    config = v1.ConfigProto(operation_timeout_in_ms=50)
    with v1.Session(graph=graph, config=config) as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(i)


def test_a_deadline_ends_a_wait():
    graph = tf.Graph()
    with graph.as_default():
        q = tf.queue.FIFOQueue(1, [tf.float32])
        x = q.dequeue()
    with v1.Session(graph=graph) as session:
        timed_out = "Timed out waiting for notification"
        with pytest.raises(tf.errors.DeadlineExceededError, match=timed_out):
            session.run(x, options=v1.RunOptions(timeout_in_ms=50))


def test_step_times():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 8], name="x")
        y = tf.matmul(x, tf.ones([8, 8]), name="y")
    metadata = v1.RunMetadata()
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    with v1.Session(graph=graph) as session:
        plain = session.run(y, {x: [[1.0] * 8]})
        assert (session.run(y, {x: [[1.0] * 8]}, options, metadata) == plain).all()
        nodes = metadata.step_stats.dev_stats[0].node_stats
        assert [n.node_name for n in nodes] == ["y"]
        assert nodes[0].timeline_label == "y = MatMul()"
        assert nodes[0].all_end_rel_nanos > 0
        session.run(y, {x: [[1.0] * 8]}, v1.RunOptions(), metadata)


def test_what_is_refused():
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(1.0)
        with pytest.raises(TypeError, match="RunOptions"):
            session.run(x, options={"timeout_in_ms": 3})
        with pytest.raises(TypeError, match="RunMetadata"):
            session.run(x, run_metadata=3)
        watched = v1.RunOptions()
        watched.debug_options.debug_tensor_watch_opts.add(node_name="Const")
        with pytest.raises(NotImplementedError, match="debug_tensor_watch_opts"):
            session.run(x, options=watched)


def test_a_callable_with_options():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [])
        f = session.make_callable(x * 2.0, [x], accept_options=True)
        assert f(3.0) == 6
        assert f(3.0, options=v1.RunOptions(timeout_in_ms=1000)) == 6
        g = session.make_callable(x * 2.0, [x])
        assert g(3.0, options=v1.RunOptions()) == 6
