"""from_generator of ragged and sparse elements; buckets padded to their boundary."""

import headrace as tf
import pytest


def test_ragged_elements():
    def elements():
        yield 42, tf.ragged.constant([[1, 2], [3]])
        yield 43, tf.ragged.constant([[], [4]], tf.int32)

    spec = (tf.TensorSpec([], tf.int32), tf.RaggedTensorSpec([2, None], tf.int32))
    ds = tf.data.Dataset.from_generator(elements, output_signature=spec)
    assert ds.element_spec == spec
    got = [(int(n), r.to_list()) for n, r in ds]
    assert got == [(42, [[1, 2], [3]]), (43, [[], [4]])]


def test_sparse_elements_of_another_shape():
    def elements():
        yield tf.sparse.from_dense([[1, 0], [0, 2]])

    def read(shape):
        spec = tf.SparseTensorSpec(shape, tf.int32)
        ds = tf.data.Dataset.from_generator(elements, output_signature=spec)
        return tf.sparse.to_dense(next(iter(ds))).numpy().tolist()

    assert read([2, 2]) == [[1, 0], [0, 2]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="was expected"):
        read([3, 2])


def test_concatenate_of_other_structures():
    a = tf.data.Dataset.range(3)
    with pytest.raises(TypeError, match="Incompatible dataset elements"):
        a.concatenate(tf.data.Dataset.zip((a, a)))


def test_buckets_padded_to_their_boundary():
    rows = [[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [21, 22]]
    ds = tf.data.Dataset.from_generator(lambda: rows, tf.int32, output_shapes=[None])
    ds = ds.bucket_by_sequence_length(
        element_length_func=lambda e: tf.shape(e)[0],
        bucket_boundaries=[4, 7],
        bucket_batch_sizes=[2, 2, 2],
        pad_to_bucket_boundary=True,
        padding_values=-1,
    )
    assert [b.tolist() for b in ds.as_numpy_iterator()] == [
        [[0, -1, -1], [5, 6, 7]],
        [[1, 2, 3, 4, -1, -1], [7, 8, 9, 10, 11, -1]],
        [[21, 22, -1]],
    ]


def test_sparse_values_of_sessions_and_what_is_none():
    value = tf.compat.v1.SparseTensorValue([[0, 1]], [2.0], [2, 3])
    spec = tf.SparseTensorSpec([2, 3], tf.float32)
    (found,) = tf.data.Dataset.from_generator(lambda: [value], output_signature=spec)
    assert tf.sparse.to_dense(found).numpy().tolist() == [[0, 2, 0], [0, 0, 0]]
    ragged = tf.RaggedTensorSpec([2, None], tf.int32)
    lists = tf.data.Dataset.from_generator(
        lambda: [[[1, 2], [3]]], output_signature=ragged
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="could not be converted"):
        list(lists)


def test_rows_of_ragged_tensors_in_ragged_batches():
    rows = tf.ragged.constant([[1], [2, 3], [4, 5, 6]])
    batches = tf.data.Dataset.from_tensor_slices(rows).ragged_batch(2)
    assert [b.to_list() for b in batches] == [[[1], [2, 3]], [[4, 5, 6]]]


def test_shown_in_the_words_that_described_it():
    of_types = tf.data.Dataset.from_generator(lambda: [], {"a": tf.int32}, {"a": [2]})
    assert (
        str(of_types) == "<FlatMapDataset shapes: {'a': (2,)}, types: {'a': tf.int32}>"
    )
    of_types = tf.data.Dataset.from_generator(lambda: [], (tf.int32, tf.string))
    shown = "shapes: (<unknown>, <unknown>), types: (tf.int32, tf.string)"
    assert repr(of_types) == f"<FlatMapDataset {shown}>"
    of_specs = tf.data.Dataset.from_generator(
        lambda: [], output_signature=tf.TensorSpec([])
    )
    assert str(of_specs).startswith("<_FlatMapDataset element_spec=TensorSpec(shape=()")
