"""Callbacks."""

import os

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
callbacks = keras.callbacks
X = np.sin(np.arange(40)).astype("float32").reshape(20, 2)
Y = X.sum(1)


def model(rate=0.1):
    init = keras.initializers.Constant(0.1)
    net = keras.Sequential([keras.layers.Dense(1, kernel_initializer=init)])
    net.compile(keras.optimizers.SGD(rate), "mse")
    return net


def fit(net, *given, **kwargs):
    return net.fit(X, Y, verbose=0, callbacks=list(given), **kwargs)


def test_early_stopping_restores_the_best():
    stop = callbacks.EarlyStopping("loss", patience=2, restore_best_weights=True)
    rates = callbacks.LearningRateScheduler(lambda e: 0.1 if e < 3 else 30.0)
    net = model()
    history = fit(net, stop, rates, epochs=20)
    assert stop.stopped_epoch == len(history.epoch) - 1 < 19
    best = min(history.history["loss"])
    assert stop.best == best
    assert history.history["lr"][0] == pytest.approx(0.1)


def test_model_checkpoint(tmp_path):
    path = str(tmp_path / "w-{epoch:02d}")
    fit(model(), callbacks.ModelCheckpoint(path, save_weights_only=True), epochs=2)
    assert os.path.exists(tmp_path / "w-01.index")
    assert os.path.exists(tmp_path / "w-02.index")
    best = callbacks.ModelCheckpoint(
        str(tmp_path / "best"), "loss", save_best_only=True, save_weights_only=True
    )
    net = model()
    fit(net, best, epochs=2)
    other = model()
    other.load_weights(str(tmp_path / "best"))
    other(X)
    np.testing.assert_array_equal(other.get_weights()[0], net.get_weights()[0])
    for name in ("whole", "whole.keras"):
        fit(net, callbacks.ModelCheckpoint(str(tmp_path / name)), epochs=1)
        whole = tf.keras.models.load_model(str(tmp_path / name))
        np.testing.assert_array_equal(whole.get_weights()[0], net.get_weights()[0])
        assert whole.optimizer.iterations == net.optimizer.iterations


def test_backup_and_restore(tmp_path):
    folder = str(tmp_path / "backup")

    def interrupt(epoch, logs):
        if epoch == 2:
            raise KeyboardInterrupt

    straight = model()
    expected = fit(straight, epochs=4, shuffle=False)
    stop = callbacks.LambdaCallback(on_epoch_begin=interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(model(), callbacks.BackupAndRestore(folder), stop, epochs=4, shuffle=False)
    net = model()
    history = fit(net, callbacks.BackupAndRestore(folder), epochs=4, shuffle=False)
    assert history.epoch == [2, 3]
    assert history.history["loss"] == expected.history["loss"][2:]
    np.testing.assert_array_equal(net.get_weights()[0], straight.get_weights()[0])
    assert os.listdir(folder) == []  # the folder itself is the user's


def test_calls_in_order():
    seen = []

    class Watch(callbacks.Callback):
        pass

    for name in dir(callbacks.Callback):
        if name.startswith("on_") and "_batch_" not in name[:9]:

            def method(self, *args, _name=name, **kwargs):
                seen.append(_name)

            setattr(Watch, name, method)
    net = model()
    fit(net, Watch(), validation_data=(X, Y), batch_size=20)
    assert seen == [
        "on_train_begin",
        "on_epoch_begin",
        "on_train_batch_begin",
        "on_train_batch_end",
        "on_test_begin",
        "on_test_batch_begin",
        "on_test_batch_end",
        "on_test_end",
        "on_epoch_end",
        "on_train_end",
    ]


def test_logs(tmp_path):
    values = []
    watch = callbacks.LambdaCallback(
        on_batch_end=lambda batch, logs: values.append((batch, logs["loss"]))
    )
    csv = callbacks.CSVLogger(str(tmp_path / "log.csv"))
    history = fit(model(), watch, csv, batch_size=10, epochs=2)
    assert [b for b, _ in values] == [0, 1, 0, 1]
    assert values[-1][1] == history.history["loss"][-1]
    assert (tmp_path / "log.csv").read_text().startswith("epoch,loss,val_loss\n0,")


def test_tensorboard(tmp_path):
    fit(
        model(),
        callbacks.TensorBoard(str(tmp_path), histogram_freq=1),
        validation_data=(X, Y),
    )
    for part in ("train", "validation"):
        (file,) = (tmp_path / part).iterdir()
        assert b"epoch_loss" in file.read_bytes()


def events(folder):
    """(step, tag or "graph") of the events in the folder's file."""
    (file,) = folder.iterdir()
    for event in tf.compat.v1.train.summary_iterator(str(file)):
        if event.graph_def:
            graph = tf.compat.v1.GraphDef.FromString(event.graph_def)
            assert "MatMul" in {n.op for n in graph.node}
            yield event.step, "graph"
        for value in event.summary.value:
            if value.tag == "keras":
                assert value.metadata.plugin_data.plugin_name == "graph_keras_model"
                assert b'"Dense"' in value.tensor.string_val[0]
            yield event.step, value.tag


def test_tensorboard_writes_the_graph(tmp_path):
    fit(model(), callbacks.TensorBoard(str(tmp_path / "a")))
    found = list(events(tmp_path / "a" / "train"))
    assert found == [(0, "graph"), (0, "epoch_loss")]
    net = keras.Sequential([keras.layers.Input([2]), keras.layers.Dense(1)])
    net.compile("sgd", "mse")
    fit(net, callbacks.TensorBoard(str(tmp_path / "b"), update_freq="batch"))
    found = list(events(tmp_path / "b" / "train"))
    rest = [(1, "batch_loss"), (0, "epoch_loss")]
    assert found == [(0, "keras"), (0, "graph"), *rest]
    board = callbacks.TensorBoard(str(tmp_path / "c"), write_graph=False)
    fit(net, board)
    assert list(events(tmp_path / "c" / "train")) == [(0, "epoch_loss")]


@pytest.mark.parametrize(
    "batches, step", [(2, 2), ((1, 3), 3), ("1,3", 3), ((2, 99), 99), (99, None)]
)
def test_tensorboard_profiles_batches(tmp_path, batches, step):
    board = callbacks.TensorBoard(
        str(tmp_path), profile_batch=batches, write_graph=False
    )
    fit(model(), board, batch_size=8, epochs=4)
    files = [f for _, _, found in os.walk(tmp_path / "plugins") for f in found]
    tags = {t for t in events(tmp_path / "train") if t[1].startswith("batch_")}
    assert len(files) == (step is not None)
    assert tags == ({(step, f"batch_{step}")} if step else set())


@pytest.mark.parametrize("batches", [-1, (1,), (3, 2), None, "2", "1,2,3"])
def test_tensorboard_refuses_batches(batches):
    with pytest.raises(ValueError, match="profile_batch must be a non-negative"):
        callbacks.TensorBoard(profile_batch=batches)


def test_reduce_on_plateau():
    net = model(1e-9)
    plateau = callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2, min_delta=1)
    fit(net, plateau, epochs=4)
    assert float(net.optimizer.learning_rate) == pytest.approx(5e-10)


