"""Sparse tensors as texts of protos and as variants."""

import headrace as tf
import pytest
import recorded
import sparse_texts_cases


@pytest.mark.parametrize("name", recorded.names(sparse_texts_cases))
def test_as_recorded(name):
    recorded.check(sparse_texts_cases, name, tf)


def test_texts_cut_anywhere():
    x = tf.io.serialize_sparse(tf.SparseTensor([[0, 1]], ["abc"], [3, 4])).numpy()
    for part in range(3):
        for n in range(len(x[part])):
            texts = [*x[:part], x[part][:n], *x[part + 1 :]]
            try:
                tf.io.deserialize_many_sparse(tf.stack(texts), tf.string)
            except tf.errors.InvalidArgumentError:
                pass
