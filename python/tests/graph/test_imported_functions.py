"""Graphs with functions of their own, imported into bodies of functions, branches,
loops and datasets."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


def _graph_def(kind):
    """A graph of y = f(x) that calls functions, and f in Python."""

    @tf.function(autograph=False)
    def inner(x):
        return x * x + 1.0

    @tf.function(autograph=False)
    def outer(x):
        return inner(x) - inner(x + 1.0)

    calls = {
        "call": outer,
        "cond": lambda x: tf.cond(x > 0, lambda: outer(x), lambda: -inner(x)),
        "while": lambda x: tf.while_loop(lambda a: a < 9.0, inner, [x])[0],
        "map": lambda x: tf.reduce_sum(tf.map_fn(inner, tf.stack([x, x + 1.0]))),
    }
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [], name="x")
        tf.identity(calls[kind](x), name="y")
    return graph.as_graph_def()


def _inner(x):
    return x * x + 1.0


def _while(x):
    while x < 9.0:
        x = _inner(x)
    return x


_MEANING = {
    "call": lambda x: _inner(x) - _inner(x + 1.0),
    "cond": lambda x: _inner(x) - _inner(x + 1.0) if x > 0 else -_inner(x),
    "while": _while,
    "map": lambda x: _inner(x) + _inner(x + 1.0),
}


@pytest.fixture(params=_MEANING)
def imported(request):
    """A function that imports the graph, and what it means in Python."""
    graph_def = _graph_def(request.param)

    def call(x, name="m"):
        x = tf.identity(x)  # of the body that it is imported into
        return tf.import_graph_def(
            graph_def, input_map={"x:0": x}, return_elements=["y:0"], name=name
        )[0]

    return call, _MEANING[request.param]


def _run(f, *args):
    return tf.function(f, autograph=False)(*args)


def test_into_bodies(imported):
    call, f = imported
    x = tf.constant(0.5)
    assert float(_run(call, x)) == f(0.5)
    assert float(_run(lambda x: call(call(x), "n"), x)) == f(f(0.5))
    for value in (2.0, -2.0):
        chosen = _run(
            lambda x: tf.cond(x > 0, lambda: call(x), lambda: call(-x) * 2.0),
            tf.constant(value),
        )
        assert float(chosen) == f(abs(value)) * (1 if value > 0 else 2)
    case = _run(
        lambda x: tf.switch_case(tf.constant(1), [lambda: x, lambda: call(x)]), x
    )
    assert float(case) == f(0.5)
    looped = _run(
        lambda x: tf.while_loop(
            lambda i, a: i < 2, lambda i, a: (i + 1, call(a)), [0, x]
        )[1],
        x,
    )
    np.testing.assert_allclose(float(looped), f(f(0.5)), rtol=1e-6)
    values = [1.0, 2.0]
    want = [f(v) for v in values]
    mapped = _run(lambda v: tf.map_fn(call, v), tf.constant(values))
    assert mapped.numpy().tolist() == want
    rows = tf.data.Dataset.from_tensor_slices(values).map(call)
    assert list(rows.as_numpy_iterator()) == want


def test_shapes_and_gradients_are_known(imported):
    call, _ = imported
    for body in (
        call,
        lambda x: tf.cond(x > 0, lambda: call(x), lambda: x),
        lambda x: tf.while_loop(lambda a: a < 1.0, lambda a: call(a) + 9.0, [x])[0],
    ):
        with tf.GradientTape() as tape:
            x = tf.constant(0.75)
            tape.watch(x)
            function = tf.function(body, autograph=False)
            y = function(x)
        g = tape.gradient(y, x)
        assert function.get_concrete_function(x).output_shapes == ()
        near = [float(_run(body, tf.constant(0.75 + d))) for d in (-1e-2, 1e-2)]
        np.testing.assert_allclose(float(g), (near[1] - near[0]) / 2e-2, rtol=2e-2)


def test_in_sessions_and_again(imported):
    call, f = imported
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [], name="x")
        y = tf.cond(x > 0, lambda: call(x), lambda: x)
        tf.identity(y, name="y")
        assert session.run(y, {x: 2.0}) == f(2.0)
    with tf.Graph().as_default(), v1.Session() as session:
        again = tf.import_graph_def(
            graph.as_graph_def(), return_elements=["y:0"], name=""
        )
        assert session.run(again[0], {"x:0": 2.0}) == f(2.0)
        assert session.run(again[0], {"x:0": -2.0}) == -2.0


def test_functions_that_are_missing():
    graph_def = _graph_def("call")
    del graph_def.library.function[:]
    for node in graph_def.node:
        if "f" in node.attr:
            node.attr["f"].func.name = "not_defined_anywhere"

    def call(x):
        return tf.import_graph_def(
            graph_def, input_map={"x:0": x}, return_elements=["y:0"]
        )[0]

    with pytest.raises(tf.errors.OpError, match='"not_defined_anywhere"'):
        _run(call, tf.constant(1.0))


def test_another_function_of_the_same_name_is_refused():
    first, second = _graph_def("call"), _graph_def("call")
    for old, new in zip(first.library.function, second.library.function):
        new.signature.name = old.signature.name
        new.node_def[0].name += "_renamed"
        for node in new.node_def:
            node.input[:] = []
    with tf.Graph().as_default():
        tf.import_graph_def(first)
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            tf.import_graph_def(second)
