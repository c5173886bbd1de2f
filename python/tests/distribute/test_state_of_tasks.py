"""What runs of graphs do with the state that lies on a cluster's tasks: references of
TensorFlow 1's variables, where variables lie, sessions with a cluster of their own."""

import contextlib
import threading

import numpy as np
import pytest

import headrace as tf
from tests.distribute import processes

v1 = tf.compat.v1


@pytest.fixture(scope="module")
def servers():
    """The servers of a ps and a worker in this process, by job."""
    jobs = ("ps", "worker")
    addresses = [f"localhost:{port}" for port in processes.free_ports(2)]
    cluster = tf.train.ClusterSpec({j: [a] for j, a in zip(jobs, addresses)})
    return {job: tf.distribute.Server(cluster, job, 0) for job in jobs}


@contextlib.contextmanager
def _kind_of_variables(resources):
    were = v1.resource_variables_enabled()
    try:
        (v1.enable_resource_variables if resources else v1.disable_resource_variables)()
        yield
    finally:
        (v1.enable_resource_variables if were else v1.disable_resource_variables)()


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_who_comes_behind_an_assignment_reads_what_was_assigned(servers, remote, loops):
    with tf.Graph().as_default():
        v = v1.get_variable("behind", initializer=0.0, use_resource=False)
        update = v.assign_add(1.0)
        with tf.control_dependencies([update]):
            two = tf.constant(2)  # what takes it waits for it alone
            behind = [v + 0.0, tf.fill([two], v)[0], tf.identity(v), v.read_value()]
        doubled = v * 2.0
        with tf.control_dependencies([doubled]):
            second = v.assign_add(10.0)
        with tf.control_dependencies([second]):
            last = tf.stack([v, doubled])
        if loops:  # all of the graph runs node by node, and islands of nodes
            was = v1.control_flow_v2_enabled()
            v1.disable_control_flow_v2()
            behind.append(v1.while_loop(lambda i: i < 0.0, lambda i: i, [behind[0]]))
            turned = v1.while_loop(lambda i: i < 0.0, lambda i: i, [last[0]])
            last = tf.stack([turned, last[1]])
            if was:
                v1.enable_control_flow_v2()
        with v1.Session(servers["worker"].target if remote else "") as session:
            session.run(v.initializer)
            for step in (1.0, 2.0):
                assert session.run(behind) == [step] * len(behind)
            np.testing.assert_array_equal(session.run(last), [12.0, 4.0])


# The chief's queue runner waits for gradients; its thread ends by the session's end.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("resources", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_one_worker_trains_in_step(servers, resources, sparse):
    v1.Session.reset(servers["worker"].target)
    before = set(threading.enumerate())
    with tf.Graph().as_default(), _kind_of_variables(resources):
        with tf.device("/job:ps/task:0"):
            step = v1.train.get_or_create_global_step()
            w = v1.get_variable("w", [3], initializer=v1.zeros_initializer())
        taken = tf.gather(w, [0, 2]) if sparse else w
        loss = tf.reduce_sum((taken - 1.0) ** 2)
        optimizer = v1.train.SyncReplicasOptimizer(
            v1.train.GradientDescentOptimizer(0.25), 1
        )
        train = optimizer.minimize(loss, global_step=step)
        hook = optimizer.make_session_run_hook(True, num_tokens=0)
        with v1.train.MonitoredTrainingSession(
            servers["worker"].target, hooks=[hook], stop_grace_period_secs=0
        ) as session:
            for _ in range(3):
                session.run(train)
            values, steps = session.run([w, step])
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert steps == 3
    np.testing.assert_allclose(values, [0.875, 0.0 if sparse else 0.875, 0.875])


def test_where_a_variable_lies_does_not_depend_on_who_runs(servers):
    with tf.Graph().as_default():
        v = v1.get_variable("anywhere", initializer=1.0, use_resource=True)
        with tf.device("/job:ps/task:0"):
            assigned = v.assign(5.0)
        with v1.Session(servers["worker"].target) as session:
            session.run(v.initializer)  # alone, it would lie on the worker
            assert session.run(assigned) == 5.0
            assert session.run(v) == 5.0


def test_sessions_with_a_cluster_of_their_own_share_nothing():
    master, other = (v1.train.Server.create_local_server() for _ in range(2))

    def config(*addresses, job="worker"):
        cluster = tf.train.ClusterSpec({job: list(addresses)}).as_cluster_def()
        return v1.ConfigProto(cluster_def=cluster)

    first, second = master.target[7:], other.target[7:]
    with tf.Graph().as_default():
        with tf.device("/job:worker/task:1"):
            v = v1.get_variable("own", initializer=3.0)
        with v1.Session(master.target, config=config(first, second)) as session:
            session.run(v.initializer)
            assert session.run(v) == 3.0
        with v1.Session(master.target, config=config(first, second)) as session:
            with pytest.raises(tf.errors.FailedPreconditionError):
                session.run(v)
        for bad, text in (
            (config(second), "The master .* is not included in the provided"),
            (config(first, job="localhost"), "Job: localhost, task index: 0"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=text):
                v1.Session(master.target, config=bad).list_devices()


def test_a_queue_closes_once_unless_who_waits_is_cancelled():
    with tf.Graph().as_default(), v1.Session() as session:
        queue = v1.FIFOQueue(2, tf.float32)
        session.run(queue.close())
        with pytest.raises(tf.errors.CancelledError, match="is already closed"):
            session.run(queue.close())
        for _ in range(2):
            session.run(queue.close(cancel_pending_enqueues=True))
