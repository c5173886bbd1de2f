"""tf.GradientTape, tf.custom_gradient, tf.autodiff.ForwardAccumulator."""

import numpy as np
import pytest

import headrace as tf


def test_structures_and_persistence():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x**2
        z = y * x
    assert tape.gradient(y, x).numpy() == 6.0
    found = tape.gradient(z, {"a": x, "b": [y]})
    assert found["a"].numpy() == 27.0
    assert found["b"][0].numpy() == 3.0
    assert tape.gradient(y, tf.Variable(1.0)) is None
    assert tape.watched_variables()[0] is x


def test_watched_variables_stay_known():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.gradient(y, v).numpy() == 4.0
    assert tape.watched_variables() == (v,)
    with pytest.raises(RuntimeError):
        tape.gradient(y, v)


def test_custom_gradients_watch_what_they_alone_read():
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x):
        return x * v, lambda d, variables=None: (d * 3.0 * v, [d * 7.0 * x * v])

    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = f(x)
        d = tape.gradient(y, v)
    assert d.numpy() == 42.0
    assert outer.gradient(d, v).numpy() == 21.0


def test_a_plain_tape_is_used_once():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="only be used to compute one set"):
        tape.gradient(y, x)


def test_higher_orders():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        d = inner.gradient(y, x)
    assert d.numpy() == 12.0
    assert outer.gradient(d, x).numpy() == 12.0


def test_unconnected_stop_and_output_gradients():
    x = tf.Variable([1.0, 2.0])
    w = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = w * 2.0
        with tape.stop_recording():
            z = w * w
    zero = tf.UnconnectedGradients.ZERO
    found = tape.gradient(y, [x, w], unconnected_gradients=zero)
    assert found[0].numpy().tolist() == [0.0, 0.0]
    assert tape.gradient(z, w) is None
    assert tape.gradient(y, w, output_gradients=tf.constant(5.0)).numpy() == 10.0


def test_jacobians():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    full = tape.jacobian(y, x).numpy()
    assert full.shape == (2, 2, 2, 2)
    assert full[1, 0, 1, 0] == 6.0
    rows = tape.batch_jacobian(y, x).numpy()
    assert np.array_equal(rows[0], np.diag([2.0, 4.0]))


def test_custom_gradient():
    @tf.custom_gradient
    def clip(x):
        return tf.identity(x), lambda dy: tf.clip_by_value(dy, -1.0, 1.0)

    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        out = clip(v * v * 10.0)
        loss = out * 7.0
    assert tape.gradient(loss, v).numpy() == 40.0


def test_custom_gradient_with_variables():
    w = tf.Variable(3.0)

    @tf.custom_gradient
    def scale(x):
        def grad(dy, variables=None):
            return dy * 100.0, [dy * 7.0]

        return x * w, grad

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scale(x)
    dx, dw = tape.gradient(y, [x, w])
    assert dx.numpy() == 100.0
    assert dw.numpy() == 7.0


def test_a_gradient_function_that_raises():
    @tf.custom_gradient
    def f(x):
        def grad(dy):
            raise KeyError("mine")

        return x * 1.0, grad

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with pytest.raises(KeyError, match="mine"):
        tape.gradient(y, x)


def test_recompute_grad():
    w = tf.Variable(2.0)
    f = tf.recompute_grad(lambda x: x * x * w)
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    dx, dw = tape.gradient(y, [x, w])
    assert (dx.numpy(), dw.numpy()) == (12.0, 9.0)


