"""What sessions take for fetches; messages are those of TensorFlow 2.21."""

import headrace as tf
import numpy as np
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


def test_keys_of_feeds_may_be_nested():
    with tf.Graph().as_default(), v1.Session() as session:
        a, b, c = (v1.placeholder(tf.float32, [], name=n) for n in "abc")
        total = a + 2 * b + 4 * c
        state = v1.nn.rnn_cell.LSTMStateTuple
        assert session.run(total, {(a, (b, c)): (1, (2, 3))}) == 17
        assert session.run(total, {(state(a, b), c): [state(1, 2), 3]}) == 17
        assert session.run(total, {((a,), b): (1, 2), c: 3}) == 17
        with pytest.raises(ValueError, match="Key had 2 elements, but value had 3 ele"):
            session.run(total, {(a, b): (1, 2, 3), c: 3})
        with pytest.raises(ValueError, match="this key is not unique: Tensor"):
            session.run(total, {(a, b): (1, 2), (b, c): (2, 3)})


def test_a_random_operation_goes_on_whatever_is_fetched():
    # Its place in its stream is the session's, as in TensorFlow 2.21.
    with tf.Graph().as_default(), v1.Session() as session:
        drawn = v1.random_uniform([2], seed=3)
        twice, loop = drawn * 2, v1.while_loop(lambda i: i < 1, lambda i: i + 1, [0])
        found = [session.run(drawn), session.run(twice) / 2]
        found += [session.run([drawn, loop])[0], session.run([twice, drawn])[1]]
        assert len({float(f[0]) for f in found}) == 4
        again = v1.random_uniform([2], seed=3)
        for f in found:
            np.testing.assert_array_equal(session.run(again), f)
    with tf.Graph().as_default(), v1.Session() as session:  # each session its own
        drawn = v1.random_uniform([2], seed=3)
        np.testing.assert_array_equal(session.run(drawn), found[0])
