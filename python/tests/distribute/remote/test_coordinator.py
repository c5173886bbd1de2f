"""tf.distribute.coordinator: functions on workers, with the values, errors and texts of
TensorFlow 2.21."""

import threading
import time

import headrace as tf
import numpy as np
import processes
import pytest
import servers
from headrace.distribute.remote import tasks

distribute, errors = tf.distribute, tf.errors
Coordinator = distribute.coordinator.ClusterCoordinator


def make(strategy, value, **given):
    with strategy.scope():
        return tf.Variable(value, **given)


@pytest.fixture
def run(coordinator):
    """What a function gives on some worker."""
    return lambda f, *args, **kwargs: coordinator.schedule(f, args, kwargs).fetch()


@tf.function
def take(iterator):
    return next(iterator)


def test_one_coordinator_a_strategy(strategy, coordinator):
    assert Coordinator(strategy) is coordinator and coordinator.strategy is strategy
    with pytest.raises(AttributeError, match="_cluster_coordinator"):
        Coordinator(distribute.get_strategy())


def test_results(strategy, coordinator):
    v = make(strategy, 1.0)

    @tf.function
    def f(x):
        v.assign_add(x)
        return v.read_value(), [x + 1, {"twice": x * 2}], "text"

    value = coordinator.schedule(f, args=(2.0,))
    assert isinstance(value, distribute.coordinator.RemoteValue)
    coordinator.join()
    assert coordinator.done()
    assert value.fetch() == (3.0, [3.0, {"twice": 4.0}], b"text")
    assert isinstance(value.get()[0], tf.Tensor)
    assert coordinator.fetch([value, {"a": value, "b": 3}])[1]["b"] == 3
    assert coordinator.schedule(f, kwargs={"x": 1.0}).fetch()[0] == 4.0
    concrete = f.get_concrete_function(tf.TensorSpec([]))
    assert coordinator.schedule(concrete, args=(tf.constant(1.0),)).fetch()[0] == 5.0
    nothing = coordinator.schedule(tf.function(lambda: None))
    assert nothing.fetch() is None
    ragged = tf.function(lambda: tf.ragged.constant([[1], [2, 3]]))
    assert coordinator.schedule(ragged).get().to_list() == [[1], [2, 3]]


def test_arguments(strategy, coordinator, run):
    v = make(strategy, 4.0)
    twice = tf.function(lambda x: x * 2)
    assert run(twice, np.ones(3, np.float32)).tolist() == [2.0, 2.0, 2.0]
    assert run(twice, v) == 8.0
    value = coordinator.schedule(twice, args=(1,))
    with pytest.raises(ValueError, match="RemoteValue` used as an input"):
        coordinator.schedule(twice, args=(value,))
    for wrong in (3, lambda: 1):
        with pytest.raises(
            TypeError, match="only accepts a `tf.function` or a concrete"
        ):
            coordinator.schedule(wrong)
    with pytest.raises(TypeError, match="too many positional arguments"):
        coordinator.schedule(twice, args=(1, 2))
    mine = tf.Variable(1.0)
    with pytest.raises(errors.InvalidArgumentError, match="process of the coordinator"):
        run(tf.function(lambda: mine + 1.0))
    with pytest.raises(errors.InvalidArgumentError):
        coordinator.join()


def test_every_function_runs_once(strategy, coordinator):
    v, turns = make(strategy, 0, dtype=tf.int64), 100

    @tf.function
    def count():
        v.assign_add(1)

    values = [coordinator.schedule(count) for _ in range(turns)]
    coordinator.join()
    assert v.numpy() == turns and all(x.fetch() is None for x in values)


def test_the_order_of_effects(strategy, run):
    v, w = make(strategy, 2.0), make(strategy, 5.0)

    @tf.function
    def inner(x):
        v.assign_add(x)
        return v * w

    @tf.function
    def outer(x):
        with tf.GradientTape() as tape:
            y = inner(x) * 3.0
        w.assign(v)
        return tape.gradient(y, [v, w]), y, w.read_value()

    assert run(outer, 1.0) == ([15.0, 9.0], 45.0, 3.0)
    assert (v.numpy(), w.numpy()) == (3.0, 3.0)

    @tf.function
    def branch(x):
        if x > 0:
            v.assign_add(x)
            y = v * 2
        else:
            w.assign_add(x)
            y = x * 3
        return y, v + w

    for _ in range(20):
        before = v + w
        assert run(branch, tf.constant(-1.0)) == (-3.0, before.numpy() - 1.0)
        assert run(branch, tf.constant(1.0))[1] == before.numpy()


