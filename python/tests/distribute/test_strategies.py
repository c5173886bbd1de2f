"""Strategies of one process: what run, reduce, variables and contexts do. The expected
values are TensorFlow's."""

import copy

import headrace as tf
import numpy as np
import pytest

distribute = tf.distribute
Aggregation = tf.VariableAggregation
ON_READ = tf.VariableSynchronization.ON_READ


@pytest.fixture
def strategy():
    return distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def number():
    """Which replica this is, a float."""
    context = distribute.get_replica_context()
    return tf.cast(context.replica_id_in_sync_group, tf.float32)


def numbers(value):
    return [np.asarray(v).tolist() for v in value.values]


def test_default_strategy():
    default = distribute.get_strategy()
    assert isinstance(default, distribute.Strategy)
    assert not isinstance(default, tf.compat.v1.distribute.Strategy)
    assert not distribute.has_strategy() and not distribute.in_cross_replica_context()
    assert distribute.get_replica_context().strategy is default
    assert default.num_replicas_in_sync == 1 and default.cluster_resolver is None
    assert default.run(lambda x: x + 1, (3,)) == 4
    assert float(default.reduce("SUM", tf.constant([1.0, 2.0]), axis=0)) == 3.0
    assert default.experimental_local_results(3) == (3,)
    assert distribute.get_replica_context().all_reduce("SUM", 7) == 7
    seen = distribute.get_replica_context().merge_call(
        lambda s: (s is default, distribute.get_replica_context())
    )
    assert seen == (True, None)
    with pytest.raises(RuntimeError, match="unsupported by default tf.distribute"):
        _ = default.extended.worker_devices


def test_devices(strategy):
    host = "/job:localhost/replica:0/task:0/device:CPU:"
    assert strategy.extended.worker_devices == (host + "0", host + "1")
    assert strategy.extended.parameter_devices == (host + "0", host + "1")
    assert distribute.MirroredStrategy(["GPU:0"]).num_replicas_in_sync == 1
    with pytest.raises(AssertionError, match="No duplicates allowed in `devices`"):
        distribute.MirroredStrategy(["CPU:0", "/cpu:0"])
    with pytest.raises(ValueError, match="Unknown attribute 'C' is encountered"):
        distribute.MirroredStrategy("CPU:0")
    assert copy.deepcopy(strategy) is strategy


def test_run_gives_each_replica_its_own(strategy):
    result = strategy.run(number)
    assert repr(result).startswith(
        "PerReplica:{\n  0: <tf.Tensor: shape=(), dtype=float"
    )
    assert numbers(result) == [0.0, 1.0]
    assert strategy.experimental_local_results(result) == result.values
    both = strategy.run(
        lambda x, y: (x + y, {"a": [1, "x", None]}), (result,), {"y": 2}
    )
    assert numbers(both[0]) == [2.0, 3.0] and both[1] == {"a": [1, "x", None]}
    traced = strategy.run(tf.function(lambda x: x * 2.0), (result,))
    assert numbers(traced) == [0.0, 2.0]
    outer = tf.function(lambda x: strategy.run(lambda y: y + number(), (x,)))
    assert numbers(outer(result)) == [0.0, 2.0]
    with pytest.raises(TypeError, match="'int' object is not callable"):
        strategy.run(3)
    with pytest.raises(ZeroDivisionError):
        strategy.run(lambda: 1 / int(number() - 1.0))


def test_traces_belong_to_replicas(strategy):
    with strategy.scope():
        v = tf.Variable(1.0, synchronization=ON_READ, aggregation=Aggregation.SUM)
    read = tf.function(lambda: v + 0.0)
    assert float(read()) == 2.0
    strategy.run(lambda: v.assign(number() + 5.0))
    assert numbers(strategy.run(lambda: read())) == [5.0, 6.0]
    assert float(read()) == 11.0 and numbers(strategy.run(lambda: read())) == [5.0, 6.0]


