"""Values of closures that a traced function takes anew at each call."""

import headrace as tf
import pytest


def _capture(closure, spec, key=None):
    graph = tf.compat.v1.get_default_graph()
    return graph.capture_call_time_value(closure, spec, key)


def test_each_call_asks_anew():
    now = [1.0]
    f = tf.function(lambda x: x + _capture(lambda: now[0], tf.TensorSpec([])))
    assert float(f(2.0)) == 3.0
    now[0] = 5.0
    assert float(f(2.0)) == 7.0
    concrete = f.get_concrete_function(2.0)
    now[0] = 6.0
    assert float(concrete()) == 8.0
    assert f.experimental_get_tracing_count() == 1


def test_inside_other_functions_and_loops():
    now = [1.0]
    inner = tf.function(lambda x: x + _capture(lambda: now[0], tf.TensorSpec([])))

    @tf.function
    def outer(n):
        total = tf.while_loop(
            lambda i, t: i < n, lambda i, t: (i + 1, inner(t)), [0, 0.0]
        )[1]
        return tf.cond(n > 2, lambda: inner(total), lambda: total)

    assert float(outer(tf.constant(2))) == 2.0
    now[0] = 10.0
    assert float(outer(tf.constant(2))) == 20.0
    assert float(outer(tf.constant(3))) == 40.0


def test_of_one_key_the_first_closure_is_asked():
    @tf.function
    def f():
        a = _capture(lambda: 1.0, tf.TensorSpec([]), key="k")
        b = _capture(lambda: 1 / 0, tf.TensorSpec([]), key="k")
        return a + b

    assert float(f()) == 2.0


def test_structures_and_gradients():
    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    x = tf.constant(2.0)

    @tf.function
    def f():
        spec = {"r": tf.RaggedTensorSpec([2, None]), "x": tf.TensorSpec([])}
        got = _capture(lambda: {"r": ragged, "x": x}, spec)
        return got["r"] * got["x"]

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(f())
    assert float(y) == 12.0 and float(tape.gradient(y, x)) == 6.0


def test_values_that_do_not_fit():
    now = [tf.constant(1.0)]
    f = tf.function(lambda: _capture(lambda: now[0], tf.TensorSpec([])) * 2.0)
    assert float(f()) == 2.0
    for wrong in (tf.constant(1), tf.constant([1.0])):
        now[0] = wrong
        with pytest.raises(TypeError, match="Can not cast TensorSpec"):
            f()


def _of_two_captures():
    x, y = tf.constant(1.0), tf.constant(2.0)
    function = tf.function(lambda: x + y * 10.0)
    return x, y, function, function.get_concrete_function()


def test_a_closure_in_the_place_of_a_capture():
    _, y, function, concrete = _of_two_captures()
    now = [4.0]
    assert float(function()) == 21.0
    concrete.replace_capture_with_deferred_capture(
        y, lambda: now[0], spec=tf.TensorSpec([])
    )
    assert float(concrete()) == 41.0
    now[0] = 7.0
    assert float(concrete()) == 71.0
    assert float(function()) == 71.0
    now[0] = 8.0
    assert float(function()) == 81.0
    assert [float(t) for t in concrete.captured_inputs] == [8.0, 1.0]

    outer = tf.function(lambda: concrete() * 2.0)
    assert float(outer()) == 162.0
    now[0] = 9.0
    assert float(outer()) == 182.0
    concrete.set_external_captures([tf.constant(3.0), tf.constant(4.0)])
    now[0] = 10.0
    assert float(concrete()) == float(function()) == 34.0


def test_a_capture_that_its_placeholder_names():
    *_, concrete = _of_two_captures()
    concrete.graph.replace_capture_with_deferred_capture(
        None, lambda: 5.0, tf.TensorSpec([]), concrete.inputs[0]
    )
    assert float(concrete()) == 51.0


def test_captures_and_closures_change_places():
    captured, now = tf.constant([1.0]), [2.0]

    @tf.function
    def f():
        return _capture(lambda: [now[0]], tf.TensorSpec([1])) * 10.0 + captured

    concrete = f.get_concrete_function()
    tensor, closure = concrete._captured_inputs
    assert concrete().numpy() == [21.0]
    concrete.set_external_captures([closure, tensor])
    now[0] = 3.0
    assert concrete().numpy() == [13.0]
    with pytest.raises(ValueError, match="1 captured tensors and 1 closures, got 3"):
        concrete.set_external_captures([tensor] * 3)


def test_closures_that_do_not_fit():
    x, y, _, concrete = _of_two_captures()
    replace = concrete.replace_capture_with_deferred_capture
    with pytest.raises(ValueError, match="Attempting to substitute closure with spec"):
        replace(x, lambda: 1.0, spec=tf.TensorSpec([2]))
    with pytest.raises(ValueError, match="Attempting to substitute closure with spec"):
        replace(x, lambda: 1.0, spec=tf.TensorSpec([], tf.int32))
    with pytest.raises(ValueError, match="Did not find `tensor` argument 9.0"):
        replace(tf.constant(9.0), lambda: 1.0, spec=tf.TensorSpec([]))
    with pytest.raises(NotImplementedError, match="default_value"):
        replace(x, lambda: 1.0, spec=tf.TensorSpec([]), default_value=1.0)
    replace(y, lambda: tf.constant(1), spec=tf.TensorSpec([]))
    with pytest.raises(TypeError, match="Can not cast"):
        concrete()
