"""Branches, loops, tensor arrays and maps: eager and traced alike."""

import numpy as np
import pytest

import headrace as tf


def both(f):
    """f eagerly and traced."""
    return pytest.mark.parametrize(
        "wrap", [lambda g: g, tf.function], ids=["eager", "traced"]
    )(f)


@both
def test_cond_and_gradient(wrap):
    f = wrap(lambda x: tf.cond(x > 0, lambda: x * x, lambda: -x))
    for value, want, slope in [(3.0, 9.0, 6.0), (-2.0, 2.0, -1.0)]:
        x = tf.constant(value)
        with tf.GradientTape() as t:
            t.watch(x)
            y = f(x)
        assert y.numpy() == want and t.gradient(y, x).numpy() == slope


@both
def test_cond_structures(wrap):
    f = wrap(
        lambda p, x: tf.cond(p, lambda: {"a": (x, None)}, lambda: {"a": (x + 1, None)})
    )
    out = f(tf.constant(False), tf.constant(1))
    assert out["a"][0].numpy() == 2 and out["a"][1] is None


@both
def test_case_and_switch_case(wrap):
    f = wrap(lambda i: tf.switch_case(i, [lambda: 10, lambda: 20], lambda: 30))
    assert [int(f(tf.constant(i))) for i in (-1, 0, 1, 2)] == [30, 10, 20, 30]
    g = wrap(
        lambda x: tf.case(
            [(x > 10, lambda: x), (x > 5, lambda: x * 2)], default=lambda: x * 0
        )
    )
    assert [int(g(tf.constant(v))) for v in (11, 6, 1)] == [11, 12, 0]


@both
def test_while_loop_gradient_to_second_order(wrap):
    def power(x):
        return tf.while_loop(
            lambda i, _: i < 4, lambda i, y: (i + 1, y * x), [tf.constant(0), x]
        )[1]

    f = wrap(power)
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    assert y.numpy() == 32 and g.numpy() == 80
    assert outer.gradient(g, x).numpy() == 160


@both
def test_while_structures_limits_and_captures(wrap):
    v = tf.Variable(0)

    def run(n):
        def body(i, d):
            v.assign_add(1)
            return i + 1, {"s": d["s"] + i}

        return tf.while_loop(
            lambda i, d: i < n, body, (tf.constant(0), {"s": 0}), maximum_iterations=5
        )

    i, d = wrap(run)(tf.constant(10))
    assert (int(i), int(d["s"]), v.numpy()) == (5, 10, 5)


@both
def test_while_shape_invariants(wrap):
    def grow(n):
        return tf.while_loop(
            lambda i, x: i < n,
            lambda i, x: (i + 1, tf.concat([x, x], 0)),
            [tf.constant(0), tf.zeros([1])],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
        )[1]

    assert wrap(grow)(tf.constant(3)).shape == [8]


def test_while_refuses_changing_shapes():
    @tf.function
    def f(n):
        return tf.while_loop(
            lambda x: tf.size(x) < n, lambda x: tf.concat([x, x], 0), [tf.zeros([1])]
        )

    with pytest.raises(ValueError, match="shape_invariants"):
        f(tf.constant(3))


@both
def test_tensor_array(wrap):
    def run(x):
        a = tf.TensorArray(
            tf.float32, size=0, dynamic_size=True, clear_after_read=False
        )
        a = a.write(0, x).write(2, x * 3.0).write(1, x * 2.0)
        b = tf.TensorArray(tf.float32, size=3).unstack(a.stack())
        c = tf.TensorArray(tf.float32, size=2).split(tf.range(6.0), [2, 4])
        d = tf.TensorArray(tf.float32, size=4, element_shape=[2]).scatter(
            [3, 0], tf.stack([x, x])
        )
        return a.size(), b.gather([2, 0]), c.concat(), d.stack(), a.read(1)

    size, gathered, joined, scattered, read = wrap(run)(tf.constant([1.0, 2.0]))
    assert int(size) == 3
    np.testing.assert_array_equal(gathered, [[3, 6], [1, 2]])
    np.testing.assert_array_equal(joined, np.arange(6))
    np.testing.assert_array_equal(scattered, [[1, 2], [0, 0], [0, 0], [1, 2]])
    np.testing.assert_array_equal(read, [2, 4])


