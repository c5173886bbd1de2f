"""Zeros and ones like a tensor of a graph whose shape is known: constants, which need not
wait for it. Expected: TensorFlow 2.21."""

import headrace as tf
import pytest


def _ops(function, shape, dtype="float32"):
    with tf.Graph().as_default() as graph:
        made = function(tf.compat.v1.placeholder(dtype, shape))
        ops = [(op.name, op.type) for op in graph.get_operations()]
    return ops[1:], made


@pytest.mark.parametrize("name", ["zeros_like", "ones_like"])
def test_nodes_of_graphs(name):
    function = getattr(tf, name)
    assert _ops(function, [2, 3])[0] == [(name, "Const")]
    assert _ops(function, [2, 3], "bool")[0] == [(name, "Const")]
    assert _ops(lambda x: function(x, tf.int32, name="q"), [2])[0] == [("q", "Const")]
    many = [(f"{name}/shape_as_tensor", "Const"), (f"{name}/Const", "Const")]
    assert _ops(function, [2000])[0] == [*many, (name, "Fill")]
    own = {"zeros_like": "ZerosLike", "ones_like": "OnesLike"}[name]
    for shape in ([None, 3], None):
        ops, made = _ops(function, shape)
        assert ops == [(name, own)]
        assert made.shape.rank == (None if shape is None else 2)


def test_variables_made_of_them_in_functions_that_are_only_traced():
    for initial in (tf.zeros_like, lambda x: lambda: tf.ones_like(x)):
        made = []

        @tf.function
        def total(x):
            if not made:  # noqa: B023
                made.append(tf.Variable(initial(x)))  # noqa: B023
            return made[0] + x  # noqa: B023

        trace = total.get_concrete_function(tf.TensorSpec([2]))
        first = made[0].numpy()
        assert trace(tf.constant([10.0, 20.0])).numpy().tolist() == [
            10.0 + first[0],
            20.0 + first[1],
        ]


def test_gradients_stop_there():
    x = tf.Variable([1.0, 2.0])

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(x * tf.ones_like(x) + tf.zeros_like(x))
        return tape.gradient(y, x)

    assert gradient().numpy().tolist() == [1.0, 1.0]


def test_methods_of_arrays_from_the_class():
    array = tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0])
    assert tf.TensorArray.stack(array).numpy().tolist() == [1.0, 2.0]
    assert float(tf.TensorArray.read(array, 1)) == 2.0

    @tf.function
    def stacked(x):
        arrays = [tf.TensorArray(tf.float32, 2).unstack(x) for _ in range(2)]
        arrays = tf.nest.map_structure(
            lambda a: tf.TensorArray.write(a, 0, 5.0), arrays
        )
        return tf.nest.map_structure(tf.TensorArray.stack, arrays)

    assert [s.numpy().tolist() for s in stacked(tf.constant([1.0, 2.0]))] == [
        [5.0, 2.0]
    ] * 2
