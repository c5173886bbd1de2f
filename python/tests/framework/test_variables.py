"""tf.Variable and tf.Module."""

import copy

import numpy as np
import pytest

import headrace as tf


def test_assignments():
    v = tf.Variable([1.0, 2.0], name="a")
    kept = v.read_value()
    assert str(v.assign([3.0, 4.0])).startswith("<tf.Variable 'UnreadVariable'")
    v.assign_add([1.0, 1.0])
    v.assign_sub([0.5, 0.5])
    assert v.numpy().tolist() == [3.5, 4.5]
    assert kept.numpy().tolist() == [1.0, 2.0]
    assert v.assign_add([0.0, 1.0]).assign_add([1.0, 0.0]).numpy().tolist() == [
        4.5,
        5.5,
    ]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda v: v.assign([1.0, 2.0, 3.0]), ValueError, "Shape mismatch"),
        (
            lambda v: v.assign(tf.constant([1, 2])),
            ValueError,
            "dtype float32 for Tensor",
        ),
        (lambda v: v.assign("a"), TypeError, "Cannot convert 'a'"),
        (hash, TypeError, "unhashable"),
    ],
)
def test_refused(change, error, text):
    with pytest.raises(error, match=text):
        change(tf.Variable([1.0, 2.0]))


def test_inplace_operators_are_refused():
    v = tf.Variable(1.0)
    with pytest.raises(RuntimeError, match="assign_add"):
        v += 1


def test_scatter_and_gather():
    v = tf.Variable([1.0, 2.0, 3.0, 4.0])
    v.scatter_add(tf.IndexedSlices(tf.constant([10.0, 20.0]), tf.constant([0, 2])))
    v.scatter_nd_update([[1]], [9.0])
    assert v.numpy().tolist() == [11.0, 9.0, 23.0, 4.0]
    assert v.sparse_read([0, 3]).numpy().tolist() == [11.0, 4.0]


def test_names_and_copies():
    with tf.name_scope("s"):
        v = tf.Variable(1.0, name="x")
    assert v.name == "s/x:0"
    other = copy.deepcopy(v)
    other.assign(5.0)
    assert v.numpy() == 1.0


def test_creator_scope():
    def creator(following, **kwargs):
        kwargs["name"] = "made"
        return following(**kwargs)

    with tf.variable_creator_scope(creator):
        assert tf.Variable(1.0).name == "made:0"


def test_module_finds_variables():
    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(np.ones(2))
            self.b = tf.Variable(1.0, trainable=False)

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Layer(), Layer()]

    net = Net()
    assert len(net.variables) == 4
    assert len(net.trainable_variables) == 2
    assert [m.name for m in net.submodules] == ["layer", "layer"]


def test_parts_are_assigned():
    m = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    out = m[0].assign([9.0, 9.0])
    assert repr(out).startswith("<tf.Variable 'UnreadVariable' shape=(2, 2)")
    m[:, 1].assign([7.0, 8.0])
    m[-1, 0].assign(5)
    m[..., tf.newaxis, 0].assign([[0.0], [1.0]])
    assert m.numpy().tolist() == [[0.0, 7.0], [1.0, 8.0]]
    assert not hasattr(m[0][0], "assign") and not hasattr(m[m > 1], "__none__")
    with pytest.raises(tf.errors.InvalidArgumentError):
        m[0].assign([1.0, 2.0, 3.0])

    @tf.function
    def change(i):
        m[i].assign([1.0, 1.0])
        return m[:1]

    assert change(tf.constant(0)).numpy().tolist() == [[1.0, 1.0]]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        w = tf.Variable([1.0, 2.0])
        session.run(w.initializer)
        assigned = w[1:].assign([5.0])
        session.run(assigned)
        assert session.run(w).tolist() == [1.0, 5.0]


def test_what_texts_and_counters_say():
    v = tf.Variable(1, name="n")
    assert f"{v}" == str(v) == "<tf.Variable 'n:0' shape=() dtype=int32, numpy=1>"
    assert int(v.count_up_to(2)) == 1 and int(v) == 2
    with pytest.raises(tf.errors.OutOfRangeError):
        v.count_up_to(2)
    v.load(7)
    assert int(v) == 7
    with pytest.raises(RuntimeError, match="not supported when eager execution"):
        v.eval()
    with pytest.raises(TypeError, match="must be a `tf.IndexedSlices`"):
        tf.Variable([1.0]).batch_scatter_update([1.0])


def test_names_of_variables_that_functions_make():
    made = []

    def make(name="v"):
        made.append(tf.Variable(1.0, name=name))

    @tf.function
    def f():
        if not made:
            with tf.name_scope("in"):
                make()
                make()  # names of variables are not made unique
                with tf.init_scope():
                    make("w")
            make("x")
            with tf.init_scope(), tf.name_scope("k"):
                make("w")
        return made[0]

    with tf.name_scope("out"):
        f()
        make("after")
    names = [v.name for v in made]
    assert names == ["in/v:0", "in/v:0", "in/w:0", "x:0", "k/w:0", "out/after:0"]


def test_lifting_is_told_to_creators():
    seen = []

    def creator(following, **kwargs):
        seen.append(kwargs["experimental_enable_variable_lifting"])
        return following(**kwargs)

    with tf.variable_creator_scope(creator):
        for kind in (tf.Variable, tf.compat.v1.Variable):
            v = kind(2.0, experimental_enable_variable_lifting=False)
            assert float(v) == 2.0
    assert seen == [False, False]
    with tf.Graph().as_default():
        for resource in (True, False):
            tf.compat.v1.Variable(
                2.0, use_resource=resource, experimental_enable_variable_lifting=False
            )
