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
        assert nodes[0].timeline_label == "y = MatMul(x, ones)"
        assert nodes[0].all_end_rel_nanos > 0
        session.run(y, {x: [[1.0] * 8]}, v1.RunOptions(), metadata)


def test_what_steps_made():
    """dtype, shape and bytes of outputs, and what memory was taken for them."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 64], name="x")
        y = tf.matmul(x, tf.ones([64, 32]), name="mm")
        parts = tf.split(y, [8, 8, 16], 1, name="sp")
        flat = tf.reshape(y, [-1], name="rs")
        text = tf.strings.as_string(parts[1], name="text")
        fetches = [flat, text, parts[0], parts[2]]
    before = time.time() * 1e6
    metadata = v1.RunMetadata()
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    with v1.Session(graph=graph) as session:
        session.run(fetches, {x: [[1.0] * 64] * 16}, options, metadata)
    nodes = {n.node_name: n for n in metadata.step_stats.dev_stats[0].node_stats}
    made = {
        name: [
            (
                tf.as_dtype(o.tensor_description.dtype).name,
                [d.size for d in o.tensor_description.shape.dim],
                o.tensor_description.allocation_description.allocated_bytes,
            )
            for o in n.output
        ]
        for name, n in nodes.items()
    }
    parts = [("float32", [16, n], 64 * n) for n in (8, 8, 16)]
    assert made["mm"] == [("float32", [16, 32], 2048)] and made["sp"] == parts
    assert made["rs"] == [("float32", [512], 2048)]
    assert made["text"][0][:2] == ("string", [16, 8])
    assert [o.slot for o in nodes["sp"].output] == [0, 1, 2]
    taken = {name: sum(m.total_bytes for m in n.memory) for name, n in nodes.items()}
    assert taken["mm"] == taken["sp"] == 2048 and taken["rs"] == 0
    for n in nodes.values():
        assert before - 1e6 < n.all_start_micros < time.time() * 1e6 + 1e6


def test_steps_on_threads_of_their_own():
    graph = tf.Graph()
    with graph.as_default():
        queue = tf.queue.FIFOQueue(4, [tf.float64], shapes=[[]])
        names = [f"python_{k}" for k in range(3)]
        calls = [v1.py_func(lambda: 1.0, [], tf.float64, name=n) for n in names]
        taken = [queue.enqueue(calls[0], name="put"), queue.dequeue(name="take")]
    metadata = v1.RunMetadata()
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    with v1.Session(graph=graph) as session:
        session.run([*calls, *taken], None, options, metadata)
    nodes = metadata.step_stats.dev_stats[0].node_stats
    assert {*names, "put", "take"} <= {n.node_name for n in nodes}


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
