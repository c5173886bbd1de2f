"""What ConfigProto and RunOptions do: each of their fields acts or is refused."""

import threading
import time

import headrace as tf
import numpy as np
import pytest
from headrace.v1 import session_config

v1 = tf.compat.v1
HOST = "/job:localhost/replica:0/task:0/device:CPU:"


def fields(descriptor, prefix=""):
    """The paths of a message's fields, those of messages in them too."""
    for field in descriptor.fields:
        path = prefix + field.name
        inner = field.message_type
        if inner is None or inner.GetOptions().map_entry or inner is descriptor:
            yield path
        else:
            yield path
            if path.count(".") < 1:
                yield from fields(inner, path + ".")


@pytest.mark.parametrize(
    "message, table",
    [
        (v1.ConfigProto, session_config.FIELDS),
        (v1.RunOptions, session_config.RUN_FIELDS),
    ],
)
def test_all_fields_have_a_row(message, table):
    paths = list(fields(message.DESCRIPTOR))
    parts = {"graph_options", "debug_options", "experimental"}
    for path in paths:
        if path not in parts:
            session_config.row_of(path, table)
    assert set(table) - {"experimental.coordination_config.service_type"} <= set(paths)


def run(fetches, options=None, metadata=None, **config):
    with v1.Session(config=v1.ConfigProto(**config)) as session:
        return session.run(fetches, options=options, run_metadata=metadata)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.mark.parametrize(
    "config, match",
    [
        ({"graph_options": {"build_cost_model": 1}}, "GraphOptions.build_cost_model"),
        ({"graph_options": {"timeline_step": 3}}, "GraphOptions.timeline_step"),
        ({"cluster_def": {"job": [{"name": "w"}]}}, "ClusterDef.job is not supported"),
        ({"experimental": {"target_tpu": True}}, "Experimental.target_tpu"),
    ],
)
def test_what_nothing_serves_is_refused(config, match):
    with pytest.raises(NotImplementedError, match=match):
        run(tf.constant(1), **config)


def test_what_changes_no_result_is_taken():
    config = {
        "gpu_options": {"allow_growth": True},
        "graph_options": {
            "optimizer_options": {"opt_level": -1},
            "rewrite_options": {"disable_meta_optimizer": True},
        },
        "isolate_session_state": True,
        "use_per_session_threads": True,
        "intra_op_parallelism_threads": 1,
    }
    assert run(tf.constant(1) + 1, **config) == 2


def test_processors_that_are_not_there():
    with pytest.raises(tf.errors.NotFoundError, match="No CPU devices are available"):
        v1.Session(config=v1.ConfigProto(device_count={"CPU": 0}))
    with tf.device("/cpu:1"):
        x = tf.constant(1.0)
    assert run(x, device_count={"CPU": 2}) == 1.0
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"explicitly assigned to /device:CPU:1 but available devices are \[ "
        rf"{HOST}0 \]",
    ):
        run(x)
    assert run(x, allow_soft_placement=True) == 1.0


def test_devices_of_a_session():
    with v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
        devices = session.list_devices()
        assert [d.name for d in devices] == [HOST + "0", HOST + "1"]
        assert {d.device_type for d in devices} == {"CPU"}
        assert repr(devices[0]).startswith(
            f"_DeviceAttributes({HOST}0, CPU, 268435456, "
        )
    with pytest.raises(tf.errors.CancelledError, match="Session has been closed."):
        session.list_devices()


@pytest.mark.parametrize(
    "arguments, error, match",
    [
        ({"config": {}}, TypeError, 'must be a tf.ConfigProto, but got "dict"'),
        ({"graph": 3}, TypeError, 'must be a tf.Graph, but got "int"'),
        ({"target": 3}, TypeError, 'must be a string, but got "int"'),
        ({"target": "x"}, tf.errors.NotFoundError, "No session factory registered"),
    ],
)
def test_wrong_arguments(arguments, error, match):
    with pytest.raises(error, match=match):
        v1.Session(**arguments)


def test_executors():
    single = {"experimental": {"executor_type": "SINGLE_THREADED_EXECUTOR"}}
    assert run(tf.constant(1) + 1, **single) == 2
    with pytest.raises(
        tf.errors.NotFoundError, match="given executor type: OTHER Registered"
    ):
        run(tf.constant(1), experimental={"executor_type": "OTHER"})
    with pytest.raises(tf.errors.InvalidArgumentError, match="shouldn't be negative"):
        run(tf.constant(1), experimental={"session_metadata": {"version": -1}})


def _slow_pair():
    """The sum of two functions, each of which waits a while for the other; whether
    they met is the second value."""
    met = []
    meet = threading.Barrier(2)

    def wait():
        try:
            meet.wait(0.5)
            met.append(True)
        except threading.BrokenBarrierError:
            met.append(False)
        return np.float32(1)

    made = [tf.py_function(wait, [], tf.float32) for _ in range(2)]
    return made[0] + made[1], met


@pytest.mark.parametrize(
    "config, pool, overlap",
    [
        ({}, 0, True),
        ({"inter_op_parallelism_threads": 1}, 0, False),
        ({"inter_op_parallelism_threads": 2}, 0, True),
        ({"inter_op_parallelism_threads": 2}, -1, False),
        ({"session_inter_op_thread_pool": [{"num_threads": 1}, {}]}, 0, False),
        ({"session_inter_op_thread_pool": [{"num_threads": 1}, {}]}, 1, True),
        ({"experimental": {"executor_type": "SINGLE_THREADED_EXECUTOR"}}, 0, False),
    ],
)
def test_threads_between_operations(config, pool, overlap):
    total, met = _slow_pair()
    options = v1.RunOptions(inter_op_thread_pool=pool)
    assert run(total, options=options, **config) == 2.0
    assert met == [overlap, overlap]


