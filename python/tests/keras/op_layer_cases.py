"""Functional models with functions of tf, operators, losses and metrics of KerasTensors:
`python op_layer_cases.py tests/golden/keras/op_layers`, with a Python that has TensorFlow
2.21 and tf_keras (TF_USE_LEGACY_KERAS=1), writes the files that test_op_layers.py reads,
and what the models give."""

import json
import os
import sys

import numpy as np

X = np.linspace(-1, 1, 24).reshape(2, 3, 4).astype("float32")
A, B = X[:, :, 0], X[:, :, 1] + 0.5
INPUTS = {"forms": [A, B], "vae": A, "states": [X, X[:, ::-1]], "dots": A}
ENDINGS = {"forms": (".keras",), "vae": (".keras", ".h5"), "states": (".h5",)}
ENDINGS["dots"] = (".json",)  # tf_keras writes no ellipsis into .keras files


def forms(tf):
    """Arguments by place and by name, constants first, lists, slices, results used on."""
    a, b = tf.keras.Input((3,), name="a"), tf.keras.Input((3,), name="b")
    last = tf.shape(b)[1] - 1
    found = [
        tf.multiply(a, 0.5),
        tf.multiply(0.5, y=b),
        2 - a + b,
        tf.concat([a, b], 1),
        tf.stack([a, b], axis=-1),
        a[:, 1:],
        a[:, last:],
        tf.reshape(a, [tf.shape(b)[0], -1, 1]),
        tf.cast(tf.where(a > b, a, b), tf.int32),
        tf.constant([[1.0, 2.0, 3.0]]) * a,
        tf.linalg.matmul(a, tf.constant([[1.0], [2.0], [3.0]])),
        tf.split(a, 3, axis=1)[2],
        tf.transpose(b),
        tf.cast(~(a > 0) & (b > 0), "float32"),
        tf.gather(a, [2, 0], axis=1),
        tf.squeeze(a[:, :1], -1),
        tf.add_n([a]),
    ]
    return tf.keras.Model([a, b], found, name="forms")


def vae(tf):
    """A loss and metrics beside the output."""
    k = tf.keras
    x = k.Input((3,), name="x")
    z = k.layers.Dense(2, name="z")(x)
    y = k.layers.Dense(3, name="y")(z)
    model = k.Model(x, y, name="vae")
    divergence = -0.5 * tf.reduce_mean(1 + z - tf.square(z) - tf.exp(z))
    model.add_loss(divergence)
    model.add_metric(divergence, name="divergence", aggregation="mean")
    model.add_metric(tf.reduce_sum(y), name="sum")
    model.compile("sgd", "mse")
    return model


def states(tf):
    """Layers that take more tensors than one, by place and by name."""
    k = tf.keras
    x, y = k.Input((3, 4), name="x"), k.Input((3, 4), name="y")
    lstm = k.layers.LSTM(2, name="lstm")(x, initial_state=[y[:, 0, :2], y[:, 1, 1:3]])
    attention = k.layers.MultiHeadAttention(1, 2, name="attention")(x, y)
    return k.Model([x, y], [lstm, attention], name="states")


def dots(tf):
    """Slices with an ellipsis and a new axis."""
    a = tf.keras.Input((3,), name="a")
    return tf.keras.Model(a, a[..., None, ::2], name="dots")


MODELS = {"forms": forms, "vae": vae, "states": states, "dots": dots}


def results(model, name):
    """Arrays: what the model gives and, if it has losses, what it evaluates to."""
    inputs = INPUTS[name]
    found = [np.asarray(x) for x in tf_flat(model(inputs))]
    if name == "vae":
        found.append(np.array(model.evaluate(inputs, 2 * inputs, verbose=0)))
    return found


def tf_flat(x):
    return x if isinstance(x, (list, tuple)) else [x]


def write(tf, folder):
    tf.keras.utils.set_random_seed(1)
    found = {}
    for name, made in MODELS.items():
        model = made(tf)
        for ending in ENDINGS[name]:
            path = os.path.join(folder, name + ending)
            if ending == ".json":
                with open(path, "w", encoding="utf8") as f:
                    json.dump(json.loads(model.to_json()), f, indent=1)
            else:
                model.save(path)
        found.update({f"{name}_{i}": x for i, x in enumerate(results(model, name))})
    np.savez(os.path.join(folder, "results.npz"), **found)


if __name__ == "__main__":
    import tensorflow

    write(tensorflow, sys.argv[1])
