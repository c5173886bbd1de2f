"""Checkpoints of plain graphs: sessions save and restore."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.l1 = tf.keras.layers.Dense(5)

    def call(self, x):
        return self.l1(x)


def keys(path):
    return {name for name, _ in tf.train.list_variables(path)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_layers_make_variables_of_the_graph():
    with tf.Graph().as_default(), v1.Session() as session:
        layer = tf.keras.layers.Dense(2)
        layer(tf.ones([3, 4]))
        names = ["dense/kernel", "dense/bias"]
        assert [v.op.name for v in v1.global_variables()] == names
        assert [v.op.name for v in v1.trainable_variables()] == names
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(layer.kernel)
        session.run(v1.global_variables_initializer())
        assert session.run(layer.kernel).shape == (4, 2)
    with tf.Graph().as_default():
        assert tf.keras.layers.Dense(2).name == "dense"


def train(net, optimizer, steps):
    """Losses of some steps, and the session's step."""
    x = tf.constant([[1.0], [2.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.abs(net(x) - 3.0))
    variables = net.trainable_variables
    gradients = tape.gradient(loss, variables)
    step = optimizer.apply_gradients(zip(gradients, variables))
    return step, loss


def test_checkpoints_cross_between_a_graph_and_eager_code(folder):
    with tf.Graph().as_default(), v1.Session() as session:
        net, optimizer = Net(), tf.keras.optimizers.Adam(0.1)
        step, _ = train(net, optimizer, 3)
        assert step.type == "AssignAddVariableOp"
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        path = tf.train.Checkpoint(net=net, optimizer=optimizer).save("./c")
        kernel = session.run(net.l1.kernel)
        momentum = session.run(optimizer.get_slot(net.l1.kernel, "m"))
    assert path == "./c-1" and tf.train.latest_checkpoint(".") == "./c-1"
    assert (
        "net/l1/kernel/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE"
        in keys(path)
    )
    net, optimizer = Net(), tf.keras.optimizers.Adam(0.1)
    checkpoint = tf.train.Checkpoint(net=net, optimizer=optimizer)
    status = checkpoint.restore(path)
    net(tf.ones([1, 1]))
    optimizer.build(net.trainable_variables)
    status.assert_consumed()
    np.testing.assert_array_equal(net.l1.kernel.numpy(), kernel)
    slot = optimizer.get_slot(net.l1.kernel, "m")
    np.testing.assert_array_equal(slot.numpy(), momentum)
    assert int(optimizer.iterations) == 3

    path = checkpoint.save("./back")
    with tf.Graph().as_default(), v1.Session() as session:
        net, optimizer = Net(), tf.keras.optimizers.Adam(0.1)
        train(net, optimizer, 1)
        status = tf.train.Checkpoint(net=net, optimizer=optimizer).restore(path)
        status.assert_consumed().initialize_or_restore(session)
        np.testing.assert_array_equal(session.run(net.l1.kernel), kernel)
        assert session.run(optimizer.iterations) == 3


def test_what_a_layer_makes_later_starts_with_the_restored_value(folder):
    net = Net()
    net(tf.ones([1, 1]))
    kernel = net.l1.kernel.numpy()
    path = tf.train.Checkpoint(net=net).save("./c")
    with tf.Graph().as_default(), v1.Session() as session:
        late = Net()
        tf.train.Checkpoint(net=late).restore(path)
        late(tf.ones([1, 1]))
        session.run(v1.global_variables_initializer())
        np.testing.assert_array_equal(session.run(late.l1.kernel), kernel)


def test_a_variable_attached_later_is_restored_by_the_status(folder):
    path = tf.train.Checkpoint(v=tf.Variable(3.0)).save("./c")
    with tf.Graph().as_default(), v1.Session() as session:
        checkpoint = tf.train.Checkpoint()
        status = checkpoint.restore(path)
        checkpoint.v = variable = tf.Variable(9.0)
        session.run(variable.initializer)
        assert session.run(variable) == 9.0
        status.run_restore_ops(session)
        assert session.run(variable) == 3.0


def test_statuses_initialize_what_was_not_restored(folder):
    path = tf.train.Checkpoint(v=tf.Variable(3.0)).save("./c")
    with tf.Graph().as_default(), v1.Session() as session:
        v, w = tf.Variable(1.0), tf.Variable(2.0)
        checkpoint = tf.train.Checkpoint(v=v, w=w)
        status = checkpoint.restore(path)
        with pytest.raises(AssertionError, match="Found 1 Python objects"):
            status.assert_existing_objects_matched()
        status.initialize_or_restore(session)
        assert session.run([v, w]) == [3.0, 2.0]
    with tf.Graph().as_default(), v1.Session() as session:
        v = tf.Variable(1.0)
        tf.train.Checkpoint(v=v).restore(None).initialize_or_restore(session)
        assert session.run(v) == 1.0


def test_saves_count_and_see_new_objects(folder):
    with tf.Graph().as_default(), v1.Session() as session:
        checkpoint = tf.train.Checkpoint(v=tf.Variable(1))
        session.run(checkpoint.v.initializer)
        assert checkpoint.save("./c") == "./c-1"
        checkpoint.w = tf.Variable(2)
        session.run(checkpoint.w.initializer)
        nodes = len(v1.get_default_graph().get_operations())
        assert checkpoint.save("./c", session=session) == "./c-2"
        assert checkpoint.save("./c") == "./c-3"
        assert checkpoint.write("./plain") == "./plain"
        assert len(v1.get_default_graph().get_operations()) < nodes + 20
    assert "w/.ATTRIBUTES/VARIABLE_VALUE" not in keys("./c-1")
    assert "w/.ATTRIBUTES/VARIABLE_VALUE" in keys("./c-2")
    assert "save_counter/.ATTRIBUTES/VARIABLE_VALUE" in keys("./plain")


def test_name_based_checkpoints_are_restored(folder):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("w", initializer=3.0)
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver().save(session, "./named")
    with tf.Graph().as_default(), v1.Session() as session:
        w = tf.Variable(0.0, name="w")
        status = tf.train.Checkpoint(anything=w).restore(path)
        status.assert_consumed().initialize_or_restore(session)
        assert session.run(w) == 3.0


def test_reference_variables_are_saved_too(folder):
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=3.0, use_resource=False)
        session.run(w.initializer)
        path = tf.train.Checkpoint(w=w).write("./c")
    assert tf.train.load_variable(path, "w/.ATTRIBUTES/VARIABLE_VALUE") == 3.0
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=0.0, use_resource=False)
        tf.train.Checkpoint(w=w).restore(path).run_restore_ops(session)
        assert session.run(w) == 3.0