def test_reduce(strategy):
    own = strategy.run(number)
    assert float(strategy.reduce("SUM", own, axis=None)) == 1.0
    assert float(strategy.reduce(distribute.ReduceOp.MEAN, own, axis=None)) == 0.5
    rows = strategy.run(lambda: tf.range(3.0) + number())
    assert float(strategy.reduce("MEAN", rows, axis=0)) == 1.5
    assert float(strategy.reduce("SUM", rows, axis=0)) == 9.0
    assert float(strategy.reduce("SUM", {"a": own}, axis=None)["a"]) == 1.0
    assert float(strategy.reduce("MEAN", tf.constant([1.0, 2.0]), axis=0)) == 1.5
    uneven = strategy.run(lambda: tf.ones([1 + int(number())]) * (1.0 + number()))
    assert float(strategy.reduce("MEAN", uneven, axis=0)) == pytest.approx(5 / 3)
    with pytest.raises(ValueError, match="'XX' is not a valid ReduceOp"):
        strategy.reduce("XX", own, axis=None)
    with pytest.raises(
        ValueError, match="A non-DistributedValues value 3 cannot be red"
    ):
        strategy.reduce("SUM", 3, axis=None)
    for nothing in (None, [None], strategy.run(lambda: None)):
        with pytest.raises(ValueError, match="value None cannot be reduced"):
            strategy.reduce("SUM", nothing, axis=None)
    assert strategy.reduce("MEAN", None, axis=None) is None
    with pytest.raises(ValueError, match="value None cannot be reduced"):
        tf.distribute.MirroredStrategy(["cpu:0"]).reduce("SUM", None, axis=None)
    one = tf.distribute.OneDeviceStrategy("cpu:0")
    assert one.reduce("SUM", [None, 0.5], axis=None) == [None, 0.5]
    with pytest.raises(ValueError, match="Invalid reduction dimension"):
        strategy.reduce("SUM", own, axis=0)


def test_gather(strategy):
    rows = strategy.run(lambda: tf.fill([1, 2], number()))
    assert strategy.gather(rows, 0).numpy().tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert strategy.gather(rows, 1).numpy().tolist() == [[0.0, 0.0, 1.0, 1.0]]
    assert strategy.gather(tf.constant([1]), 0).numpy().tolist() == [1]
    uneven = strategy.run(lambda: tf.ones([1 + int(number())]))
    assert strategy.gather(uneven, 0).shape == [3]
    for axis in (2, -3):
        with pytest.raises(ValueError):
            strategy.gather(rows, axis)


def test_replicas_meet(strategy):
    def of(op, value):
        return lambda: distribute.get_replica_context().all_reduce(op, value())

    assert numbers(strategy.run(of("SUM", number))) == [1.0, 1.0]
    assert numbers(strategy.run(of(distribute.ReduceOp.MEAN, number))) == [0.5, 0.5]
    nested = strategy.run(of("SUM", lambda: {"a": number(), "b": [number() + 1.0]}))
    assert numbers(nested["a"]) == [1.0, 1.0] and numbers(nested["b"][0]) == [3.0, 3.0]
    rows = strategy.run(
        of("MEAN", lambda: tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])))
    )
    assert rows.values[1].values.numpy().tolist() == [[0.5, 0.5]] * 2
    gathered = strategy.run(
        lambda: distribute.get_replica_context().all_gather(tf.fill([1], number()), 0)
    )
    assert numbers(gathered) == [[0.0, 1.0]] * 2
    with pytest.raises(ValueError, match="'Q' is not a valid ReduceOp"):
        strategy.run(of("q", number))
    with pytest.raises(AttributeError, match="'int' object has no attribute 'dtype'"):
        strategy.run(of("SUM", lambda: 3))


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_through_meetings(strategy, traced):
    def step():
        x = number() + 1.0
        context = distribute.get_replica_context()
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = context.all_reduce("SUM", x * x)
            loss = total * (number() + 1.0)
        return total, tape.gradient(loss, x)

    def gathering():
        x = tf.fill([2], number() + 1.0)
        context = distribute.get_replica_context()
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(context.all_gather(x, 0) * [1.0, 2.0, 3.0, 4.0])
        return tape.gradient(loss, x)

    wrap = tf.function if traced else lambda f: f
    total, gradient = wrap(lambda: strategy.run(step))()
    assert numbers(total) == [5.0, 5.0] and numbers(gradient) == [6.0, 12.0]
    gradient = wrap(lambda: strategy.run(gathering))()
    assert numbers(gradient) == [[2.0, 4.0], [6.0, 8.0]]


