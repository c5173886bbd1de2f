"""Gradients written in Python, of nodes in graphs: tf.custom_gradient in traced
functions, branches, loops and plain graphs; tf.RegisterGradient.

Values are TensorFlow's, or those of the same function called eagerly.
"""

import gc
import weakref

import headrace as tf
import numpy as np
import pytest
from headrace._load import _headrace


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


@tf.custom_gradient
def clip(x):
    """The guide's: gradients no longer than 0.5."""

    def backward(dy):
        return tf.clip_by_norm(dy, 0.5)

    return tf.identity(x), backward


@tf.custom_gradient
def ten(x, y):
    """Gradients that no other rule gives."""
    return x * y, lambda d: (d * 10.0 * x, d * 100.0)


def gradients(f, *xs):
    with tf.GradientTape() as tape:
        for x in xs:
            tape.watch(x)
        y = f(*xs)
    return [None if g is None else g.numpy().tolist() for g in tape.gradient(y, xs)]


def second(f, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        d = inner.gradient(y, x)
    return d.numpy().tolist(), outer.gradient(d, x).numpy().tolist()


def test_a_tape_outside_sees_it():
    x = tf.constant([100.0, 0.5])
    assert gradients(tf.function(log1pexp), x)[0][0] == 1.0
    assert gradients(log1pexp, x) == gradients(tf.function(log1pexp), x)
    v = tf.Variable(2.0)

    @tf.function
    def f():
        return clip(v * v)

    with tf.GradientTape() as tape:
        y = f()
    assert tape.gradient(y, v).numpy() == 2.0


def test_the_node_is_laid_out_as_upstream():
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def scaled(x, y):
        return x * y * v, lambda d, variables=None: ((d, d), [d])

    c = tf.function(lambda x: scaled(x, x + 1.0)).get_concrete_function(
        tf.constant(2.0)
    )
    (node,) = [n for n in c.graph.as_graph_def().node if n.op == "IdentityN"]
    assert len(node.attr["T"].list.type) == 4
    name = node.attr["_gradient_op_type"].s
    assert name.startswith(b"CustomGradient-")
    (op,) = [op for op in c.graph.get_operations() if op.type == "IdentityN"]
    assert op.get_attr("_gradient_op_type") == name
    assert op.inputs[1].name == "x:0"
    assert op.inputs[3].op.type == "ReadVariableOp"


def test_variables():
    v, w = tf.Variable(2.0), tf.Variable([1.0, 2.0, 3.0])

    @tf.custom_gradient
    def f(x):
        y = x * v + tf.reduce_sum(tf.gather(w, [0, 2]))

        def grad(d, variables=None):
            rows = tf.IndexedSlices(d * [5.0, 6.0], tf.constant([0, 2]), [3])
            of = {v.ref(): d * 7.0 * v, w.ref(): rows}
            return d * 3.0, [of[x.ref()] for x in variables]

        return y, grad

    for call in (f, tf.function(f), tf.function(tf.function(f))):
        x = tf.constant(1.5)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call(x)
        dx, dv, dw = tape.gradient(y, [x, v, w])
        assert (dx.numpy(), dv.numpy()) == (3.0, 14.0)
        assert tf.convert_to_tensor(dw).numpy().tolist() == [5.0, 0.0, 6.0]


def test_a_variable_as_argument_and_one_that_only_the_gradient_reads():
    v, hidden = tf.Variable(2.0), tf.Variable(5.0)

    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda d: d * hidden

    call = tf.function(lambda: f(v))
    for value in (5.0, 6.0):
        hidden.assign(value)
        with tf.GradientTape() as tape:
            y = call()
        assert tape.gradient(y, v).numpy() == value


def test_methods():
    class Scale:
        def __init__(self):
            self.by = tf.Variable(2.0)

        @tf.custom_gradient
        def call(self, x):
            def grad(d, variables=None):
                return d * 5.0 * self.by, [d * 3.0]

            return x * self.by, grad

    scale, x = Scale(), tf.constant(1.5)
    for call in (scale.call, tf.function(scale.call)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call(x)
        assert [g.numpy() for g in tape.gradient(y, [x, scale.by])] == [10.0, 3.0]


def test_no_gradient_and_several_results():
    @tf.custom_gradient
    def none(x, y):
        return x * y, lambda d: (None, d * 5.0)

    x, y = tf.constant(2.0), tf.constant(3.0)
    assert gradients(tf.function(none), x, y) == [None, 5.0]

    @tf.custom_gradient
    def several(a):
        def grad(d, e):
            return d * 10.0 + e

        return (a["x"] * 2.0, a["x"] * 3.0), grad

    def both(x):
        p, q = several({"x": x})
        return p + 2.0 * q

    assert gradients(tf.function(both), x) == [12.0]
    assert gradients(tf.function(lambda x: several({"x": x})[0]), x) == [10.0]

    @tf.custom_gradient
    def structured(d, parts):
        def grad(*g):
            return {"a": g[0] * 1.0, "b": g[1] * 2.0}, [g[0] * 3.0]

        return {"p": d["a"] * parts[0], "q": d["b"] + 1.0}, grad

    def total(a, b, c):
        found = structured({"a": a, "b": b}, [c])
        return found["p"] + found["q"]

    assert gradients(tf.function(total), x, y, x + 2.0) == [1.0, 2.0, 3.0]


def test_the_argument_itself_as_result():
    @tf.custom_gradient
    def same(x):
        return x, lambda d: d * 7.0

    x = tf.constant(3.0)
    assert gradients(tf.function(same), x) == [7.0]
    assert gradients(tf.function(lambda x: same(x) + x), x) == [8.0]


def test_one_inside_another():
    @tf.custom_gradient
    def outer(x):
        y = ten(x, x)
        return y, lambda d: d * ten(x, d) * 2.0

    x = tf.constant(3.0)
    assert gradients(tf.function(outer), x) == gradients(outer, x) == [6.0]
    assert second(tf.function(outer), x) == second(outer, x)


def test_orders():
    for f in (
        log1pexp,
        lambda x: ten(x, tf.sin(x)),
        lambda x: tf.reduce_sum(ten(x * x, x) ** 2),
    ):
        x = tf.constant(0.7)
        want = second(f, x)
        traced = tf.function(f)
        nested = tf.function(lambda x, g=traced: g(x) * 1.0)
        for call in (traced, nested):
            np.testing.assert_allclose(second(call, x), want, rtol=1e-6)


@pytest.mark.parametrize("kind", ["plain", "custom"])
def test_fourth_order(kind):
    def f(x):
        y = tf.sin(tf.exp(x))
        return y if kind == "plain" else ten(log1pexp(x), y)

    def derivative(f):
        def g(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            return tape.gradient(y, x)

        return g

    want, got, within = f, tf.function(f), f
    x = tf.constant(0.7)
    for _ in range(4):
        want, got, within = map(derivative, (want, got, within))
        np.testing.assert_allclose(got(x), want(x), rtol=1e-5)
        np.testing.assert_allclose(tf.function(within)(x), want(x), rtol=1e-5)


def test_third_order_of_a_function_nobody_keeps():
    def third(call):
        x = tf.constant(0.3)
        with tf.GradientTape() as a:
            a.watch(x)
            with tf.GradientTape() as b:
                b.watch(x)
                with tf.GradientTape() as c:
                    c.watch(x)
                    y = call()(x)
                d = c.gradient(y, x)
            d = b.gradient(d, x)
        gc.collect()
        return a.gradient(d, x).numpy()

    want = third(lambda: log1pexp)
    got = third(lambda: tf.function(lambda x: log1pexp(x)))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_branches_and_loops():
    x = tf.constant(2.0)

    @tf.function
    def branch(x):
        scale = x * 3.0

        @tf.custom_gradient
        def f(y):
            return y * y, lambda d: d * scale * y

        return tf.cond(x > 0.0, lambda: f(x + 0.0) * scale, lambda: -x)

    # d(x^2 * 3x): the first factor's gradient is scale * x.
    assert gradients(branch, x) == [6.0 * (6.0 * 2.0) + 4.0 * 3.0]
    assert gradients(branch, -x) == [-1.0]

    def loop(x):
        return tf.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, ten(y, x)), (tf.constant(0), x)
        )[1]

    def unrolled(x):
        y = x
        for _ in range(3):
            y = ten(y, x)
        return y

    assert gradients(tf.function(loop), x) == gradients(unrolled, x)
    assert second(tf.function(loop), x) == second(unrolled, x)

    def mapped(x):
        return tf.reduce_sum(tf.map_fn(lambda e: ten(e, e), x))

    xs = tf.constant([1.0, 2.0])
    assert gradients(tf.function(mapped), xs) == [[110.0, 120.0]]


def test_a_tape_inside_and_one_outside():
    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = ten(x, x)
        return tape.gradient(y, x)

    x = tf.constant(2.0)
    assert inside(x).numpy() == 120.0
    assert gradients(inside, x) == [10.0]

    @tf.function
    def around(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = traced(x) + traced(2.0 * x)
        return tape.gradient(y, x)

    traced = tf.function(lambda x: ten(x, x))
    traced(x)
    assert around(x).numpy() == 120.0 + 2 * 140.0


def test_two_calls_of_one_trace():
    f = tf.function(lambda x, y: ten(x, y))
    f(tf.constant(1.0), tf.constant(1.0))
    g = tf.function(lambda x, y: f(x, y) + 2.0 * f(y, x + 1.0))
    x, y = tf.constant(2.0), tf.constant(5.0)

    def eagerly(x, y):
        return ten(x, y) + 2.0 * ten(y, x + 1.0)

    assert gradients(g, x, y) == gradients(eagerly, x, y)
    concrete = f.get_concrete_function(x, y)
    h = tf.function(lambda x, y: concrete(x, y) * 2.0)
    assert gradients(h, x, y) == [40.0, 200.0]
    assert gradients(concrete, x, y) == [20.0, 100.0]


def test_plain_graphs():
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [])
        traced = tf.function(lambda x: ten(x, x))
        (d,) = tf.gradients(ten(x, x) + traced(x), x)
        (dd,) = tf.gradients(d, x)
        w = tf.Variable(3.0)

        @tf.custom_gradient
        def used(x):
            return x * w, lambda d, variables=None: (d, [d * 8.0])

        dw = tf.gradients(used(x), w)
        with tf.compat.v1.Session(graph=graph) as session:
            session.run(tf.compat.v1.global_variables_initializer())
            assert session.run([d, dd, dw[0]], {x: 2.0}) == [240.0, 20.0, 8.0]


def test_grad_pass_through_and_recompute_grad():
    x, v = tf.constant(2.7), tf.Variable(3.0)
    f = tf.function(tf.grad_pass_through(lambda x: tf.round(x) * v))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y.numpy() == 9.0
    dx, dv = tape.gradient(y, [x, v])
    assert dx.numpy() == 1.0 and dv is None
    f = tf.function(tf.recompute_grad(lambda x: tf.sin(x) * v * v))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    dx, dv = tape.gradient(y, [x, v])
    np.testing.assert_allclose(dx, np.cos(2.7) * 9.0, rtol=1e-6)
    np.testing.assert_allclose(dv, np.sin(2.7) * 6.0, rtol=1e-6)


def test_the_gradient_function_is_called_when_somebody_asks():
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(d):
            calls.append(1)
            return d * 4.0

        return x * 2.0, grad

    call = tf.function(f)
    x = tf.constant(1.0)
    call(x)
    assert not calls
    assert gradients(call, x) == [4.0]
    assert gradients(call, x) == [4.0]
    assert len(calls) == 1


def test_what_is_refused():
    x = tf.constant(2.0)
    v = tf.Variable(1.0)

    @tf.custom_gradient
    def too_few(x, y):
        return x * y, lambda d: d

    with pytest.raises(ValueError, match="2 gradients, but returned 1"):
        gradients(tf.function(too_few), x, x + 1.0)

    @tf.custom_gradient
    def reads(x):
        return x * v, lambda d: d

    with pytest.raises(TypeError, match="must accept keyword argument 'variables'"):
        tf.function(reads)(x)

    @tf.custom_gradient
    def keyword(x, k=None):
        return x * k, lambda d: d

    assert keyword(x, k=x).numpy() == 4.0
    with pytest.raises(ValueError, match="only when eager execution is enabled"):
        tf.function(lambda x: keyword(x, k=x))(x)

    @tf.custom_gradient
    def raises(x):
        def grad(d):
            raise KeyError("mine")

        return x * 1.0, grad

    with pytest.raises(KeyError, match="mine"):
        gradients(tf.function(raises), x)


def test_imported_names():
    """A name of another program, or of another graph of this one."""
    c = tf.function(lambda x: ten(x, x) + 1.0).get_concrete_function(tf.constant(1.0))
    graph_def = c.graph.as_graph_def()
    for name, text in (
        (None, "no entry for: CustomGradient-"),
        (
            b"CustomGradient-123456789",
            "^No gradient defined for op.*'import/IdentityN'",
        ),
    ):
        for node in graph_def.node:
            if name and "_gradient_op_type" in node.attr:
                node.attr["_gradient_op_type"].s = name
        with tf.Graph().as_default():
            x = tf.compat.v1.placeholder(tf.float32, [])
            tf.import_graph_def(graph_def, {"x": x})
            y = x.graph.get_operations()[-1].outputs[0]
            with pytest.raises(LookupError, match=text):
                tf.gradients(y, x)


def test_registered_gradients():
    seen = []

    @tf.RegisterGradient("TestTimes42")
    def times_42(op, grad):
        seen.append((op.type, op.inputs[0].dtype, op.get_attr("_gradient_op_type")))
        return grad * 42.0 * op.inputs[0]

    with pytest.raises(KeyError, match="Registering two gradient with name"):
        tf.RegisterGradient("TestTimes42")(times_42)
    with pytest.raises(KeyError, match="Registering two gradient with name 'Square'"):
        tf.RegisterGradient("Square")(times_42)
    with pytest.raises(TypeError, match="op_type must be a string"):
        tf.RegisterGradient(3)

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [])
        with graph.gradient_override_map({"Square": "TestTimes42"}):
            y = tf.square(x)
        z = tf.square(x)
        assert y.op.get_attr("_gradient_op_type") == b"TestTimes42"
        found = tf.gradients([y + z], x)
        with tf.compat.v1.Session() as session:
            assert session.run(found, {x: 2.0}) == [88.0]
        with graph.gradient_override_map({"Square": "TestMissing"}):
            y = tf.square(x)
        with pytest.raises(LookupError, match="No gradient defined for operation"):
            tf.gradients(y, x)
        wrong = graph.gradient_override_map({"Square": 3})
        with pytest.raises(TypeError, match="mapping strings to strings"), wrong:
            pass
    assert seen == [("Square", tf.float32, b"TestTimes42")]

    @tf.function
    def f(x):
        graph = tf.compat.v1.get_default_graph()
        with graph.gradient_override_map({"Square": "TestTimes42"}):
            return tf.square(x)

    x = tf.constant(3.0)
    assert second(f, x) == (126.0, 42.0)
    assert gradients(tf.function(lambda x: f(x) + f(2.0 * x)), x) == [126.0 + 504.0]


