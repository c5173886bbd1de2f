"""The claims of the introduction about training on clusters, one test each, as far as one
process can tell."""

import collections
import json
import subprocess
import sys
import threading

import headrace as tf
import pytest

v1 = tf.compat.v1

# A queue runner that waits for gradients when its session closes tells nobody why.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)


@pytest.fixture(autouse=True)
def graph(request):
    """The graph that a test builds, unless its name says that it is eager."""
    if "eager" in request.node.name:
        yield None
        return
    with tf.Graph().as_default() as made:
        yield made


class Synchronous:
    """A variable that SyncReplicasOptimizer changes by the gradients fed to it, and the
    threads that are its workers."""

    def __init__(self, wanted, workers, num_tokens=0):
        self.step = v1.train.create_global_step()
        self.w = v1.get_variable("w", initializer=10.0)
        self.x = v1.placeholder(tf.float32, [])
        descent = v1.train.GradientDescentOptimizer(1.0)
        self.optimizer = v1.train.SyncReplicasOptimizer(descent, wanted, workers)
        self.train = self.optimizer.apply_gradients([(self.x, self.w)], self.step)
        self.size = self.optimizer._sync_token_queue.size()
        # A worker that has not yet seen the steps since the first.
        self.behind = self.optimizer._local_step.initializer
        self.take = self.optimizer._sync_token_queue.dequeue()
        hook = self.optimizer.make_session_run_hook(True, num_tokens)
        self.session = v1.train.MonitoredSession(
            v1.train.ChiefSessionCreator(), [hook], stop_grace_period_secs=0.2
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.session.close()

    def push(self, gradient):
        """A worker that pushes a gradient and waits for its token."""
        worker = threading.Thread(
            target=lambda: self.session.run(self.train, {self.x: gradient})
        )
        worker.start()
        return worker

    def see(self, *what):
        return self.session._tf_sess().run(what)

    def wait_for(self, step):
        """Waits until the chief has counted that step and given out its tokens."""
        for _ in range(500):
            if self.see(self.step)[0] == step and self.see(self.size)[0] > 0:
                return
            threading.Event().wait(0.01)
        raise AssertionError(f"step {step} did not come")


def test_c35_a_process_is_told_what_it_is_eager(monkeypatch):
    cluster = tf.train.ClusterSpec({"ps": ["localhost:1"], "worker": ["a:2", "a:3"]})
    assert cluster.jobs == ["ps", "worker"] and cluster.num_tasks("worker") == 2
    told = {
        "cluster": {"worker": ["a:1", "b:2"], "ps": ["c:3"]},
        "task": {"type": "worker", "index": 1},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(told))
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert resolver.cluster_spec().task_address("ps", 0) == "c:3"
    assert resolver.master() == "b:2"


def test_c39_parameters_are_stored_once_on_servers():
    with v1.device(v1.train.replica_device_setter(ps_tasks=2)):
        made = [v1.get_variable(f"v{i}", initializer=1.0) for i in range(4)]
        y = made[0] + 1.0
        parts = v1.get_variable(
            "large", [10, 4], partitioner=v1.fixed_size_partitioner(2)
        )
    assert [v.device for v in made] == ["/job:ps/task:0", "/job:ps/task:1"] * 2
    assert [v.device for v in parts] == ["/job:ps/task:0", "/job:ps/task:1"]
    assert [v.shape for v in parts] == [[5, 4], [5, 4]]
    assert y.op.device == "/job:worker"


def test_c40_workers_compute():
    with v1.device(
        v1.train.replica_device_setter(1, worker_device="/job:worker/task:3")
    ):
        w = v1.get_variable("w", [2, 2])
        y = tf.matmul(w, w)
        (gradient,) = tf.gradients(y, w)
    assert w.device == "/job:ps/task:0"
    assert {y.op.device, gradient.op.device} == {"/job:worker/task:3"}


def test_c41_workers_graphs_differ_in_the_task_alone():
    def built(task):
        setter = v1.train.replica_device_setter(
            2, worker_device=f"/job:worker/task:{task}"
        )
        with tf.Graph().as_default() as made, v1.device(setter):
            w = v1.get_variable("w", initializer=[1.0, 2.0])
            v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * w))
        return str(made.as_graph_def())

    assert built(0) != built(1)
    assert built(0).replace("worker/task:0", "worker/task:1") == built(1)