def test_loops_over_several_tasks(strategy, coordinator, run):
    v, w = make(strategy, 5.0), make(strategy, 5.0)

    @tf.function
    def times(n):
        total = tf.zeros([2])
        for k in tf.range(n):
            if k % 2 == 0:
                v.assign_add(1.0)
            else:
                w.assign_add(tf.cast(k, tf.float32))
            total += v * tf.constant([1.0, 2.0])
        return total

    assert run(times, tf.constant(5)).tolist() == [34.0, 68.0]
    assert (v.numpy(), w.numpy()) == (8.0, 9.0)
    assert run(times, tf.constant(0)).tolist() == [0.0, 0.0]

    @tf.function
    def nested(n):
        for k in tf.range(n):
            for _ in tf.range(k):
                v.assign_add(1.0)
                w.assign_sub(1.0)
        return v + w

    assert run(nested, tf.constant(4)) == 17.0
    assert (v.numpy(), w.numpy()) == (14.0, 3.0)

    @tf.function
    def over(iterator):
        total = tf.constant(0, tf.int64)
        for x in iterator:
            total += tf.reduce_sum(x)
            v.assign_add(1.0)
        w.assign(v)
        return total

    data = coordinator.create_per_worker_dataset(tf.data.Dataset.range(4).batch(2))
    assert run(over, iter(data)) == 6
    assert (v.numpy(), w.numpy()) == (16.0, 16.0)

    @tf.function
    def in_branch(x):
        if x > 0:
            while v < 20.0:
                v.assign_add(1.0)
                w.assign_add(1.0)
        return v + w

    with pytest.raises(errors.UnimplementedError, match="within a branch"):
        run(in_branch, tf.constant(1.0))
    with pytest.raises(errors.UnimplementedError):
        coordinator.join()


def test_replicas(strategy, run):
    v = make(strategy, 3.0)

    @tf.function
    def step(x):
        def replica(x):
            context = distribute.get_replica_context()
            assert distribute.get_strategy() is strategy
            return x * v, context.num_replicas_in_sync

        out = strategy.run(replica, args=(x,))
        return strategy.reduce("SUM", out[0], axis=None), out[1]

    assert run(step, 2.0) == (6.0, 1)
    assert strategy.num_replicas_in_sync == 1
    assert strategy.run(lambda: v + 1.0) == 4.0


# --- datasets ---


def test_datasets_of_workers(strategy, coordinator, run):
    traces = []

    def dataset_fn():
        traces.append(1)
        return tf.data.Dataset.range(6).map(lambda x: x * 2).batch(2)

    data = coordinator.create_per_worker_dataset(dataset_fn)
    assert data.element_spec == tf.TensorSpec([None], tf.int64)
    for call in (next, lambda iterator: iterator.get_next()):
        with pytest.raises(NotImplementedError, match="AsyncDistributedIterator"):
            call(iter(data))
    iterator = iter(data)
    found = sorted(run(take, iterator).tolist() for _ in range(3))
    assert found[0] == [0, 2] and len(traces) == 1
    with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
        for _ in range(7):
            coordinator.schedule(take, args=(iterator,))
        coordinator.join()
    for _ in range(5):
        assert run(take, iter(data)).tolist() == [0, 2]
    with pytest.raises(ValueError, match="Unexpected dataset type!"):
        coordinator.create_per_worker_dataset(3)
    with pytest.raises(AttributeError, match="element_spec"):
        coordinator.create_per_worker_dataset(lambda: 3)
    with pytest.raises(RuntimeError, match="not supported inside of tf.function"):
        tf.function(lambda: iter(data))()