def test_merge_call(strategy):
    seen = []

    def merge(s, x, y):
        seen.append((s is strategy, distribute.in_cross_replica_context(), y))
        return s.reduce("SUM", x, axis=None)

    def code():
        context = distribute.get_replica_context()
        first = context.merge_call(merge, args=(number(), 7))
        own = context.merge_call(lambda s, a: a, kwargs={"a": number()})
        return first, own

    first, own = strategy.run(code)
    assert float(first) == 1.0 and numbers(own) == [0.0, 1.0]
    assert seen == [(True, True, 7)]


@pytest.mark.parametrize("which", [0.0, 1.0])
def test_all_replicas_have_to_meet(strategy, which):
    def code():
        if float(number()) == which:
            distribute.get_replica_context().merge_call(lambda s: 1)

    with pytest.raises(
        RuntimeError, match="made a different number of replica_context"
    ):
        strategy.run(code)
    assert numbers(strategy.run(number)) == [0.0, 1.0]  # nobody is left waiting


def test_errors_at_meetings(strategy):
    def fail_in_second():
        context = distribute.get_replica_context()
        context.merge_call(lambda s: None)
        if float(number()):
            raise KeyError("second")
        context.merge_call(lambda s: None)

    with pytest.raises(KeyError, match="second"):
        strategy.run(fail_in_second)

    def fail_in_merge(s):
        raise ValueError("merging")

    with pytest.raises(ValueError, match="merging"):
        strategy.run(lambda: distribute.get_replica_context().merge_call(fail_in_merge))

    @tf.function
    def nested():
        return distribute.get_replica_context().merge_call(lambda s: 1)

    with pytest.raises(
        RuntimeError, match="called while defining a new graph or a tf.f"
    ):
        strategy.run(lambda: nested())


def test_contexts(strategy):
    def inside():
        context = distribute.get_replica_context()
        assert not distribute.in_cross_replica_context() and distribute.has_strategy()
        assert context.strategy is strategy is distribute.get_strategy()
        assert context.num_replicas_in_sync == 2
        return context.devices[0][0][-5:]

    assert strategy.run(inside).values == ("CPU:0", "CPU:1")
    other = distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope() as entered, strategy.scope():
        assert entered is strategy is distribute.get_strategy()
        assert distribute.in_cross_replica_context()
        assert distribute.get_replica_context() is None
        with pytest.raises(
            RuntimeError, match="Mixing different tf.distribute.Strategy"
        ):
            other.scope().__enter__()
        with pytest.raises(RuntimeError, match="Must not be called inside a"):
            distribute.experimental_set_strategy(strategy)
    for wrong in (
        lambda: strategy.run(number),
        lambda: strategy.reduce("SUM", number(), axis=None),
        lambda: strategy.scope().__enter__(),
    ):
        with pytest.raises(RuntimeError, match="being in cross-replica context, use"):
            strategy.run(wrong)
    with pytest.raises(RuntimeError, match='Need to be inside "with strategy.scope'):
        strategy.extended.colocate_vars_with(tf.Variable(1.0))


def test_strategy_everywhere(strategy):
    distribute.experimental_set_strategy(strategy)
    try:
        assert distribute.has_strategy() and distribute.in_cross_replica_context()
        assert distribute.get_strategy() is strategy
        assert len(tf.Variable(1.0).values) == 2
    finally:
        distribute.experimental_set_strategy(None)
    assert not distribute.has_strategy()
    assert not hasattr(tf.Variable(1.0), "values")


MIRRORED = [
    # aggregation, what replicas leave who write 1 and 2, who then add 1 and 2
    (Aggregation.NONE, [1.0, 2.0], [2.0, 4.0]),
    (Aggregation.SUM, [3.0, 3.0], [6.0, 6.0]),
    (Aggregation.MEAN, [1.5, 1.5], [3.0, 3.0]),
    (Aggregation.ONLY_FIRST_REPLICA, [1.0, 1.0], [2.0, 2.0]),
]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("aggregation, written, added", MIRRORED)
def test_mirrored_variables(strategy, aggregation, written, added, traced):
    wrap = tf.function if traced else lambda f: f
    with strategy.scope():
        v = tf.Variable(1.0, aggregation=aggregation, name="v")
    assert isinstance(v, tf.Variable) and v.trainable
    assert [c.name for c in v.values] == ["v:0", "v/replica_1:0"]
    result = wrap(lambda: strategy.run(lambda: v.assign(number() + 1.0)))()
    assert numbers(v) == written and numbers(result) == written
    wrap(lambda: strategy.run(lambda: v.assign_add(number() + 1.0)))()
    assert numbers(v) == added and v.numpy() == float(v) == added[0]
    wrap(lambda: strategy.run(lambda: v.assign_sub(number() + 1.0)))()
    assert numbers(v) == written
    v.assign(8.0)
    assert numbers(v) == [8.0, 8.0]
    with strategy.scope():
        v.assign_add(2.0)
        assert float(v.read_value()) == 10.0
    assert numbers(v) == [10.0, 10.0] and float(v + 1.0) == 11.0


