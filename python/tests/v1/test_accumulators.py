"""tf.compat.v1.ConditionalAccumulator and its sparse form; errors of what steps
share."""

import threading

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1
raw = tf.raw_ops


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as session:
        yield session


def _long(value):
    return tf.constant(value, tf.int64)


def test_means_of_fresh_gradients(session):
    sums = v1.ConditionalAccumulator(tf.float32, shape=[2], name="a")
    assert sums.name == "a" and sums.dtype == tf.float32
    session.run(sums.apply_grad([1.0, 2.0]))
    session.run(sums.apply_grad([3.0, 5.0], local_step=0))
    assert session.run(sums.num_accumulated()) == 2
    np.testing.assert_allclose(session.run(sums.take_grad(2)), [2.0, 3.5])
    session.run(sums.apply_grad([9.0, 9.0], local_step=0))  # of a step that is over
    assert session.run(sums.num_accumulated()) == 0
    session.run(sums.set_global_step(5))
    session.run(sums.apply_grad([1.0, 1.0], local_step=4))
    session.run(sums.apply_grad([4.0, 6.0], local_step=5))
    np.testing.assert_allclose(session.run(sums.take_grad(1)), [4.0, 6.0])
    dropped = session.run(sums.num_dropped())
    assert dropped == 2 and dropped.dtype == np.int64


