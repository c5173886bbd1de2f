"""Where graphs of several servers have what they make: names and devices are TensorFlow's."""

import headrace as tf
import processes
import pytest

v1 = tf.compat.v1


@pytest.fixture(scope="module")
def cluster():
    made = processes.Cluster(ps=2, worker=1).start_all()
    yield made
    made.stop()


def _placed(ps_tasks=2):
    return v1.device(v1.train.replica_device_setter(ps_tasks=ps_tasks))


def _device_of(graph, name):
    return graph.get_operation_by_name(name).device


def test_reads_are_placed_with_nothing():
    with tf.Graph().as_default() as graph, _placed():
        a = v1.get_variable("a", initializer=1.0, use_resource=True)
        b = v1.get_variable("b", initializer=1.0, use_resource=True)
        with v1.colocate_with(b):
            tf.identity(a, name="copy")
            with v1.colocate_with(None, ignore_existing=True):
                free = tf.constant(1.0)
    read = graph.get_operation_by_name("copy").inputs[0].op
    assert read.type == "ReadVariableOp" and read.device == free.device == ""
    assert read.colocation_groups() == [b"loc:@" + read.name.encode()]
    copy = graph.get_operation_by_name("copy")
    assert copy.device == "/job:ps/task:1" and copy.colocation_groups() == [b"loc:@b"]


def test_a_group_waits_for_each_device_once():
    with tf.Graph().as_default() as graph:
        made = []
        for i in range(4):
            with v1.device(f"/job:ps/task:{i % 2}"):
                made.append(v1.get_variable(f"v{i}", initializer=1.0).initializer)
        tf.group(*made, name="all")
        tf.group(made[0], made[2], name="one")

    def waits(name):
        return [c.name for c in graph.get_operation_by_name(name).control_inputs]

    assert waits("all") == ["all/NoOp", "all/NoOp_1"]
    assert waits("all/NoOp_1") == ["v1/Assign", "v3/Assign"]
    assert _device_of(graph, "all/NoOp_1") == "/job:ps/task:1"
    assert waits("one") == ["v0/Assign", "v2/Assign"]
    assert _device_of(graph, "one") == "/job:ps/task:0"


@pytest.mark.parametrize("kind", ["Adam", "AdagradDA"])
@pytest.mark.parametrize("resource", [True, False])
def test_sparse_updates_of_parts_on_several_servers(cluster, kind, resource):
    def made(placed):
        with placed:
            step = v1.train.get_or_create_global_step()
            with v1.variable_scope("m", partitioner=v1.fixed_size_partitioner(3)):
                rows = v1.get_variable("rows", [7, 2], use_resource=resource)
            looked_up = v1.nn.embedding_lookup(rows, [0, 3, 3, 6], "div")
            if kind == "Adam":
                optimizer = v1.train.AdamOptimizer(0.1)
            else:
                optimizer = v1.train.AdagradDAOptimizer(0.1, step)
            loss = tf.reduce_sum((looked_up - 1.0) ** 2)
            train = optimizer.minimize(loss, global_step=step)
            first = [v.assign(tf.fill(v.shape, 0.5)) for v in rows]
        return train, first, rows.as_tensor()

    found = []
    for target in (cluster.target("worker"), ""):
        with tf.Graph().as_default(), v1.Session(target) as session:
            placed = _placed() if target else v1.device("/cpu:0")
            train, first, rows = made(placed)
            session.run(v1.global_variables_initializer())
            session.run(first)
            for _ in range(3):
                session.run(train)
            found.append(session.run(rows))
    v1.Session.reset(cluster.target("worker"))
    assert abs(found[0] - found[1]).max() < 1e-6
    assert abs(found[0][0] - 0.5).min() > 0.05


def test_servers_restore_what_they_have(cluster, tmp_path):
    with tf.Graph().as_default() as graph:
        with _placed():
            a = v1.get_variable("a", initializer=[1.0, 2.0], use_resource=True)
            b = v1.get_variable("b", initializer=[3.0], use_resource=False)
        saver = v1.train.Saver(sharded=True)
        first = v1.global_variables_initializer()
        zeros = [v.assign(tf.zeros_like(v)).op for v in (a, b)]
    for i, name in enumerate(("RestoreV2", "RestoreV2_1")):
        assert _device_of(graph, f"save/{name}") == f"/job:ps/task:{i}/device:CPU:0"
        assert _device_of(graph, f"save/SaveV2{'_1' * i}").endswith(
            f"task:{i}/device:CPU:0"
        )
    assert _device_of(graph, "save/AssignVariableOp") == "/job:ps/task:0"
    assert _device_of(graph, "save/MergeV2Checkpoints").startswith("/job:ps/task:1")
    with v1.Session(cluster.target("worker"), graph=graph) as session:
        session.run(first)
        path = saver.save(session, str(tmp_path / "model"), global_step=3)
        session.run(zeros)
        saver.restore(session, path)
        assert session.run(a).tolist() == [1.0, 2.0] and session.run(b).tolist() == [3]
    v1.Session.reset(cluster.target("worker"))


def test_parts_of_a_run_do_not_wait_for_feeds(cluster):
    with tf.Graph().as_default(), v1.Session(cluster.target("worker")) as session:
        with v1.device("/job:ps/task:0"):
            x = v1.placeholder(tf.float32, [], name="x")
            double = x * 2.0
        with v1.device("/job:ps/task:1"):
            more = double + 1.0
        run = session.partial_run_setup([double, more], [x, double])
        refused = "add:0 can't be computed from the feeds that .* far: mul:0 is not"
        with pytest.raises(tf.errors.InvalidArgumentError, match=refused):
            session.partial_run(run, more)
        # What was refused did nothing.
        assert session.partial_run(run, more, {double: 5.0}) == 6.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="already been fed"):
            session.partial_run(run, [], {double: 5.0})