def test_c44_servers_hold_gather_and_update(graph):
    with v1.device(v1.train.replica_device_setter(2)):
        step = v1.train.create_global_step()
        w = v1.get_variable("w", initializer=[1.0, 2.0])
        adam = v1.train.AdamOptimizer(0.1)
        v1.train.SyncReplicasOptimizer(adam, 2).minimize(tf.reduce_sum(w * w), step)
    at = collections.defaultdict(set)
    for op in graph.get_operations():
        at[op.type].add(op.device)
    assert at["ResourceConditionalAccumulator"] == {"/job:ps/task:1"}
    assert at["ResourceApplyAdam"] == {"/job:ps/task:1"}
    assert at["FIFOQueueV2"] == {"/job:ps/task:0/device:CPU:*"}
    assert graph.get_operation_by_name("w/Adam").device == "/job:ps/task:1"
    assert at["Mul"] >= {"/job:worker"}


def test_c48_synchronous_updates_wait_for_all():
    with Synchronous(2, 2) as cluster:
        first = cluster.push(1.0)
        first.join(0.5)
        assert first.is_alive() and cluster.see(cluster.w, cluster.step) == (10.0, 0)
        second = cluster.push(3.0)
        first.join(20)
        second.join(20)
        assert not first.is_alive() and not second.is_alive()
        assert cluster.see(cluster.w, cluster.step) == (8.0, 1)


def test_c50_wanted_and_real_replicas_are_two_numbers():
    step = v1.train.create_global_step()
    w = v1.get_variable("w", initializer=1.0)
    descent = v1.train.GradientDescentOptimizer(1.0)
    for wanted, workers, tokens in ((3, 2, 3), (2, 3, 3), (2, None, 2)):
        made = v1.train.SyncReplicasOptimizer(descent, wanted, workers)
        made.apply_gradients([(tf.constant(1.0), w)], step)
        runner = made.get_chief_queue_runner()
        assert runner.enqueue_ops[0].inputs[1].shape == [tokens]
        take = next(
            op
            for op in w.graph.get_operations()[::-1]
            if op.type == "ResourceAccumulatorTakeGradient"
        )
        assert tf.get_static_value(take.inputs[1]) == wanted


def test_c51_a_fast_worker_gives_several_gradients():
    with Synchronous(3, 2, num_tokens=1) as cluster:  # three wanted of two workers
        cluster.push(1.0).join(20)  # a token was there: it does another batch
        workers = [cluster.push(2.0), cluster.push(6.0)]
        for worker in workers:
            worker.join(20)
        assert cluster.see(cluster.w, cluster.step) == (7.0, 1)


def test_c51_the_late_worker_is_left_out():
    with Synchronous(2, 3) as cluster:  # two wanted of three workers
        workers = [cluster.push(1.0), cluster.push(3.0)]
        for worker in workers:
            worker.join(20)
        assert cluster.see(cluster.w, cluster.step) == (8.0, 1)
        cluster.see(cluster.behind)
        cluster.push(100.0).join(20)  # dropped, the worker goes on with step 1
        assert cluster.see(cluster.w, cluster.step) == (8.0, 1)
        workers = [cluster.push(1.0), cluster.push(3.0)]
        for worker in workers:
            worker.join(20)
        assert cluster.see(cluster.w, cluster.step) == (6.0, 2)


def test_c52_an_accumulator_for_each_and_one_queue(graph):
    step = v1.train.create_global_step()
    made = [v1.get_variable(n, initializer=1.0, use_resource=False) for n in "abc"]
    descent = v1.train.GradientDescentOptimizer(1.0)
    optimizer = v1.train.SyncReplicasOptimizer(descent, 2)
    optimizer.apply_gradients([(tf.constant(1.0), v) for v in made], step)
    kinds = collections.Counter(op.type for op in graph.get_operations())
    assert kinds["ResourceConditionalAccumulator"] == 3
    assert kinds["FIFOQueueV2"] == 1
    shared = [
        op.get_attr("shared_name").decode()
        for op in graph.get_operations()
        if op.type in ("ResourceConditionalAccumulator", "FIFOQueueV2")
    ]
    assert sorted(shared) == [*(f"{n}:0/grad_accum" for n in "abc"), "sync_token_q"]


def test_c53_as_many_tokens_as_a_step_has():
    with Synchronous(1, 3, num_tokens=1) as cluster:
        cluster.push(1.0).join(20)
        cluster.wait_for(1)
        # The worker passed over that of the step that was over, and took one of three.
        assert cluster.see(cluster.size) == (2,)


def test_c54_a_token_is_the_step_to_compute():
    with Synchronous(1, 1, num_tokens=0) as cluster:
        local = cluster.optimizer._local_step
        for step in (1, 2, 3):
            cluster.push(1.0).join(20)
            assert cluster.see(local, cluster.step) == (step, step)


