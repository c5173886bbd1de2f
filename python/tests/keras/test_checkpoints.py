"""Checkpoints of models and optimizers, alone and with TensorFlow."""

import os
import pathlib
import shutil
import subprocess
import sys

import headrace as tf
import keras_interchange as interchange
import numpy as np
import pytest

keras = tf.keras
layers = keras.layers
PYTHON = os.environ.get("HEADRACE_TENSORFLOW_PYTHON", "")
HERE = pathlib.Path(__file__).parent


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.l1 = layers.Dense(5)

    def call(self, x):
        return self.l1(x)


def step(net, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.abs(net(tf.ones([2, 1])) - 3.0))
    variables = net.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return float(loss)


def keys(path):
    return [
        k.replace("/.ATTRIBUTES/VARIABLE_VALUE", "")
        for k, _ in tf.train.list_variables(path)[1:]
    ]


@pytest.mark.parametrize(
    "optimizer", [keras.optimizers.Adam, keras.optimizers.legacy.Adam]
)
def test_keys_are_the_guides(tmp_path, optimizer):
    net, optimizer = Net(), optimizer(0.1)
    step(net, optimizer)
    root = tf.train.Checkpoint(optimizer=optimizer, net=net)
    assert keys(root.save(str(tmp_path / "c"))) == [
        "net/l1/bias",
        "net/l1/bias/.OPTIMIZER_SLOT/optimizer/m",
        "net/l1/bias/.OPTIMIZER_SLOT/optimizer/v",
        "net/l1/kernel",
        "net/l1/kernel/.OPTIMIZER_SLOT/optimizer/m",
        "net/l1/kernel/.OPTIMIZER_SLOT/optimizer/v",
        "optimizer/beta_1",
        "optimizer/beta_2",
        "optimizer/decay",
        "optimizer/iter",
        "optimizer/learning_rate",
        "save_counter",
    ]
    alone = tf.train.Checkpoint(optimizer=optimizer).write(str(tmp_path / "o"))
    assert not [k for k in keys(alone) if "SLOT" in k or "_variables" in k]


def test_keys_of_lists_are_tensorflows(tmp_path):
    experimental = keras.optimizers.experimental
    net, optimizer = Net(), experimental.Adam(0.1)
    step(net, optimizer)
    root = tf.train.Checkpoint(optimizer=optimizer, net=net)
    path = root.save(str(tmp_path / "c"))
    lists = [f"optimizer/_variables/{i}" for i in range(1, 5)]
    assert keys(path) == [
        "net/l1/bias",
        "net/l1/kernel",
        "optimizer/_iterations",
        "optimizer/_learning_rate",
        *lists,
        "save_counter",
    ]
    config = keras.optimizers.serialize(optimizer)
    assert type(keras.optimizers.deserialize(config)) is experimental.Adam
    # TensorFlow makes momenta even where they are zero, and keeps a schedule's rate.
    schedule = keras.optimizers.schedules.InverseTimeDecay(1.0, 1, 1.0)
    optimizer = experimental.SGD(schedule)
    for _ in range(2):
        step(net, optimizer)
    path = tf.train.Checkpoint(optimizer=optimizer).write(str(tmp_path / "s"))
    assert keys(path) == [
        "optimizer/_current_learning_rate",
        "optimizer/_iterations",
        *lists[:2],
    ]
    reader = tf.train.load_checkpoint(path)
    rate = "optimizer/_current_learning_rate/.ATTRIBUTES/VARIABLE_VALUE"
    assert reader.get_tensor(rate) == 0.5


def test_iterations_can_be_given(tmp_path):
    variable = tf.Variable(5, dtype=tf.int64)
    for kind in keras.optimizers, keras.optimizers.experimental:
        net, optimizer = Net(), kind.Adam(0.1)
        optimizer.iterations = variable
        step(net, optimizer)
        root = tf.train.Checkpoint(optimizer=optimizer, net=net)
        path = root.write(str(tmp_path / "c"))
        other = kind.Adam(0.1)
        tf.train.Checkpoint(optimizer=other, net=Net()).read(path)
        assert int(other.iterations) == int(variable)
    assert int(variable) == 7


LAYOUTS = [keras.optimizers, keras.optimizers.experimental]


