"""tf.train.ExponentialMovingAverage, values and names as TensorFlow has them."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
Average = tf.train.ExponentialMovingAverage


def test_variables_eagerly():
    v, w = tf.Variable([1.0, 2.0], name="v"), tf.Variable(3.0, name="w")
    average = Average(0.9)
    assert average.name == "ExponentialMovingAverage"
    assert average.average(v) is None
    assert average.apply([v, w]) is None
    shadow = average.average(v)
    assert shadow.name == "v/ExponentialMovingAverage:0" and not shadow.trainable
    v.assign([5.0, 6.0])
    average.apply([v, w])
    np.testing.assert_allclose(shadow.numpy(), [1.4, 2.4], rtol=1e-6)
    assert average.average_name(w) == "w/ExponentialMovingAverage"
    assert average.variables_to_restore([v]) == {"v/ExponentialMovingAverage": v}


def test_count_of_updates_and_no_debias_of_variables():
    v = tf.Variable([5.0, 6.0])
    counted = Average(0.999, num_updates=tf.Variable(3))
    counted.apply([v])
    v.assign([0.0, 0.0])
    counted.apply([v])
    np.testing.assert_allclose(counted.average(v), [1.5384614, 1.8461537], rtol=1e-6)
    w = tf.Variable(3.0)
    average = Average(0.9, zero_debias=True)
    average.apply([w])
    w.assign(9.0)
    average.apply([w])
    average.apply([w])
    np.testing.assert_allclose(average.average(w), 4.14, rtol=1e-6)


def test_refused():
    average = Average(0.9)
    with pytest.raises(TypeError, match="does not support non-Variable tensors"):
        average.apply([tf.constant(1.0)])
    with pytest.raises(TypeError, match="must be half, float, or double"):
        average.apply([tf.Variable(1)])


def test_traced():
    v, average = tf.Variable([0.0, 0.0]), Average(0.5)

    @tf.function
    def step(x):
        v.assign(x)
        average.apply([v])
        return average.average(v) + 0.0

    step(tf.constant([1.0, 1.0]))
    before = average.average(v).numpy()
    found = step(tf.constant([3.0, 1.0]))
    np.testing.assert_allclose(found, (before + [3.0, 1.0]) / 2)
    np.testing.assert_allclose(average.average(v), found)


def test_graph_names_and_values():
    with tf.Graph().as_default():
        a = v1.get_variable("a", initializer=[1.0, 2.0])
        b = v1.get_variable("b", initializer=4.0, trainable=False)
        x = a * 2.0
        average = Average(0.9)
        update = average.apply([a, x])
        assert update.type == "NoOp" and update.name == "ExponentialMovingAverage"
        assert average.average(b) is None
        names = {k: v.name for k, v in average.variables_to_restore().items()}
        of_x = "mul/ExponentialMovingAverage"
        assert names == {
            "a/ExponentialMovingAverage": "a:0",
            "b": "b:0",
            of_x: of_x + ":0",
        }
        assert v1.moving_average_variables() == [a]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            shadows = [average.average(a), average.average(x)]
            assert [s.tolist() for s in session.run(shadows)] == [[1, 2], [0, 0]]
            session.run(a.assign([3.0, 3.0]))
            session.run(update)
            of_a, of_x = session.run(shadows)
        np.testing.assert_allclose(of_a, [1.2, 2.1], rtol=1e-6)
        np.testing.assert_allclose(of_x, [0.6, 0.6], rtol=1e-6)


def test_graph_zero_debias():
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=[1.0, 2.0])
        x = a * 2.0
        average = Average(0.9, zero_debias=True, num_updates=a[0])
        update = average.apply([x, a])
        assert [v.name for v in v1.global_variables()][-2:] == [
            "mul/ExponentialMovingAverage/biased:0",
            "mul/ExponentialMovingAverage/local_step:0",
        ]
        session.run(v1.global_variables_initializer())
        session.run(update)
        assert session.run(average.average(x)).tolist() == [2.0, 4.0]
        session.run(a.assign([5.0, 5.0]))
        session.run(update)
        of_x, of_a = session.run([average.average(x), average.average(a)])
        np.testing.assert_allclose(of_x, [7.922077, 8.701299], rtol=1e-6)
        np.testing.assert_allclose(of_a, [3.4, 3.8], rtol=1e-6)


def test_averages_restored_in_the_variables_places(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=[1.0])
        average = Average(0.5)
        update = average.apply([a])
        session.run(v1.global_variables_initializer())
        session.run(a.assign([3.0]))
        session.run(update)
        step = v1.Variable(7, name="step", trainable=False)
        session.run(step.initializer)
        path = v1.train.Saver().save(session, str(tmp_path / "m"), global_step=step)
        assert path.endswith("m-7")
        v1.train.Saver(average.variables_to_restore()).restore(session, path)
        assert session.run(a).tolist() == [2.0]


def test_variables_by_reference():
    # Behind the step: the average sees what the step made of variable and count. Values
    # and names of TensorFlow 2.21.
    v1.disable_resource_variables()
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph, v1.Session() as session:
            w = v1.get_variable("w", initializer=[1.0, 2.0])
            count = v1.train.get_or_create_global_step()
            average = Average(0.9, num_updates=count)
            grow = tf.group(w.assign_add([1.0, -0.5]), count.assign_add(1))
            with tf.control_dependencies([grow]):
                track = average.apply([w])
            session.run(v1.global_variables_initializer())
            session.run(track)
            found = session.run(average.average(w))
            np.testing.assert_allclose(found, [1.8181818, 1.5909091], rtol=1e-6)
            op = graph.get_operation_by_name("ExponentialMovingAverage/AssignMovingAvg")
            assert (op.type, op.colocation_groups()) == ("AssignSub", [b"loc:@w"])
    finally:
        v1.enable_resource_variables()
        v1.enable_control_flow_v2()


def test_names_before_and_behind_the_averaging():
    with tf.Graph().as_default():
        with v1.variable_scope("s1"):
            v = v1.get_variable("v", initializer=1.0)
            x = v * 2.0
        with v1.variable_scope("s2"):
            average = Average(0.9, name="avg")
            names = [average.average_name(of) for of in (v, x)]
            assert names == ["s2/s1/v/avg", "s2/s1/mul/avg"]
            average.apply([v, x])
        assert [average.average_name(of) for of in (v, x)] == names


def test_averages_of_tensors_lie_where_devices_say():
    setter = v1.train.replica_device_setter(ps_tasks=7)
    with tf.Graph().as_default(), v1.device(setter):
        v = v1.get_variable("v", [2])
        Average(0.9, zero_debias=True).apply([v, v * 2.0])
        v1.get_variable("last", [2])
        found = {x.op.name: x.device for x in v1.global_variables()}
    # The setter counts those that lie with others, too, as TensorFlow's does.
    assert found == {
        "v": "/job:ps/task:0",
        "v/ExponentialMovingAverage": "/job:ps/task:0",
        "mul/ExponentialMovingAverage": "/job:ps/task:2",
        "mul/ExponentialMovingAverage/biased": "/job:ps/task:2",
        "mul/ExponentialMovingAverage/local_step": "/job:ps/task:2",
        "last": "/job:ps/task:5",
    }
