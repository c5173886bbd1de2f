"""tf.test.create_local_cluster: tasks of a cluster within a process."""

import headrace as tf
import pytest

v1 = tf.compat.v1


def test_tasks_of_one_process_share_variables():
    workers, servers = tf.test.create_local_cluster(num_workers=2, num_ps=1)
    assert len(workers) == 2 and len(servers) == 1
    assert workers[1].server_def.job_name == "worker"
    with tf.Graph().as_default():
        with v1.device("/job:ps/task:0"):
            v = v1.get_variable("v", initializer=[1.0, 2.0])
        with v1.device("/job:worker/task:1"):
            added = v1.assign_add(v, [1.0, 10.0])
        with (
            v1.Session(workers[0].target) as first,
            v1.Session(workers[1].target) as second,
        ):
            first.run(v.initializer)
            assert second.run(added).tolist() == [2.0, 12.0]
            assert first.run(v * 2.0).tolist() == [4.0, 24.0]


def test_no_such_protocol():
    with pytest.raises(tf.errors.NotFoundError, match="No server factory"):
        tf.test.create_local_cluster(1, 0, protocol="carrier_pigeon")