def test_a_gradient_for_operations_without_one():
    @tf.RegisterGradient("DeepCopy")
    def deep_copy(op, grad):
        return grad * 5.0

    f = tf.function(lambda x: tf.raw_ops.DeepCopy(x=x) * x)
    x = tf.constant(2.2)
    np.testing.assert_allclose(gradients(f, x), [6.0 * 2.2], rtol=1e-6)


def test_a_registered_gradient_that_calls_a_custom_one():
    @tf.RegisterGradient("TestCallsCustom")
    def calls(op, grad):
        return ten(grad, op.inputs[0])

    @tf.RegisterGradient("TestTooMany")
    def too_many(op, grad):
        return grad, grad

    def function(name):
        @tf.function
        def f(x):
            graph = tf.compat.v1.get_default_graph()
            with graph.gradient_override_map({"Square": name}):
                return tf.square(x)

        return f

    x = tf.constant(3.0)
    gc.collect()
    assert second(function("TestCallsCustom"), x) == (3.0, 100.0)
    with pytest.raises(ValueError, match="Num gradients 2 generated for op"):
        gradients(function("TestTooMany"), x)


def test_traces_are_freed():
    def use():
        v = tf.Variable(2.0)

        @tf.custom_gradient
        def f(x):
            return x * v, lambda d, variables=None: (ten(d, x), [d])

        call = tf.function(lambda x: tf.cond(x > 0.0, lambda: f(x), lambda: x))
        around = tf.function(lambda x: call(x) + call(x))
        x = tf.constant(1.5)
        second(around, x)
        with tf.GradientTape() as tape:
            y = around(x)
        tape.gradient(y, v)
        return weakref.ref(f), weakref.ref(v)

    use()
    gc.collect()
    before = _headrace.count_functions()
    for _ in range(3):
        f, v = use()
        gc.collect()
        assert f() is None and v() is None
    assert _headrace.count_functions() == before


def test_a_long_lived_function_gathers_nothing():
    f = tf.function(lambda x: ten(x, x))
    x = tf.constant(2.0)

    def use():
        g = tf.function(lambda x: f(x) * 3.0)
        assert gradients(g, x) == [360.0]

    use()
    gc.collect()
    before = _headrace.count_functions()
    for _ in range(3):
        use()
    gc.collect()
    assert _headrace.count_functions() == before
