"""What custom getters of variable scopes are given, and what their `getter` takes."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def noting(seen, tag=None):
    def getter(make, *args, **kwargs):
        seen.append((tag, args, kwargs))
        return make(*args, **kwargs)

    return getter


def test_everything_comes_by_keyword_with_what_the_scope_says():
    seen = []
    twice = v1.ones_initializer()
    with v1.variable_scope(
        "a",
        custom_getter=noting(seen),
        dtype=tf.float64,
        initializer=twice,
        use_resource=True,
        reuse=v1.AUTO_REUSE,
    ):
        made = v1.get_variable("x", [2])
    ((_, args, given),) = seen
    assert args == ()
    assert given == {
        "name": "a/x",
        "shape": [2],
        "dtype": tf.float64,
        "initializer": twice,
        "regularizer": None,
        "reuse": v1.AUTO_REUSE,
        "trainable": True,
        "collections": None,
        "caching_device": None,
        "partitioner": None,
        "validate_shape": True,
        "use_resource": True,
        "synchronization": tf.VariableSynchronization.AUTO,
        "aggregation": tf.VariableAggregation.NONE,
        "constraint": None,
    }
    assert made.dtype == tf.float64


def test_getters_of_scopes_around_are_called_too():
    seen = []
    with v1.variable_scope("a", custom_getter=noting(seen, "A")):
        with v1.variable_scope("b", custom_getter=noting(seen, "B")) as inner:
            v1.get_variable("y", [2])
            v1.get_variable("own", [2], custom_getter=noting(seen, "C"))
    with v1.variable_scope(inner, custom_getter=noting(seen, "D")):
        v1.get_variable("z", [2])
    names = [(tag, given["name"]) for tag, _, given in seen]
    assert names[:3] == [("B", "a/b/y"), ("A", "a/b/y"), ("C", "a/b/own")]
    assert names[3:] == [("D", "a/b/z"), ("B", "a/b/z"), ("A", "a/b/z")]


def test_the_getter_takes_what_tensorflow_lets_it_take():
    def within(getter):
        with v1.variable_scope("z", custom_getter=getter):
            return v1.get_variable("x", [2])

    def having(**more):
        return lambda make, **given: make(**{**given, **more})

    with pytest.raises(ValueError, match="Variable z/x does not exist"):
        within(having(reuse=True))
    made = within(having(reuse=False))
    with pytest.raises(ValueError, match="Variable z/x already exists, disallowed"):
        within(having(reuse=False))
    assert within(having(reuse=v1.AUTO_REUSE)) is made
    ones = v1.ones_initializer()
    by_place = [[2], tf.float32, ones, None, False, False, ["c"], None, None, True]
    free = within(lambda make, name, **given: make("free", *by_place, True))
    assert free.name == "free:0"
    assert v1.get_collection("c") == [free]
    assert v1.trainable_variables() == [made]
    with pytest.raises(TypeError, match="unexpected keyword argument 'bogus'"):
        within(lambda make, name, **given: make("other", bogus=1))


def test_what_getters_make_lies_outside_of_name_scopes():
    def doubled(make, name, **given):
        return make(name + "/w", **given) * 2

    with v1.variable_scope("n", custom_getter=doubled):
        assert v1.get_variable("w", [2]).name == "mul:0"
    assert [v.name for v in v1.global_variables()] == ["n/w/w:0"]


def test_what_is_no_getter_is_refused():
    text = "Passed a custom_getter which is not callable: 5"
    with pytest.raises(ValueError, match=text):
        v1.get_variable("y", [2], custom_getter=5)


def test_scopes_within_do_not_take_constraints_over():
    def same(x):
        return x

    with v1.variable_scope("a", constraint=same) as scope:
        assert v1.get_variable("v", [2]).constraint is same
        with v1.variable_scope("b") as inner:
            assert inner.constraint is None
    with v1.variable_scope(scope) as again:
        assert again.constraint is None


def test_variables_that_replicas_have_for_themselves_are_not_trained():
    on_read = tf.VariableSynchronization.ON_READ
    assert not v1.get_variable("r", [2], synchronization=on_read).trainable
    assert v1.trainable_variables() == []


def test_layers_work_with_tensors_that_getters_make():
    def doubled(make, *args, **given):
        return tf.identity(make(*args, **given) * 2, name="doubled")

    with v1.variable_scope("a", custom_getter=doubled):
        layer = v1.layers.Dense(3, kernel_regularizer=tf.reduce_sum, name="d")
        y = layer(tf.ones([1, 2]))
        cell = v1.nn.rnn_cell.LSTMCell(2)
        states, _ = v1.nn.dynamic_rnn(cell, tf.ones([1, 2, 2]), dtype=tf.float32)
    assert layer.kernel.name == "doubled:0"
    assert [w.name for w in layer.weights] == ["doubled:0", "doubled_1:0"]
    assert layer.trainable_weights == []
    assert len(layer.non_trainable_weights) == 2
    names = ["a/d/kernel", "a/d/bias", "a/rnn/lstm_cell/kernel", "a/rnn/lstm_cell/bias"]
    assert [v.op.name for v in v1.trainable_variables()] == names
    (loss,) = v1.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)
    assert loss.op.name == "a/d/kernel/Regularizer/Sum"
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        kernel, found = session.run([v1.trainable_variables()[0], y])
        assert np.allclose(found, 2 * kernel.sum(0, keepdims=True))
        assert session.run(states).shape == (1, 2, 2)