@both
def test_tensor_array_in_a_loop_with_gradient(wrap):
    def run(x):
        a = tf.TensorArray(tf.float32, size=3)
        _, a, _ = tf.while_loop(
            lambda i, a, s: i < 3,
            lambda i, a, s: (i + 1, a.write(i, s), s * x),
            (tf.constant(0), a, x),
        )
        return tf.reduce_sum(a.stack())

    x = tf.constant(2.0)
    f = wrap(run)
    with tf.GradientTape() as t:
        t.watch(x)
        y = f(x)
    assert y.numpy() == 14 and t.gradient(y, x).numpy() == 1 + 4 + 12


def test_tensor_array_shapes_outlive_loops():
    def filled(array, value):
        return tf.while_loop(
            lambda i, _: i < 3, lambda i, a: (i + 1, a.write(i, value)), (0, array)
        )[1]

    @tf.function(input_signature=[tf.TensorSpec([None, 5])])
    def f(x):
        array = filled(tf.TensorArray(tf.float32, 0, dynamic_size=True), tf.ones([4]))
        assert array.element_shape == [4]
        assert array.stack().shape.as_list() == [None, 4]
        fixed = filled(tf.TensorArray(tf.float32, 3), x)
        assert fixed.stack().shape.as_list() == [3, None, 5]
        assert fixed.read(0).shape.as_list() == [None, 5]
        assert fixed.gather([0, 1]).shape.as_list() == [2, None, 5]
        assert fixed.concat().shape.as_list() == [None, 5]
        loose = filled(tf.TensorArray(tf.float32, 3, infer_shape=False), x)
        assert loose.stack().shape.rank is None
        branch = tf.TensorArray(tf.float32, 2)
        branch = tf.cond(x[0, 0] > 0, lambda: branch.write(0, x[0]), lambda: branch)
        assert branch.element_shape == [5]
        rows = tf.TensorArray(tf.float32, 3).unstack(tf.ones([3, 2]))
        assert rows.stack().shape == [3, 2]
        with pytest.raises(ValueError, match="Inconsistent shapes"):
            rows.write(0, tf.ones([4]))
        return array.stack(), fixed.stack()

    array, fixed = f(tf.ones([2, 5]))
    assert array.shape == [3, 4] and fixed.shape == [3, 2, 5]


