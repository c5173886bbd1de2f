"""tf.compat.v1.keras.callbacks.TensorBoard: what tf_keras 2.21 writes into its file, step by
step (TF_USE_LEGACY_KERAS=1, tf.compat.v1.disable_v2_behavior())."""

import glob

import numpy as np
import pytest

import headrace as tf

L = tf.keras.layers
TensorBoard = tf.compat.v1.keras.callbacks.TensorBoard
X, Y = np.ones((4, 3)), np.ones((4, 1))


def fitted(folder, **given):
    """[(step, tags)] of the events of a fit; graphs as their kinds."""
    model = tf.keras.Sequential([L.Dense(2, input_shape=(3,)), L.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    board = TensorBoard(str(folder), profile_batch=0, **given)
    how = dict(epochs=2, batch_size=2, verbose=0, validation_data=(X, Y))
    model.fit(X, Y, callbacks=[board], **how)
    (file,) = glob.glob(str(folder / "events*"))
    return [
        (event.step, [v.tag for v in event.summary.value] or event.WhichOneof("what"))
        for event in tf.compat.v1.train.summary_iterator(file)
    ]


EPOCH = ["epoch_loss", "epoch_mae", "epoch_val_loss", "epoch_val_mae"]
HISTOGRAMS = ["dense/kernel_0", "dense/bias_0", "dense_out"]
HISTOGRAMS += ["dense_1/kernel_0", "dense_1/bias_0", "dense_1_out"]


def test_epochs(tmp_path):
    with tf.Graph().as_default():
        found = fitted(tmp_path)
    graphs = [(0, "file_version"), (0, "graph_def"), (0, "meta_graph_def")]
    assert found == graphs + [(step, [tag]) for step in (0, 1) for tag in EPOCH]


def test_batches_are_counted_in_samples(tmp_path):
    with tf.Graph().as_default():
        found = fitted(tmp_path, update_freq="batch", write_graph=False)
    assert found[0] == (0, "file_version")
    batches = [(s, [t]) for s in (0, 1) for t in ("batch_loss", "batch_mae")]
    assert found[1:9] == batches + [(4, [tag]) for tag in EPOCH]
    assert found[-1] == (8, ["epoch_val_mae"])


def test_histograms_of_batches_of_validation(tmp_path):
    with tf.Graph().as_default():
        found = fitted(tmp_path, histogram_freq=1, write_graph=False)
    assert found[1:3] == [(0, HISTOGRAMS), (1, HISTOGRAMS)]
    assert [step for step, tags in found if tags == HISTOGRAMS] == [0, 1, 2, 3]


def test_slopes_and_pictures(tmp_path):
    given = dict(histogram_freq=2, write_grads=True, write_images=True)
    with tf.Graph().as_default():
        found = fitted(tmp_path, write_graph=False, **given)
    assert found[1][1] == [
        *("dense/kernel_0", "dense/kernel_0_1/image/0"),
        *("dense/bias_0", "dense/bias_0_1/image/0"),
        *("dense/kernel_0_grad", "dense/bias_0_grad", "dense_out"),
        *("dense_1/kernel_0", "dense_1/kernel_0_1/image/0", "dense_1/bias_0"),
        *("dense_1/kernel_0_grad", "dense_1/bias_0_grad", "dense_1_out"),
    ]
    assert len([tags for _, tags in found if "dense_out" in tags]) == 2  # one epoch's


def test_outside_of_graphs(tmp_path):
    found = fitted(tmp_path)
    assert found == [(0, "file_version")] + [(s, [t]) for s in (0, 1) for t in EPOCH]
    with pytest.raises(NotImplementedError, match="histograms outside of graphs"):
        fitted(tmp_path, histogram_freq=1)
    with pytest.raises(NotImplementedError, match="embeddings are not supported"):
        TensorBoard(embeddings_freq=1)
