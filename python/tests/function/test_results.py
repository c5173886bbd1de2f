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


def test_operations_are_no_results():
    text = "found return value of type Operation"
    variable = tf.Variable(1.0)
    for effect in (tf.no_op, lambda: (1, tf.print("x"))):
        with pytest.raises(TypeError, match=text):
            tf.function(effect)()
    with pytest.raises(TypeError, match=text):
        tf.function(lambda: variable.assign(2.0, read_value=False))()
    with pytest.raises(TypeError, match="passed to Dataset.map.*NoOp"):
        tf.data.Dataset.range(2).map(lambda x: tf.no_op())
    # Branches of effects alone give a value that stands for them.
    done = tf.function(lambda x: tf.cond(x > 0, tf.no_op, tf.no_op))(tf.constant(1))
    assert done.dtype == tf.bool and bool(done)


def test_assignments_give_the_variable():
    variable = tf.Variable([1.0, 2.0])

    @tf.function
    def assign():
        first = variable.assign([3.0, 4.0])
        kept = tf.identity(first)
        second = variable.assign_add([1.0, 1.0])
        assert first.name.startswith("AssignVariableOp")
        assert isinstance(first, tf.Variable) and first.op.type == "AssignVariableOp"
        return first, second + 0.0, kept, first[0], first.read_value()

    # What is read later is what the variable holds then.
    values = [[4.0, 5.0], [4.0, 5.0], [3.0, 4.0], 4.0, [4.0, 5.0]]
    assert [v.numpy().tolist() for v in assign()] == values
    chained = tf.function(lambda: variable.assign([1.0, 1.0]).assign_sub([2.0, 0.0]))
    assert chained().numpy().tolist() == [-1.0, 1.0]
