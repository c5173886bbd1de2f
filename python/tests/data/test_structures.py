"""Specs, lengths and composites; values are those of TensorFlow 2.21."""

import headrace as tf
import pytest

D = tf.data.Dataset
I64, I32 = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int32)


@pytest.mark.parametrize(
    "result, spec",
    [
        (lambda x: [x, 2], (I64, I32)),
        (lambda x: [x], (I64,)),
        (lambda x: [[x, x], x], (tf.TensorSpec([2], tf.int64), I64)),
        (lambda x: {"a": [x, 1]}, {"a": tf.TensorSpec([2], tf.int64)}),
    ],
)
def test_lists_that_functions_return(result, spec):
    assert D.range(2).map(result).element_spec == spec


def test_lengths_of_datasets_that_alternate():
    finite, forever = [D.range(5), D.range(9)], [D.range(5).repeat(), D.range(9)]
    numbers = D.range(4).map(lambda x: x % 2)
    assert int(D.choose_from_datasets(finite, numbers).cardinality()) == -2
    assert int(D.choose_from_datasets(forever, numbers).cardinality()) == -1
    assert int(D.sample_from_datasets(finite).cardinality()) == -2
    assert int(D.sample_from_datasets(finite, [1.0, 0.0]).cardinality()) == 5


def test_counter():
    d = D.counter(3, 2)
    assert int(d.cardinality()) == -1 and d.element_spec == I64
    assert [int(x) for x in D.counter(250, 3, tf.uint8).take(4)] == [250, 253, 0, 3]
    assert [float(x) for x in D.counter(0.5, 0.25, tf.float32).take(2)] == [0.5, 0.75]
    windows = d.group_by_window(lambda x: x % 3, lambda k, w: w, window_size=2)
    assert int(windows.cardinality()) == -1


def test_sparse_batch():
    d = D.range(1, 5).map(tf.range)
    fixed = d.sparse_batch(3, [4])
    assert fixed.element_spec == tf.SparseTensorSpec([None, 4], tf.int64)
    assert int(fixed.cardinality()) == 2
    assert [tf.sparse.to_dense(x).numpy().tolist() for x in fixed] == [
        [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 2, 0]],
        [[0, 1, 2, 3]],
    ]
    first = next(iter(d.sparse_batch(3, [None])))
    assert first.dense_shape.numpy().tolist() == [3, 3]
    assert first.indices.numpy().tolist()[-1] == [2, 2]
    empty = next(iter(D.from_tensors(tf.zeros([0, 3])).sparse_batch(2, [2, 3])))
    assert empty.values.shape == [0]
    assert empty.dense_shape.numpy().tolist() == [1, 2, 3]


def test_rows_of_sparse_and_ragged_elements():
    sparse = D.from_tensors(tf.sparse.from_dense([[1, 0, 2], [0, 0, 0], [0, 3, 0]]))
    rows = sparse.unbatch()
    assert rows.element_spec == tf.SparseTensorSpec([3], tf.int32)
    dense = [tf.sparse.to_dense(x).numpy().tolist() for x in rows]
    assert dense == [[1, 0, 2], [0, 0, 0], [0, 3, 0]]
    again = next(iter(sparse.rebatch(2)))
    assert tf.sparse.to_dense(again).numpy().tolist() == dense[:2]
    ragged = D.from_tensors(tf.ragged.constant([[1, 2], [], [3]])).unbatch()
    assert [x.numpy().tolist() for x in ragged] == [[1, 2], [], [3]]


def test_specs_of_composites_keep_what_is_known():
    rows = D.from_tensor_slices(tf.ragged.constant([[1, 2], [], [3]]))
    assert rows.map(lambda x: x).element_spec == tf.TensorSpec([None], tf.int32)
    ragged = rows.map(lambda x: tf.RaggedTensor.from_row_lengths([4, 5, 6], [1, 2]))
    spec = ragged.map(lambda x: x).element_spec
    assert spec.shape.as_list() == [2, None] and spec.ragged_rank == 1


@pytest.mark.parametrize(
    "initial, target, first",
    [
        (None, [0.5, 0.5], [0, 1, 2, 3, 4, 5, 6, 7]),
        (None, [0.9, 0.1], [0, 2, 4, 6, 8, 10, 12, 14]),
        ([0.5, 0.5], [0.9, 0.1], [0, 2, 4, 6, 8, 10, 12, 14]),
        ([0.9, 0.1], [0.5, 0.5], [0, 1, 1, 3, 2, 5, 7, 9]),
    ],
)
def test_rejection_resample_draws_as_upstream(initial, target, first):
    tf.random.set_seed(7)
    d = D.range(100).rejection_resample(
        lambda x: tf.cast(x % 2, tf.int32), target, initial, seed=1
    )
    assert d.element_spec == (I32, I64) and int(d.cardinality()) == -2
    assert [int(x) for _, x in d.take(8)] == first


def test_elements_may_be_tensor_arrays():
    def array(x):
        return tf.TensorArray(tf.int64, 2, element_shape=[]).unstack([x, x * 3])

    d = D.range(3).map(array)
    spec = d.element_spec
    assert isinstance(spec, tf.TensorArraySpec) and spec._serialize()[:2] == (
        (),
        I64.dtype,
    )
    assert [x.stack().numpy().tolist() for x in d] == [[0, 0], [1, 3], [2, 6]]
    assert [int(x) for x in d.map(lambda t: t.read(1)).prefetch(1)] == [0, 3, 6]
    with pytest.raises(
        TypeError, match="Cannot batch elements of type TensorArraySpec"
    ):
        d.batch(2)


def test_datasets_are_known_by_the_name_of_their_base():
    for d in (D.range(1), D.range(1).map(lambda x: x), D.from_tensors(1).batch(1)):
        assert "DatasetV2" in [c.__name__ for c in type(d).__mro__]
    checkpoint = tf.train.Checkpoint(d=D.range(1))  # they are trackable, without values
    assert list(checkpoint._trackable_children()) == ["d"]
