"""Resources of several kinds that have one name: each kind has names of its own, as in
TensorFlow."""

import headrace as tf
import pytest

v1 = tf.compat.v1
raw = tf.raw_ops


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as found:
        yield found


def test_each_kind_has_its_own(session):
    queue = v1.FIFOQueue(3, [tf.int32], shapes=[[]], shared_name="x")
    session.run(queue.enqueue(5))
    handle = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name="x")
    value = raw.ReadVariableOp(resource=handle, dtype=tf.float32)
    with pytest.raises(tf.errors.FailedPreconditionError, match="variable x"):
        session.run(value)
    assert not session.run(raw.VarIsInitializedOp(resource=handle))
    session.run(raw.AssignVariableOp(resource=handle, value=2.0))
    reference = raw.VariableV2(shape=[], dtype=tf.float32, shared_name="x")
    assert session.run(raw.Assign(ref=reference, value=9.0)) == 9.0
    dense = v1.ConditionalAccumulator(tf.float32, [], shared_name="x")
    session.run(dense.apply_grad(3.0))
    table = raw.MutableHashTableV2(
        key_dtype=tf.int64, value_dtype=tf.int64, shared_name="x"
    )
    barrier = raw.Barrier(component_types=[tf.float32], shapes=[[]], shared_name="x")
    session.run(raw.Stage(values=[tf.constant(7)], shared_name="x"))
    reader = v1.TextLineReader(name="x")
    found = session.run(
        [
            value,
            reference,
            raw.LookupTableSizeV2(table_handle=table),
            raw.BarrierReadySize(handle=barrier),
            raw.Unstage(dtypes=[tf.int32], shared_name="x"),
            dense.take_grad(1),
            queue.dequeue(),
            reader.num_records_produced(),
        ]
    )
    assert found == [2.0, 9.0, 0, 0, [7], 3.0, 5, 0]


def test_one_kind_has_each_name_once(session):
    v1.FIFOQueue(3, [tf.int32], shapes=[[]], shared_name="x")
    queue = v1.FIFOQueue(3, [tf.int32], shapes=[[]], shared_name="x")
    session.run(queue.enqueue(5))
    other = v1.PaddingFIFOQueue(3, [tf.int32], shapes=[[]], shared_name="x")
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="Expected FIFOQueue, found PaddingFIFOQueueV2",
    ):
        session.run(other.size())


def test_accumulators_are_one_kind(session):
    v1.ConditionalAccumulator(tf.float32, [], shared_name="x")
    dense = v1.ConditionalAccumulator(tf.float32, [], shared_name="x")
    session.run(dense.apply_grad(3.0))
    sparse = v1.SparseConditionalAccumulator(tf.float32, [None], shared_name="x")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Shared accumulator 'x' is another one"
    ):
        session.run(sparse.num_accumulated())
    assert session.run(dense.num_accumulated()) == 1


def test_staging_areas_are_of_three_kinds(session):
    one = tf.constant(1, tf.int64)
    value = {"values": [tf.constant(7)], "shared_name": "x"}
    session.run(raw.Stage(**value))
    session.run(raw.MapStage(key=one, indices=[0], dtypes=[tf.int32], **value))
    sizes = [raw.StageSize, raw.MapSize]
    assert session.run([f(dtypes=[tf.int32], shared_name="x") for f in sizes]) == [1, 1]


def test_destroyed_tables_are_empty_when_they_are_made_again(session):
    table = raw.MutableHashTableV2(
        key_dtype=tf.int64, value_dtype=tf.int64, shared_name="x"
    )
    handle = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name="x")
    session.run(raw.AssignVariableOp(resource=handle, value=2.0))
    key = tf.constant([1], tf.int64)
    session.run(raw.LookupTableInsertV2(table_handle=table, keys=key, values=key))
    size = raw.LookupTableSizeV2(table_handle=table)
    assert session.run(size) == 1
    session.run(raw.DestroyResourceOp(resource=table, ignore_lookup_error=False))
    value = raw.ReadVariableOp(resource=handle, dtype=tf.float32)
    assert session.run([size, value]) == [0, 2.0]


def test_handles_know_their_kind(session):
    queue = v1.FIFOQueue(3, [tf.float32], shapes=[[]], shared_name="x")
    session.run(queue.enqueue(5.0))
    handle = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name="x")
    session.run(raw.AssignVariableOp(resource=handle, value=2.0))
    invalid = tf.errors.InvalidArgumentError
    for wrong, error in (
        (
            raw.ReadVariableOp(resource=queue.queue_ref, dtype=tf.float32),
            tf.errors.FailedPreconditionError,
        ),
        (raw.AssignVariableOp(resource=queue.queue_ref, value=2.0), invalid),
        (raw.QueueSizeV2(handle=handle), invalid),
    ):
        with pytest.raises(error, match="wrong type"):
            session.run(wrong)

    def destroy(resource):
        gone = raw.DestroyResourceOp(resource=resource, ignore_lookup_error=False)
        session.run(gone)

    destroy(handle)
    with pytest.raises(tf.errors.NotFoundError):
        destroy(handle)
    assert session.run(queue.size()) == 1
    session.run(raw.AssignVariableOp(resource=handle, value=4.0))
    destroy(queue.queue_ref)
    value = raw.ReadVariableOp(resource=handle, dtype=tf.float32)
    assert session.run([value, queue.size()]) == [4.0, 0]
