"""tf.function: signatures, traces, captures, variables, gradients."""

import functools
import gc
import inspect
import weakref

import numpy as np
import pytest

import headrace as tf


def test_traces_by_dtype_shape_and_python_value():
    seen = []

    @tf.function
    def f(x, n=1):
        seen.append(n)
        return x + n

    assert f(tf.constant(1)).numpy() == 2
    assert f(tf.constant(5)).numpy() == 6
    assert f(tf.constant(1.5)).numpy() == 2.5
    assert f(tf.constant(1), 3).numpy() == 4
    assert f(tf.constant(1), n=3).numpy() == 4
    assert f(x=tf.constant(1), n=3).numpy() == 4
    assert seen == [1, 1, 3]
    assert f.experimental_get_tracing_count() == 3


def test_structures_in_and_out():
    @tf.function
    def f(d, pair):
        return {"sum": d["a"] + d["b"], "list": [pair[0], (pair[1], None)]}

    out = f({"b": tf.constant(1), "a": tf.constant(2)}, (tf.constant(3), 4))
    assert out["sum"].numpy() == 3
    assert out["list"][0].numpy() == 3
    assert out["list"][1][0].numpy() == 4 and out["list"][1][1] is None


def test_captures_by_reference():
    v = tf.Variable(1.0)
    k = tf.constant([1.0, 2.0])
    f = tf.function(lambda x: x * v + k)
    np.testing.assert_array_equal(f(tf.constant(2.0)), [3, 4])
    v.assign(2.0)
    np.testing.assert_array_equal(f(tf.constant(2.0)), [5, 6])
    c = f.get_concrete_function(tf.TensorSpec([]))
    assert len(c.captured_inputs) == 2 and c.variables[0] is v


def test_gradient_of_a_captured_eager_tensor():
    x = tf.constant(3.0)
    f = tf.function(lambda: x * x)
    with tf.GradientTape() as t:
        t.watch(x)
        y = f()
    assert t.gradient(y, x).numpy() == 6


def test_second_order_through_calls():
    x = tf.constant(2.0)
    f = tf.function(lambda x: x * x * x)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    assert g.numpy() == 12 and outer.gradient(g, x).numpy() == 12


def test_effects_run_in_program_order():
    v = tf.Variable(1.0)

    @tf.function
    def f():
        v.assign(5.0)
        a = v + 0.0
        v.assign_add(1.0)
        return a, v.read_value()

    assert [x.numpy() for x in f()] == [5, 6]


def test_nested_calls_and_reduced_retracing():
    shapes = []

    @tf.function(reduce_retracing=True)
    def inner(x):
        shapes.append(x.shape.as_list() if x.shape.rank is not None else None)
        return x * 2.0

    @tf.function
    def outer(x):
        return inner(x) + inner(x)

    assert outer(tf.constant([1.0])).numpy() == [4.0]
    for n in range(2, 5):
        inner(tf.zeros([n]))
    assert shapes == [[1], [None]]


def test_objects_are_held_weakly():
    class Thing:
        pass

    f = tf.function(lambda thing, x: x + 1)
    thing = Thing()
    f(thing, tf.constant(1))
    alive = weakref.ref(thing)
    del thing
    gc.collect()
    assert alive() is None
    f(Thing(), tf.constant(1))


def test_functions_are_freed():
    def once():
        f = tf.function(lambda x: x + 1.0)
        f(tf.constant(1.0))
        return weakref.ref(f)

    alive = once()
    gc.collect()
    assert alive() is None


def test_errors_name_user_frames():
    @tf.function
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError) as e:
        f(1)
    assert "in user code" in str(e.value) and "test_function.py" in str(e.value)


def test_input_signature_of_a_method():
    class Doubler(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None])])
        def twice(self, x):
            return x * 2.0

    d = Doubler()
    assert d.twice(tf.ones([2])).numpy().tolist() == [2, 2]
    assert Doubler.twice(d, tf.ones([1])).numpy().tolist() == [2]
    assert d.twice.get_concrete_function().inputs[0].shape.as_list() == [None]
    with pytest.raises(TypeError, match="Binding inputs to tf.function failed"):
        d.twice(tf.ones([2, 2]))


def test_graphs_know_what_they_are_made_inside_of():
    outers = []

    @tf.function
    def f(x):
        def body(i):
            graph = tf.compat.v1.get_default_graph()
            while graph is not None:
                outers.append(graph)
                graph = getattr(graph, "outer_graph", None)
            return i + 1

        return tf.while_loop(lambda i: i < 2, body, [x])

    f.get_concrete_function(tf.constant(0))
    body, whole, bottom = outers[:3]
    assert body.building_function and whole.building_function
    assert bottom is tf.compat.v1.get_default_graph()


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_of_a_variable_argument(traced):
    f = tf.function(lambda v: v**3)
    v = tf.Variable(2.0)

    def grads():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = f(v)
            first = inner.gradient(y, v)
        return first, outer.gradient(first, v)

    first, second = tf.function(grads)() if traced else grads()
    assert (first.numpy(), second.numpy()) == (12, 12)
    still = tf.Variable(2.0, trainable=False)
    with tf.GradientTape() as tape:
        y = f(still)
    assert tape.gradient(y, still) is None


def test_arguments_whose_names_are_no_names_of_nodes():
    def names(f, count):
        f = tf.function(f).get_concrete_function(*[tf.TensorSpec([])] * count)
        return [t.name for t in f.inputs]

    assert names(lambda _: _, 1) == ["Placeholder:0"]
    assert names(lambda _x, y_: y_, 2) == ["Placeholder:0", "y_:0"]
    assert names(lambda x, é: x, 2) == ["x:0", "Placeholder:0"]
    assert tf.function(lambda _: 7)(1.0) == 7


def test_signatures_are_what_callers_give():
    class Scale:
        @tf.function
        def by(self, x, k=2):
            return x * k

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
        def twice(self, x):
            return x * 2

        @tf.function
        def total(*all):  # `self` is one of them
            return sum(all[1:])

    scale, three = Scale(), tf.constant(3)
    assert str(inspect.signature(scale.by)) == "(x, k=2)"
    assert str(inspect.signature(Scale.by)) == "(self, x, k=2)"
    assert str(inspect.signature(scale.by.python_function)) == "(x, k=2)"
    assert str(inspect.signature(scale.total)) == "(*all)"
    assert inspect.getfullargspec(scale.by).args == ["x", "k"]
    assert int(tf.function(functools.partial(scale.by, k=5))(three)) == 15
    assert int(scale.total(three, three)) == 6 and int(scale.twice(three)) == 6
