"""TensorFlow 1's variables, which operations take by reference."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def variable(value, **options):
    return v1.Variable(value, use_resource=False, **options)


def new_nodes(graph, make):
    """(what a function gives, {name: (type, colocation)} of the nodes that it adds)"""
    before = len(graph.get_operations())
    made = make()
    added = graph.get_operations()[before:]
    return made, {
        op.name: (op.type, [b.decode() for b in op.colocation_groups()]) for op in added
    }


def test_nodes(graph):
    with tf.device("/cpu:1"):
        w = variable([1.0, 2.0], name="w")
    found = {
        op.name: (op.type, op.device, [i.name for i in op.inputs])
        for op in graph.get_operations()
    }
    device = "/device:CPU:1"
    assert found == {
        "w/initial_value": ("Const", device, []),
        "w": ("VariableV2", device, []),
        "w/Assign": ("Assign", device, ["w:0", "w/initial_value:0"]),
        "w/read": ("Identity", device, ["w:0"]),
    }
    for name in ("w/Assign", "w/read"):
        op = graph.get_operation_by_name(name)
        assert op.get_attr("_class") == [b"loc:@w"]
    assert w.name == "w:0" and w.dtype.name == "float32_ref" and w.shape == [2]
    assert repr(w) == "<tf.Variable 'w:0' shape=(2,) dtype=float32_ref>"
    assert isinstance(w, v1.Variable) and isinstance(w, tf.Variable)
    assert w.value() is w.value() and w.read_value() is not w.read_value()
    assert {w: 1}[w] == 1 and w != variable(1.0)


def test_what_takes_a_reference_lies_where_it_does(graph):
    with tf.device("/job:ps"):
        v = variable(0, name="v")
    with tf.device("/job:worker/task:7"):
        given, added = new_nodes(graph, lambda: v.assign(1))
    assert given.device == "/job:ps" and given.dtype.name == "int32_ref"
    assert added == {
        "Assign/value": ("Const", ["loc:@Assign/value"]),
        "Assign": ("Assign", ["loc:@v"]),
    }
    op = v.assign_add(1, read_value=False)
    assert op.type == "AssignAdd" and op.device == "/job:ps"


def test_a_caching_device(graph):
    v = variable(2.0, caching_device="/job:foo")
    assert v.value().device == "/job:foo" and v.device == ""
    r = tf.Variable(2.0, caching_device="/job:foo")
    assert r.value().device == "/job:foo" and r.device == ""


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda v: v.assign([5.0, 6.0]), [5, 6]),
        (lambda v: v.assign_add([1.0, 1.0], use_locking=True), [2, 3]),
        (lambda v: v.assign_sub([1.0, 1.0]), [0, 1]),
        (lambda v: v.scatter_add(tf.IndexedSlices([3.0], [1])), [1, 5]),
        (lambda v: v.scatter_sub(tf.IndexedSlices([3.0], [1])), [1, -1]),
        (lambda v: v.scatter_mul(tf.IndexedSlices([3.0], [1])), [1, 6]),
        (lambda v: v.scatter_div(tf.IndexedSlices([4.0], [1])), [1, 0.5]),
        (lambda v: v.scatter_max(tf.IndexedSlices([3.0], [1])), [1, 3]),
        (lambda v: v.scatter_min(tf.IndexedSlices([3.0], [1])), [1, 2]),
        (lambda v: v.scatter_update(tf.IndexedSlices([3.0], [1])), [1, 3]),
        (lambda v: v.batch_scatter_update(tf.IndexedSlices([3.0], [1])), [1, 3]),
        (lambda v: v.scatter_nd_add([[0]], [3.0]), [4, 2]),
        (lambda v: v.scatter_nd_sub([[0]], [3.0]), [-2, 2]),
        (lambda v: v.scatter_nd_max([[0]], [3.0]), [3, 2]),
        (lambda v: v.scatter_nd_min([[0]], [-3.0]), [-3, 2]),
        (lambda v: v.scatter_nd_update([[0]], [3.0]), [3, 2]),
        (lambda v: v[1:].assign([7.0]), [1, 7]),
        (lambda v: v1.assign(v, [5.0, 6.0]), [5, 6]),
        (lambda v: v1.assign_sub(v, [1.0, 1.0], use_locking=True), [0, 1]),
        (lambda v: v1.scatter_nd_add(v, [[0]], [3.0]), [4, 2]),
        (lambda v: v1.scatter_update(v, [1], [3.0]), [1, 3]),
        (
            lambda v: tf.raw_ops.ScatterNdMin(
                ref=v, indices=np.array([[1]]), updates=np.float32([-3])
            ),
            [1, -3],
        ),
    ],
)
def test_changes(change, expected):
    v = variable([1.0, 2.0])
    changed = change(v)
    assert changed.dtype.name == "float32_ref" and changed.shape == [2]
    with v1.Session() as session:
        session.run(v.initializer)
        assert session.run(changed).tolist() == expected
        assert session.run(v).tolist() == session.run(v.value()).tolist() == expected


def test_counting():
    v = variable(1)
    counted = v.count_up_to(3)
    with v1.Session() as session:
        session.run(v.initializer)
        assert [session.run(counted) for _ in range(2)] == [1, 2]
        with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 3"):
            session.run(counted)
        session.run(v.assign(0))
        assert session.run(v1.count_up_to(v, 5)) == 0 and session.run(v) == 1


@pytest.fixture
def old_branches():
    """Branches are TensorFlow 1's nodes: those of functions read what they capture."""
    v1.disable_control_flow_v2()
    yield
    v1.enable_control_flow_v2()


