"""tf.compat.v1.wrap_function."""

import headrace as tf
import pytest

v1 = tf.compat.v1


def test_calls_and_variables():
    def f(x):
        v = v1.get_variable("v", initializer=2.0, use_resource=True)
        return {"product": v * x, "v": v}

    wrapped = v1.wrap_function(f, [tf.TensorSpec([], tf.float32)])
    assert float(wrapped(tf.constant(3.0))["product"]) == 6.0
    (v,) = wrapped.variables
    v.assign(5.0)
    with tf.GradientTape() as tape:
        y = wrapped(tf.constant(3.0))["product"]
    assert float(y) == 15.0 and float(tape.gradient(y, v)) == 3.0


def test_effects_run_where_results_wait_for_them():
    a, b = tf.Variable(0), tf.Variable(0)

    def f(x):
        a.assign_add(1)
        with tf.control_dependencies([b.assign_add(1)]):
            return tf.cond(x > 0, lambda: (a.assign_add(10), x)[1], lambda: -x)

    wrapped = v1.wrap_function(f, [tf.TensorSpec([], tf.int32)])
    assert int(wrapped(tf.constant(3))) == 3
    assert (int(a), int(b)) == (0, 1)
    assert int(tf.function(f)(tf.constant(3))) == 3
    assert (int(a), int(b)) == (11, 2)


def test_prune():
    count = tf.Variable(0)

    def f(x, y):
        with tf.name_scope("inside"):
            z = tf.multiply(x, y, name="z")
        count.assign_add(1, read_value=False)
        return z + 1.0

    spec = tf.TensorSpec([], tf.float32)
    wrapped = v1.wrap_function(f, [spec, spec])
    x, y = wrapped.inputs[:2]
    product = wrapped.prune([x, y], "inside/z:0")
    assert float(product(tf.constant(2.0), tf.constant(3.0))) == 6.0
    double = wrapped.prune(x, {"twice": x})
    assert float(double(tf.constant(2.0))["twice"]) == 2.0
    counts = [
        op for op in wrapped.graph.get_operations() if op.type == "AssignAddVariableOp"
    ]
    counting = wrapped.prune([], counts[0])
    assert counting() is None and int(count) == 1
    rest = wrapped.prune("inside/z:0", wrapped.outputs[0])
    assert float(rest(tf.constant(4.0))) == 5.0
    assert [t.name for t in rest.inputs][:1] == ["inside/z:0"]


def test_prune_feeds_whole_operations():
    spec = tf.TensorSpec([2], tf.float32)
    wrapped = v1.wrap_function(lambda x: tf.unstack(x)[0] + 1.0, [spec])
    with pytest.raises(NotImplementedError, match="is one of several outputs"):
        wrapped.prune("unstack:0", wrapped.outputs[0])