def test_without_a_session_nothing_is_saved(folder):
    with tf.Graph().as_default():
        checkpoint = tf.train.Checkpoint(v=tf.Variable(1))
        with pytest.raises(ValueError, match="session"):
            checkpoint.save("./c")
    with pytest.raises(tf.errors.UnimplementedError, match="belongs to a graph"):
        checkpoint.write("./c")
    assert not (folder / "c.index").exists()


def test_shapes_must_agree(folder):
    path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save("./c")
    with tf.Graph().as_default():
        checkpoint = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0, 3.0]))
        with pytest.raises(ValueError, match=r"shape \(2,\)"):
            checkpoint.restore(path)


def test_a_finalized_graph_is_saved_and_restored_again(tmp_path):
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
        session.run(checkpoint.v.initializer)
        first = checkpoint.save(tmp_path / "c")
        checkpoint.restore(first).run_restore_ops()
        assign = checkpoint.v.assign(2.0)
        graph.finalize()
        session.run(assign)
        second = checkpoint.save(tmp_path / "c")
        for path, value in ((first, 1.0), (second, 2.0), (first, 1.0)):
            checkpoint.restore(path).run_restore_ops()
            assert session.run(checkpoint.v) == value


def test_options_hold_in_sessions_too(tmp_path):
    written = []
    options = tf.train.CheckpointOptions(
        experimental_sharding_callback=(
            tf.train.experimental.MaxShardSizePolicy(max_shard_size=10)
        ),
        experimental_write_callbacks=[written.append],
    )
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        root = tf.Module()
        root.v = tf.Variable([[0, 1], [2, 3], [4, 5]])
        root.w = tf.Variable("text")
        session.run(tf.compat.v1.global_variables_initializer())
        checkpoint = tf.train.Checkpoint(root)
        paths = [checkpoint.save(tmp_path / "c", options=options) for _ in range(2)]
        assert written == paths
        files = tf.io.gfile.glob(paths[1] + ".data*")
        assert len(files) > 3
        session.run(root.v.assign([[0, 0]] * 3))
        checkpoint.restore(paths[1]).assert_consumed().run_restore_ops()
        assert session.run(root.v).tolist() == [[0, 1], [2, 3], [4, 5]]
        assert session.run(root.w) == b"text"