def test_iterators_take_each_others_place(coordinator, run):
    data = coordinator.create_per_worker_dataset(tf.data.Dataset.range(1000))

    def sizes():
        for _ in range(20):  # so that each worker has had one
            coordinator.schedule(take, args=(iterator,))
        coordinator.join()
        graphs = [w.task.graph.get_operations() for w in coordinator._workers]
        return [
            sum(o.type in ("IteratorV2", "IteratorGetNext") for o in g) for g in graphs
        ]

    iterator = iter(data)
    first = sizes()
    for _ in range(3):
        del iterator
        iterator = iter(data)
        assert run(take, iterator) == 0
        assert sizes() == first


def test_datasets_of_input_contexts(strategy, coordinator, run):
    seen = []

    def of_context(context):
        seen.append((context.num_input_pipelines, context.input_pipeline_id))
        index = distribute.coordinator.experimental_get_current_worker_index()
        return tf.data.Dataset.range(2).map(lambda x: x + 10 * index)

    def dataset_fn():
        return strategy.distribute_datasets_from_function(of_context)

    iterator = iter(coordinator.create_per_worker_dataset(dataset_fn))
    assert {int(run(take, iterator)) // 10 for _ in range(2)} <= {0, 1}
    assert seen == [(1, 0)]


def test_worker_index(coordinator):
    index = distribute.coordinator.experimental_get_current_worker_index
    with pytest.raises(RuntimeError, match="Cannot retrieve the worker index"):
        index()
    get = tf.function(lambda: index())
    values = [coordinator.schedule(get) for _ in range(60)]
    found = {int(x.fetch()) for x in values}
    assert found <= {0, 1} and values[0].get().dtype == tf.int64


def test_values_of_workers():
    with pytest.raises(AssertionError, match="should only take `RemoteValue`s"):
        distribute.coordinator.PerWorkerValue([1])
    with pytest.raises(NotImplementedError, match="implemented in subclasses"):
        distribute.coordinator.RemoteValue().fetch()


# --- errors ---


@tf.function
def bad(x):
    tf.debugging.assert_equal(x, 1.0, message="mine")
    return x


def test_the_first_error_is_raised_once(coordinator):
    wrong = coordinator.schedule(bad, args=(tf.constant(2.0),))
    with pytest.raises(errors.InvalidArgumentError, match="mine"):
        coordinator.join()
    with pytest.raises(errors.InvalidArgumentError) as e:
        wrong.fetch()
    assert str(e.value).startswith("Graph execution error:\n\nDetected at node ")
    assert "in bad" in str(e.value) and "{{node assert_equal/" in str(e.value)
    coordinator.join()
    assert coordinator.schedule(bad, args=(tf.constant(1.0),)).fetch() == 1.0

    wrong = coordinator.schedule(bad, args=(tf.constant(2.0),))
    wrong._settled.wait()
    time.sleep(0.1)
    with pytest.raises(errors.InvalidArgumentError, match="mine"):
        coordinator.done()
    assert coordinator.done()


def test_an_error_cancels_the_others(strategy, coordinator):
    @tf.function
    def forever(x):
        while x > 0.0:
            x = x + 1.0 - 1.0
        return x

    long = coordinator.schedule(forever, args=(tf.constant(1.0),))
    wrong = coordinator.schedule(bad, args=(tf.constant(2.0),))
    late = [coordinator.schedule(forever, args=(tf.constant(1.0),)) for _ in range(3)]
    with pytest.raises(errors.InvalidArgumentError, match="mine"):
        coordinator.join()
    assert isinstance(wrong._error, errors.InvalidArgumentError)
    for value in (long, *late):
        with pytest.raises(errors.CancelledError, match="Please reschedule"):
            value.fetch()


# --- several by one call ---


class Held:
    """Has both workers wait until `let_go`, so that what is scheduled meanwhile goes to
    them together."""

    def __init__(self, strategy, coordinator):
        self._go, self._coordinator = make(strategy, 1.0), coordinator
        go = self._go

        @tf.function
        def waits(level):
            while go < level:
                pass
            return level

        self.waits = waits
        self._holds = tf.function(lambda: waits(1.0))
        self.sets = tf.function(lambda x: go.assign(x).read_value())

    def known(self, function, *args):
        """Has all workers know that a function takes no time. What it waits for is there."""
        while any(
            w._seconds.get(function.get_concrete_function(*args), 1) > 0.002
            for w in self._coordinator._workers
        ):
            for _ in range(4):
                self._coordinator.schedule(function, args=args)
            self._coordinator.join()

    def hold(self):
        self._go.assign(0.0)
        for _ in self._coordinator._workers:
            self._coordinator.schedule(self._holds)
        while self._coordinator._queue._waiting:
            time.sleep(0.001)

    def let_go(self):
        self._go.assign(1.0)


@pytest.fixture
def held(strategy, coordinator):
    return Held(strategy, coordinator)


@pytest.fixture
def together(monkeypatch):
    """How many calls each call of a worker had."""
    counts, run = [], tasks.Task.run_together

    def counted(task, calls, within):
        counts.append(len(calls))
        return run(task, calls, within)

    monkeypatch.setattr(tasks.Task, "run_together", counted)
    return counts


def test_several_go_together(strategy, coordinator, held, together):
    v = make(strategy, 0.0)

    @tf.function
    def add(x):
        v.assign_add(x)
        return x + 0.0

    held.known(add, tf.constant(0.0))
    v.assign(0.0)
    held.hold()
    values = [
        coordinator.schedule(add, args=(tf.constant(i),))
        for i in np.arange(8.0, dtype=np.float32)
    ]
    held.let_go()
    assert [x.fetch() for x in values] == list(range(8))
    coordinator.join()
    assert v.numpy() == 28.0 and max(together) > 1


def test_one_that_waits_for_one_behind_it(coordinator, held, together):
    for _ in range(3):
        held.let_go()
        held.known(held.sets, tf.constant(1.0))
        held.known(held.waits, tf.constant(1.0))
        held.hold()
        waits = coordinator.schedule(held.waits, args=(tf.constant(2.0),))
        sets = coordinator.schedule(held.sets, args=(tf.constant(2.0),))
        others = [
            coordinator.schedule(held.waits, args=(tf.constant(1.0),)) for _ in range(6)
        ]
        together.clear()
        held.let_go()
        coordinator.join()
        assert waits.fetch() == sets.fetch() == 2.0
        assert {x.fetch() for x in others} == {1.0}
        assert max(together) > 1


def test_an_error_among_several(strategy, coordinator, held, together):
    v = make(strategy, 0.0)
    add = tf.function(lambda: v.assign_add(1.0).read_value())
    held.known(add)
    held.known(bad, tf.constant(1.0))
    v.assign(0.0)
    held.hold()
    before = coordinator.schedule(add)
    wrong = coordinator.schedule(bad, args=(tf.constant(2.0),))
    behind = [coordinator.schedule(add) for _ in range(6)]
    held.let_go()
    with pytest.raises(errors.InvalidArgumentError, match="mine"):
        coordinator.join()
    assert before.fetch() >= 1.0 and max(together) > 1
    with pytest.raises(errors.InvalidArgumentError, match="in bad"):
        wrong.fetch()
    coordinator.join()
    done = [x for x in behind if x._error is None]
    assert all(isinstance(x._error, errors.CancelledError) for x in behind[:2])
    assert v.numpy() >= 1 + len(done)


# --- training ---


def test_training(cluster):
    """One worker, so that the order of steps is known: TensorFlow's values."""
    strategy = servers.strategy_of(cluster, worker=1)
    coordinator, keras = Coordinator(strategy), tf.keras
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.layers.Input((4,)),
                keras.layers.Dense(
                    8, "relu", kernel_initializer=keras.initializers.Constant(0.1)
                ),
                keras.layers.Dense(
                    1, kernel_initializer=keras.initializers.Constant(0.2)
                ),
            ]
        )
        optimizer, metric = keras.optimizers.Adam(0.05), keras.metrics.Mean()

    @tf.function
    def step(iterator):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            metric.update_state(loss)
            return loss

        return strategy.run(replica, args=next(iterator))

    def dataset_fn():
        x = np.arange(256, dtype=np.float32).reshape(64, 4) / 100
        data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True)))
        return data.repeat().batch(16)

    iterator = iter(coordinator.create_per_worker_dataset(dataset_fn))
    losses = [coordinator.schedule(step, args=(iterator,)) for _ in range(4)]
    coordinator.join()
    np.testing.assert_allclose(losses[0].fetch(), 1.5040569, rtol=1e-5)
    assert (metric.count.numpy(), optimizer.iterations.numpy()) == (4.0, 4)
    mean = np.mean([x.fetch() for x in losses])
    np.testing.assert_allclose(metric.result(), mean, rtol=1e-5)
    sums = [tf.reduce_sum(v).numpy() for v in model.trainable_variables]
    np.testing.assert_allclose(sums, TRAINED, atol=1e-4)
    for v in model.trainable_variables:
        for slot in ("m", "v"):
            assert optimizer.get_slot(v, slot).device == v.device


