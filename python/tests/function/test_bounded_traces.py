"""Traces are bounded, and end with their Function, its variables and its objects."""

import gc
import os
import weakref

import headrace as tf
import numpy as np
import pytest


def _count(function):
    return len(function._list_all_concrete_functions())


def test_shapes_are_left_open_where_there_are_too_many():
    shapes = []

    @tf.function
    def f(x):
        shapes.append(x.shape)
        return tf.size(x)

    assert [int(f(tf.zeros([n]))) for n in range(400)] == list(range(400))
    assert shapes[5] == [5] and shapes[-1] == [None]
    assert len(shapes) < 150 and _count(f) <= 128


def test_functions_that_want_shapes_get_them():
    @tf.function
    def f(x):
        return sum(range(x.shape[0]))

    assert int(f(tf.zeros([3]))) == 3
    for n in range(140):
        assert int(f(tf.zeros([n]))) == n * (n - 1) // 2
    assert _count(f) == 128


@pytest.mark.parametrize("off", [None, 0, np.False_])
def test_reduce_retracing_is_any_truth(off):
    f = tf.function(lambda x: x + 1, reduce_retracing=off)
    for n in range(3):
        assert f(tf.zeros([n])).shape == [n]
    assert _count(f) == 3


def test_reduce_retracing_leaves_the_second_shape_open():
    shapes = []

    @tf.function(reduce_retracing=True)
    def f(x):
        shapes.append(x.shape.as_list())
        return x

    for n in range(300):
        f(tf.zeros([n, 2]))
    assert shapes == [[0, 2], [None, 2]]


def test_traces_in_use_stay():
    traced = []

    @tf.function
    def f(n):
        traced.append(n)
        return tf.constant(n)

    f(-1)
    for n in range(300):
        f(n)
        f(-1)
    assert traced.count(-1) == 1 and _count(f) == 128
    assert int(f(0)) == 0 and traced.count(0) == 2


def test_keys_whose_comparison_calls_the_function():
    class Odd:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            if not busy:
                busy.append(1)
                for n in range(200):
                    f(n)
                busy.clear()
            return self is other

        __hash__ = object.__hash__

    busy = []
    f = tf.function(lambda o: tf.constant(o if isinstance(o, int) else o.n))
    odd = [Odd(n) for n in range(5)]
    assert [int(f(o)) for o in odd + odd] == [0, 1, 2, 3, 4] * 2


def test_a_trace_ends_with_its_variable():
    v = tf.Variable(2.0)
    f = tf.function(lambda x: x * v)
    assert float(f(3.0)) == 6.0
    v = tf.Variable(5.0)
    assert _count(f) == 0
    assert float(f(3.0)) == 15.0


def test_a_trace_ends_with_its_object():
    class Scale:
        def __init__(self, by):
            self.by = by

    f = tf.function(lambda x, s: x * s.by)
    one, two = Scale(2.0), Scale(3.0)
    assert (float(f(1.0, one)), float(f(1.0, two))) == (2.0, 3.0)
    del one
    assert _count(f) == 1


def test_everything_ends_with_the_function():
    v = tf.Variable(1.0)
    f = tf.function(lambda x: x * v)
    concrete = f.get_concrete_function(2.0)
    ends = weakref.ref(f), weakref.ref(concrete.graph)
    name = concrete.name.decode()
    del f, concrete
    gc.collect()
    assert [end() for end in ends] == [None, None]
    with pytest.raises(tf.errors.NotFoundError, match=name):
        tf.raw_ops.PartitionedCall(args=[], Tout=[], f=name)


def test_one_function_an_instance():
    class Equal:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return isinstance(other, Equal)

        def __hash__(self):
            return 1

        @tf.function
        def get(self):
            return tf.constant(self.n)

    class Slots:
        __slots__ = ()

        @tf.function
        def get(self):
            return tf.constant(7)

    a, b = Equal(1), Equal(2)
    assert (int(a.get()), int(b.get())) == (1, 2)
    assert a.get is a.get and a.get is not b.get
    assert int(Slots().get()) == 7
    end = weakref.ref(a.get)
    del a
    gc.collect()
    assert end() is None


def test_methods_of_objects_that_are_gone():
    add = Adder(1.0).add
    with pytest.raises(ReferenceError, match="whose method `add` is to be traced"):
        add(1.0)


def _resident():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _calls_with_new_shapes(**options):
    f = tf.function(lambda x: tf.shape(x), **options)
    return lambda i: f(np.zeros([0, i], np.float32))


def _functions(i):
    v = tf.Variable(float(i))
    f = tf.function(lambda x: x * v)
    assert float(f(2.0)) == 2.0 * i


def _bound_methods(i):
    class_ = Adder
    if i % 2:
        kept = class_(float(i))
        kept.itself = kept
        kept.add(1.0)
    one = class_(float(i))
    assert float(one.add(1.0)) == i + 1.0


class Adder(tf.Module):
    def __init__(self, n):
        super().__init__()
        self.v = tf.Variable(n)

    @tf.function
    def add(self, x):
        return x + self.v


@pytest.mark.parametrize(
    "make, rounds",
    [
        (_calls_with_new_shapes, 100_000),
        (lambda: _calls_with_new_shapes(reduce_retracing=True), 100_000),
        (lambda: _functions, 10_000),
        (lambda: _bound_methods, 1_000),
    ],
    ids=["shapes", "shapes, reduced", "functions", "methods"],
)
@pytest.mark.slow
def test_memory_is_flat(make, rounds, monkeypatch):
    monkeypatch.setattr(tf.get_logger(), "disabled", True)
    body = make()
    for i in range(500):
        body(i)
    before = _resident()
    for i in range(500, 500 + rounds):
        body(i)
    assert _resident() < before * 1.02
