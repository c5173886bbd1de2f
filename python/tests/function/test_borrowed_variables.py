"""Concrete functions hold the variables that they captured weakly."""

import gc
import threading

import headrace as tf
import pytest
from headrace.function import polymorphic


def _gone(function, *args):
    with pytest.raises(
        tf.errors.FailedPreconditionError,
        match=r"Error while reading resource variable \S+ from Container: localhost",
    ):
        function(*args)


def test_whatever_the_function_does_with_it():
    v, w = tf.Variable(1.0), tf.Variable([1.0, 2.0])
    functions = [
        tf.function(lambda: v.assign(2.0)),
        tf.function(lambda: v.assign_add(2.0)),
        tf.function(lambda: tf.gather(w, 0)),
        tf.function(lambda: tf.cond(w[0] > 0.0, lambda: v + 1.0, lambda: 0.0)),
    ]
    inner = tf.function(lambda: v * 2.0)
    functions.append(tf.function(lambda: inner() + 1.0))
    concrete = [f.get_concrete_function() for f in functions]
    for f in concrete:
        f()
    del v, w, functions, inner
    gc.collect()
    for f in concrete:
        _gone(f)


def test_a_call_of_it_in_another_function():
    v = tf.Variable(3.0)
    f = tf.function(lambda x: x * v).get_concrete_function(4.0)
    del v
    gc.collect()
    with pytest.raises(tf.errors.FailedPreconditionError, match="resource variable"):
        tf.function(lambda: f(4.0))()


def test_its_memory_is_free():
    v = tf.Variable(tf.zeros([1000, 1000]))
    f = tf.function(lambda: tf.shape(v)).get_concrete_function()
    handle = v.handle
    del v
    gc.collect()
    with pytest.raises(tf.errors.FailedPreconditionError):
        tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    _gone(f)


def test_variables_that_no_function_captured_live_with_their_handles():
    handle = tf.Variable(3.0).handle
    gc.collect()
    assert float(tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)) == 3.0


def test_owners_keep_theirs():
    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.count = None

        @tf.function
        def __call__(self):
            if self.count is None:
                self.count = tf.Variable(0)
            return self.count.assign_add(1)

    counter = Counter()
    gc.collect()
    assert [int(counter()) for _ in range(3)] == [1, 2, 3]
    layer = tf.keras.layers.Dense(1, kernel_initializer="ones")
    call = tf.function(lambda x: layer(x)).get_concrete_function(tf.ones([1, 2]))
    gc.collect()
    assert call(tf.ones([1, 2])).numpy().tolist() == [[2.0]]


def test_datasets_keep_theirs():
    def dataset():
        v = tf.Variable(10, dtype=tf.int64)
        return tf.data.Dataset.range(3).map(lambda x: x + v)

    d = dataset()
    gc.collect()
    assert [int(x) for x in d] == [10, 11, 12]


def test_functions_that_keep_theirs():
    v = tf.Variable(2.0)
    options = polymorphic.checked_options(keeps_variables=True)
    f = polymorphic.Function(lambda x: x * v, options).get_concrete_function(1.0)
    del v
    gc.collect()
    assert float(f(1.0)) == 2.0


def test_another_capture_may_take_its_place():
    v, w = tf.Variable(2.0), tf.Variable(5.0)
    f = tf.function(lambda x: x * v).get_concrete_function(tf.TensorSpec([]))
    f.set_external_captures([w.handle])
    del v
    gc.collect()
    assert float(f(tf.constant(2.0))) == 10.0


def test_gradients_of_calls_before():
    v = tf.Variable(3.0)
    x = tf.constant(2.0)
    f = tf.function(lambda x: x * v)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    del v
    gc.collect()
    assert float(tape.gradient(y, x)) == 3.0


def test_the_last_reference_goes_while_others_call():
    for _ in range(20):
        v = tf.Variable(tf.ones([100]))
        f = tf.function(lambda: tf.reduce_sum(v * 2.0)).get_concrete_function()
        seen = []

        def call():
            try:
                for _ in range(100):
                    seen.append(float(f()))
            except tf.errors.FailedPreconditionError:
                pass

        threads = [threading.Thread(target=call) for _ in range(4)]
        for t in threads:
            t.start()
        del v
        for t in threads:
            t.join()
        assert set(seen) <= {200.0}
