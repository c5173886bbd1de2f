"""Strategies of TensorFlow 1 in graphs: the names, devices and values are TensorFlow's."""

import threading

import headrace as tf
import numpy as np
import processes
import pytest

v1 = tf.compat.v1
SUM = tf.VariableAggregation.SUM


def _strategy(cluster, job, index):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, task_type=job, task_id=index
    )
    return v1.distribute.experimental.ParameterServerStrategy(resolver)


def _config(strategy):
    return strategy.update_config_proto(v1.ConfigProto(device_filters=["x"]))


CLUSTER = tf.train.ClusterSpec(
    {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]}
)


@pytest.mark.parametrize(
    ("job", "index", "filters", "chief"),
    [
        ("chief", 0, ["/job:chief/task:0", "/job:ps"], True),
        ("worker", 1, ["/job:worker/task:1", "/job:ps"], False),
        ("ps", 0, [], False),
    ],
)
def test_what_a_task_is(job, index, filters, chief):
    strategy = _strategy(CLUSTER, job, index)
    config, extended = _config(strategy), strategy.extended
    assert list(config.device_filters) == filters
    assert not config.isolate_session_state
    assert extended.parameter_devices == ("/job:ps/task:0", "/job:ps/task:1")
    place = f"/job:{job}/replica:0/task:{index}/device:CPU:0"
    assert list(extended.worker_devices) == [place]
    assert extended.experimental_between_graph
    assert extended.should_checkpoint == extended.experimental_should_init == chief
    assert strategy.num_replicas_in_sync == 1


@pytest.mark.parametrize(
    ("job", "index", "text"),
    [
        ("", 0, "When `cluster_spec` is given, you must also specify `task_type`"),
        ("evaluator", 0, "`task_type` 'evaluator' not found in cluster_spec."),
        ("worker", 7, "`task_id` 7 is none of 'worker'"),
    ],
)
def test_tasks_that_are_none(job, index, text):
    with pytest.raises(ValueError, match=text):
        _strategy(CLUSTER, job, index)


def test_variables_of_a_cluster_are_of_graphs():
    with _strategy(CLUSTER, "worker", 0).scope():
        with pytest.raises(
            RuntimeError, match="makes variables of a cluster in graphs"
        ):
            tf.Variable(1.0)


def test_a_process_that_is_alone_isolates_its_sessions():
    alone = v1.distribute.experimental.ParameterServerStrategy()
    for strategy in (alone, v1.distribute.MirroredStrategy(["CPU:0"])):
        assert _config(strategy).isolate_session_state
        assert list(_config(strategy).device_filters) == ["x"]
    assert not _config(v1.distribute.OneDeviceStrategy("/cpu:0")).isolate_session_state