def test_forward_accumulator():
    x = tf.constant([2.0, 3.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as acc:
        y = x**3
        z = tf.reduce_sum(y)
    assert acc.jvp(y).numpy().tolist() == [12.0, 0.0]
    assert acc.jvp(z).numpy() == 12.0
    assert acc.jvp(tf.constant(1.0)) is None


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_rows_of_variables_are_watched(wrap):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    ways = {
        "lookup": lambda: tf.nn.embedding_lookup(v, [1, 1]),
        "sparse_read": lambda: v.sparse_read([1, 1]),
        "gather_nd": lambda: v.gather_nd([[1], [1]]),
        "gather": lambda: tf.gather(v, [1, 1]),
    }
    for name, way in ways.items():

        def slope():
            with tf.GradientTape() as tape:
                y = way() * 3.0
            return tf.convert_to_tensor(tape.gradient(y, v))

        assert wrap(slope)().numpy().tolist() == [[0, 0], [6, 6]], name


def test_jvp_of_a_jvp_asked_for_afterwards():
    primal, one = tf.constant(1.1), tf.constant(1.0)
    with tf.autodiff.ForwardAccumulator(primal, one) as outer:
        with tf.autodiff.ForwardAccumulator(primal, one) as inner:
            y = primal ** tf.constant(3.5)
    dy = inner.jvp(y)
    np.testing.assert_allclose(dy, 3.5 * 1.1**2.5, rtol=1e-5)
    np.testing.assert_allclose(outer.jvp(dy), 3.5 * 2.5 * 1.1**1.5, rtol=1e-5)


def test_jacobians_of_batches_want_rows():
    v, m = tf.Variable([1.0, 2.0]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(m)
        y, rows, text = v * 2.0, tf.reduce_sum(m, 1), tf.strings.as_string(m)
    for target, source in ((y, v), (rows, m)):
        with pytest.raises(ValueError, match=r"Shape \(2,\) must have rank at least 2"):
            tape.batch_jacobian(target, source)
    assert tape.gradient(text, m) is None
    with pytest.raises(
        ValueError, match="Unknown value for unconnected_gradients: 'x'"
    ):
        tape.gradient(y, v, unconnected_gradients="x")
    with pytest.raises(RuntimeError, match="not supported when eager execution"):
        tf.hessians(y, v)


def test_sources_that_act_as_variables():
    class Wrapper:
        """What Keras 3 puts around a variable."""

        _should_act_as_resource_variable = True

        def __init__(self, variable):
            self.handle, self.shape = variable.handle, variable.shape
            self.dtype = variable.dtype

    v = tf.Variable([1.0, 2.0])
    w = Wrapper(v)

    def gradients():
        with tf.GradientTape(persistent=True) as tape:
            y = v * v
        return tape.gradient(y, [w, v]), tape.jacobian(y, w)

    for run in (gradients, tf.function(gradients)):
        (first, second), jacobian = run()
        assert first.numpy().tolist() == second.numpy().tolist() == [2.0, 4.0]
        assert jacobian.numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize("form", ["function", "nested", "graph", "argument"])
def test_rows_that_a_function_looks_up_stay_slices_on_the_way_back(form):
    """As they are without the function: a table's gradient is as large as the rows
    read, and optimizers change these alone."""
    table = tf.Variable(tf.reshape(tf.range(10.0), [5, 2]))
    ids = tf.constant([3, 1, 3])

    def look(x, scale):
        rows = tf.gather(x, ids) + tf.nn.embedding_lookup(x, ids)
        return tf.reduce_sum(rows * rows) * scale

    inner = tf.function(look)
    call = tf.function(lambda x, s: inner(x, s)) if form == "nested" else inner
    given = tf.convert_to_tensor(table) if form == "argument" else table

    def slope():
        with tf.GradientTape() as tape:
            tape.watch(given)
            y = call(given, tf.constant(0.5))
        return tape.gradient(y, given)

    found = tf.function(slope)() if form == "graph" else slope()
    assert isinstance(found, tf.IndexedSlices)
    assert found.indices.numpy().tolist() == [3, 1, 3, 3, 1, 3]
    assert found.dense_shape.numpy().tolist() == [5, 2]
    want = np.zeros([5, 2], "f")
    want[3], want[1] = [8 * 6, 8 * 7], [4 * 2, 4 * 3]
    np.testing.assert_allclose(tf.convert_to_tensor(found), want)


def test_slices_of_functions_meet_dense_gradients_branches_loops_and_second_orders():
    table = tf.Variable(tf.reshape(tf.range(10.0), [5, 2]))
    ids = tf.constant([3, 1, 3])
    cubes = tf.function(lambda: tf.reduce_sum(tf.gather(table, ids) ** 3))
    branch = tf.function(lambda c: tf.cond(c, cubes, lambda: tf.reduce_sum(table)))
    loop = tf.function(
        lambda: tf.while_loop(
            lambda i, s: i < 3, lambda i, s: (i + 1, s + cubes()), (0, 0.0)
        )[1]
    )
    count = np.array([0, 1, 0, 2, 0])[:, None]
    slope = 3 * count * table.numpy() ** 2
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as tape:
            y = cubes()
            mixed = y + tf.reduce_sum(table)
            taken, other = branch(tf.constant(True)), branch(tf.constant(False))
            turns = loop()
        first = tape.gradient(y, table)
        total = tf.reduce_sum(tf.convert_to_tensor(first))
    for value, want in [
        (mixed, slope + 1),
        (taken, slope),
        (other, np.ones([5, 2])),
        (turns, 3 * slope),
    ]:
        found = tape.gradient(value, table)
        np.testing.assert_allclose(tf.convert_to_tensor(found), want)
    second = tf.convert_to_tensor(outer.gradient(total, table))
    np.testing.assert_allclose(second, 6 * count * table.numpy())
