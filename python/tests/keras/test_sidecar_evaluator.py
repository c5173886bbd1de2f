"""tf.keras.utils.SidecarEvaluator."""

import threading

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
X = np.arange(8, dtype=np.float32).reshape(4, 2)
Y = X.sum(1, keepdims=True)


class _Seen(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.losses, self.batches = [], 0

    def on_test_batch_end(self, batch, logs=None):
        self.batches += 1

    def on_test_end(self, logs=None):
        self.losses.append(float(logs["loss"]))


def _model(kernel=((1.0,), (1.0,))):
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.layers[0].kernel.assign(kernel)
    model.compile("sgd", "mse")
    return model


def _data():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(2)


def _evaluator(folder, seen, **kwargs):
    make = keras.utils.SidecarEvaluator
    return make(_model(), _data(), str(folder), callbacks=[seen], **kwargs)


def test_the_last_checkpoint_of_a_manager(tmp_path):
    trained, seen = _model(), _Seen()
    trained.fit(X, Y, verbose=0, epochs=3)
    checkpoint = tf.train.Checkpoint(model=trained, optimizer=trained.optimizer)
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
    manager.save()
    trained.layers[0].kernel.assign([[2.0], [3.0]])
    manager.save()
    evaluator = _evaluator(tmp_path, seen, max_evaluations=2)
    evaluator.start()
    np.testing.assert_allclose(
        seen.losses, [trained.evaluate(X, Y, verbose=0)], rtol=1e-5
    )
    assert int(evaluator.model.optimizer.iterations) == 3
    np.testing.assert_array_equal(evaluator.model.layers[0].kernel, [[2.0], [3.0]])


def test_weights_and_steps(tmp_path):
    seen = _Seen()
    _model([[2.0], [2.0]]).save_weights(str(tmp_path / "ckpt-1"))
    _evaluator(tmp_path, seen, steps=1, max_evaluations=1).start()
    np.testing.assert_allclose(seen.losses, [np.mean(Y[:2] ** 2)], rtol=1e-5)
    assert seen.batches == 1


def test_it_waits_for_those_that_come(tmp_path):
    trained, seen = _model(), _Seen()
    checkpoint = tf.train.Checkpoint(model=trained, optimizer=trained.optimizer)
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=5)
    evaluator = _evaluator(tmp_path, seen, max_evaluations=2)
    thread = threading.Thread(target=evaluator.start)
    thread.start()
    manager.save()
    thread.join(0.1)
    assert thread.is_alive()
    trained.layers[0].kernel.assign([[0.0], [0.0]])
    manager.save()
    thread.join(60)
    assert not thread.is_alive()
    np.testing.assert_allclose(seen.losses[-1], np.mean(Y**2), rtol=1e-5)


def test_checkpoints_of_something_else(tmp_path):
    tf.train.Checkpoint(v=tf.Variable(1.0)).save(str(tmp_path / "ckpt"))
    with pytest.raises(AssertionError, match="Nothing except the root object matched"):
        _evaluator(tmp_path, _Seen(), max_evaluations=1).start()


def test_the_older_name_warns(tmp_path):
    made = keras.experimental.SidecarEvaluator(_model(), _data(), str(tmp_path))
    assert isinstance(made, keras.utils.SidecarEvaluator)


def _exporting(tmp_path, pattern, **kwargs):
    """A function that evaluates a checkpoint of a kernel of that value and gives the
    names of what was exported."""
    trained, checkpoints = _model(), tmp_path / "ck"
    checkpoint = tf.train.Checkpoint(model=trained, optimizer=trained.optimizer)
    manager = tf.train.CheckpointManager(checkpoint, str(checkpoints), max_to_keep=5)
    callback = keras.callbacks.SidecarEvaluatorModelExport(
        export_filepath=str(tmp_path / "out" / "e{epoch}"),
        checkpoint_filepath=str(checkpoints / pattern),
        **kwargs,
    )
    evaluator = _evaluator(checkpoints, callback, max_evaluations=1)

    def step(value):
        trained.layers[0].kernel.assign([[value], [value]])
        manager.save()
        evaluator.start()
        out = tmp_path / "out"
        return sorted(p.name for p in out.iterdir()) if out.exists() else []

    return step


def test_the_best_is_exported(tmp_path):
    step = _exporting(tmp_path, "ckpt-{epoch}", monitor="loss", mode="min")
    assert step(3.0) == ["e1"]
    assert step(2.0) == ["e1", "e2"]
    assert step(2.5) == ["e1", "e2"]
    loaded = keras.models.load_model(str(tmp_path / "out" / "e2"))
    np.testing.assert_array_equal(loaded.layers[0].kernel, [[2.0], [2.0]])


def test_exports_that_cannot_be(tmp_path):
    assert _exporting(tmp_path, "ckpt-{epoch}", monitor="nothing")(3.0) == []
    for pattern in "other-{epoch}", "ckpt-1":
        with pytest.raises(ValueError, match="no checkpoint is called like"):
            _exporting(tmp_path, pattern)(2.0)
    with pytest.raises(TypeError, match="save_best_only"):
        _exporting(tmp_path, "ckpt-{epoch}", save_best_only=True)