class _Worker:
    """A worker's graph: what it says of devices, its step and its variables."""

    def __init__(self, cluster, index):
        self.strategy = strategy = _strategy(cluster, "worker", index)
        self.devices, self.graph = {}, tf.Graph()
        with self.graph.as_default(), strategy.scope():
            self._note(n=v1.get_variable("n", initializer=10.0))
            self.global_step = v1.train.get_or_create_global_step()
            step = strategy.extended.call_for_each_replica(self._model)
            self.step = strategy.group(step)
            self.init = v1.global_variables_initializer()
            self.variables = {v.op.name: v for v in v1.global_variables()}
            self.input = strategy.make_input_fn_iterator(
                lambda c: tf.data.Dataset.from_tensors(
                    [c.num_input_pipelines, c.input_pipeline_id]
                )
            )
            self.element = self.input.get_next()

    def _note(self, **tensors):
        self.devices.update((name, x.device) for name, x in tensors.items())

    def _model(self):
        one = tf.constant(1.0)
        with v1.device("/job:chief/task:0"):  # of operations alone
            x = v1.get_variable("x", initializer=10.0, aggregation=SUM)
        added = x.assign_add(one)
        with self.strategy.extended.colocate_vars_with(x):
            y = v1.get_variable("y", initializer=20.0)
        z = v1.get_variable("z", initializer=10.0)
        with v1.colocate_with(x):
            u, beside = v1.get_variable("u", initializer=30.0), one + 1.0
        w = v1.get_variable("w", [3], initializer=v1.zeros_initializer())
        optimizer = v1.train.MomentumOptimizer(0.1, 0.5)
        loss = tf.reduce_sum((w - 1.0) ** 2)
        train = optimizer.minimize(loss, global_step=self.global_step)
        momentum = optimizer.get_slot(w, "momentum")
        self._note(one=one, x=x, added=added, y=y, z=z, u=u, beside=beside, w=w)
        self._note(momentum=momentum)
        return tf.group(train, added)

    def run(self, target, together):
        config = self.strategy.update_config_proto(v1.ConfigProto())
        with v1.Session(target, graph=self.graph, config=config) as session:
            if self.strategy.extended.experimental_should_init:
                session.run(self.init)
            together.wait()
            session.run(self.input.initializer)
            self.found = session.run(self.element).tolist()
            for _ in range(3):
                session.run(self.step)
            together.wait()
            self.values = session.run(self.variables)
            together.wait()


def test_two_workers_share_what_lies_on_two_servers():
    addresses = [f"localhost:{port}" for port in processes.free_ports(4)]
    jobs = {"worker": addresses[:2], "ps": addresses[2:]}
    cluster = tf.train.ClusterSpec(jobs)
    servers = {
        job: [tf.distribute.Server(cluster, job, i) for i in range(2)] for job in jobs
    }
    workers = [_Worker(cluster, i) for i in range(2)]
    first, second = "/job:ps/task:0", "/job:ps/task:1"
    for i, worker in enumerate(workers):
        here = f"/job:worker/replica:0/task:{i}/device:CPU:0"
        assert worker.devices == {
            "n": first,  # behind which the global step is the second one's
            "one": here,
            "x": first,
            "added": first,
            "y": first,
            "z": second,
            "u": first,
            "beside": first,
            "w": second,
            "momentum": second,
        }
    together = threading.Barrier(2, timeout=60)
    threads = [
        threading.Thread(
            target=worker.run, args=(servers["worker"][i].target, together)
        )
        for i, worker in enumerate(workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, worker in enumerate(workers):
        assert worker.found == [2, i]
        assert worker.values["global_step"] == 6
        assert worker.values["x"] == 16.0 and worker.values["n"] == 10.0
    shared = [worker.values["w"] for worker in workers]
    np.testing.assert_array_equal(*shared)
    assert 0.5 < shared[0][0] < 1.6  # of six steps, in any order


def test_replicas_of_graphs_share_variables_by_name():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def model():
        with v1.variable_scope("a"):
            v = v1.get_variable("v", [2])
        hidden = v1.layers.dense(tf.ones([2, 2]) * v, 3)
        cell = v1.nn.rnn_cell.LSTMCell(4)
        rows, _ = v1.nn.dynamic_rnn(cell, hidden[None], dtype=tf.float32)
        return v, hidden, rows

    with tf.Graph().as_default(), strategy.scope():
        v, hidden, rows = strategy.extended.call_for_each_replica(model)
        assert [c.op.name for c in v.values] == ["a/v", "a/v/replica_1"]
        names = [x.op.name for x in hidden.values]
        assert names == ["dense/BiasAdd", "replica_1/dense/BiasAdd"]
        names = [x.op.name for x in rows.values]
        assert names == ["rnn/transpose_1", "replica_1/rnn/transpose_1"]
        made = {x.op.name for x in v1.global_variables()}
    assert made == {
        "a/v",
        "dense/kernel",
        "dense/bias",
        "rnn/lstm_cell/kernel",
        "rnn/lstm_cell/bias",
    }