@pytest.mark.parametrize("pools, pool", [(0, 1), (0, -2), (2, 2)])
def test_pools_that_are_not_there(pools, pool):
    config = {"session_inter_op_thread_pool": [{"num_threads": 1}] * pools}
    options = v1.RunOptions(inter_op_thread_pool=pool)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"Invalid inter_op_thread_pool: {pool}"
    ):
        run(tf.constant(1), options=options, **config)


def test_partition_graphs():
    x = v1.placeholder(tf.float32, name="x")
    with tf.device("/cpu:1"):
        y = tf.square(x, name="y")
    z = tf.add(y, 1.0, name="z")
    metadata = v1.RunMetadata()
    options = v1.RunOptions(output_partition_graphs=True)
    config = v1.ConfigProto(device_count={"CPU": 2})
    with v1.Session(config=config) as session:
        session.run([z], {x: 2.0}, options=options, run_metadata=metadata)
    found = {}
    for partition in metadata.partition_graphs:
        for node in partition.node:
            found[node.name] = node.op, node.device.removeprefix(HOST), list(node.input)
    assert found == {
        "_arg_x_0_0": ("_Arg", "1", []),  # what is fed lies where it is read
        "y": ("Square", "1", ["_arg_x_0_0"]),
        "y/_0": ("_Send", "1", ["y"]),
        "y/_1": ("_Recv", "0", []),
        "z/y": ("Const", "0", []),
        "z": ("AddV2", "0", ["y/_1", "z/y"]),
        "_retval_z_0_0": ("_Retval", "0", ["z"]),
    }
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="not supported when disable_output_partition_graphs is true",
    ):
        run(z, options, experimental={"disable_output_partition_graphs": True})


def test_where_operations_are_placed_is_printed(capsys, graph):
    a = v1.placeholder_with_default([1.0, 2.0], [2], name="a")
    c = tf.constant(2.0, name="c")
    with tf.device("/cpu:1"):
        b = tf.multiply(a, c, name="b")
    config = v1.ConfigProto(log_device_placement=True, device_count={"CPU": 2})
    with v1.Session(config=config) as session:
        session.run(b)
        first = capsys.readouterr().out.splitlines()
        session.run(b)
        assert capsys.readouterr().out == ""
    lines = [
        "a: (PlaceholderWithDefault): " + HOST + "0",
        "b: (Mul): " + HOST + "1",
        "a/input: (Const): " + HOST + "0",
        "c: (Const): " + HOST + "1",
    ]
    assert sorted(first) == sorted(lines) and first[-1] == lines[-1]


def test_reset_ends_all_sessions():
    v = v1.get_variable("v", initializer=1.0)
    one, two = v1.Session(), v1.Session()
    one.run(v.initializer)
    v1.Session.reset("")
    for session in (one, two):
        with pytest.raises(tf.errors.CancelledError, match="Session has been closed."):
            session.run(v)
    with v1.Session() as three:
        three.run(v.initializer)
        assert three.run(v) == 1.0


def test_interactive_sessions_warn_of_each_other(caplog):
    one = v1.InteractiveSession()
    with caplog.at_level("ERROR", logger="tensorflow"):
        two = v1.InteractiveSession()
    assert tf.constant(2.0).eval() == 2.0
    two.close()
    one.close()
    with pytest.raises(ValueError, match="No default session is registered"):
        tf.constant(2.0).eval()


def test_callables():
    x = v1.placeholder(tf.float32, [2], name="x")
    with v1.Session() as session:
        double = session.make_callable([x * 2, x.op], ["x:0"])
        assert double([1, 2])[0].tolist() == [2, 4]
        with pytest.raises(TypeError, match="requires 1 feed values, got 2"):
            double(1, 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed"):
            double()
        with pytest.raises(TypeError, match="`feed_list` must be a list or tuple"):
            session.make_callable(x, feed_list="x:0")
    with pytest.raises(tf.errors.CancelledError, match="Session has been closed."):
        session.make_callable(x)


def test_steps_that_wait_go_on_side_by_side():
    queue = v1.FIFOQueue(1, tf.float32)
    take, put = queue.dequeue(), queue.enqueue(3.0)
    config = v1.ConfigProto(inter_op_parallelism_threads=1)
    with v1.Session(config=config) as session:
        for _ in range(3):
            assert session.run([take, put]) == [3.0, None]


def test_a_step_that_fails_ends_the_others():
    def fail():
        time.sleep(0.05)
        raise ValueError("no")

    take = v1.FIFOQueue(1, tf.float32).dequeue()
    failing = tf.py_function(fail, [], tf.float32)
    with v1.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="ValueError: no"):
            session.run([take, failing])


def test_the_first_error_in_order_is_reported():
    def failing(seconds):
        def fail():
            time.sleep(seconds)
            raise ValueError(f"after {seconds}")

        return tf.py_function(fail, [], tf.float32)

    late, soon = failing(0.1), failing(0.0)
    with v1.Session() as session:
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="after 0.1"):
                session.run([late, soon])