@pytest.mark.parametrize("written", LAYOUTS, ids=["slots", "lists"])
@pytest.mark.parametrize("read", LAYOUTS, ids=["slots", "lists"])
def test_two_optimizers_of_one_model(tmp_path, written, read):
    """Each knows its own variables, half of which exist at the restore."""

    def objects(room):
        schedule = keras.optimizers.schedules.InverseTimeDecay(0.1, 2, 0.5)
        first, second = room.Adam(schedule, amsgrad=True), room.RMSprop(0.1)
        nets = Net(), Net()
        root = tf.train.Checkpoint(a=first, b=second, nets=list(nets))
        return nets, (first, second), root

    nets, optimizers, root = objects(written)
    for _ in range(2):
        for each in zip(nets, optimizers):
            step(*each)
    path = root.write(str(tmp_path / "c"))
    expected = [step(*each) for each in zip(nets, optimizers)]
    nets, optimizers, root = objects(read)
    nets[0](tf.ones([1, 1]))
    optimizers[0].build(nets[0].trainable_variables)
    status = root.read(path)
    assert [step(*each) for each in zip(nets, optimizers)] == expected
    status.assert_existing_objects_matched()
    if written is read:
        status.assert_consumed()


def test_training_goes_on_where_it_stopped(tmp_path):
    def objects():
        net, optimizer = Net(), keras.optimizers.Adam(0.1)
        return net, optimizer, tf.train.Checkpoint(o=optimizer, net=net)

    net, optimizer, root = objects()
    for _ in range(3):
        step(net, optimizer)
    path = root.save(str(tmp_path / "c"))
    expected = [step(net, optimizer) for _ in range(3)]
    net, optimizer, root = objects()
    status = root.restore(path)  # nothing is built yet
    assert [step(net, optimizer) for _ in range(3)] == expected
    assert int(optimizer.iterations) == 6
    status.assert_consumed()


def test_save_weights(tmp_path):
    path = str(tmp_path / "w")
    net = Net()
    net.save_weights(path)  # not built: an empty checkpoint
    assert {p.name for p in tmp_path.iterdir()} >= {"w.index", "checkpoint"}
    net(tf.ones([1, 1]))
    net.save_weights(path)
    other = Net()
    other.load_weights(path)
    x = tf.constant([[2.0], [3.0]])
    np.testing.assert_array_equal(other(x), net(x))
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    with pytest.raises(ValueError, match="have not yet been created"):
        keras.Sequential([layers.Dense(1)]).save_weights(path)
    with pytest.raises(tf.errors.NotFoundError):
        net.load_weights(str(tmp_path / "none"))


def test_compiled_models_save_their_optimizer(tmp_path):
    model = keras.Sequential([layers.Dropout(0.1), layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(np.ones((4, 3)), np.ones(4), verbose=0)
    model.save_weights(str(tmp_path / "w"))
    assert "optimizer/iter" in keys(str(tmp_path / "w"))
    first = "layer_with_weights-0/bias"
    assert keys(str(tmp_path / "w"))[0] == first
    assert f"{first}/.OPTIMIZER_SLOT/optimizer/m" in keys(str(tmp_path / "w"))


def run_tensorflow(*arguments):
    program = str(HERE / "keras_interchange.py")
    environment = {
        **os.environ,
        "TF_USE_LEGACY_KERAS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": "",
    }
    result = subprocess.run(
        [PYTHON, program, *arguments], capture_output=True, text=True, env=environment
    )
    assert result.returncode == 0, result.stderr[-2000:]


def assert_same(path, net, optimizer, tolerance=0.0):
    stored = np.load(path)
    assert int(stored["step"]) == int(optimizer.iterations)
    for i, weight in enumerate(net.weights):
        np.testing.assert_allclose(
            weight.numpy(), stored[f"arr_{i}"], rtol=0, atol=tolerance
        )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(PYTHON) is None, reason="no TensorFlow")
@pytest.mark.skipif(sys.platform == "win32", reason="paths")
@pytest.mark.parametrize("kind", ["legacy", "current", "experimental"])
def test_with_tensorflow(tmp_path, kind):
    """Each goes on training from the other's checkpoint, slots included."""
    net, optimizer, root = interchange.build(tf, kind)
    interchange.train(tf, net, optimizer, 3)
    path = root.save(str(tmp_path / "ours"))
    interchange.train(tf, net, optimizer, 1)
    # TensorFlow's newer optimizers refuse files that have slots.
    reader = "legacy" if kind == "current" else kind
    run_tensorflow("go_on", reader, path, str(tmp_path / "a.npz"))
    # Its newer optimizers' operations are others than these.
    tolerance = 2e-7 if kind == "experimental" else 0.0
    assert_same(tmp_path / "a.npz", net, optimizer, tolerance)
    run_tensorflow("begin", kind, str(tmp_path / "theirs"), str(tmp_path / "b.npz"))
    net, optimizer, root = interchange.build(tf, kind)
    root.restore(str(tmp_path / "theirs-1"))
    interchange.train(tf, net, optimizer, 1)
    assert_same(tmp_path / "b.npz", net, optimizer, 2e-7)
