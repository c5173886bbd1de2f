"""Datasets divided among replicas. The expected elements are TensorFlow's."""

import headrace as tf
import pytest
from headrace.distribute.datasets import _part

Dataset = tf.data.Dataset
Policy = tf.data.experimental.AutoShardPolicy


def strategy_of(count):
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


@pytest.fixture
def strategy():
    return strategy_of(2)


def elements(distributed):
    return [tuple(v.numpy().tolist() for v in e.values) for e in distributed]


@pytest.mark.parametrize(
    "count, rows, batch, found",
    [
        (2, 10, 4, [([0, 1], [2, 3]), ([4, 5], [6, 7]), ([8], [9])]),
        (2, 9, 4, [([0, 1], [2, 3]), ([4, 5], [6, 7]), ([8], [])]),
        (2, 7, 4, [([0, 1], [2, 3]), ([4, 5], [6])]),
        (2, 10, 5, [([0, 1, 2], [3, 4]), ([5, 6, 7], [8, 9])]),
        (2, 2, 1, [([0], []), ([1], [])]),
        (2, 3, 4, [([0, 1], [2])]),
        (3, 10, 4, [([0, 1], [2, 3], []), ([4, 5], [6, 7], []), ([8], [9], [])]),
        (3, 9, 7, [([0, 1, 2], [3, 4, 5], [6]), ([7], [8], [])]),
    ],
)
def test_global_batches_are_divided(count, rows, batch, found):
    dataset = Dataset.range(rows).batch(batch)
    assert (
        elements(strategy_of(count).experimental_distribute_dataset(dataset)) == found
    )


def test_specs(strategy):
    dataset = Dataset.range(10).batch(4)
    spec = strategy.experimental_distribute_dataset(dataset).element_spec
    part = "TensorSpec(shape=(None,), dtype=tf.int64, name=None)"
    assert repr(spec) == f"PerReplicaSpec({part}, {part})"
    whole = Dataset.range(10).batch(4, drop_remainder=True)
    distributed = strategy.experimental_distribute_dataset(whole)
    part = "TensorSpec(shape=(2,), dtype=tf.int64, name=None)"
    assert repr(distributed.element_spec) == f"PerReplicaSpec({part}, {part})"
    assert elements(distributed) == [([0, 1], [2, 3]), ([4, 5], [6, 7])]
    assert distributed.cardinality == 2


def test_structures_and_composites(strategy):
    rows = tf.ragged.constant([[1], [2, 3], []])
    sparse = tf.sparse.from_dense([[0, 1], [2, 0], [0, 3]])
    dataset = Dataset.from_tensors({"r": rows, "s": (sparse, tf.range(3))})
    (element,) = strategy.experimental_distribute_dataset(dataset)
    assert [v.to_list() for v in element["r"].values] == [[[1], [2, 3]], [[]]]
    parts = [tf.sparse.to_dense(v).numpy().tolist() for v in element["s"][0].values]
    assert parts == [[[0, 1], [2, 0]], [[0, 3]]]
    assert [v.numpy().tolist() for v in element["s"][1].values] == [[0, 1], [2]]


@pytest.mark.parametrize(
    "policy, last",
    [
        (Policy.AUTO, ([4], [5])),
        (Policy.DATA, ([4], [5])),
        (Policy.OFF, ([4, 5], [])),
        (Policy.FILE, ([4, 5], [])),
        (Policy.HINT, ([4, 5], [])),
    ],
)
def test_policies(strategy, policy, last):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    dataset = Dataset.range(6).batch(4).with_options(options)
    found = elements(strategy.experimental_distribute_dataset(dataset))
    assert found == [([0, 1], [2, 3]), last]


def test_what_is_no_batch(strategy):
    with pytest.raises(IndexError, match="are batches, but some are scalars"):
        strategy.experimental_distribute_dataset(Dataset.range(5))
    with pytest.raises(AttributeError, match="'int' object has no attribute"):
        strategy.experimental_distribute_dataset(3)
    with pytest.raises(AttributeError, match="'int' object has no attribute"):
        strategy.distribute_datasets_from_function(lambda context: 3)
    options = tf.distribute.InputOptions(
        experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA
    )
    with pytest.raises(NotImplementedError, match="PER_REPLICA is only supported in"):
        strategy.experimental_distribute_dataset(Dataset.range(4).batch(2), options)
    place = tf.distribute.InputOptions(experimental_place_dataset_on_device=True)
    with pytest.raises(ValueError, match="must also specify `PER_REPLICA`"):
        strategy.distribute_datasets_from_function(lambda c: Dataset.range(4), place)


def test_datasets_of_functions(strategy):
    seen = []

    def make(context):
        seen.append((context.num_input_pipelines, context.input_pipeline_id))
        return Dataset.range(6).batch(context.get_per_replica_batch_size(4))

    distributed = strategy.distribute_datasets_from_function(make)
    assert elements(distributed) == [([0, 1], [2, 3]), ([4, 5], [])]
    each = tf.distribute.InputOptions(
        experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA
    )
    distributed = strategy.distribute_datasets_from_function(make, each)
    assert elements(distributed) == [([0, 1],) * 2, ([2, 3],) * 2, ([4, 5],) * 2]
    assert seen == [(1, 0), (2, 0), (2, 1)]
    scalars = strategy.distribute_datasets_from_function(lambda c: Dataset.range(3))
    assert elements(scalars) == [(0, 1)]


