"""tf.distribute.Server, and sessions of a cluster in real processes."""

import signal
import threading
import time

import headrace as tf
import processes
import pytest

v1 = tf.compat.v1
errors = tf.errors


@pytest.fixture(scope="module")
def cluster():
    made = processes.Cluster(ps=1, worker=2).start_all()
    yield made
    made.stop()


@pytest.fixture
def clean(cluster):
    """The cluster, with no state of another test."""
    v1.Session.reset(cluster.target("ps"))
    return cluster


def _shared_counter(worker):
    """What each worker of between-graph replication builds for itself."""
    graph = tf.Graph()
    with graph.as_default():
        with v1.device("/job:ps/task:0"):
            v = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        with v1.device(f"/job:worker/task:{worker}"):
            added = v1.assign_add(v, [1.0, 10.0])
            twice = v * 2.0
        init = v1.global_variables_initializer()
    return graph, init, added, twice


def test_variables_are_shared_by_name(clean):
    graph, init, added, twice = _shared_counter(0)
    with v1.Session(clean.target("worker", 0), graph=graph) as first:
        with pytest.raises(errors.FailedPreconditionError):
            first.run(twice)
        first.run(init)
        assert first.run(added).tolist() == [2.0, 12.0]
        other, _, added2, _ = _shared_counter(1)
        with v1.Session(clean.target("worker", 1), graph=other) as second:
            assert second.run(added2).tolist() == [3.0, 22.0]
        assert first.run([twice, added.op])[1] is None
    # The state outlives its clients, and ends with a reset.
    with v1.Session(clean.target("ps"), graph=graph) as third:
        assert third.run(twice).tolist() == [8.0, 64.0]
        v1.Session.reset(clean.target("worker", 1))
        with pytest.raises(errors.FailedPreconditionError):
            v1.Session(clean.target("ps"), graph=graph).run(twice)


