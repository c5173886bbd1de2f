"""tf.compat.v1.Variable as a class, its protos and first values, as TensorFlow 2.21's."""

import pytest

import headrace as tf

v1 = tf.compat.v1
Info = v1.Variable.SaveSliceInfo


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as session:
        yield session


@pytest.fixture
def old_branches():
    """Branches of nodes, which do not ask for the value of the side not taken."""
    v1.disable_control_flow_v2()
    yield
    v1.enable_control_flow_v2()


@pytest.mark.parametrize("resource", [True, False])
def test_all_variables_are_instances(session, resource):
    for made in (
        v1.Variable(1.0, use_resource=resource),
        v1.get_variable("v", [1], use_resource=resource),
        tf.Variable(1.0),
    ):
        assert isinstance(made, v1.Variable) and issubclass(type(made), v1.Variable)
    assert not isinstance(tf.constant(1), v1.Variable)


def test_eager_variables_are_instances():
    assert isinstance(v1.Variable(1.0), v1.Variable)
    assert isinstance(tf.Variable(1.0), v1.Variable)


@pytest.mark.parametrize("resource", [True, False])
def test_protos(session, resource):
    with v1.name_scope("s"):
        made = v1.Variable(
            [1.0, 2.0],
            use_resource=resource,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.MEAN,
        )
    assert not made.trainable
    proto = made.to_proto()
    read = "Read/ReadVariableOp:0" if resource else "read:0"
    assert proto.variable_name == "s/Variable:0"
    assert proto.initializer_name == "s/Variable/Assign"
    assert proto.snapshot_name == f"s/Variable/{read}"
    assert proto.is_resource is resource and not proto.trainable
    inner = made.to_proto("s")
    assert inner.variable_name == "Variable:0" and made.to_proto("other") is None
    for again in (
        v1.Variable(variable_def=proto),
        v1.Variable.from_proto(inner, import_scope="s"),
    ):
        assert again.to_proto() == proto and type(again) is type(made)
        assert again.synchronization == tf.VariableSynchronization.ON_READ
        assert again.aggregation == tf.VariableAggregation.MEAN
        session.run(again.initializer)
        assert session.run(again).tolist() == [1, 2]
    with pytest.raises(ValueError, match="mutually exclusive"):
        v1.Variable(1.0, variable_def=proto)
    with tf.Graph().as_default(), pytest.raises((KeyError, ValueError)):
        v1.Variable.from_proto(proto)


@pytest.mark.parametrize("resource", [True, False])
def test_values_that_variables_begin_with(session, old_branches, resource):
    v = v1.get_variable("v", initializer=3.0, use_resource=resource)
    value = v.initialized_value()
    assert session.run(value) == 3
    session.run(v.initializer)
    session.run(v.assign(5.0))
    assert session.run(value) == 5
    v.load(7.0, session)
    assert session.run(v) == 7
    proto = v.to_proto()
    proto.ClearField("initial_value_name")
    with pytest.raises(ValueError, match="no initial value"):
        v1.Variable(variable_def=proto).initialized_value()


def test_values_that_depend_on_other_variables(session, old_branches):
    v = v1.Variable(3.0, name="v", use_resource=False)
    w = v1.Variable(tf.square(v + 1.0), name="w", use_resource=False)
    x = v1.Variable(v, name="x", use_resource=False)
    names = {op.name for op in v1.get_default_graph().get_operations()}
    assert {"add_w", "Square_w", "v/read_x"} <= names
    session.run([w.initializer, x.initializer])  # of a variable without a value
    assert session.run(w) == 16 and session.run(x) == 3
    assert not session.run(v1.is_variable_initialized(v))
    session.run(v.initializer)
    session.run(v.assign(10.0))
    session.run(w.initializer)
    assert session.run(w) == 121


def test_values_out_of_loops(session, old_branches):
    turns = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    v = v1.Variable(tf.identity(turns), name="v", use_resource=False)
    w = v1.Variable(v * 2, use_resource=False)
    session.run(w.initializer)
    assert session.run(w) == 6


# --- parts of variables ---


def test_specs_of_parts():
    info = Info("n", [10, 20], [0, 3], [5, 4])
    again = Info.from_spec(info.spec)
    assert info.spec == again.spec == "10 20 0,5:3,4" and again.full_name is None
    assert (again.var_offset, again.var_shape) == ([0, 3], [5, 4])


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("0", "contain space-separated full_shape info"),
        ("a b", "full_shape must be a sequence of integers. Found 'a'"),
        ("0 0:0", "contain comma-separated pairs of offsets and shapes."),
        ("0 a,0:0:0", "var_offset must be an integer. Found 'a'"),
        ("0 0,a:0:0", "var_shape must be an integer. Found 'a'"),
    ],
)
def test_wrong_specs(spec, text):
    with pytest.raises(ValueError, match=text):
        Info.from_spec(spec)


