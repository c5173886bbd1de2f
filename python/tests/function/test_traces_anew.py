"""Traces that serve no call any more, as strategies' workers are other ones, are let go."""

import gc
import weakref

import headrace as tf
from headrace.context import strategies


def test_old_traces_go_when_the_next_is_made():
    v = tf.Variable(2.0)
    inner = tf.function(lambda x: x + 1.0)

    @tf.function
    def f(x):
        return inner(x) * v

    traces = []
    for turn in range(1, 4):
        assert float(f(tf.constant(1.0))) == 4.0
        assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [4.0, 6.0]
        traces.append(weakref.ref(f.get_concrete_function(tf.constant(1.0))))
        assert f.experimental_get_tracing_count() == 2 * turn
        strategies.make_traces_anew()
    kept = f.get_concrete_function(tf.constant(1.0))
    gc.collect()
    assert [trace() is None for trace in traces] == [True] * 3
    strategies.make_traces_anew()
    assert float(f(tf.constant(1.0))) == 4.0
    assert float(kept(tf.constant(3.0))) == 8.0  # whoever holds one may call it
    assert f.get_concrete_function(tf.constant(1.0)) is not kept


def test_a_signature_keeps_no_old_trace():
    traced = []

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def f(x):
        traced.append(None)
        return x + float(len(traced))

    assert float(f(tf.constant(1.0))) == 2.0
    first = f.get_concrete_function()
    strategies.make_traces_anew()
    assert float(f(tf.constant(1.0))) == 3.0
    assert f.get_concrete_function() is not first and len(traced) == 2