@both
def test_maps_scans_folds(wrap):
    def run(x):
        return (
            tf.map_fn(lambda r: r * 2.0, x),
            tf.map_fn(
                lambda r: (r[0], tf.cast(r[1], tf.int32)),
                (x, x),
                fn_output_signature=(tf.float32, tf.int32),
            ),
            tf.scan(lambda a, r: a + r, x),
            tf.scan(lambda a, r: a * r, x, initializer=2.0, reverse=True),
            tf.foldl(lambda a, r: a - r, x),
            tf.foldr(lambda a, r: a - r, x),
            tf.vectorized_map(lambda r: r * r, x),
        )

    m, pair, s, rs, left, right, v = wrap(run)(tf.constant([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(m, [2, 4, 6])
    np.testing.assert_array_equal(pair[1], [1, 2, 3])
    np.testing.assert_array_equal(s, [1, 3, 6])
    np.testing.assert_array_equal(rs, [12, 12, 6])
    assert (float(left), float(right)) == (-4, 0)
    np.testing.assert_array_equal(v, [1, 4, 9])


def test_cond_in_a_session():
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as s:
        p = v1.placeholder(tf.float32, [])
        y = tf.cond(p > 0, lambda: p * 2.0, lambda: -p)
        z = tf.while_loop(lambda i: i < 10.0, lambda i: [i + p], [0.0])
        assert s.run(y, {p: -3.0}) == 3
        assert s.run(z, {p: 4.0}) == [12.0]


def test_branches_that_differ_are_refused():
    run = tf.function
    with pytest.raises(ValueError, match=r"Lengths of branch outputs of cond must"):
        run(lambda p: tf.cond(p, lambda: 1, lambda: None))(tf.constant(True))
    with pytest.raises(TypeError, match="Error details:\n.* have different types"):
        run(lambda p: tf.cond(p, lambda: 1, lambda: 2.0))(tf.constant(True))
    with pytest.raises(ValueError, match=r"must be a scalar, but it has shape \[2\]"):
        run(lambda p: tf.cond(p, lambda: 1, lambda: 2))(tf.constant([True, False]))
    fns = [lambda: 1, lambda: 2.0]
    with pytest.raises(TypeError, match=r"branches\[1\] arguments to tf.switch_case"):
        run(lambda i: tf.switch_case(i, fns))(tf.constant(1))
    for wrong in (1, True):
        with pytest.raises(TypeError, match="'branch_index' must be a Tensor, got"):
            tf.switch_case(wrong, fns)
    with pytest.raises(TypeError, match="must be a 2-tuple. Received 3"):
        tf.switch_case(tf.constant(0), [3])


def test_arrays_say_what_they_want():
    with pytest.raises(ValueError, match="Size must be declared for TensorArrays"):
        tf.TensorArray(tf.int32)
    with pytest.raises(ValueError, match="Argument `size` must be provided if"):
        tf.function(lambda: tf.TensorArray(tf.int32).size())()
    assert tf.TensorArray(tf.float32, 0).stack().shape == (0,)
    assert tf.map_fn(lambda a: a, tf.zeros([0, 2])).shape[0] == 0
    with pytest.raises(ValueError, match="does not contain any Tensors"):
        tf.map_fn(lambda a: a, [])

    @tf.function
    def stacked():
        array = tf.TensorArray(tf.float32, 2).write(0, 1.0).write(1, 2.0)
        return array.stack()

    names = [n.name for n in stacked.get_concrete_function().graph.as_graph_def().node]
    assert "TensorArrayV2" in names and "TensorArrayV2Stack/TensorListStack" in names


@pytest.mark.parametrize("known", [None, [None, None], [3, None]])
def test_while_shape_invariants_may_say_more_than_the_trace(known):
    def grow(x):
        more = lambda x: [tf.concat([x, x[-1:] + 1], 0)]  # noqa: E731
        shapes = [tf.TensorShape([None, 2])]
        made = tf.while_loop(lambda x: tf.shape(x)[0] < 5, more, [x], shapes)
        return made[0] if isinstance(made, list) else made

    f = tf.function(grow, input_signature=[tf.TensorSpec(known, tf.float32)])
    assert f.get_concrete_function().output_shapes == [None, 2]
    assert f(tf.zeros([3, 2]))[:, 0].numpy().tolist() == [0, 0, 0, 1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.zeros([3, 3]))


_ROWS = [[1.0, 2.0, 1.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize(
    "op, of_row",
    [
        ("Unique", lambda r: tf.unique(r).y),
        ("Where", lambda r: tf.boolean_mask(r, r > 1)),
        ("Range", lambda r: tf.range(r[0])),
        ("ListDiff", lambda r: tf.raw_ops.ListDiff(x=r, y=[1.0]).out),
        ("DynamicPartition", lambda r: tf.dynamic_partition(r, [0, 1, 0], 2)),
        ("SegmentMax", lambda r: tf.math.segment_max(r, [0, 0, 1])),
        ("AsString", tf.strings.as_string),
        ("EagerPyFunc", lambda r: tf.py_function(lambda z: z, [r], tf.float32)),
    ],
)
def test_what_has_no_vectorized_form(op, of_row):
    call = lambda x: tf.vectorized_map(of_row, x, fallback_to_while_loop=False)
    for f in (call, tf.function(call)):
        with pytest.raises(ValueError, match=f"No pfor vectorization defined for {op}"):
            f(tf.constant(_ROWS))


def test_changes_of_variables_have_no_vectorized_form():
    v = tf.Variable(0.0)
    with pytest.raises(ValueError, match="defined for AssignAddVariableOp"):
        tf.vectorized_map(
            lambda r: v.assign_add(r[0]),
            tf.constant(_ROWS),
            fallback_to_while_loop=False,
        )
    assert float(v) == 0.0


def test_what_has_a_vectorized_form():
    w = tf.Variable([1.0, 2.0, 3.0])
    for of_row in (
        lambda r: w * r,
        lambda r: tf.cond(r[0] > 2, lambda: r, lambda: -r),
        lambda r: (tf.strings.as_string(r), tf.sort(r))[1],
        lambda r: tf.random.uniform([3]) * 0 + r,
        lambda r: (r, {"a": r + 1}),
        lambda r: tf.slice(r, [tf.cast(r[0] * 0 + 1, tf.int32)], [-1]),
        lambda r: tf.sparse.segment_sum(r, [0, 2, 1], [0, 0, 1]),
        lambda r: tf.sparse.segment_mean(w, tf.cast(r / 9, tf.int32), [0, 0, 1]),
    ):
        with_fallback = tf.vectorized_map(of_row, tf.constant(_ROWS))
        without = tf.vectorized_map(of_row, tf.constant(_ROWS), False)
        for a, b in zip(tf.nest.flatten(with_fallback), tf.nest.flatten(without)):
            np.testing.assert_array_equal(a, b)