def test_c55_gradients_of_another_step_are_dropped():
    a = v1.ConditionalAccumulator(tf.float32, shape=[])
    x, at = v1.placeholder(tf.float32, []), v1.placeholder(tf.int64, [])
    push, count = a.apply_grad(x, at), a.num_accumulated()
    begin, take = a.set_global_step(5), a.take_grad(2)
    with v1.Session() as session:
        session.run(begin)
        session.run(push, {x: 100.0, at: 4})
        assert session.run(count) == 0
        for value in (1.0, 4.0):
            session.run(push, {x: value, at: 5})
        assert session.run(count) == 2 and session.run(take) == 2.5
        session.run(push, {x: 100.0, at: 5})
        assert session.run(count) == 0


def test_c56_a_worker_waits_for_the_next_tokens():
    queue = tf.queue.FIFOQueue(-1, tf.int64, shapes=[[]])
    put, more, take = queue.enqueue_many([[7, 7]]), queue.enqueue([8]), queue.dequeue()
    got, failed = [], []
    session = v1.Session()

    def work():
        try:
            while True:
                got.append(session.run(take))
        except tf.errors.CancelledError as e:
            failed.append(e)

    session.run(put)
    worker = threading.Thread(target=work)
    worker.start()
    worker.join(0.3)
    assert worker.is_alive() and got == [7, 7]
    session.run(more)
    worker.join(0.3)
    assert worker.is_alive() and got == [7, 7, 8]
    session.close()
    worker.join(20)
    assert not worker.is_alive() and len(failed) == 1


def test_c57_each_update_counts_and_gives_tokens():
    with Synchronous(1, 2, num_tokens=0) as cluster:
        for step in (1, 2, 3):
            cluster.push(1.0).join(20)
            cluster.wait_for(step)
            # Of two tokens that each step gives, this one worker took one.
            assert cluster.see(cluster.step, cluster.w) == (step, 10.0 - step)
            assert cluster.see(cluster.size) == (1,)
            cluster.see(cluster.take)


def test_c58_asynchronous_updates_do_not_wait():
    w = v1.get_variable("w", initializer=10.0)
    x = v1.placeholder(tf.float32, [])
    step = v1.train.create_global_step()
    descent = v1.train.GradientDescentOptimizer(1.0)
    train = descent.apply_gradients([(x, w)], step)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        seen = []
        for gradient in (1.0, 2.0):
            session.run(train, {x: gradient})
            seen.append(session.run(w))
        assert seen == [9.0, 7.0] and session.run(step) == 2


def test_c59_additions_of_many_threads_are_all_kept_eager():
    v = tf.Variable(tf.zeros([1000]))
    add = tf.function(lambda: v.assign_add(tf.ones([1000])))
    torn = []

    def work():
        for _ in range(200):
            add()
            seen = v.numpy()
            torn.extend([seen] if (seen != seen[0]).any() else [])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (v.numpy() == 1600).all() and not torn


def test_c60_gradients_of_an_old_value_overshoot():
    w = v1.get_variable("w", initializer=4.0)
    g = v1.placeholder(tf.float32, [])
    (gradient,) = tf.gradients(w * w, w)
    train = v1.train.GradientDescentOptimizer(0.5).apply_gradients([(g, w)])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        old = [session.run(gradient), session.run(gradient)]
        session.run(train, {g: old[0]})
        assert session.run(w) == 0.0
        session.run(train, {g: old[1]})
        assert session.run(w) == -4.0


REPLICAS = """
import headrace as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    v = tf.Variable(1.0)

@tf.function
def step():
    replica = tf.distribute.get_replica_context()
    own = tf.cast(replica.replica_id_in_sync_group, tf.float32) + v
    return replica.all_reduce(tf.distribute.ReduceOp.MEAN, own)

values = strategy.experimental_local_results(strategy.run(step))
print(strategy.num_replicas_in_sync, [float(x) for x in values])
print([copy.device[-5:] for copy in v.values])
"""


def test_c45_one_process_with_several_devices_eager():
    done = subprocess.run(
        [sys.executable, "-c", REPLICAS], capture_output=True, text=True, check=True
    )
    assert done.stdout == "2 [1.5, 1.5]\n['CPU:0', 'CPU:1']\n"


def test_c45_towers_in_one_graph():
    w = v1.get_variable("w", initializer=[1.0, 2.0])
    gradients = []
    for i, batch in enumerate(([1.0, 2.0], [3.0, 4.0])):
        with tf.device(f"/cpu:{i}"), tf.name_scope(f"tower_{i}"):
            loss = tf.reduce_sum(w * tf.constant(batch))
            gradients.append(tf.gradients(loss, w)[0])
    assert [g.device for g in gradients] == ["/device:CPU:0", "/device:CPU:1"]
    mean = tf.add_n(gradients) / 2.0
    train = v1.train.GradientDescentOptimizer(1.0).apply_gradients([(mean, w)])
    two = v1.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)
    with v1.Session(config=two) as session:
        session.run(v1.global_variables_initializer())
        session.run(train)
        assert session.run(w).tolist() == [-1.0, -1.0]
