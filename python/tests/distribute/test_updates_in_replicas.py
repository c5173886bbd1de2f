"""What optimizers of programs do in the code of replicas: variables beside others, updates
of all copies, sums of tensors that all replicas share. Expected: TensorFlow 2.21."""

import headrace as tf
import numpy as np
import pytest

Synchronization = tf.VariableSynchronization


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture
def variable(strategy):
    with strategy.scope():
        return tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)


def _numbers(strategy, value):
    return [float(v) for v in strategy.experimental_local_results(value)]


def test_variables_are_made_beside_others(strategy, variable):
    made = []

    def replica():
        with strategy.extended.colocate_vars_with(variable):
            made.append(tf.Variable(0.0))

    strategy.run(replica)
    assert [strategy.extended.variable_created_in_scope(v) for v in made] == [True] * 2
    assert len(made[0].values) == 2
    other = tf.Variable(5.0)

    def beside_another():
        with strategy.extended.colocate_vars_with(other):
            pass

    with pytest.raises(ValueError, match="must only be passed a variable created in"):
        strategy.run(beside_another)
    with pytest.raises(RuntimeError, match="Need to be inside"):
        with strategy.extended.colocate_vars_with(variable):
            pass


def test_an_update_in_replicas_is_one_of_each_copy(strategy, variable):
    def add(copy, amount=1.0):
        return copy.assign_add(amount)

    update = strategy.extended.update
    found = strategy.run(lambda: update(variable, add))
    assert _numbers(strategy, found) == [2.0, 2.0]
    assert [float(v) for v in variable.values] == [2.0, 2.0]
    found = strategy.run(lambda: update(variable, add, args=(2.0,), group=False))
    assert [float(v) for v in found] == [4.0, 4.0]
    strategy.run(lambda: update(variable, add, kwargs={"amount": 3.0}))
    assert [float(v) for v in variable.values] == [7.0, 7.0]
    strategy.run(tf.function(lambda: update(variable, add)))
    assert [float(v) for v in variable.values] == [8.0, 8.0]


def test_what_replicas_bring_differs_by_replica(strategy, variable):
    def replica():
        context = tf.distribute.get_replica_context()
        number = tf.cast(context.replica_id_in_sync_group, tf.float32)
        return strategy.extended.update(variable, lambda c, x: c.assign(x), (number,))

    strategy.run(replica)
    assert [float(v) for v in variable.values] == [0.0, 1.0]


def test_one_tensor_of_all_replicas_is_summed_as_it_is(strategy):
    shared = tf.constant(4.0)
    rows = tf.IndexedSlices(tf.ones([1]), tf.constant([0]), tf.constant([2]))

    def total(x):
        return tf.distribute.get_replica_context().all_reduce("SUM", x)

    assert _numbers(strategy, strategy.run(lambda: total(shared))) == [4.0, 4.0]
    own = strategy.run(lambda: total([shared, tf.constant(1.0)]))
    assert _numbers(strategy, own[0]) == [4.0, 4.0]
    assert _numbers(strategy, own[1]) == [2.0, 2.0]
    dense = strategy.run(lambda: tf.convert_to_tensor(total(rows)))
    found = strategy.experimental_local_results(dense)
    assert [x.numpy().tolist() for x in found] == [[1.0, 0.0], [1.0, 0.0]]


def test_when_copies_are_made_equal(strategy, variable):
    assert variable.synchronization == Synchronization.ON_WRITE
    assert tf.Variable(1.0).synchronization == Synchronization.AUTO
    central = tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
    with central.scope():
        assert tf.Variable(1.0).synchronization == Synchronization.AUTO


def test_modes_of_plain_variables_are_checked():
    with pytest.raises(ValueError, match="Invalid variable synchronization mode: on_r"):
        tf.Variable(1.0, synchronization="on_read")
    with pytest.raises(
        ValueError, match="Invalid variable aggregation mode: sum for v"
    ):
        tf.Variable(1.0, aggregation="sum")
    assert tf.Variable(1.0, synchronization=2).synchronization.name == "ON_WRITE"
    assert tf.Variable(1.0, aggregation=1).aggregation.name == "SUM"


def test_an_update_runs_for_all_replicas_together():
    strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    with strategy.scope():
        v = tf.Variable(1.0)
        seen = []

        def update(copy, x):
            distribute = tf.distribute
            seen.append(
                (
                    distribute.in_cross_replica_context(),
                    tf.distribute.get_replica_context(),
                )
            )
            return copy.assign_add(x)

        strategy.extended.update(v, update, args=(1.0,))
    assert seen == [(True, None)] * 2


def test_a_central_variable_is_one_for_all_replicas():
    strategy = tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
    on_read = tf.VariableSynchronization.ON_READ
    with strategy.scope():
        plain = tf.Variable([1.0, 2.0])
        mean = tf.Variable(
            [1.0, 2.0],
            synchronization=on_read,
            aggregation=tf.VariableAggregation.MEAN,
        )

    def add(variable):
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        variable.assign_add([2.0, 2.0] * tf.cast(replica + 1, tf.float32))
        return variable + 0.0

    with pytest.raises(ValueError, match="You must specify an aggregation method"):
        strategy.run(add, args=(plain,))  # each replica would add again
    np.testing.assert_array_equal(plain.numpy(), [1.0, 2.0])
    for value in strategy.run(add, args=(mean,)).values:
        np.testing.assert_array_equal(value, [4.0, 5.0])
    assert len(strategy.experimental_local_results(mean)) == 1


@pytest.mark.parametrize("aggregation", ["NONE", "SUM"])
def test_slices_of_all_copies_are_assigned(strategy, aggregation):
    with strategy.scope():
        v = tf.Variable(
            [1.0, 2.0, 3.0], aggregation=tf.VariableAggregation[aggregation]
        )
    v[1:].assign([7.0, 8.0])
    v.scatter_nd_update([[0]], [5.0])
    for copy in v.values:
        np.testing.assert_array_equal(copy.numpy(), [5.0, 7.0, 8.0])
    if aggregation == "SUM":
        with pytest.raises(NotImplementedError, match="scatter_update is only"):
            v.scatter_update(tf.IndexedSlices([1.0], [0]))


def test_a_list_that_all_replicas_give_has_no_sum(strategy):
    with strategy.scope():
        v = tf.Variable([1.0, 2.0], aggregation=tf.VariableAggregation.SUM)
    text = "A non-DistributedValues value .* cannot be reduced"
    with pytest.raises(ValueError, match=text):
        strategy.run(lambda: v.assign([3.0, 4.0]))

    def of_each():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        v.assign([tf.cast(replica, tf.float32), 1.0])

    strategy.run(of_each)
    np.testing.assert_array_equal(v.numpy(), [1.0, 2.0])


def test_what_is_summed_along_the_last_dimension(strategy):
    given = strategy.run(lambda: tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(strategy.reduce("SUM", given, axis=-1), [6.0, 14.0])
    np.testing.assert_array_equal(strategy.reduce("MEAN", given, axis=-2), [2.0, 3.0])
    with pytest.raises(ValueError, match="Invalid reduction dimension 2 for input"):
        strategy.reduce("SUM", given, axis=2)


def test_options_of_sums_are_options(strategy):
    def total():
        return tf.distribute.get_replica_context().all_reduce("SUM", tf.ones([]), 3)

    with pytest.raises(AttributeError, match="bytes_per_pack"):
        strategy.run(total)
