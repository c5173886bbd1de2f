"""GradientTape: what is watched, variables as targets, Jacobians of nothing."""

import headrace as tf
import pytest


def test_variables_watched_by_hand_are_told_in_order():
    v, w, u = (tf.Variable(float(i)) for i in range(3))
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = v**2 + w**3
    assert [x is w for x in tape.watched_variables()] == [True]
    assert tape.gradient(y, [v, w])[0] is None
    with tf.GradientTape() as tape:
        v.read_value()
        tape.watch(w)
        u.read_value()
    assert [x is k for x, k in zip(tape.watched_variables(), (v, w, u))] == [True] * 3
    with tf.GradientTape() as tape:
        tape.watch(v)
        tape.reset()
        assert tape.watched_variables() == ()
        tape.watch(w)
        assert [x is w for x in tape.watched_variables()] == [True]


def test_a_variable_is_a_target_of_itself():
    v, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * w
    assert [g if g is None else float(g) for g in tape.gradient(v, [v, w])] == [
        1.0,
        None,
    ]
    assert [float(g) for g in tape.gradient([v, y, v], [v, w])] == [5.0, 2.0]
    given = tape.gradient([v, y], [v, w], output_gradients=[tf.constant(5.0), None])
    assert [float(g) for g in given] == [8.0, 2.0]
    assert tape.gradient(w, v) is None


def test_texts_among_targets_have_no_gradient():
    x, s = tf.constant(11.0), tf.constant("s")
    with tf.GradientTape() as tape:
        tape.watch([x, s])
        z = x * x
    found = tape.gradient([x, z, s], [x, s])
    assert float(found[0]) == 23.0 and found[1] is None


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("traced", [False, True])
def test_jacobians_of_nothing(traced, at_once):
    def both(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
        return (
            tape.jacobian(y, x, experimental_use_pfor=at_once),
            tape.batch_jacobian(y, x, experimental_use_pfor=at_once),
        )

    both = tf.function(both) if traced else both
    jacobian, by_row = both(tf.zeros([2, 0]))
    assert jacobian.shape == [2, 0, 2, 0] and by_row.shape == [2, 0, 0]


def test_batch_jacobian_of_what_does_not_depend_is_zero():
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.constant([[3.0]], tf.float64)
    zeros = tape.batch_jacobian(y, x)
    assert zeros.dtype == tf.float64 and zeros.numpy().tolist() == [[[0.0, 0.0]]]


def test_one_gradient_after_another_wants_a_persistent_tape():
    x = tf.constant([[1.0, 2.0]])
    for name in ("jacobian", "batch_jacobian"):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        with pytest.raises(
            RuntimeError, match=f"persistent=True to compute the {name}"
        ):
            getattr(tape, name)(y, x, experimental_use_pfor=False)


def test_recomputing_with_one_tensor_twice():
    def product(x, y):
        return x * y

    again = tf.recompute_grad(product)
    assert again.__wrapped__ is product
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = again(x, x)
    assert float(tape.gradient(y, x)) == 6.0


def test_custom_gradients_of_ragged_tensors():
    @tf.custom_gradient
    def twice(x, y):
        def grad(dx, dy):
            assert isinstance(dx, tf.RaggedTensor)
            return dx.with_values(dx.values * 10.0), dy.with_values(dy.values * 20.0)

        return (x, y), grad

    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x.values)
        a, b = twice(x, x)
        y = tf.reduce_sum(a.values) + tf.reduce_sum(b.values)
    assert tape.gradient(y, x.values).numpy().tolist() == [30.0, 30.0, 30.0]


def test_unknown_ways_to_see_no_connection():
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        with pytest.raises(
            ValueError, match="Unknown value for unconnected_gradients: 'x'"
        ):
            tf.gradients([x], [x], unconnected_gradients="x")


def test_variables_watched_by_their_handles():
    v, fixed = tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([v.handle, fixed.handle])
        y = v * v * fixed
    assert tape.watched_variables() == (v,)
    assert [float(tape.gradient(y, x)) for x in (v, v.handle, fixed)] == [12, 12, 4]


def test_ways_to_add_gradients():
    with tf.Graph().as_default():
        x = tf.constant([1.0, 2.0])
        y = x * x
        for method in ("DEFAULT", "ADD_N", "EXPERIMENTAL_TREE"):
            method = getattr(tf.AggregationMethod, method)
            (slope,) = tf.gradients([y, y], x, aggregation_method=method)
            with tf.compat.v1.Session() as session:
                assert session.run(slope).tolist() == [4.0, 8.0]
        for function in (tf.gradients, tf.compat.v1.gradients, tf.hessians):
            with pytest.raises(ValueError, match="aggregation_method"):
                function(y, x, aggregation_method=9)


@pytest.mark.parametrize(
    ("arguments", "given", "uses"),
    [
        (1, 1, True),
        (2, 2, True),
        (1, 1, False),
        (1, 2, True),
        (2, 1, True),
        (1, 3, False),
    ],
)
def test_gradients_that_a_custom_gradient_gives(arguments, given, uses):
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(*xs):
        def gradient(dy, variables=None):
            mine = [dy * 5] * given
            return mine if variables is None else (mine, [dy * 3] * len(variables))

        return tf.add_n(xs) * (v if uses else 1.0), gradient

    xs = [tf.constant(1.0)] * arguments
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    if arguments != given:
        text = f"expected to return {arguments} gradients, but returned {given} instead"
        with pytest.raises(ValueError, match=text):
            tape.gradient(y, [xs[0], v])
        return
    slope, of_variable = tape.gradient(y, [xs[0], v])
    assert float(slope) == 5.0 * arguments  # all are the same tensor
    assert (float(of_variable) == 3.0) if uses else (of_variable is None)