ON_READING = [
    # aggregation, what copies of 2 and 4 are together, the copies once 8 is assigned
    (Aggregation.SUM, 6.0, [4.0, 4.0]),
    (Aggregation.MEAN, 3.0, [8.0, 8.0]),
    (Aggregation.ONLY_FIRST_REPLICA, 2.0, [8.0, 8.0]),
]


@pytest.mark.parametrize("aggregation, together, assigned", ON_READING)
def test_variables_synchronized_on_reading(strategy, aggregation, together, assigned):
    with strategy.scope():
        v = tf.Variable(1.0, synchronization=ON_READ, aggregation=aggregation)
    assert not v.trainable and repr(v).startswith("SyncOnReadVariable:{\n  0: <tf.Var")
    own = strategy.run(lambda: v.assign_add((number() + 1.0) * (1.0 + number()) ** 0))
    assert numbers(own) == numbers(v) == [2.0, 3.0]
    strategy.run(lambda: v.assign(2.0 + 2.0 * number()))
    assert numbers(strategy.run(lambda: v.read_value())) == [2.0, 4.0]
    assert float(v.read_value()) == float(v) == v.numpy() == together
    v.assign(8.0)
    assert numbers(v) == assigned
    if aggregation == Aggregation.SUM:
        with pytest.raises(
            ValueError, match="does not support `assign_add` in cross-rep"
        ):
            v.assign_add(2.0)
    else:
        v.assign_add(2.0)
        assert numbers(v) == [10.0, 10.0]


def test_variables_that_cannot_be_read_together(strategy):
    with strategy.scope():
        v = tf.Variable(1.0, synchronization=ON_READ)
        with pytest.raises(
            ValueError, match="`NONE` variable synchronization mode is not"
        ):
            tf.Variable(1.0, synchronization=tf.VariableSynchronization.NONE)
        assert not v.trainable
        assert tf.Variable(1.0, synchronization=ON_READ, trainable=True).trainable
    for use in (v.numpy, v.read_value, lambda: v.assign(1.0)):
        with pytest.raises(
            ValueError, match="Could not convert from `tf.VariableAggrega"
        ):
            use()


def test_variables_as_tensors(strategy):
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])
    assert tf.reduce_sum(v).numpy() == 3.0 and v[1].numpy() == 2.0
    assert (v * 2.0).numpy().tolist() == [2.0, 4.0] and len({v.ref(), v.ref()}) == 1
    assert (
        v.shape == [2] and v.dtype == tf.float32 and v.aggregation == Aggregation.NONE
    )
    with pytest.raises(TypeError, match="Variable is unhashable"):
        hash(v)
    assert strategy.extended.value_container(v.values[1]) is v
    assert strategy.extended.variable_created_in_scope(v)
    assert not strategy.extended.variable_created_in_scope(tf.Variable(1.0))
    scattered = tf.IndexedSlices(tf.constant([5.0]), tf.constant([0]))
    v.scatter_add(scattered)
    assert numbers(v) == [[6.0, 2.0]] * 2
    with strategy.scope():
        total = tf.Variable([1.0, 2.0], aggregation=Aggregation.SUM)
    strategy.run(
        lambda: total.scatter_add(
            tf.IndexedSlices(tf.constant([5.0]), tf.constant([0]))
        )
    )
    assert numbers(total) == [[11.0, 2.0]] * 2
    with pytest.raises(
        NotImplementedError, match="scatter_max is only supported for mirr"
    ):
        strategy.run(lambda: total.scatter_max(scattered))