def test_iterators(strategy):
    distributed = strategy.experimental_distribute_dataset(Dataset.range(10).batch(4))
    iterator = iter(distributed)
    assert repr(iterator.element_spec) == repr(distributed.element_spec)
    assert [v.numpy().tolist() for v in next(iterator).values] == [[0, 1], [2, 3]]
    assert [v.numpy().tolist() for v in iterator.get_next().values] == [[4, 5], [6, 7]]
    optional = iterator.get_next_as_optional()
    assert bool(optional.has_value())
    assert [v.numpy().tolist() for v in optional.get_value().values] == [[8], [9]]
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        iterator.get_next()
    with pytest.raises(StopIteration):
        next(iterator)
    assert not bool(iterator.get_next_as_optional().has_value())


def test_in_functions(strategy):
    distributed = strategy.experimental_distribute_dataset(Dataset.range(9).batch(4))
    traces = []

    @tf.function
    def total(dataset):
        found = tf.constant(0, tf.int64)
        for x in dataset:
            own = strategy.run(tf.reduce_sum, args=(x,))
            found += strategy.reduce("SUM", own, axis=None)
        return found

    @tf.function
    def step(iterator):
        traces.append(1)
        return strategy.run(lambda x: tf.reduce_sum(x), args=(next(iterator),))

    assert int(total(distributed)) == 36
    for _ in range(2):
        iterator = iter(distributed)
        found = [[int(v) for v in step(iterator).values] for _ in range(3)]
        assert found == [[1, 5], [9, 13], [8, 0]]
        with pytest.raises(tf.errors.OutOfRangeError):
            step(iterator)
    assert len(traces) == 1
    assert int(total(iter(distributed))) == 36


@pytest.mark.parametrize("which", [lambda ds: ds, iter])
def test_enumerate_is_refused_in_functions(which):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    batches = tf.data.Dataset.range(4).batch(2)
    given = which(strategy.experimental_distribute_dataset(batches))

    @tf.function
    def count(elements):
        for i, _ in enumerate(elements):
            tf.print(i)

    with pytest.raises(NotImplementedError, match="enumerate not supported with Distr"):
        count(given)
    assert [i for i, _ in enumerate(given)] == [0, 1]  # eagerly it is Python's


@pytest.mark.parametrize(
    ("strategy", "options", "error", "text"),
    [
        (
            tf.distribute.MirroredStrategy(["CPU:0"]),
            {"experimental_place_dataset_on_device": True},
            ValueError,
            "can not be set to True when experimental_fetch_to_device is True",
        ),
        (
            tf.distribute.OneDeviceStrategy("/cpu:0"),
            {},
            NotImplementedError,
            "only supported in `experimental_distribute_datasets_from_function` of",
        ),
    ],
)
def test_inputs_of_each_replica_that_cannot_be(strategy, options, error, text):
    mode = tf.distribute.InputReplicationMode.PER_REPLICA
    options = tf.distribute.InputOptions(experimental_replication_mode=mode, **options)
    with pytest.raises(error, match=text):
        strategy.distribute_datasets_from_function(
            lambda context: tf.data.Dataset.range(8).batch(2), options
        )


def test_shards_that_are_left_open_are_filled_by_the_policy(strategy):
    hint = tf.data.experimental.SHARD_HINT
    options = tf.data.Options()
    dataset = Dataset.range(8).shard(hint, hint).batch(4)
    with pytest.raises(tf.errors.FailedPreconditionError, match="SHARD_HINT"):
        elements(strategy.experimental_distribute_dataset(dataset))
    options.experimental_distribute.auto_shard_policy = Policy.HINT
    distributed = strategy.experimental_distribute_dataset(
        dataset.with_options(options)
    )
    assert elements(distributed) == [([0, 1], [2, 3]), ([4, 5], [6, 7])]
    # The second of two workers, as strategies of several ask for it.
    for tail, found in (
        (lambda d: d, [1, 3, 5, 7]),
        (lambda d: d.map(lambda x: x * 2).skip(1), [6, 10, 14]),
        (lambda d: Dataset.range(1).flat_map(lambda _: d), [1, 3, 5, 7]),
    ):
        part = _part(tail(Dataset.range(8).shard(hint, hint)), Policy.HINT, 2, 1)
        assert list(part.as_numpy_iterator()) == found


def test_optionals_go_through_loops(strategy):
    distributed = strategy.experimental_distribute_dataset(Dataset.range(13).batch(5))

    @tf.function
    def total(iterator):
        found = tf.constant(0, tf.int64)
        optional = iterator.get_next_as_optional()
        while optional.has_value():
            sums = strategy.run(tf.reduce_sum, args=(optional.get_value(),))
            found += strategy.reduce("SUM", sums, axis=None)
            optional = iterator.get_next_as_optional()
        return found

    assert total(iter(distributed)) == 78


def test_shares_of_sparse_batches_keep_their_width(strategy):
    rows = tf.sparse.from_dense([[1, 0], [0, 2], [3, 0]])
    dataset = Dataset.from_tensor_slices(rows).batch(2)
    spec = strategy.experimental_distribute_dataset(dataset).element_spec
    assert [s.shape.as_list() for s in spec._value_specs] == [[None, 2]] * 2