def test_sums_of_any_shape(session):
    sums = v1.ConditionalAccumulator(
        tf.float64, shape=tf.TensorShape(None), reduction_type="SUM"
    )
    session.run(sums.apply_grad([1.0, 2.0]))
    session.run(sums.apply_grad([1.0, 2.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch"):
        session.run(sums.apply_grad([1.0]))
    assert session.run(sums.take_grad(2)).tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="reduction_type"):
        v1.ConditionalAccumulator(tf.float32, reduction_type="MEDIAN")


def test_rows(session):
    sums = v1.SparseConditionalAccumulator(tf.float32, shape=[4, 2])
    session.run(sums.apply_grad([0, 2], [[1.0, 2.0], [3.0, 4.0]], [4, 2]))
    slices = tf.IndexedSlices(
        tf.constant([[10.0, 20.0], [30.0, 40.0]]), _long([2, 3]), _long([4, 2])
    )
    session.run(sums.apply_indexed_slices_grad(slices))
    session.run(sums.set_global_step(1))
    session.run(sums.apply_indexed_slices_grad(slices))  # of a step that is over
    assert session.run(sums.num_accumulated()) == 2
    assert session.run(sums.num_dropped()) == 1
    taken = session.run(sums.take_indexed_slices_grad(2))
    assert taken.indices.tolist() == [0, 2, 3]
    np.testing.assert_allclose(taken.values, [[1, 2], [6.5, 12], [30, 40]])
    assert taken.dense_shape.tolist() == [4, 2]


@pytest.mark.parametrize(
    "indices, values, shape, text",
    [
        ([0, 4], [[1.0, 2.0], [3.0, 4.0]], None, "index of slice 1 exceeded"),
        ([-1], [[1.0, 2.0]], None, "index of slice 0 exceeded"),
        ([0], [[1.0, 2.0], [3.0, 4.0]], None, "Expected 1 non-empty"),
        ([0], [[1.0]], None, "expected values dim 1 to be 2, got 1"),
        ([0], [[1.0, 2.0]], [4, 3], "expected shape dim 1 to be 2, got 3"),
        ([0], 1.0, None, "Values cannot be 0-dimensional"),
    ],
)
def test_rows_that_do_not_fit(session, indices, values, shape, text):
    sums = v1.SparseConditionalAccumulator(tf.float32, shape=[4, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        session.run(sums.apply_grad(indices, values, shape))
    assert session.run(sums.num_accumulated()) == 0


def test_other_kinds_are_refused(session):
    dense = raw.ConditionalAccumulator(dtype=tf.float32, shape=[2])
    sparse = raw.SparseConditionalAccumulator(dtype=tf.float32, shape=[2])
    take = {"num_required": 1, "dtype": tf.float32}
    with pytest.raises(tf.errors.InvalidArgumentError, match="wrong type"):
        session.run(raw.AccumulatorTakeGradient(handle=sparse, **take))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
        take["num_required"] = 0
        session.run(raw.AccumulatorTakeGradient(handle=dense, **take))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="is of float, not of double"
    ):
        session.run(
            raw.AccumulatorTakeGradient(handle=dense, num_required=1, dtype=tf.float64)
        )
    with pytest.raises(tf.errors.OpError, match="(?i)kernel"):
        session.run(
            raw.AccumulatorNumAccumulated(
                handle=raw.ConditionalAccumulator(dtype=tf.qint8, shape=[2])
            )
        )


def test_barriers_refuse(session):
    kinds = [tf.float32, tf.int32]
    barrier = raw.Barrier(component_types=kinds, shapes=[[2], []])

    def put(keys, values, i):
        session.run(
            raw.BarrierInsertMany(
                handle=barrier, keys=keys, values=values, component_index=i
            )
        )

    def take(n, **more):
        return session.run(
            raw.BarrierTakeMany(
                handle=barrier, num_elements=n, component_types=kinds, **more
            )
        )

    put(["a"], [[1.0, 2.0]], 0)
    for keys, values, i, text in (
        (["a"], [[1.0, 2.0]], 0, "already has a value for component 0"),
        (["b", "b"], [[1.0, 2.0]] * 2, 0, "already has a value for component 0"),
        (["b"], [1], 2, "component ID is out of range 2"),
        (["b"], [1], -1, "component ID is out of range -1"),
        (["b"], [[1, 2]], 1, "Shape mismatch in tuple component 1"),
        (["b"], [1.0], 1, "Expected int32, got float"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            put(keys, values, i)
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_elements"):
        take(-1)
    session.run(raw.BarrierClose(handle=barrier))
    with pytest.raises(tf.errors.CancelledError, match="brand new key: z"):
        put(["z"], [1], 1)
    with pytest.raises(tf.errors.OutOfRangeError, match="insufficient elements"):
        take(2)
    put(["a"], [7], 1)
    assert take(1).keys.tolist() == [b"a"]
    with pytest.raises(tf.errors.OutOfRangeError):
        take(1, allow_small_batch=True)


def test_staging_areas_refuse():
    with pytest.raises(tf.errors.ResourceExhaustedError, match="memory limit"):
        raw.Stage(values=[tf.zeros([100])], memory_limit=10, shared_name="small")
    kind = {"dtypes": [tf.float32, tf.int32], "shared_name": "refusals"}
    put = {"key": _long(1), **kind}
    for indices, values, text in (
        ([0, 0], [1.0, 2.0], "given twice"),
        ([5], [1.0], "out of bounds"),
        ([-1], [1.0], "out of bounds"),
        ([0], [1.0, 2], "number of indices"),
        ([], [1.0], "no indices"),
        ([1], [1.0], "component 1 is of int32"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            raw.MapStage(indices=indices, values=values, **put)
    raw.MapStage(indices=[0], values=[1.0], **put)
    with pytest.raises(tf.errors.InvalidArgumentError, match="already initialized"):
        raw.MapStage(indices=[0], values=[2.0], **put)
    raw.MapStage(indices=[1], values=[3], **put)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        raw.MapPeek(
            key=_long(1), indices=[9], dtypes=[tf.float32], shared_name="refusals"
        )
    with pytest.raises(tf.errors.InvalidArgumentError, match="Mismatch"):
        raw.MapPeek(
            key=_long(1), indices=[0], dtypes=[tf.int64], shared_name="refusals"
        )


def test_sparse_tensors_that_are_not_kept():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to find"):
        raw.TakeManySparseFromTensorsMap(
            sparse_handles=_long([99]), dtype=tf.float32, shared_name="nothing"
        )
    with pytest.raises(tf.errors.InvalidArgumentError):
        raw.AddSparseToTensorsMap(
            sparse_indices=_long([[7]]), sparse_values=[1.0], sparse_shape=_long([3])
        )


def test_who_waits_by_key_lets_others_put():
    kind = {"dtypes": [tf.int32], "shared_name": "waited_for"}
    put = threading.Timer(
        0.05, lambda: raw.MapStage(key=_long(4), indices=[0], values=[7], **kind)
    )
    put.start()
    (found,) = raw.MapUnstage(key=_long(4), indices=[0], **kind)
    put.join()
    assert found.numpy() == 7


def test_steps_of_any_integer(session):
    sums = v1.ConditionalAccumulator(tf.float32, shape=[1])
    session.run(sums.set_global_step(tf.constant(3, tf.int32)))
    for step in (tf.constant(2, tf.int32), tf.constant(3, tf.int16), 3):
        session.run(sums.apply_grad([2.0], local_step=step))
    assert session.run(sums.num_accumulated()) == 2
    assert session.run(sums.take_grad(2)) == [2.0]
