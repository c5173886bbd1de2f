"""Keras in graphs of TensorFlow 1: fit, evaluate and predict by a session.

Values are what tf_keras 2.21 gave (TF_USE_LEGACY_KERAS=1) to trained(...) below, of the same
names and arguments, after tf.compat.v1.disable_v2_behavior().
"""

import numpy as np
import pytest

import headrace as tf

L = tf.keras.layers


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def numbers(*shape, seed):
    """Values between -0.5 and 0.5 that NumPy and nobody else draws."""
    return np.random.RandomState(seed).uniform(-0.5, 0.5, shape).astype("float32")


def with_weights(model):
    """The model with known weights; variances are positive."""
    model.set_weights(
        [
            numbers(*v.shape.as_list(), seed=i) + (0.6 if "variance" in v.name else 0)
            for i, v in enumerate(model.weights)
        ]
    )
    return model


def dense():
    return [L.Dense(3, activation="relu", input_shape=(4,)), L.Dense(1)]


def normalized():
    return [L.Dense(3, input_shape=(4,)), L.BatchNormalization(), L.Dense(1)]


def images():
    return [
        L.Conv2D(2, 3, input_shape=(6, 6, 1)),
        L.BatchNormalization(),
        L.MaxPool2D(),
        L.Flatten(),
        L.Dense(1),
    ]


def words(cell):
    return [
        L.Embedding(5, 3, mask_zero=True, input_length=6),
        getattr(L, cell)(4, return_sequences=True),
        L.Bidirectional(getattr(L, cell)(2)),
        L.Dense(1, activation="sigmoid"),
    ]


NETWORKS = {
    "dense": (dense, (4,)),
    "normalized": (normalized, (4,)),
    "images": (images, (6, 6, 1)),
    "LSTM": (lambda: words("LSTM"), None),
    "GRU": (lambda: words("GRU"), None),
}


def data(shape):
    if shape is None:
        x = np.random.RandomState(0).randint(0, 5, (10, 6))
    else:
        x = numbers(10, *shape, seed=20)
    return x, (numbers(10, 1, seed=21) > 0).astype("float32")


def trained(name, optimizer="sgd", loss="mse", metrics=("mae",), **given):
    """(history, evaluation, a prediction) of a network after two epochs."""
    layers, shape = NETWORKS[name]
    x, y = data(shape)
    model = with_weights(tf.keras.Sequential(layers()))
    model.compile(optimizer, loss, metrics=list(metrics))
    how = dict(batch_size=4, epochs=2, shuffle=False, verbose=0)
    history = model.fit(x, y, **{**how, **given}).history
    found = [v for values in history.values() for v in values]
    found += list(np.ravel(model.evaluate(x, y, verbose=0)))
    return list(history), [float(v) for v in [*found, model.predict(x)[3, 0]]]


def check(found, expected):
    np.testing.assert_allclose(found[1], expected, rtol=2e-5, atol=2e-6)