def test_values_before_the_first(old_branches):
    v = variable([1.0, 2.0], name="v")
    first = v.initialized_value()
    with v1.Session() as session:
        assert session.run(first).tolist() == [1.0, 2.0]
        assert not session.run(v1.is_variable_initialized(v))
        for use in (
            v,
            v.value(),
            v.assign_add([1.0, 1.0]),
            v.scatter_nd_add([[0]], [1.0]),
        ):
            with pytest.raises(
                tf.errors.FailedPreconditionError,
                match="Attempting to use uninitialized value v",
            ):
                session.run(use)
        v.load([4.0, 5.0], session)
        assert session.run(first).tolist() == v.eval(session).tolist() == [4.0, 5.0]


def test_shapes_are_checked():
    v = variable([1.0, 2.0])
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 1 and 0"):
        v.assign(1.0)
    with pytest.raises(ValueError, match="but are 2 and 3"):
        v.assign([1.0, 2.0, 3.0])
    other = v1.placeholder_with_default([1.0, 2.0, 3.0], None)
    with v1.Session() as session:
        session.run(v.initializer)
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"Assign requires shapes of both tensors to match. lhs shape= \[2\] "
            r"rhs shape= \[3\]",
        ):
            session.run(v.assign(other))
        free = v1.assign(v, other, validate_shape=False)
        assert session.run(free).tolist() == [1.0, 2.0, 3.0]