def test_one_value_of_all_replicas_has_no_sum(strategy):
    kinds = {"SUM": Aggregation.SUM, "MEAN": Aggregation.MEAN}
    with strategy.scope():
        made = {k: tf.Variable([1.0], aggregation=a) for k, a in kinds.items()}
    total, mean = made["SUM"], made["MEAN"]
    same = [tf.constant([2.0]), np.array([2.0], np.float32)]
    same += [tf.IndexedSlices(tf.constant([2.0]), tf.constant([0]))]
    for value in same:
        add = "scatter_add" if isinstance(value, tf.IndexedSlices) else "assign_add"
        with pytest.raises(ValueError, match="A non-DistributedValues value"):
            strategy.run(lambda: getattr(total, add)(value))
        strategy.run(lambda: getattr(mean, add)(value))
    assert numbers(total) == [[1.0]] * 2 and numbers(mean) == [[7.0]] * 2
    with strategy.scope():
        scalar = tf.Variable(1.0, aggregation=Aggregation.SUM)
    with pytest.raises(ValueError, match="value 3.0 cannot be reduced"):
        strategy.run(lambda: scalar.assign(3.0))
    strategy.run(lambda: scalar.assign(tf.constant(3.0)))
    assert numbers(scalar) == [6.0] * 2
    means = strategy.reduce("MEAN", strategy.run(lambda: tf.ones([2, 3])), axis=(0, 1))
    assert means.numpy() == 1.0


def test_variables_made_by_replicas(strategy):
    made = strategy.run(lambda: tf.Variable(number() + 3.0, name="x"))
    assert type(made).__name__ == "MirroredVariable" and numbers(made) == [3.0, 3.0]

    class Counter:
        v = None

        @tf.function
        def step(self):
            return strategy.run(self.count)

        def count(self):
            if self.v is None:
                self.v = tf.Variable(0.0, aggregation=Aggregation.SUM)
            return self.v.assign_add(number())

    counter = Counter()
    counter.step()
    assert numbers(counter.step()) == [2.0, 2.0]


def test_tapes_know_the_variable(strategy):
    with strategy.scope():
        v = tf.Variable(3.0)

    def step():
        with tf.GradientTape() as tape:
            loss = v * v * (number() + 1.0)
        (watched,) = tape.watched_variables()
        assert watched is v
        return tape.gradient(loss, v)

    assert numbers(strategy.run(step)) == [6.0, 12.0]
    assert numbers(tf.function(lambda: strategy.run(step))()) == [6.0, 12.0]


def test_checkpoints_have_one_value(strategy, tmp_path):
    with strategy.scope():
        v = tf.Variable(3.0)
        total = tf.Variable(2.0, synchronization=ON_READ, aggregation=Aggregation.SUM)
    path = tf.train.Checkpoint(v=v, total=total).write(str(tmp_path / "c"))
    key = "/.ATTRIBUTES/VARIABLE_VALUE"
    names = [n for n, _ in tf.train.list_variables(path)]
    assert names == ["_CHECKPOINTABLE_OBJECT_GRAPH", "total" + key, "v" + key]
    assert tf.train.load_variable(path, "total" + key) == 4.0
    plain = tf.train.Checkpoint(v=tf.Variable(0.0), total=tf.Variable(0.0))
    plain.read(path).assert_consumed()
    assert plain.v.numpy() == 3.0 and plain.total.numpy() == 4.0
    plain.v.assign(7.0)
    plain.total.assign(10.0)
    path = plain.write(str(tmp_path / "d"))
    tf.train.Checkpoint(v=v, total=total).read(path).assert_consumed()
    assert numbers(v) == [7.0, 7.0] and numbers(total) == [5.0, 5.0]


def test_extended(strategy):
    extended = strategy.extended
    with strategy.scope():
        v = tf.Variable(10.0)
    own = strategy.run(number)
    reduced = extended.reduce_to("SUM", own, destinations=v)
    assert repr(reduced).startswith("Mirrored:{") and numbers(reduced) == [1.0, 1.0]
    pairs = extended.batch_reduce_to("MEAN", [(own, v), (own, v)])
    assert [numbers(p) for p in pairs] == [[0.5, 0.5]] * 2
    add = lambda var, x: var.assign_add(x)  # noqa: E731
    assert numbers(extended.update(v, add, args=(own,))) == [10.0, 11.0]
    assert len(extended.update(v, add, args=(5.0,), group=False)) == 2
    assert numbers(v) == [15.0, 16.0]
    assert extended.update_non_slot(None, lambda x: x, args=(3,), group=False) == (3,)
    assert extended.broadcast_to(3.0, v) == 3.0
    assert numbers(extended.broadcast_to(tf.constant(3.0), v)) == [3.0, 3.0]
    made = strategy.experimental_distribute_values_from_function(
        lambda c: (c.replica_id_in_sync_group, c.num_replicas_in_sync)
    )
    assert made[0].values == (0, 1) and made[1].values == (2, 2)
    assert strategy.experimental_local_results(v) == v.values
    assert strategy.experimental_local_results({"a": own, "b": 2})[1]["b"] == 2


