"""What functions and branches may give."""

import headrace as tf
import pytest


@pytest.mark.parametrize("result", [object(), tf.Variable, lambda: 1])
def test_what_is_no_result(result):
    with pytest.raises(TypeError, match="must return zero or more Tensors"):
        tf.function(lambda: result)()


def test_results_of_many_kinds():
    one, nothing, text = tf.function(lambda: (1, None, "a"))()
    assert (int(one), nothing, text.numpy()) == (1, None, b"a")
    sparse = tf.function(lambda: tf.sparse.from_dense([[1, 0]]))()
    assert sparse.values.numpy().tolist() == [1]
    dataset = tf.function(lambda: tf.data.Dataset.range(2))()
    assert [int(x) for x in dataset] == [0, 1]


def test_branches_may_give_none():
    def both(x):
        return tf.cond(x > 0, lambda: (x, None), lambda: (x, None))

    def neither(x):
        return tf.cond(x > 0, lambda: None, lambda: None)

    for wrap in (lambda f: f, tf.function):
        x, nothing = wrap(both)(tf.constant(1))
        assert int(x) == 1 and nothing is None
        assert wrap(neither)(tf.constant(1)) is None
    with pytest.raises(ValueError):
        tf.function(lambda x: tf.cond(x > 0, lambda: None, lambda: x))(tf.constant(1))
