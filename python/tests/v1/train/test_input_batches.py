"""Batches of queues: sparse tensors, rows that are kept, names and errors of
TensorFlow 2.21."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1
train = v1.train


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as session:
        yield session


def runs(session, fetches, number=2):
    """What runs give, with queue runners."""
    session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
    coordinator = train.Coordinator()
    threads = train.start_queue_runners(session, coordinator)
    found = [session.run(fetches) for _ in range(number)]
    coordinator.request_stop()
    for runner in v1.get_collection(v1.GraphKeys.QUEUE_RUNNERS):
        session.run(runner._cancel_op)
    coordinator.join(threads)
    return found


def counting():
    """0, 1, 2, ..., one more a run."""
    return train.range_input_producer(8, shuffle=False).dequeue()


def sparse_row(number):
    """A SparseTensor of one value in a row of 3."""
    number = tf.cast(number, tf.int64)
    return tf.SparseTensor(
        tf.reshape(number % 3, [1, 1]),
        tf.reshape(number, [1]),
        tf.constant([3], tf.int64),
    )


def test_sparse_rows(session):
    number = counting()
    found = train.batch({"s": sparse_row(number), "n": number}, 4)
    assert found["s"].dense_shape.shape == [2] and found["s"].indices.shape == [None, 2]
    first, second = runs(session, found)
    np.testing.assert_array_equal(first["n"], [0, 1, 2, 3])
    np.testing.assert_array_equal(first["s"].indices, [[0, 0], [1, 1], [2, 2], [3, 0]])
    np.testing.assert_array_equal(second["s"].values, [4, 5, 6, 7])
    np.testing.assert_array_equal(second["s"].dense_shape, [4, 3])


def test_many_sparse_rows_and_which_are_kept(session):
    number = counting()
    numbers = tf.stack([number, number + 10])
    rows = tf.SparseTensor(
        [[0, 1], [1, 0]], tf.cast(numbers, tf.int64), tf.constant([2, 3], tf.int64)
    )
    found = train.maybe_batch(
        [rows, numbers], [False, True], batch_size=2, enqueue_many=True
    )
    first, second = runs(session, found)
    np.testing.assert_array_equal(first[1], [10, 11])
    np.testing.assert_array_equal(first[0].values, [10, 11])
    np.testing.assert_array_equal(second[0].indices, [[0, 0], [1, 0]])
    np.testing.assert_array_equal(second[1], [12, 13])


def test_rows_kept_by_a_scalar(session):
    number = counting()
    even = tf.equal(number % 2, 0)
    found = train.maybe_batch([sparse_row(number), number], even, 2)
    first, second = runs(session, found)
    np.testing.assert_array_equal(first[1], [0, 2])
    np.testing.assert_array_equal(second[0].values, [4, 6])


def test_joined_sparse_rows(session):
    rows = [[sparse_row(tf.constant(n)), tf.constant(n)] for n in (1, 5)]
    sparse, numbers = train.batch_join(rows, 6)
    for found in runs(session, [sparse, numbers]):
        np.testing.assert_array_equal(found[0].values, found[1])


def test_shuffled_rows_of_dicts(session):
    found = train.shuffle_batch({"n": counting()}, 4, 8, 2, seed=1)
    assert set(runs(session, found, 1)[0]["n"]) <= set(range(8))


C = tf.constant
# A call, the name of the batch, the queue's, and the summary's.
NAMES = [
    (lambda: train.batch([C(1)], 2), "batch", "fifo_queue", "fraction_of_32_full"),
    (lambda: train.batch([C(1)], 2, dynamic_pad=True, name="foo"), "foo", "padding_fifo_queue", "fraction_of_32_full"),
    (lambda: train.batch_join([[C(1)], [C(2)]], 2), "batch_join", "fifo_queue", "fraction_of_32_full"),
    (lambda: train.shuffle_batch([C(1)], 2, 32, 5), "shuffle_batch", "random_shuffle_queue", "fraction_over_5_of_27_full"),
    (lambda: train.maybe_shuffle_batch_join([[C(1)]], 2, 9, 5, True), "shuffle_batch_join", "random_shuffle_queue", "fraction_over_5_of_4_full"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "name", "queue", "summary"), NAMES)
def test_names(session, call, name, queue, summary):
    assert call().op.name == name
    (runner,) = v1.get_collection(v1.GraphKeys.QUEUE_RUNNERS)
    assert runner.name == runner.queue.name == f"{name}/{queue}"
    assert runner.enqueue_ops[0].name == f"{name}/{queue}_enqueue"
    names = [s.op.name for s in v1.get_collection(v1.GraphKeys.SUMMARIES)]
    assert names == [f"{name}/{summary}"]


P = v1.placeholder
ERRORS = [
    (lambda: train.batch([], 2), ValueError, "Expected at least one tensor in batch()."),
    (lambda: train.batch_join([], 2), ValueError, "Expected at least one set of tensors"),
    (lambda: train.batch([P(tf.int32)], 2), ValueError, "Cannot infer Tensor's rank: Tensor("),
    (lambda: train.batch([P(tf.int32, [None])], 2), ValueError, "All shapes must be fully defined: [TensorShape([None])]"),
    (lambda: train.batch([C(1), C(2)], 2, shapes=[[3]]), ValueError, "Queue shapes must have the same length as dtypes, received len(shapes)=1, len(dtypes)=2"),
    (lambda: train.batch([C(1)], 2, num_threads=0), ValueError, "Must provide queue and enqueue_ops."),
    (lambda: train.batch_join([[C(1)], [C(2.0)]], 2), TypeError, "Expected types to be consistent: int32 vs. float32."),
    (lambda: train.batch_join([{"a": C(1)}, {"b": C(2)}], 2), ValueError, "All dictionaries in tensors_list must have the same keys"),
    (lambda: train.batch_join([[sparse_row(C(1))], [C(1)]], 2), ValueError, "Inconsistent SparseTensors list: "),
    (lambda: train.maybe_batch([C([1, 2])], [True, False], 2), ValueError, "`keep_input` cannot be a vector when `enqueue_many=False`."),
    (lambda: train.maybe_batch([C(1)], P(tf.bool), 2), ValueError, "`keep_input` dimensions must be known at graph construction."),
    (lambda: train.maybe_batch([C([1])], [[True]], 2, enqueue_many=True), ValueError, "`keep_input` must be 0 or 1 dimensions."),
    (lambda: train.maybe_batch([C([1, 2])], P(tf.bool, [3]), 2, enqueue_many=True), ValueError, "Dimensions must be equal, but are 2 and 3"),
    (lambda: train.input_producer(P(tf.int32)), ValueError, "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"),
    (lambda: train.string_input_producer([]), ValueError, "string_input_producer requires a non-null input tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_wrong_arguments(session, call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value).startswith(text)


def test_not_eager():
    with pytest.raises(RuntimeError, match="Input pipelines based on Queues are not"):
        train.batch([1], 2)