def test_asynchronous_updates_are_all_counted(clean):
    turns = 50

    def train(worker):
        graph, _, added, _ = _shared_counter(worker)
        with v1.Session(clean.target("worker", worker), graph=graph) as session:
            for _ in range(turns):
                session.run(added)

    graph, init, _, twice = _shared_counter(0)
    with v1.Session(clean.target("ps"), graph=graph) as session:
        session.run(init)
        threads = [threading.Thread(target=train, args=(i,)) for i in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert session.run(twice).tolist() == [
            2 * (1 + 2 * turns),
            2 * (2 + 20 * turns),
        ]


def test_queues_and_accumulators_are_shared(clean):
    def build():
        graph = tf.Graph()
        with graph.as_default(), v1.device("/job:ps/task:0"):
            queue = v1.FIFOQueue(10, [tf.int64], shapes=[()], shared_name="tokens")
            gathered = v1.ConditionalAccumulator(
                tf.float32, shape=[2], shared_name="gradients"
            )
            with v1.device("/job:worker/task:0"):
                gradient = v1.placeholder(tf.float32, [2])
            return (
                graph,
                queue.enqueue(7),
                queue.dequeue(),
                gathered.apply_grad(gradient),
                gathered.take_grad(2),
                gradient,
            )

    graph, enqueue, dequeue, push, take, gradient = build()
    other, enqueue2, _, push2, _, gradient2 = build()
    got = []
    with v1.Session(clean.target("worker", 0), graph=graph) as session:
        waits = threading.Thread(target=lambda: got.append(session.run(dequeue)))
        waits.start()
        with v1.Session(clean.target("worker", 1), graph=other) as second:
            time.sleep(0.1)
            assert not got
            second.run(enqueue2)
            waits.join()
            assert got == [7]
            session.run(push, {gradient: [1.0, 2.0]})
            second.run(push2, {gradient2: [3.0, 6.0]})
        assert session.run(take).tolist() == [2.0, 4.0]
        # A run that waits for what does not come ends at its deadline.
        with pytest.raises(errors.DeadlineExceededError):
            session.run(dequeue, options=v1.RunOptions(timeout_in_ms=200))
        # It is stopped on the parameter server a little behind its error, and may take
        # what comes meanwhile.
        time.sleep(0.3)
        session.run(enqueue)
        assert session.run(dequeue, options=v1.RunOptions(timeout_in_ms=30000)) == 7


def test_branches_over_tasks(clean):
    with tf.Graph().as_default() as graph:
        with v1.device("/job:ps/task:0"):
            which = v1.placeholder(tf.bool, [])
            x = tf.constant(3.0)
            no, yes = tf.raw_ops.Switch(data=x, pred=which)
        with v1.device("/job:worker/task:1"):
            taken = tf.negative(yes)
        with v1.device("/job:ps/task:0"):
            merged, at = tf.raw_ops.Merge(inputs=[no, taken])
    with v1.Session(clean.target("worker", 0), graph=graph) as session:
        assert session.run([merged, at], {which: True}) == [-3.0, 1]
        assert session.run([merged, at], {which: False}) == [3.0, 0]
        with pytest.raises(errors.InvalidArgumentError):
            session.run(taken, {which: False})


def test_devices_metadata_callables_and_parts(clean):
    with tf.Graph().as_default() as graph:
        with v1.device("/job:ps/task:0"):
            x = v1.placeholder(tf.float32, [2], name="x")
            y = tf.negative(x, name="y")
        with v1.device("/job:worker/task:0"):
            z = tf.add(y, 1.0, name="z")
    with v1.Session(clean.target("worker", 0), graph=graph) as session:
        assert session.sess_str == clean.target("worker", 0).encode()
        assert [d.name for d in session.list_devices()] == [
            "/job:ps/replica:0/task:0/device:CPU:0",
            "/job:worker/replica:0/task:0/device:CPU:0",
            "/job:worker/replica:0/task:1/device:CPU:0",
        ]
        metadata = v1.RunMetadata()
        options = v1.RunOptions(
            trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True
        )
        session.run(z, {x: [1.0, 2.0]}, options=options, run_metadata=metadata)
        steps = {
            s.node_name.partition(":")[0]: d.device
            for d in metadata.step_stats.dev_stats
            for s in d.node_stats
        }
        assert steps["y"] == "/job:ps/replica:0/task:0/device:CPU:0"
        assert {n.name for g in metadata.partition_graphs for n in g.node} >= {"y", "z"}
        call = session.make_callable([z, y], [x])
        assert [v.tolist() for v in call([1.0, 2.0])] == [[0.0, -1.0], [-1.0, -2.0]]
        part = session.partial_run_setup([y, z], [x])
        assert session.partial_run(part, y, {x: [3.0, 4.0]}).tolist() == [-3.0, -4.0]
        assert session.partial_run(part, z).tolist() == [-2.0, -3.0]
        with pytest.raises(errors.InvalidArgumentError, match="PartialRunSetup"):
            session.partial_run(part, z)
        # The graph goes on growing.
        with graph.as_default(), v1.device("/job:ps/task:0"):
            w = tf.negative(z)
        assert session.run(w, {z: [5.0, 6.0]}).tolist() == [-5.0, -6.0]
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(z)


def test_errors_name_task_and_operation(clean):
    with tf.Graph().as_default() as graph:
        with v1.device("/job:ps/task:3"):
            lost = tf.constant(1.0, name="lost")
        with v1.device("/job:ps/task:0"):
            x = v1.placeholder(tf.float32, [], name="x")
            bad = v1.placeholder(tf.float32, [None, None], name="bad")
            product = tf.matmul(bad, bad, name="product")
    with v1.Session(clean.target("worker"), graph=graph) as session:
        with pytest.raises(errors.InvalidArgumentError, match="operation lost: {{node"):
            session.run(lost)
        with pytest.raises(
            errors.InvalidArgumentError, match="placeholder tensor 'x'"
        ) as e:
            session.run(x)
        with pytest.raises(errors.InvalidArgumentError) as e:
            session.run(product, {bad: [[1.0, 2.0]]})
        assert "From /job:ps/replica:0/task:0:\n" in str(e.value)
        assert e.value.op.name == "product"


def test_tasks_start_in_any_order_and_end_at_once():
    cluster = processes.Cluster(ps=1, worker=1)
    try:
        cluster.start("worker")
        graph, init, added, twice = _shared_counter(0)
        with v1.Session(cluster.target("worker"), graph=graph) as session:
            done = []
            thread = threading.Thread(target=lambda: done.append(session.run(init)))
            thread.start()
            time.sleep(0.3)
            assert not done
            cluster.start("ps")
            thread.join()
            assert session.run(added).tolist() == [2.0, 12.0]
            # What waits for a task that dies is told at once.
            with graph.as_default(), v1.device("/job:ps/task:0"):
                never = v1.FIFOQueue(1, [tf.int64]).dequeue()
                with v1.device("/job:worker/task:0"):
                    never = tf.identity(never)
            raised = []

            def wait():
                try:
                    session.run(never)
                except errors.OpError as e:
                    raised.append((e, time.monotonic()))

            thread = threading.Thread(target=wait)
            thread.start()
            time.sleep(0.5)
            killed = time.monotonic()
            cluster.kill("ps")
            thread.join()
            assert isinstance(
                raised[0][0], (errors.UnavailableError, errors.AbortedError)
            )
            assert raised[0][1] - killed < 5
            with pytest.raises((errors.UnavailableError, errors.AbortedError)):
                session.run(added)
        cluster.start("ps")
        # A new life of the task has none of its state.
        with v1.Session(cluster.target("worker"), graph=graph) as session:
            with pytest.raises(errors.FailedPreconditionError):
                session.run(twice)
        assert cluster.seconds_to_end("ps") < 2
        assert cluster.seconds_to_end("worker", by=signal.SIGINT) < 2
    finally:
        cluster.stop()


def test_nobody_at_the_address():
    (port,) = processes.free_ports(1)
    config = v1.ConfigProto(operation_timeout_in_ms=300)
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        session = v1.Session(f"grpc://127.0.0.1:{port}", config=config)
        since = time.monotonic()
        with pytest.raises(errors.DeadlineExceededError):
            session.run(x)
        assert time.monotonic() - since < 5
        session.close()


def test_a_reset_that_nobody_answers_ends_in_time():
    config = v1.ConfigProto(operation_timeout_in_ms=5)
    since = time.monotonic()
    with pytest.raises(errors.DeadlineExceededError):
        v1.Session.reset("grpc://localhost:0", ["test0"], config=config)
    assert time.monotonic() - since < 5


def test_a_session_s_own_cluster_names_its_master():
    master, worker = (v1.train.Server.create_local_server() for _ in range(2))
    named = {"chief": [master.target[7:]], "worker": [worker.target[7:]]}
    cluster = tf.train.ClusterSpec(named).as_cluster_def()
    with tf.Graph().as_default():
        with tf.device("/job:worker/task:0"):
            x = tf.constant(1.0) + 2.0
        config = v1.ConfigProto(cluster_def=cluster)
        with v1.Session(master.target, config=config) as session:
            found = {d.name for d in session.list_devices()}
            assert {
                f"/job:{job}/replica:0/task:0/device:CPU:0" for job in named
            } <= found
            assert session.run(x) == 3.0


def test_server_of_this_process():
    server = v1.train.Server.create_local_server()
    assert server.target.startswith("grpc://localhost:")
    assert server.server_def.job_name == "localhost"
    with tf.Graph().as_default():
        v = v1.get_variable("v", initializer=3.0, use_resource=True)
        with v1.Session(server.target) as session:
            session.run(v1.global_variables_initializer())
            assert session.run(v) == 3.0
        with v1.Session(server.target) as session:
            assert session.run(v) == 3.0


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (({"worker": ["a:1", "b:1"]},), ValueError, "explicit `task_index`"),
        (({"worker": ["a:1"], "ps": ["b:1"]},), ValueError, "explicit `job_name`"),
        (("x",), TypeError, "Could not convert `server_or_cluster_def` to a"),
        ((None,), TypeError, "Could not convert `server_or_cluster_def` to a"),
        (
            ({"worker": ["a:1"]}, "ps", 0),
            errors.InternalError,
            'Job "ps" was not defined in cluster',
        ),
        (
            ({"worker": ["a:1"]}, "worker", 3),
            errors.InternalError,
            'Task 3 was not defined in job "worker"',
        ),
        (
            ({"worker": ["localhost:abc"]},),
            errors.InvalidArgumentError,
            'Could not parse port for local server from "localhost:abc".',
        ),
        (
            ({"worker": ["localhost"]},),
            errors.InvalidArgumentError,
            'Could not parse port for local server from "localhost".',
        ),
        (
            ({"worker": ["localhost:0", "other"]}, "worker", 0),
            errors.InvalidArgumentError,
            'Could not interpret "other" as a host-port pair.',
        ),
        (
            ({"worker": ["localhost:0"]}, "worker", 0, "foo"),
            errors.NotFoundError,
            "No server factory registered for the given ServerDef",
        ),
        (
            (tf.train.ServerDef(),),
            errors.NotFoundError,
            r"The available server factories are: \[ GRPC_SERVER \]",
        ),
    ],
)
def test_servers_that_cannot_be(arguments, error, text):
    with pytest.raises(error, match=text):
        tf.distribute.Server(*arguments)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("shutdown_barrier_timeout_in_ms", 5, errors.UnimplementedError),
        ("force_disable", True, errors.UnimplementedError),
        ("heartbeat_timeout_in_ms", -1, errors.InvalidArgumentError),
        ("service_leader", "/job:nobody/task:0", errors.InvalidArgumentError),
        ("service_type", "another", errors.InvalidArgumentError),
    ],
)
def test_coordination_that_cannot_be(field, value, error):
    config = v1.ConfigProto()
    setattr(config.experimental.coordination_config, field, value)
    with pytest.raises(error, match=f"experimental.coordination_config.{field}"):
        tf.distribute.Server.create_local_server(config=config)