# --- functions that place operations ---


def test_device_functions_see_inner_devices(session):
    seen = []

    def place(op):
        seen.append((op.type, op.device))
        return "/job:a"

    with v1.device(place):
        assert tf.constant(1).device == "/job:a"
        with v1.device("/cpu:0"):
            inner = tf.constant(2)
        with v1.device(None):
            assert tf.constant(3).device == ""
        assert inner.op.node_def.device == "/job:a"
    assert seen == [("Const", ""), ("Const", "/device:CPU:0")]
    with v1.device("/job:b"), v1.device(lambda op: op.device or "/cpu:1"):
        assert tf.constant(4).op.device == "/job:b/device:CPU:1"
    with (
        v1.device(lambda op: 3),
        pytest.raises(TypeError, match="Expected binary or un"),
    ):
        tf.constant(5).device  # noqa: B018


def test_device_functions_of_eager_code():
    with pytest.raises(
        RuntimeError, match="not support functions when eager execution"
    ):
        v1.device(lambda op: "")
    with v1.device("/cpu:0"):
        assert tf.constant(1).numpy() == 1


def devices(given):
    with v1.device(v1.train.replica_device_setter(**given)):
        with v1.device("/gpu:1"):
            first = v1.Variable(1.0, use_resource=False)
        second = v1.get_variable("w", [1], use_resource=True)
        other = tf.identity(second)
    return [x.device for x in (first.op, second.op, other.op)]


SETTERS = [
    ({"ps_tasks": 2}, ["/job:ps/task:0/device:GPU:1", "/job:ps/task:1", "/job:worker"]),
    ({"ps_tasks": 2, "merge_devices": False}, ["/device:GPU:1", "/job:ps/task:0", "/job:worker"]),
    ({"cluster": {"ps": ["a:1"], "worker": []}, "ps_device": "/job:ps/cpu:0"}, ["/job:ps/task:0/device:GPU:1", "/job:ps/task:0/device:CPU:0", "/job:worker"]),
    ({"ps_tasks": 2, "ps_strategy": lambda op: 1, "worker_device": None}, ["/job:ps/task:1/device:GPU:1", "/job:ps/task:1", ""]),
    ({"ps_tasks": 2, "ps_ops": ["Identity"]}, ["/job:worker/device:GPU:1", "/job:worker", "/job:ps/task:0"]),
    ({"ps_tasks": 0}, ["/device:GPU:1", "", ""]),
]  # fmt: skip


@pytest.mark.parametrize(("given", "wanted"), SETTERS)
def test_variables_lie_with_servers(session, given, wanted):
    assert devices(given) == wanted


def test_wrong_setters():
    with pytest.raises(
        TypeError, match="`cluster` must be a dictionary mapping one or"
    ):
        v1.train.replica_device_setter(cluster=3)
    with pytest.raises(TypeError, match="ps_strategy must be callable"):
        v1.train.replica_device_setter(ps_tasks=1, ps_strategy=3)
    assert v1.train.replica_device_setter(cluster={"worker": ["a:1"]}) is None


@pytest.mark.parametrize("resource", [True, False])
def test_parts_of_variables_are_assigned(session, resource):
    v = v1.get_variable("v", initializer=[1.0, 2.0, 3.0], use_resource=resource)
    changed = v[:2].assign([7.0, 8.0])
    none = tf.errors.NotFoundError if resource else tf.errors.FailedPreconditionError
    with pytest.raises(none):
        session.run(changed)
    session.run(v.initializer)
    assert session.run(changed).tolist() == [7, 8, 3]
    assert session.run(v1.assign(v[1], 5.0)).tolist() == [7, 5, 3]
    with pytest.raises(ValueError, match="not supported for boolean masks"):
        v[tf.constant([True, False, True])].assign([1.0, 2.0])


def test_places_inside_of_colocations():
    asked = []

    def place(op):
        asked.append(op.name)
        return f"/job:x/task:{len(asked)}"

    with tf.Graph().as_default(), v1.device(place):
        a = tf.constant(1.0, name="a")
        with v1.colocate_with(a):
            tf.constant(1.0, name="b")
            with v1.device("/cpu:1"):  # has no say
                c = tf.constant(1.0, name="c")
            with v1.device(place):
                d = tf.constant(1.0, name="d")
        found = [x.op.device for x in (a, c, d)]
    assert found == ["/job:x/task:1"] * 3
    assert asked == ["a", "d"]