TRAINED = [8.874283, 1.523689, 2.998670, 0.194118]


def test_training_of_parts(cluster):
    parts = distribute.experimental.partitioners.FixedShardsPartitioner(2)
    strategy, keras = servers.strategy_of(cluster, parts), tf.keras
    with strategy.scope():
        table = keras.layers.Embedding(
            10, 2, embeddings_initializer=keras.initializers.Constant(0.5)
        )
        table.build((None,))
        optimizer = keras.optimizers.SGD(1.0)
    assert [v.shape[0] for v in table.trainable_variables] == [5, 5]

    @tf.function
    def step(ids):
        def replica(ids):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(table(ids))
            weights = table.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return loss

        return strategy.run(replica, args=(ids,))

    value = Coordinator(strategy).schedule(step, args=(tf.constant([0, 7, 7]),))
    assert value.fetch() == 3.0
    first, second = (v.numpy() for v in table.trainable_variables)
    assert first.tolist() == [[-0.5, -0.5], *[[0.5, 0.5]] * 4]
    assert second.tolist() == [[0.5, 0.5]] * 2 + [[-1.5, -1.5]] + [[0.5, 0.5]] * 2


# --- tasks that die ---


@pytest.fixture
def mortal():
    made = processes.Cluster(ps=2, worker=2).start_all()
    yield made
    made.stop()