def test_a_session_takes_no_coordination():
    config = v1.ConfigProto()
    config.experimental.coordination_config.recoverable_jobs.append("worker")
    server = tf.distribute.Server.create_local_server(config=config)
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        with v1.Session(server.target) as session:
            assert session.run(x) == 1.0
        with pytest.raises(
            errors.UnimplementedError, match="experimental.coordination_config"
        ):
            v1.Session(server.target, config=config).run(x)


def test_a_port_is_listened_at_once():
    server = tf.distribute.Server.create_local_server()
    with pytest.raises(errors.UnknownError, match="Could not start gRPC server"):
        tf.distribute.Server({"worker": [server.target.removeprefix("grpc://")]})


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_a_task_that_is_called_by_another_address(host, capfd):
    """As behind a service of Kubernetes: what is called is not what the task has."""
    (port,) = processes.free_ports(1)
    server = tf.distribute.Server({"worker": [f"{host}:{port}"]})
    assert server.target == f"grpc://{host}:{port}"
    assert f"no address of {host}:{port}" in capfd.readouterr().err
    with tf.Graph().as_default(), v1.Session(f"grpc://127.0.0.1:{port}") as session:
        assert session.run(tf.constant(3)) == 3


def test_tasks_sum_together(clean):
    raw = tf.raw_ops

    def reduced(task, instance):
        with v1.device(f"/job:worker/task:{task}"):
            keys = dict(group_size=2, group_key=7, instance_key=instance)
            given = tf.constant([1.0 + task, 10.0])
            return raw.CollectiveReduceV2(
                input=given, ordering_token=[], merge_op="Add", final_op="Div", **keys
            )

    with tf.Graph().as_default() as graph:
        fetches = [reduced(0, 3), reduced(1, 3)]
        alone = reduced(1, 4)
    with v1.Session(clean.target("ps"), graph=graph) as session:
        for _ in range(3):
            assert [x.tolist() for x in session.run(fetches)] == [[1.5, 10.0]] * 2
        # One whose partner does not run ends when its step does.
        with pytest.raises(errors.DeadlineExceededError):
            session.run(alone, options=v1.RunOptions(timeout_in_ms=300))
        with pytest.raises(errors.OpError, match="is aborted by"):
            while True:  # the task learns of the step's end soon
                session.run(fetches)
    # A reset begins anew.
    v1.Session.reset(clean.target("ps"))
    with v1.Session(clean.target("worker"), graph=graph) as session:
        assert [x.tolist() for x in session.run(fetches)] == [[1.5, 10.0]] * 2