def test_a_reference_is_fed():
    v = variable(2.0)
    y = v * 3.0
    with v1.Session() as session:
        assert session.run(y, {v: 5.0}) == 15.0
        assert session.run(y, {v.value(): 5.0}) == 15.0


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda: v1.Variable(use_resource=False), "initial_value must be specified"),
        (
            lambda: variable(v1.placeholder(tf.float32)),
            "initial_value must have a shape specified",
        ),
        (
            lambda: variable(1.0, collections="abc"),
            "collections argument to Variable constructor must be a list, tuple, or set",
        ),
        (
            lambda: variable(1.0, constraint=3),
            "The `constraint` argument must be a callable",
        ),
        (
            lambda: v1.Variable(1.0, variable_def=v1.Variable(1.0).to_proto()),
            "mutually exclusive",
        ),
    ],
)
def test_wrong_arguments(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_a_shape_that_is_not_said():
    v = variable(v1.placeholder_with_default([1.0], None), validate_shape=False)
    assert v.shape.rank is None
    v.set_shape([1])
    assert v.shape == [1]


@pytest.mark.parametrize("use_resource", [False, True])
def test_definitions(use_resource):
    on_read = tf.VariableSynchronization.ON_READ
    v = v1.Variable(
        1.0,
        name="s/v",
        use_resource=use_resource,
        synchronization=on_read,
        aggregation=tf.VariableAggregation.MEAN,
    )
    proto = v.to_proto()
    snapshot = "s/v/Read/ReadVariableOp:0" if use_resource else "s/v/read:0"
    assert (proto.variable_name, proto.snapshot_name) == ("s/v:0", snapshot)
    assert proto.initializer_name == "s/v/Assign"
    assert (proto.is_resource, proto.trainable) == (use_resource, False)
    assert (proto.synchronization, proto.aggregation) == (3, 2)
    again = v1.Variable.from_proto(proto)
    assert type(again) is type(v) and again.name == v.name
    assert again.synchronization == on_read and not again.trainable
    assert v.to_proto("s").variable_name == "v:0" and v.to_proto("t") is None
    assert v1.Variable.from_proto(v.to_proto("s"), import_scope="s").name == v.name
    if use_resource:
        assert tf.Variable(variable_def=proto).name == v.name
    else:
        with pytest.raises(ValueError, match="TF 1.x Reference Variable as a TF 2.x"):
            tf.Variable(variable_def=proto)


def test_parts_by_their_text():
    info = tf.Variable.SaveSliceInfo("foo", [2, 3, 4], [0, 2, 0], [1, 1, 3])
    assert (
        tf.Variable.SaveSliceInfo.from_spec(info.spec).spec
        == info.spec
        == ("2 3 4 0,1:2,1:0,3")
    )
    for spec, match in (
        ("0", "contain space-separated full_shape info"),
        ("a b", "full_shape must be a sequence of int"),
        ("0 0:0", "comma-separated pairs of offsets and"),
        ("0 a,0:0:0", "var_offset must be an integer"),
        ("0 0,a:0:0", "var_shape must be an integer"),
    ):
        with pytest.raises(ValueError, match=match):
            tf.Variable.SaveSliceInfo.from_spec(spec)


def test_a_gradient_reaches_it():
    v = variable(3.0)
    step = v1.train.GradientDescentOptimizer(0.5).minimize(v * v)
    with v1.Session() as session:
        session.run(v.initializer)
        session.run(step)
        assert session.run(v) == 0.0


def test_aggregations_have_one_more_name():
    assert v1.VariableAggregation.ONLY_FIRST_TOWER == (
        tf.VariableAggregation.ONLY_FIRST_REPLICA
    )
    assert hash(v1.VariableAggregation.SUM) == hash(tf.VariableAggregation.SUM)
    assert not hasattr(tf.VariableAggregation, "ONLY_FIRST_TOWER")
    assert v1.VariableAggregation.SUM != tf.VariableAggregation.MEAN


def test_operators():
    v = variable([4.0])
    with v1.Session() as session:
        session.run(v.initializer)
        given = [v + 1, 1 - v, v * v, -v, abs(v), v**2, v > 3, v[0], 8 / v]
        found = [np.asarray(x).tolist() for x in session.run(given)]
        assert found == [[5], [-3], [16], [-4], [4], [16], [True], 4, [2]]


def test_first_values_of_variables_without_a_value(old_branches, graph):
    v = variable([1.0, 2.0], name="v")
    w = variable(v.value() * 2.0 + v, name="w")
    u = variable(w, name="u")
    assert w.initializer.inputs[1].name == "add_w:0"
    assert w.initial_value.name == "add:0"
    with v1.Session() as session:
        session.run(u.initializer)
        assert session.run(u).tolist() == [3.0, 6.0]
        assert not session.run(v1.is_variable_initialized(w))
        session.run(v.assign([2.0, 2.0]))
        session.run(w.initializer)
        assert session.run(w).tolist() == [6.0, 6.0]


def test_first_values_are_read_where_branches_are_functions():
    v = variable([1.0, 2.0], name="v")
    w = variable(v.value() * 2.0, name="w")
    assert w.initializer.inputs[1].name == w.initial_value.name
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(w).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_first_value_of_tensors(use_resource, graph):
    parts = [tf.constant(1.0), 2.0]
    v = v1.get_variable("v", initializer=parts, use_resource=use_resource)
    with v1.Session() as session:
        session.run(v.initializer)
        assert session.run(v).tolist() == [1.0, 2.0]
