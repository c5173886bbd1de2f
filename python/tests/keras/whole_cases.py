"""Whole models for files: `python whole_cases.py tests/golden/keras/whole`, with a Python
that has TensorFlow 2.21 and tf_keras (TF_USE_LEGACY_KERAS=1), writes those that
test_whole.py reads, and what the models predict."""

import os
import sys

import numpy as np

INPUTS = np.linspace(-1, 1, 12).reshape(4, 3).astype("float32")
TARGETS = np.ones((4, 1), "float32")
ENDINGS = {"stack": (".keras", ".h5"), "graph": (".h5", ""), "steps": (".keras", ".h5")}


def inputs_of(name):
    """Numbers of words for the model that embeds them."""
    return np.arange(12).reshape(4, 3) % 5 if name == "steps" else INPUTS


def models(tf):
    """{name: compiled model}."""
    k = tf.keras
    k.utils.set_random_seed(1)
    layers = k.layers
    stack = k.Sequential(
        [
            layers.Input((3,)),
            layers.Dense(2, activation="relu", kernel_regularizer="l2"),
            layers.BatchNormalization(),
            layers.Dense(1),
        ],
        name="stack",
    )
    stack.compile("adam", "mse", metrics=["mae"])
    first = k.Input((3,), name="first")
    wide = layers.Dense(2, name="wide")(first)
    both = layers.Concatenate()([wide, layers.Activation("tanh")(wide)])
    graph = k.Model(first, layers.Dense(1, name="out")(both), name="graph")
    graph.compile(
        k.optimizers.legacy.SGD(0.1, momentum=0.9),
        k.losses.Huber(0.5),
        metrics=[k.metrics.MeanSquaredError(name="error")],
        loss_weights={"out": 2.0},
    )
    steps = k.Sequential(
        [
            layers.Embedding(5, 2, input_length=3),
            layers.Bidirectional(layers.LSTM(1)),
            layers.Dense(1),
        ],
        name="steps",
    )
    rate = k.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    steps.compile(k.optimizers.RMSprop(rate), k.losses.mean_absolute_error)
    return {"stack": stack, "graph": graph, "steps": steps}


def write(tf, folder):
    """Trains two epochs and writes every model, what it predicts, and what it does after
    one epoch more (the optimizer's state)."""
    found = {}
    for name, model in models(tf).items():
        inputs = inputs_of(name)
        model.fit(inputs, TARGETS, epochs=2, verbose=0, shuffle=False)
        for ending in ENDINGS[name]:
            model.save(os.path.join(folder, name + ending))
        found[name] = model.predict(inputs, verbose=0)
        model.fit(inputs, TARGETS, verbose=0, shuffle=False)
        found[f"{name}_on"] = model.predict(inputs, verbose=0)
    np.savez(os.path.join(folder, "predicted.npz"), **found)


if __name__ == "__main__":
    import tensorflow

    write(tensorflow, sys.argv[1])
