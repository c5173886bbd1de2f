"""Variables, scopes and initializers of plain graphs."""

import subprocess
import sys

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1


@pytest.fixture
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_a_variable_is_read_assigned_and_initialized_by_a_session(graph):
    v = tf.Variable([1.0, 2.0])
    doubled = v * 2.0
    bump = v.assign_add([1.0, 1.0])
    with v1.Session() as s:
        with pytest.raises(tf.errors.FailedPreconditionError):
            s.run(v)
        s.run(v1.global_variables_initializer())
        np.testing.assert_array_equal(s.run(v), [1, 2])
        np.testing.assert_array_equal(s.run(bump), [2, 3])
        np.testing.assert_array_equal(s.run(doubled), [4, 6])
        v.load([7.0, 8.0], s)
        np.testing.assert_array_equal(v.eval(s), [7, 8])


@pytest.mark.parametrize("use_resource", [True, False])
def test_both_kinds_of_variables(graph, use_resource):
    v = v1.get_variable(
        "v", [2], initializer=v1.ones_initializer(), use_resource=use_resource
    )
    total = tf.reduce_sum(v) + v[0]
    more = v1.assign_add(v, [1.0, 2.0])
    rows = v1.scatter_update(v, [0], [10.0])
    missing = v1.report_uninitialized_variables()
    with v1.Session() as s:
        assert s.run(missing).tolist() == [b"v"]
        with pytest.raises(tf.errors.FailedPreconditionError):
            s.run(total)
        s.run(v1.global_variables_initializer())
        assert s.run(missing).tolist() == []
        assert s.run(total) == 3
        np.testing.assert_array_equal(s.run(more), [2, 3])
        np.testing.assert_array_equal(s.run(rows), [10, 3])
        assert s.run(total) == 23


def test_a_reference_is_read_when_its_reader_runs(graph):
    v = v1.Variable(1.0, use_resource=False)
    assign = v.assign(5.0)
    with tf.control_dependencies([assign]):
        after = v.read_value()
    with v1.Session() as s:
        s.run(v.initializer)
        assert s.run([v, v.value()]) == [1.0, 1.0]
        assert s.run(after) == 5.0


def test_names_of_a_variables_nodes(graph):
    v1.get_variable("w", [2])
    names = [op.name for op in graph.get_operations()]
    assert names[-4:] == [
        "w",
        "w/IsInitialized/VarIsInitializedOp",
        "w/Assign",
        "w/Read/ReadVariableOp",
    ]
    assert names[0] == "w/Initializer/random_uniform/shape"
    assert [v.name for v in v1.trainable_variables()] == ["w:0"]


def test_scopes_share_variables(graph):
    with v1.variable_scope("a") as scope:
        first = v1.get_variable("v", [1])
        with v1.variable_scope("b"):
            assert v1.get_variable("v", [1]).name == "a/b/v:0"
    with v1.variable_scope(scope, reuse=True):
        assert v1.get_variable("v", [1]) is first
    with v1.variable_scope("a", reuse=v1.AUTO_REUSE):
        assert v1.get_variable("v", [1]) is first
        assert v1.get_variable("new", [1]) is not first
    with pytest.raises(ValueError, match="already exists"), v1.variable_scope("a"):
        v1.get_variable("v", [1])
    with pytest.raises(ValueError, match="does not exist"):
        with v1.variable_scope("c", reuse=True):
            v1.get_variable("v", [1])


def test_default_names_of_scopes_are_unique(graph):
    names = []
    for _ in range(2):
        with v1.variable_scope(None, default_name="d"):
            names.append(v1.get_variable("x", []).name)
    assert names == ["d/x:0", "d_1/x:0"]


def test_scopes_give_defaults(graph):
    made = []

    def getter(get, name, **kwargs):
        made.append(name)
        return get(name, **kwargs)

    with v1.variable_scope(
        "s", initializer=v1.ones_initializer(), dtype=tf.float64, custom_getter=getter
    ):
        v = v1.get_variable("x", [2])
    assert (v.dtype, made) == (tf.float64, ["s/x"])


def test_regularizers_add_losses(graph):
    v1.get_variable("w", [2], regularizer=lambda w: tf.reduce_sum(w * w))
    assert len(v1.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)) == 1


def test_constants_are_named_after_their_op(graph):
    x = v1.placeholder(tf.float32, [2])
    y = tf.reshape(x + 1.0, [2, 1])
    names = [op.name for op in graph.get_operations()]
    assert names == ["Placeholder", "add/y", "add", "Reshape/shape", "Reshape"]
    assert y.name == "Reshape:0"


@pytest.mark.parametrize(
    "initializer",
    ["glorot_normal", "he_uniform", "lecun_normal", "orthogonal", "truncated_normal"],
)
def test_initializers_scale(graph, initializer):
    make = getattr(v1.initializers, initializer)
    with v1.Session() as s:
        value = s.run(make(seed=3)([40, 40]))
    deviation = {"orthogonal": 1 / 40, "truncated_normal": 0.774}.get(initializer)
    if deviation:
        assert abs(value.var() - deviation) < 0.1 * deviation
    assert value.shape == (40, 40) and abs(value.mean()) < 0.1


def test_constant_initializer_of_version_1():
    init = tf.compat.v1.constant_initializer([0, 1, 2, 3])
    assert init([2, 2]).numpy().tolist() == [[0, 1], [2, 3]]
    # The last value goes on where there are too few.
    assert init([2, 3]).numpy().tolist() == [[0, 1, 2], [3, 3, 3]]
    with pytest.raises(ValueError, match="Needed at most 3, but received 4"):
        init([3])
    checked = tf.compat.v1.constant_initializer([0, 1], verify_shape=True)
    with pytest.raises(TypeError, match=r"shape: \(3, 4\), got \(2,\)"):
        checked([3, 4])


def test_static_values_of_variables_are_unknown():
    assert tf.get_static_value(tf.Variable(3)) is None
    assert tf.get_static_value(tf.constant(3)) == 3
    assert tf.get_static_value([1, 2]) == [1, 2]


def test_first_of_all_in_a_program():
    program = "import headrace as tf\nwith tf.Graph().as_default():\n    "
    program += "print(type(tf.Variable(1.0)).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "GraphVariable\n", done.stderr
