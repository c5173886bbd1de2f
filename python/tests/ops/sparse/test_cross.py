"""Crosses of sparse, ragged and dense columns."""

import cross_cases
import headrace as tf
import pytest
import recorded


@pytest.mark.parametrize("name", recorded.names(cross_cases))
def test_as_recorded(name):
    recorded.check(cross_cases, name, tf)


@pytest.mark.parametrize(
    "indices", [[[1, 0], [0, 0]], [[2, 0]], [[-1, 0]], [[0, 0], [2**62, 0]]]
)
def test_rows_out_of_order_or_bounds(indices):
    values = tf.constant(["a"] * len(indices))
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of"):
        tf.sparse.cross([tf.SparseTensor(indices, values, [2, 2])])


def test_too_many_crosses():
    wide = tf.zeros([1, 1000], tf.int64)
    with pytest.raises(tf.errors.OpError):
        tf.sparse.cross_hashed([wide] * 30)
    huge = tf.SparseTensor(
        tf.zeros([0, 2], tf.int64), tf.constant([], tf.string), [2**60, 1]
    )
    with pytest.raises(tf.errors.ResourceExhaustedError):
        tf.sparse.cross([huge])


@pytest.mark.parametrize("order", ["", "R", "RRR", "RX", "RS"])
def test_input_order(order):
    x = tf.ragged.constant([[1], [2, 3]])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.raw_ops.RaggedCross(
            ragged_values=[tf.cast(x.values, tf.int64)] * 2,
            ragged_row_splits=[x.row_splits] * 2,
            sparse_indices=[],
            sparse_values=[],
            sparse_shape=[],
            dense_inputs=[],
            input_order=order,
            hashed_output=True,
            num_buckets=0,
            hash_key=1,
            out_values_type=tf.int64,
            out_row_splits_type=tf.int64,
        )