def test_tensorboard_shows_weights_and_embeddings(tmp_path):
    layers = keras.layers
    net = keras.Sequential(
        [
            layers.Embedding(5, 3, input_length=4, name="emb"),
            layers.Reshape((4, 3, 1)),
            layers.Conv2D(2, 2, name="conv"),
            layers.Flatten(),
            layers.Dense(2, name="out"),
        ]
    )
    net.compile("sgd", "mse")

    def trained(folder, **how):
        board = callbacks.TensorBoard(str(folder), write_graph=False, **how)
        net.fit(np.zeros([4, 4]), np.zeros([4, 2]), verbose=0, callbacks=[board])

    trained(tmp_path / "a", histogram_freq=1, write_images=True)
    (file,) = (tmp_path / "a" / "train").iterdir()
    sizes = {}
    for event in tf.compat.v1.train.summary_iterator(str(file)):
        for value in event.summary.value:
            if value.tag.endswith("/image"):
                width, height, *files = tf.make_ndarray(value.tensor).tolist()
                sizes[value.tag] = (int(width), int(height), len(files))
    assert sizes == {  # matrices lie on their long side
        "emb/embeddings_0/image": (5, 3, 1),
        "conv/kernel_0/image": (2, 2, 2),
        "conv/bias_0/image": (1, 2, 1),
        "out/kernel_0/image": (12, 2, 1),
        "out/bias_0/image": (1, 2, 1),
    }
    key = "layer_with_weights-0/embeddings/.ATTRIBUTES/VARIABLE_VALUE"
    named = f'embeddings {{\n  tensor_name: "{key}"\n'
    for folder, files, path in (
        ("b", None, ""),
        ("c", "rows.tsv", '  metadata_path: "rows.tsv"\n'),
        ("d", {"emb": "rows.tsv"}, '  metadata_path: "rows.tsv"\n'),
    ):
        trained(tmp_path / folder, embeddings_freq=1, embeddings_metadata=files)
        config = tmp_path / folder / "projector_config.pbtxt"
        assert config.read_text() == named + path + "}\n"
        saved = str(tmp_path / folder / "train" / "keras_embedding.ckpt-0")
        assert tf.train.load_checkpoint(saved).get_tensor(key).shape == (5, 3)
    with pytest.raises(
        ValueError, match=r"Unrecognized `Embedding` layer names .*nope"
    ):
        trained(tmp_path / "e", embeddings_freq=1, embeddings_metadata={"nope": "x"})
