"""What sessions take for fetches; messages are those of TensorFlow 2.21."""

import headrace as tf
import pytest

v1 = tf.compat.v1


@pytest.fixture
def run():
    with tf.Graph().as_default(), v1.Session() as session:
        yield session.run


@pytest.mark.parametrize("fetch", [None, [None], {"a": (None,)}])
def test_none(run, fetch):
    tf.constant(1)
    with pytest.raises(TypeError, match="`fetch` = None has invalid type .* be None"):
        run(fetch)


def test_structures_names_and_operations(run):
    one = tf.constant(1, name="one")
    assert run([]) == [] and run(v1.no_op()) is None
    assert run({"a": (one, [tf.constant(2)])}) == {"a": (1, [2])}
    assert run("one:0") == 1
    with pytest.raises(ValueError, match="cannot be interpreted as a Tensor"):
        run("two:0")
    with pytest.raises(TypeError, match="invalid type .*must be a string or Tensor"):
        run(3)


def test_composites(run):
    sparse = run({"a": tf.sparse.from_dense([[0, 1]])})["a"]
    assert isinstance(sparse, v1.SparseTensorValue)
    assert sparse.indices.tolist() == [[0, 1]] and sparse.values.tolist() == [1]
    ragged = run([tf.ragged.constant([[1], [2, 3]])])[0]
    assert isinstance(ragged, v1.ragged.RaggedTensorValue)
    assert ragged.to_list() == [[1], [2, 3]] and ragged.shape == (2, None)
    slices = run(tf.IndexedSlices(tf.ones([1]), tf.constant([0])))
    assert slices.values.tolist() == [1.0] and slices.indices.tolist() == [0]


def test_results_of_loops(run):
    def below(n):
        return lambda i: i < n

    def more(i):
        return i + 1

    assert run(v1.while_loop(below(3), more, [0])) == 3
    assert run(v1.while_loop(below(3), more, [0], return_same_structure=True)) == [3]
    assert run(tf.while_loop(below(3), lambda i: [i + 1], [0])) == [3]