# In each row: the history's values, name by name, evaluate()'s, one of predict()'s.
OF_NETWORKS = {
    "dense": [0.330788, 0.311695, 0.366823, 0.349234, 0.299229, 0.339897, -0.00217722],
    "normalized": [0.850546, 0.746314, 0.789254, 0.72237, 0.64841, 0.660733, -0.359859],
    "images": [1.31597, 0.920053, 1.02736, 0.817524, 0.531622, 0.558115, -0.243304],
    "LSTM": [0.218409, 0.218366, 0.457, 0.456907, 0.218328, 0.456852, 0.393289],
    "GRU": [0.213758, 0.213735, 0.444029, 0.443956, 0.213706, 0.443931, 0.357815],
}
OF_OPTIMIZERS = {
    "sgd": [0.330788, 0.311695, 0.366823, 0.349234, 0.299229, 0.339897, -0.00217722],
    "rmsprop": [0.333024, 0.325199, 0.368759, 0.361822, 0.321277, 0.358409, -0.0387711],
    "adam": [0.335016, 0.331267, 0.370792, 0.367415, 0.328748, 0.365243, -0.0483557],
    "adagrad": [0.335265, 0.333152, 0.371077, 0.369192, 0.332061, 0.368238, -0.0514976],
    "adadelta": [
        0.336073,
        0.336067,
        0.371861,
        0.371856,
        0.336063,
        0.371852,
        -0.0568717,
    ],
    "adamax": [0.335015, 0.331883, 0.370797, 0.367993, 0.33002, 0.366373, -0.0497931],
    "nadam": [0.335041, 0.332036, 0.370817, 0.368165, 0.330033, 0.366462, -0.0496319],
    "ftrl": [0.307417, 0.284498, 0.336176, 0.310766, 0.28401, 0.311192, 0.0280319],
}
OF_LOSSES = {
    "mse": [0.330788, 0.311695, 0.299229, -0.00217722],
    "mae": [0.367613, 0.350753, 0.340545, -0.00382076],
    "mape": [1250000000000000.0, 2250000000000000.0, 3500000000000000.0, -5000000.0],
    "msle": [0.139911, 0.13905, 0.138186, -0.0421478],
    "squared_hinge": [0.945461, 0.932476, 0.923318, -0.0973852],
    "hinge": [0.968908, 0.963845, 0.959973, -0.0828977],
    "logcosh": [0.143551, 0.140472, 0.138293, -0.0346754],
    "huber": [0.166046, 0.161399, 0.158108, -0.0295859],
    "binary_crossentropy": [3.448, 0.666632, 0.63746, 0.192858],
    "kullback_leibler_divergence": [3.56099, 0.58927, 0.485473, 0.199906],
    "cosine_similarity": [0.1, 0.1, 0.1, -0.0568855],
}
OF_METRICS = {  # of the network GRU
    "mse": [0.213758, 0.213735, 0.213758, 0.213735, 0.213706, 0.213706, 0.357815],
    "mae": [0.213758, 0.213735, 0.444029, 0.443956, 0.213706, 0.443931, 0.357815],
    "accuracy": [0.213758, 0.213735, 0.7, 0.7, 0.213706, 0.7, 0.357815],
    "binary_accuracy": [0.213758, 0.213735, 0.7, 0.7, 0.213706, 0.7, 0.357815],
    "AUC": [0.213758, 0.213735, 0.452381, 0.452381, 0.213706, 0.452381, 0.357815],
    "Precision": [0.213758, 0.213735, 0.0, 0.0, 0.213706, 0.0, 0.357815],
    "Recall": [0.213758, 0.213735, 0.0, 0.0, 0.213706, 0.0, 0.357815],
}
OF_WAYS = {
    "weights": [1.804, 1.35465, 0.355035, 0.338425, 0.216243, 0.374778, 0.208597],
    "classes": [0.95567, 0.822855, 0.358361, 0.331469, 0.254941, 0.330353, 0.0815691],
    "split": [
        0.171173,
        0.167387,
        0.220736,
        0.216252,
        0.706784,
        0.694385,
        0.711759,
        0.70293,
        0.323232,
        0.360239,
        -0.0390955,
    ],
    "shuffle": [
        0.331995,
        0.315402,
        0.369549,
        0.353059,
        0.301804,
        0.341406,
        -0.00638705,
    ],
    "shuffleb": [
        0.330788,
        0.311701,
        0.366823,
        0.349332,
        0.29924,
        0.339904,
        -0.00219357,
    ],
}


@pytest.mark.parametrize("name", OF_NETWORKS)
def test_networks_train(name):
    check(trained(name), OF_NETWORKS[name])


@pytest.mark.parametrize("name", OF_OPTIMIZERS)
def test_optimizers(name):
    check(trained("dense", name), OF_OPTIMIZERS[name])


@pytest.mark.parametrize("name", OF_LOSSES)
def test_losses(name):
    check(trained("dense", loss=name, metrics=()), OF_LOSSES[name])


@pytest.mark.parametrize("name", OF_METRICS)
def test_metrics(name):
    metric = name if name[0].islower() else getattr(tf.keras.metrics, name)()
    check(trained("GRU", metrics=[metric]), OF_METRICS[name])


@pytest.mark.parametrize("name", OF_WAYS)
def test_ways_to_fit(name):
    given = {
        "weights": {"sample_weight": np.arange(10.0)},
        "classes": {"class_weight": {0: 1.0, 1: 3.0}},
        "split": {"validation_split": 0.3},
        "shuffle": {"shuffle": True},
        "shuffleb": {"shuffle": "batch"},
    }[name]
    np.random.seed(7)
    check(trained("dense", **given), OF_WAYS[name])
