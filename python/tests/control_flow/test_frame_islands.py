"""Nodes that always run together are one plan in graphs of TensorFlow 1's nodes."""

import headrace as tf
import numpy as np
import pytest

tf1 = tf.compat.v1
C = tf.constant


pytestmark = pytest.mark.usefixtures("frames")


def test_values_made_of_constants_alone_are_made_each_turn():
    def body(i, total):
        made = tf.fill([2], 1.0) * tf.fill([2], 2.0)
        return i + 1, total + made

    _, total = tf1.while_loop(lambda i, t: i < 3, body, [C(0), C([0.0, 1.0])])
    with tf1.Session() as session:
        assert session.run(total).tolist() == [6, 7]


def test_shapes_may_change_each_turn():
    x = tf1.placeholder(tf.float32, [None])
    _, grown = tf1.while_loop(
        lambda i, x: i < 3,
        lambda i, x: (i + 1, tf.concat([x * 2.0, x + 1.0], 0)),
        [C(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    with tf1.Session() as session:
        assert session.run(grown, {x: [1.0]}).tolist() == [8, 8, 6, 6, 5, 5, 4, 4]
        assert len(session.run(grown, {x: [1.0, 2.0]})) == 16


def test_a_value_inside_of_a_plan_may_be_fed():
    x = C(3.0)
    between = tf.sqrt(x + 1.0, name="between")
    y = tf.exp(between * 0.0) + between
    taken = tf1.cond(x > 0.0, lambda: y * 2.0, lambda: y)
    with tf1.Session() as session:
        assert session.run([taken, between]) == [6, 2]
        assert session.run([taken, between], {between: 5.0}) == [12, 5]
        # What nobody needs is not run: the square root would be none.
        assert session.run(taken, {between: 5.0, x: 1.0}) == 12


def test_branches_in_loops_run_where_they_are_taken():
    ran = []

    def note(x):
        ran.append(float(x))
        return np.float32(x)

    def turn(i, x):
        def even():
            return tf1.py_func(note, [x * 2.0 + 1.0], tf.float32)

        def odd():
            return tf.square(x) - x

        y = tf1.cond(tf.equal(i % 2, 0), even, odd)
        y.set_shape([])
        return i + 1, tf.abs(y) + 1.0

    _, x = tf1.while_loop(lambda i, x: i < 4, turn, [C(0), C(1.0)])
    with tf1.Session() as session:
        assert session.run(x) == 757
    assert ran == [3.0, 27.0]


def test_a_loop_in_a_branch_that_is_not_taken_does_nothing():
    go = tf1.placeholder(tf.bool, [])
    x = tf1.placeholder(tf.float32, [])

    def loop():
        return tf1.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, y * x + 1.0), [C(0), x + 1.0]
        )[1]

    y = tf1.cond(go, loop, lambda: -x - 1.0)
    (slope,) = tf1.gradients(y, [x])
    with tf1.Session() as session:
        assert session.run([y, slope], {go: True, x: 2.0}) == [31, 49]
        assert session.run([y, slope], {go: False, x: 2.0}) == [-3, -1]


def test_an_error_names_the_node_and_nothing_else():
    x = tf1.placeholder(tf.float32, [None])

    def body(i, y):
        wrong = tf.add(y * 2.0, C([1.0, 2.0]), name="wrong")
        return i + 1, tf.reshape(wrong - 1.0, [-1])

    _, y = tf1.while_loop(
        lambda i, y: i < 2,
        body,
        [C(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    with tf1.Session() as session:
        assert session.run(y, {x: [1.0, 1.0]}).tolist() == [4, 7]
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="while/wrong"
        ) as error:
            session.run(y, {x: [1.0, 1.0, 1.0]})
        assert str(error.value).count("[[{{node") == 1


def test_targets_run():
    x = C(4.0)
    root = tf.sqrt(x) * 1.0
    checked = tf.debugging.check_numerics(tf.math.log(x - 5.0), "none", name="checked")
    taken = tf1.cond(x > 0.0, lambda: root, lambda: x)
    with tf1.Session() as session:
        assert session.run([taken, root.op]) == [2, None]
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="none : Tensor had NaN"
        ):
            session.run([taken, checked.op])


def test_a_plan_waits_for_what_its_nodes_wait_for():
    v = tf1.get_variable("v", initializer=1.0, use_resource=True)
    with tf.control_dependencies([v.assign_add(1.0)]):
        read = v.read_value()
    with tf.control_dependencies([read]):
        late = tf.sqrt(C(4.0) + 0.0) * 3.0
    with tf.control_dependencies([late]):
        again = v.assign_add(10.0, read_value=False)
    taken = tf1.cond(C(True), lambda: late, lambda: late)
    with tf.control_dependencies([again]):
        after = v.read_value() * 1.0 + taken
    with tf1.Session() as session:
        session.run(v.initializer)
        assert session.run(after) == 18


def test_recurrent_cells_learn_the_same_in_both_kinds_of_loops():
    found = []
    data = np.random.RandomState(0).randn(4, 6, 3).astype("float32")
    for kind in (tf1.disable_control_flow_v2, tf1.enable_control_flow_v2):
        kind()
        with tf.Graph().as_default(), tf1.Session() as session:
            tf1.set_random_seed(1)
            cell = tf1.nn.rnn_cell.LSTMCell(5, initializer=tf1.ones_initializer())
            lengths = C([6, 3, 1, 4])
            out, _ = tf1.nn.dynamic_rnn(cell, C(data), lengths, dtype=tf.float32)
            loss = tf.reduce_sum(tf.square(out - 0.1))
            slopes = tf1.gradients(loss, tf1.trainable_variables())
            session.run(tf1.global_variables_initializer())
            found.append(session.run([loss, *slopes]))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