def test_one_device():
    strategy = distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        v = tf.Variable(1.0)
        assert distribute.in_cross_replica_context()
    assert type(v).__name__ == "ResourceVariable"
    assert strategy.extended.variable_created_in_scope(v)
    result = strategy.run(
        lambda: distribute.get_replica_context().all_reduce("SUM", v + 1)
    )
    assert float(result) == 2.0
    assert strategy.experimental_local_results(result) == (result,)
    assert float(strategy.reduce("SUM", result, axis=None)) == 2.0
    assert [
        e.numpy().tolist()
        for e in strategy.experimental_distribute_dataset(
            tf.data.Dataset.range(3).batch(2)
        )
    ] == [[0, 1], [2]]


def test_central_storage():
    strategy = distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = tf.Variable(1.0, aggregation=Aggregation.SUM)
    assert strategy.num_replicas_in_sync == 2 and len(v.values) == 1
    strategy.run(lambda: v.assign_add(number() + 1.0))
    assert v.numpy() == 4.0
    assert numbers(strategy.run(lambda: v + number())) == [4.0, 5.0]


def test_worker_that_is_alone(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    strategy = distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 1 and strategy.extended.should_checkpoint
    with strategy.scope():
        v = tf.Variable(1.0)
    assert type(v).__name__ == "MirroredVariable"
    code = lambda: distribute.get_replica_context().all_reduce("SUM", v + 1.0)  # noqa: E731
    assert float(strategy.run(code)) == 2.0
    with pytest.raises(
        ValueError, match="communication_options must be an instance of"
    ):
        distribute.MultiWorkerMirroredStrategy(communication_options=3)


def test_cross_device_ops(strategy):
    own = strategy.run(lambda: number() + 1.0)
    op = distribute.ReduceOp
    for kind in (distribute.HierarchicalCopyAllReduce, distribute.ReductionToOneDevice):
        way = kind()
        assert numbers(way.reduce(op.SUM, own, own)) == [3.0, 3.0]
        assert float(way.reduce(op.MEAN, own, "/cpu:0")) == 1.5
        assert [numbers(v) for v in way.batch_reduce(op.SUM, [(own, own)])] == [
            [3.0, 3.0]
        ]
        assert numbers(way.broadcast(tf.constant(1.0), own)) == [1.0, 1.0]
        other = distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=way)
        assert float(other.reduce("SUM", other.run(number), axis=None)) == 1.0
        with pytest.raises(
            ValueError, match="`reduce_op` must be Reduce.SUM or Reduce.M"
        ):
            way.reduce("SUM", own, own)
        with pytest.raises(ValueError, match="destinations must be one of a"):
            way.reduce(op.SUM, own, None)
    product = distribute.ReductionToOneDevice(accumulation_fn=lambda l: l[0] * l[1])
    assert float(product.reduce(op.SUM, own, "/cpu:0")) == 2.0
    nccl = distribute.NcclAllReduce()
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="No OpKernel was registered"
    ):
        nccl.batch_reduce(op.SUM, [(own, own)])
    for kind, text in (
        (
            distribute.NcclAllReduce,
            "NCCL all-reduce requires num_packs >= 0, but -1 is",
        ),
        (
            distribute.HierarchicalCopyAllReduce,
            "HierarchicalCopy requires num_packs >= 0",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            kind(num_packs=-1)


def test_sums_keep_the_order_of_replicas():
    strategy = distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)])
    values = [1e8, 1.0, -1e8, 1.0]
    code = lambda: tf.gather(values, tf.cast(number(), tf.int32))  # noqa: E731
    want = np.float32(0)
    for v in values:
        want = np.float32(want + np.float32(v))
    for _ in range(5):
        total = strategy.reduce("SUM", strategy.run(code), axis=None)
        assert total.numpy() == want


