import time

import headrace as tf
import numpy as np
import pytest
from headrace.v1.train import device_setter

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def optimizer(*numbers, **more):
    return v1.train.SyncReplicasOptimizer(
        v1.train.GradientDescentOptimizer(1.0), *numbers, **more
    )


def test_what_it_adds_to_the_graph(graph):
    step = v1.train.create_global_step()
    with tf.device("/job:ps/task:1"):
        dense = v1.get_variable("a", initializer=[1.0, 2.0])
    sparse = v1.get_variable("c", initializer=[1.0, 2.0], use_resource=False)
    rows = tf.IndexedSlices(
        tf.constant([1.0]), tf.constant([0], tf.int64), tf.constant([2], tf.int64)
    )
    made = optimizer(3, 2)
    assert made.get_slot_names() == []
    made.apply_gradients([(tf.constant([1.0, 1.0]), dense), (rows, sparse)], step)
    ops = {op.name: (op.type, op.device) for op in graph.get_operations()}
    for name, kind, device in (
        ("sync_rep_local_step", "VarHandleOp", ""),
        (
            "sync_replicas/conditional_accumulator",
            "ResourceConditionalAccumulator",
            "/job:ps/task:1",
        ),
        (
            "sync_replicas/sparse_conditional_accumulator",
            "SparseConditionalAccumulator",
            "",
        ),
        ("sync_token_q", "FIFOQueueV2", "/device:CPU:*"),
        ("sync_token_q_Dequeue", "QueueDequeueV2", ""),
        ("sync_token_q_EnqueueMany", "QueueEnqueueManyV2", ""),
        ("sync_replicas/SetGlobalStep", None, "/job:ps/task:1"),
    ):
        assert ops[name][1] == device and kind in (None, ops[name][0])
    waited = graph.get_operation_by_name("sync_token_q_Dequeue").control_inputs
    assert sorted(op.type for op in waited) == [
        "ResourceAccumulatorApplyGradient",
        "SparseAccumulatorApplyGradient",
    ]
    assert made.chief_init_op.name == "sync_replicas/group_deps"
    assert [v.name for v in v1.local_variables()] == ["sync_rep_local_step:0"]
    runner = made.get_chief_queue_runner()
    assert runner.name == "sync_token_q" and len(runner.enqueue_ops) == 1
    with pytest.raises(ValueError, match=r"first step: 0 \(given\) vs 1 \(needed\)"):
        made.get_init_tokens_op(0)
    assert made.get_init_tokens_op(5).inputs[1].shape == [5]
    assert made.get_init_tokens_op().inputs[1].shape == [3]


def test_no_tokens_are_needed_for_more_workers():
    step = v1.train.create_global_step()
    v = v1.get_variable("b", initializer=1.0)
    made = optimizer(1, 3)
    made.apply_gradients([(tf.constant(1.0), v), (None, v)], step)
    assert made.get_init_tokens_op(0).name == "no_init_tokens"


def test_refusals():
    step = v1.train.create_global_step()
    v = v1.get_variable("b", initializer=1.0)
    made = optimizer(1)
    with pytest.raises(ValueError, match="should be called after apply_gradients"):
        made.get_init_tokens_op()
    with pytest.raises(ValueError, match="Should be called after apply_gradients"):
        made.get_chief_queue_runner()
    with pytest.raises(ValueError, match="Must supply at least one variable"):
        made.apply_gradients([])
    with pytest.raises(ValueError, match="Global step is required to check staleness"):
        made.apply_gradients([(tf.constant(1.0), v)])
    with pytest.raises(
        ValueError, match="apply_gradient should be called before using"
    ):
        made.make_session_run_hook(True).begin()
    del step


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_trains_as_its_own_chief():
    step = v1.train.create_global_step()
    w = v1.get_variable("w", initializer=[4.0, 2.0])
    average = v1.train.ExponentialMovingAverage(0.5)
    made = optimizer(2, 1, variable_averages=average, variables_to_average=[w])
    train = made.minimize(tf.reduce_sum(w * w) / 4.0, step)
    hook = made.make_session_run_hook(True, num_tokens=1)
    read = w + 0.0
    with v1.train.MonitoredSession(hooks=[hook], stop_grace_period_secs=0.2) as session:
        for _ in range(4):
            session.run(train)
        seen, steps = session.run([read, step])
        for _ in range(500):  # averages follow behind the tokens
            followed = session._tf_sess().run(average.average(w))
            if followed[0] == 2.0:
                break
            time.sleep(0.01)
    assert steps == 2  # of two gradients each
    np.testing.assert_allclose(seen, [1.0, 0.5])
    np.testing.assert_allclose(followed, [2.0, 1.0])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_late_gradients_are_counted():
    step = v1.train.create_global_step()
    with v1.device("/job:localhost"):  # as on a task of a cluster
        v, w = (v1.get_variable(n, initializer=[4.0, 2.0]) for n in "vw")
    made = optimizer(1, 2)
    with pytest.raises(ValueError, match="Should be called after apply_gradients"):
        made.num_dropped_gradients()
    train = made.minimize(tf.reduce_sum(v * w), step)
    dropped = made.num_dropped_gradients()
    behind, ahead = made._local_step.assign(0), made._local_step.assign(50)
    hook = made.make_session_run_hook(True)
    with v1.train.MonitoredSession(hooks=[hook], stop_grace_period_secs=0.2) as session:
        for i in range(3):
            session.run(train)
            # It waits for the end of its step, and so is never late.
            assert session._tf_sess().run([dropped, step]) == [0, i + 1]
        session._tf_sess().run(behind)
        session.run(train)
        assert session._tf_sess().run([dropped, step]) == [2, 3]
        # The step was set back: it does not wait for the one that it was at.
        session._tf_sess().run(ahead)
        session.run(train)
        late, local = session._tf_sess().run([dropped, made._local_step])
        assert late == 2 and local in (3, 4)


def test_the_least_loaded_server():
    strategy = device_setter.GreedyLoadBalancingStrategy(
        2, device_setter.byte_size_load_fn
    )
    with v1.device(v1.train.replica_device_setter(ps_tasks=2, ps_strategy=strategy)):
        made = [
            v1.get_variable(f"v{n}", [n], use_resource=n % 20 == 0)
            for n in (100, 10, 20, 200, 50)
        ]
    tasks = [v.device[-1] for v in made]
    assert tasks == ["0", "1", "1", "1", "0"]
    with pytest.raises(ValueError, match="must have a single output"):
        device_setter.byte_size_load_fn(tf.no_op())
    with pytest.raises(ValueError, match="is not fully defined"):
        device_setter.byte_size_load_fn(v1.placeholder(tf.float32, [None]).op)


def test_device_functions_do_not_see_what_is_colocated():
    seen = []

    def place(op):
        seen.append(op.name)
        return "/job:worker"

    with tf.device("/job:ps/task:1"):
        a = tf.constant(1.0, name="a")
    with v1.device(place), v1.colocate_with(a):
        b = tf.constant(2.0, name="b")
    assert b.device == "/job:ps/task:1" and "b" not in seen


def test_slots_lie_beside_their_variables(graph):
    with v1.device(v1.train.replica_device_setter(ps_tasks=2)):
        v1.get_variable("x", initializer=1.0)
        a = v1.get_variable("a", initializer=1.0)
        v1.train.AdamOptimizer(0.1).minimize(a * a, var_list=[a])
    for name in (
        "a/Assign",
        "a/Adam",
        "a/Adam_1",
        "beta1_power",
        "a/Read/ReadVariableOp",
    ):
        assert graph.get_operation_by_name(name).device == "/job:ps/task:1"
