"""Bodies of branches and loops: what they share with the graph around them."""

import pytest

import headrace as tf

v1 = tf.compat.v1


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as session:
        yield session


def test_gradients_of_constants_that_bodies_use(session):
    x, a = tf.constant(2.0), tf.constant(3.0)
    y = tf.while_loop(lambda v: v < 100.0, lambda v: [v * a], [x])[0]
    z = tf.cond(x > 1.0, lambda: x * a, lambda: x)
    m = tf.map_fn(lambda e: e * e * a, tf.constant([1.0, 2.0]))
    assert session.run(v1.gradients(y, [x, a])) == [81.0, 216.0]
    assert session.run(v1.gradients(z, [x, a])) == [3.0, 2.0]
    assert session.run(v1.gradients(m, [a])) == [5.0]


def test_tapes_of_constants_that_bodies_use():
    @tf.function
    def slope():
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cond(x > 1.0, lambda: x * x, lambda: x)
            z = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), [0, 1.0])
        return tape.gradient([y, z[1]], x)

    assert slope() == 16.0


def test_variables_are_those_of_the_graph_around(session):
    def doubled(x):
        with v1.variable_scope("body"):
            two = v1.get_variable(
                "two", [], tf.int32, v1.constant_initializer(2), use_resource=True
            )
            return x * two

    with v1.variable_scope("root") as scope:
        first = tf.map_fn(doubled, tf.constant([1, 2]))
        scope.reuse_variables()
        second = tf.map_fn(doubled, tf.constant([3]))
    assert [v.name for v in v1.trainable_variables()] == ["root/body/two:0"]
    session.run(v1.global_variables_initializer())
    assert [r.tolist() for r in session.run([first, second])] == [[2, 4], [6]]


def test_what_bodies_wait_for_outside(session):
    v = v1.get_variable("v", initializer=1.0, use_resource=True)
    change = v.assign_add(1.0)

    def turn(i):
        with tf.control_dependencies([change]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 1, turn, [0])
    session.run(v.initializer)
    assert session.run(loop) == [1] and session.run(v) == 2.0


def test_operations_as_results_are_the_predicate(session):
    v = v1.get_variable("v", initializer=1.0, use_resource=True)
    pred = v1.placeholder_with_default(True, [])
    made = tf.cond(pred, lambda: [v.assign(2.0).op, 1], lambda: [tf.no_op(), 2])
    session.run(v.initializer)
    assert made[0].dtype == tf.bool
    assert session.run(made, {pred: False}) == [False, 2] and session.run(v) == 1.0
    assert session.run(made) == [True, 1] and session.run(v) == 2.0


def test_branches_do_not_see_each_other():
    @tf.function
    def by_cond(p):
        kept = []
        return tf.cond(
            p,
            lambda: kept.append(tf.constant(1.0, name="x")) or 1.0,
            lambda: kept[0] + 1,
        )

    text = "Tensor cond/x:0 in true_fn is accessed from false_fn"
    with pytest.raises(ValueError, match=text):
        by_cond(tf.constant(True))

    @tf.function
    def by_index(i):
        kept = []
        first = lambda: kept.append(tf.identity(1.0)) or 1.0  # noqa: E731
        return tf.switch_case(i, [first, lambda: 2.0, lambda: kept[0] + 1])

    with pytest.raises(ValueError, match="in branch 0 is accessed from branch 2"):
        by_index(tf.constant(0))


def test_slices_meet_slices_only(session):
    with pytest.raises(TypeError, match="Cannot reconcile tf.cond 0-th outputs"):
        tf.cond(
            tf.constant(True),
            lambda: tf.IndexedSlices(tf.constant([1.0]), tf.constant([0])),
            lambda: tf.constant([1.0]),
        )


def test_loops_in_the_words_of_tensorflow_1(session):
    def run(loop_vars, same, body=lambda i: i + 1, cond=lambda i: i < 3):
        return v1.while_loop(cond, body, loop_vars, return_same_structure=same)

    assert session.run(run([0], False)) == 3
    assert session.run(run([0], True)) == [3]
    nested = run([[0]], False, lambda i: [[i[0] + 1]], lambda i: i[0] < 3)
    assert session.run(nested) == 3
    vector = tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant([[0]])])
    assert session.run(vector)[0].tolist() == [[3]]


def test_what_loops_refuse(session):
    one = tf.constant([1])
    sparse = [tf.TensorSpec([], tf.int32), tf.SparseTensorSpec([None], tf.int32)]
    floats = [tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32)]
    for specs in (sparse, floats):
        with pytest.raises(TypeError, match="TypeSpec .* is not compatible with"):
            tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x), [0, one], specs)
    with pytest.raises(TypeError, match="type should remain constant"):
        tf.while_loop(lambda i: i < 3, lambda i: [tf.cast(i, tf.int64)], [0])
    with pytest.raises(ValueError, match="'maximum_iterations' must be a scalar"):
        tf.while_loop(lambda i: i < 3, lambda i: [i], [0], maximum_iterations=[2])


def test_operations_of_raw_ops_without_outputs(session):
    operation = tf.raw_ops.Assert(condition=tf.constant(False), data=[tf.constant(7)])
    assert operation.type == "Assert"
    with pytest.raises(tf.errors.InvalidArgumentError, match="7"):
        session.run(operation)


def test_functions_as_attributes(session):
    loop = tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])
    operation = loop[0].op.inputs[0].op
    assert operation.get_attr("body").name.startswith("while_body")
    assert operation.get_attr("T") == [tf.int32]