def test_options():
    options = distribute.experimental.CommunicationOptions(3, 2.0, "ring")
    assert vars(options) == {
        "bytes_per_pack": 3,
        "timeout_seconds": 2.0,
        "implementation": distribute.experimental.CommunicationImplementation.RING,
    }
    assert vars(distribute.experimental.CollectiveHints(3))["bytes_per_pack"] == 3
    with pytest.raises(ValueError, match="`bytes_per_pack` must be >=0, Received -1"):
        distribute.experimental.CommunicationOptions(bytes_per_pack=-1)
    with pytest.raises(ValueError, match="'X' is not a valid CommunicationImplementa"):
        distribute.experimental.CommunicationOptions(implementation="x")
    assert distribute.InputOptions().experimental_fetch_to_device is True
    context = distribute.InputContext(2, 1, 4)
    assert context.get_per_replica_batch_size(8) == 2
    assert str(context) == "tf.distribute.InputContext(input pipeline id 1, total: 2)"
    with pytest.raises(
        ValueError, match="8 is not divisible by `num_replicas_in_sync` 3"
    ):
        distribute.InputContext(1, 0, 3).get_per_replica_batch_size(8)
    made = distribute.experimental.ValueContext()
    assert str(made) == (
        "tf.distribute.ValueContext(replica id 0,  total replicas in sync: 1)"
    )


PARTS = distribute.experimental.partitioners


@pytest.mark.parametrize(
    "partitioner, found",
    [
        (PARTS.FixedShardsPartitioner(2), ([2, 1], [1, 1], [2], [2])),
        (PARTS.MinSizePartitioner(16, 4), ([4, 1], [1, 1], [4], [4])),
        (PARTS.MaxSizePartitioner(16), ([10, 1], [1, 1], [5], [10])),
        (PARTS.MaxSizePartitioner(16, 2), ([2, 1], [1, 1], [2], [2])),
        (PARTS.MinSizePartitioner(), ([1, 1], [1, 1], [1], [1])),
    ],
)
def test_partitioners(partitioner, found):
    given = (
        ([10, 3], tf.float32),
        ([1, 3], tf.float32),
        ([10], tf.int64),
        ([10], tf.string),
    )
    assert tuple(partitioner(tf.TensorShape(s), d) for s, d in given) == found
    with pytest.raises(ValueError, match="shape is not fully defined"):
        partitioner(tf.TensorShape([None]), tf.float32)


def test_partitioners_refuse():
    with pytest.raises(NotImplementedError):
        PARTS.Partitioner()(tf.TensorShape([1]), tf.float32)
    with pytest.raises(
        ValueError, match="`max_shard_bytes` must be positive. Received 0"
    ):
        PARTS.MaxSizePartitioner(0)
    with pytest.raises(
        ValueError, match="`min_shard_bytes` must be positive. Received: 0"
    ):
        PARTS.MinSizePartitioner(0)
    with pytest.raises(ValueError, match="Cannot partition variable along axis 0 when"):
        PARTS.MinSizePartitioner(1)(tf.TensorShape([]), tf.float32)