def test_lost_tasks(mortal):
    strategy = servers.strategy_of(mortal)
    coordinator, count = Coordinator(strategy), 200
    v, w = make(strategy, 0.0), make(strategy, 0.0)
    data = coordinator.create_per_worker_dataset(tf.data.Dataset.range(10**6))
    iterator = iter(data)

    @tf.function
    def step(iterator):
        v.assign_add(1.0)
        return next(iterator)

    def many():
        values = [coordinator.schedule(step, args=(iterator,)) for _ in range(count)]
        coordinator.join()
        return [int(x.fetch()) for x in values]

    many()
    # Those that ran when their worker died run again; none is lost.
    killer = threading.Timer(0.05, lambda: mortal.kill("worker", 0))
    killer.start()
    many()
    killer.join()
    assert 2 * count <= v.numpy() <= 2 * count + 1
    mortal.start("worker", 0)
    deadline = time.monotonic() + 60
    while min(many()) > 100 and time.monotonic() < deadline:
        pass  # until the new one's iterator, which begins anew, has been asked
    assert time.monotonic() < deadline
    # Without any worker all wait for one.
    for i in range(2):
        mortal.kill("worker", i)
    waits = coordinator.schedule(step, args=(iterator,))
    time.sleep(0.2)
    assert not coordinator.done()
    mortal.start("worker", 1)
    coordinator.join()
    assert waits.fetch() == 0
    # A server takes its variables with it.
    mortal.kill("ps", 1)
    lost = v if v.device.startswith("/job:ps/replica:0/task:1/") else w

    @tf.function
    def use():
        lost.assign_add(1.0)

    with pytest.raises(errors.UnavailableError, match="/job:ps/replica:0/task:1"):
        coordinator.schedule(use)
        coordinator.join()
    with pytest.raises(errors.UnavailableError, match="/job:ps/replica:0/task:1"):
        lost.numpy()
    assert (w if lost is v else v).numpy() >= 0.0


def test_clusters_have_known_jobs():
    jobs = {"worker": ["localhost:1"], "ps": ["localhost:2"], "other": ["localhost:3"]}
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(jobs)
    )
    with pytest.raises(ValueError, match="Disallowed task type found in cluster spec"):
        tf.distribute.ParameterServerStrategy(resolver)
