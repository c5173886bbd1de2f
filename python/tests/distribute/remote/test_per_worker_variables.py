"""Variables of which each worker has its own."""

import threading

import headrace as tf
import processes
import pytest
import servers


def make(strategy, value, **given):
    with strategy.scope():
        return tf.Variable(value, per_worker_variable=True, **given)


def on_each(coordinator, function):
    """What a function gives on each of two workers, by their numbers, in some order: it is
    called until both have run it."""
    index = tf.distribute.coordinator.experimental_get_current_worker_index

    @tf.function
    def both():
        return index(), function()

    found = {}
    while len(found) < 2:
        results = [coordinator.schedule(both) for _ in range(8)]
        for result in results:
            number, value = result.fetch()
            found.setdefault(int(number), []).append(value)
    return found


def test_each_worker_has_its_own(strategy, coordinator):
    v = make(strategy, 1.0, name="own", trainable=True)
    assert isinstance(v, tf.Variable) and v.name == "own:0" and not v.trainable
    assert strategy.extended.variable_created_in_scope(v)
    assert [x.numpy() for x in v.read_all()] == [1.0, 1.0]
    v.assign(100.0)  # the coordinator's

    def add():
        v.assign_add(1.0)
        return v.read_value()

    found = on_each(coordinator, add)
    for values in found.values():
        assert sorted(values) == [2.0 + i for i in range(len(values))]
    last = [max(found[i]) for i in range(2)]
    assert [x.numpy() for x in v.read_all()] == last
    assert v.numpy() == 100.0 and (v + 1.0).numpy() == 101.0
    assert tf.function(add)().numpy() == 101.0
    assert [x.numpy() for x in v.read_all()] == last


def test_first_values(strategy, coordinator):
    calls = []

    def first():
        calls.append(1)
        return tf.fill([2], float(len(calls)))

    v = make(strategy, first, dtype=tf.float32)
    assert v.numpy().tolist() == [1.0, 1.0] and len(calls) == 3
    found = on_each(coordinator, v.read_value)
    for i in range(2):
        assert all(value.tolist() == [2.0 + i] * 2 for value in found[i])
    assert [x.numpy().tolist() for x in v.read_all()] == [[2.0, 2.0], [3.0, 3.0]]
    w = make(strategy, v)
    assert [x.numpy().tolist() for x in w.read_all()] == [[1.0, 1.0]] * 2
    s = make(strategy, ["a", "b"])
    assert s.read_all()[1].numpy().tolist() == [b"a", b"b"]


def test_loops_arguments_and_gradients(strategy, coordinator):
    v, shared = make(strategy, 0, dtype=tf.int64), None
    with strategy.scope():
        shared = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(own, count):
        for _ in tf.range(count):
            if own < 1000:
                own.assign_add(1)
                shared.assign_add(1)
        return strategy.run(lambda: v.read_value())

    for _ in range(6):
        coordinator.schedule(step, (v, tf.constant(5)))
    coordinator.join()
    values = [int(x.numpy()) for x in v.read_all()]
    assert sum(values) == shared.numpy() == 30 and not any(x % 5 for x in values)

    w = make(strategy, 3.0)

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            y = w * w
        return tf.constant(tape.gradient(y, w) is None)

    assert coordinator.schedule(gradient).fetch()


def test_the_coordinators_copy_is_saved(strategy, coordinator, tmp_path):
    v = make(strategy, [1.0, 2.0])
    v.assign([3.0, 4.0])
    path = tf.train.Checkpoint(v=v).save(str(tmp_path / "c"))
    w = make(strategy, [0.0, 0.0])
    tf.train.Checkpoint(v=w).restore(path)
    assert w.numpy().tolist() == [3.0, 4.0]
    assert w.read_all()[0].numpy().tolist() == [0.0, 0.0]


def test_partitioners_leave_it_whole(cluster):
    halves = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    strategy = servers.strategy_of(cluster, halves)
    v = make(strategy, [1.0, 2.0, 3.0])
    assert v.read_all()[1].numpy().tolist() == [1.0, 2.0, 3.0]
    assert not hasattr(v, "variables")  # those of a sharded one


def test_a_server_has_none(strategy):
    v = make(strategy, 1.0, name="own")
    with strategy.scope():
        shared = tf.Variable(1.0)
    with pytest.raises(tf.errors.OpError, match="'own:0'.*are to be scheduled"):
        tf.function(lambda: v + shared)()


def test_workers_forget_it(strategy, coordinator):
    v = make(strategy, 1.0)
    resource = v._resource
    on_each(coordinator, v.read_value)
    v.read_all()
    del v
    again = make(strategy, 2.0)
    on_each(coordinator, again.read_value)
    again.read_all()
    tasks = [w.task for w in coordinator._workers]
    tasks += [strategy._cluster.reader(i) for i in range(2)]
    assert not any(resource in task._resources for task in tasks)


def test_a_worker_that_begins_anew_has_the_first_value():
    mortal = processes.Cluster(ps=1, worker=1).start_all()
    try:
        strategy = servers.strategy_of(mortal)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        v = make(strategy, 1.0)

        @tf.function
        def add():
            return v.assign_add(1.0)

        assert [coordinator.schedule(add).fetch() for _ in range(2)] == [2.0, 3.0]
        assert v.read_all()[0].numpy() == 3.0
        mortal.kill("worker", 0)
        with pytest.raises(tf.errors.UnavailableError, match="worker/replica:0/task:0"):
            v.read_all()
        starts = threading.Timer(0.2, lambda: mortal.start("worker", 0))
        starts.start()
        assert coordinator.schedule(add).fetch() == 2.0
        starts.join()
        assert v.read_all()[0].numpy() == 2.0
    finally:
        mortal.stop()


def test_other_strategies_take_no_notice():
    with tf.distribute.OneDeviceStrategy("cpu:0").scope():
        assert tf.Variable(1.0, per_worker_variable=True).trainable
    assert tf.Variable(1.0, per_worker_variable=True).numpy() == 1.0