def test_saved_models(strategy, tmp_path):
    module = tf.Module()
    with strategy.scope():
        module.v = tf.Variable(2.0)
        module.total = tf.Variable(
            1.0, synchronization=ON_READ, aggregation=Aggregation.SUM
        )
        module.mean = tf.Variable(
            1.0, synchronization=ON_READ, aggregation=Aggregation.MEAN
        )
    strategy.run(lambda: module.mean.assign(number() * 4.0))
    module.f = tf.function(lambda x: x * module.v, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert float(loaded.f(tf.constant(3.0))) == 6.0
    found = [float(v) for v in (loaded.v, loaded.total, loaded.mean)]
    assert found == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("what", ["synchronization", "aggregation"])
def test_modes_that_are_none(strategy, what):
    with strategy.scope():
        with pytest.raises(
            ValueError, match=f"Invalid variable {what} mode: x for vari"
        ):
            tf.Variable(1.0, name="v", **{what: "x"})


def test_in_sessions(strategy):
    with tf.Graph().as_default():
        with strategy.scope():
            v = tf.compat.v1.get_variable(
                "v", initializer=1.0, aggregation=Aggregation.SUM, use_resource=True
            )
        assert [c.name for c in tf.compat.v1.global_variables()] == ["v:0"]
        result = strategy.run(lambda: v.assign_add(number() + 1.0))
        two = tf.compat.v1.ConfigProto(
            device_count={"CPU": 2}, allow_soft_placement=True
        )
        with tf.compat.v1.Session(config=two) as session:
            session.run(tf.compat.v1.global_variables_initializer())
            assert session.run(list(result.values)) == [4.0, 4.0]
            assert session.run([c.read_value() for c in v.values]) == [4.0, 4.0]


def test_kinds_of_values(strategy):
    kinds = tf.types.experimental.distributed
    with strategy.scope():
        kept = tf.Variable(1.0)
        own = tf.Variable(1.0, synchronization=ON_READ, aggregation=Aggregation.SUM)
    ran = strategy.run(number)
    reduced = strategy.extended.reduce_to("SUM", ran, kept)
    dataset = tf.data.Dataset.range(4).batch(2)
    element = next(iter(strategy.experimental_distribute_dataset(dataset)))
    for value, per_replica, mirrored in (
        (kept, False, True),
        (own, False, False),
        (ran, True, False),
        (reduced, False, True),
        (element, True, False),
    ):
        assert isinstance(value, distribute.DistributedValues)
        assert isinstance(value, kinds.PerReplica) == per_replica
        assert isinstance(value, kinds.Mirrored) == mirrored
    assert not isinstance(tf.Variable(1.0), distribute.DistributedValues)


def test_losses_are_averaged_over_replicas(strategy):
    def losses():
        average = tf.nn.compute_average_loss(tf.constant([1.0, 2.0]))
        return average, tf.nn.scale_regularization_loss(3.0)

    average, regularization = strategy.run(losses)
    assert float(strategy.reduce("SUM", average, axis=None)) == 1.5  # of all 4
    assert float(strategy.reduce("SUM", regularization, axis=None)) == 3.0
    with strategy.scope():
        assert float(tf.nn.compute_average_loss([1.0], global_batch_size=2)) == 0.5
        for call in (tf.nn.compute_average_loss, tf.nn.scale_regularization_loss):
            with pytest.raises(RuntimeError, match="in cross replica context"):
                call(tf.constant([1.0]))


def test_late_values_of_an_optimizer_in_a_trace(tmp_path):
    # Slots that a traced step makes get what a checkpoint has for them, once.
    def made():
        strategy = tf.distribute.MirroredStrategy()
        with strategy.scope():
            v = tf.Variable([1.0, 2.0])
            optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)

        @tf.function
        def step():
            strategy.run(lambda: optimizer.apply_gradients([(tf.ones([2]), v)]))

        return v, step, tf.train.Checkpoint(v=v, optimizer=optimizer)

    v, step, checkpoint = made()
    step()
    path = checkpoint.write(str(tmp_path / "c"))
    step()
    step()
    wanted = v.numpy()
    v, step, checkpoint = made()
    checkpoint.read(path)
    step()
    step()
    np.testing.assert_array_equal(v.numpy(), wanted)


class _Saved(tf.Module):
    def __init__(self):
        self.changed = tf.Variable(1.0)
        self.kept = [
            tf.Variable(
                0.0,
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=kind,
            )
            for kind in (Aggregation.SUM, Aggregation.MEAN)
        ]

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def call(self, x):
        self.changed.assign_add(1.0)
        return self.changed * x, [v.read_value() for v in self.kept]


def test_saved_functions_take_one_copy(strategy, tmp_path):
    def saved_and_called():
        tf.saved_model.save(made, str(tmp_path))
        changed, kept = tf.saved_model.load(str(tmp_path)).call(tf.constant(3.0))
        return changed.numpy(), [k.numpy() for k in kept]

    with strategy.scope():
        made = _Saved()
    for v in made.kept:
        strategy.run(lambda v=v: v.assign_add(number() + 2.0))
    assert saved_and_called() == (6.0, [5.0, 2.5])
    # The program goes on with its own.
    assert numbers(made.kept[0]) == [2.0, 3.0]
    assert made.call(tf.constant(3.0))[0].numpy() == 6.0
    for v in made.kept:
        v.assign(8.0)
    assert saved_and_called() == (9.0, [8.0, 8.0])
