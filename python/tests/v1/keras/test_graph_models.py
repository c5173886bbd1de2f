"""Kinds of Keras models and of data in graphs of TensorFlow 1.

Values are what tf_keras 2.21 gave (TF_USE_LEGACY_KERAS=1) to the functions below, of the same
lines, after tf.compat.v1.disable_v2_behavior().
"""

import numpy as np
import pytest

import headrace as tf

L, K = tf.keras.layers, tf.keras.backend


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


def fitted(model, x, y=None, **given):
    """The values of the history of two epochs, then those of evaluate()."""
    how = dict(batch_size=4, epochs=2, shuffle=False, verbose=0)
    history = model.fit(x, y, **{**how, **given}).history
    found = [v for values in history.values() for v in values]
    return [*found, *np.ravel(model.evaluate(x, y, verbose=0))]


X, Y = numbers(10, 4, seed=20), numbers(10, 1, seed=21)


def several_outputs():
    a, b = L.Input((4,), name="a"), L.Input((3,), name="b")
    h = L.concatenate([L.Dense(3, activation="relu")(a), b])
    outputs = [L.Dense(2, "softmax", name="o1")(h), L.Dense(1, name="o2")(h)]
    model = with_weights(tf.keras.Model([a, b], outputs))
    model.compile(
        "sgd",
        {"o1": "sparse_categorical_crossentropy", "o2": "mse"},
        loss_weights={"o1": 1.0, "o2": 0.5},
        metrics={"o1": "acc", "o2": ["mae"]},
    )
    x = {"a": X, "b": numbers(10, 3, seed=22)}
    y = {"o1": (Y[:, 0] > 0).astype(int), "o2": Y}
    found = fitted(model, x, y)
    weights = {"o1": np.arange(10.0)}
    targets = [y["o1"], y["o2"]]
    return [
        *found,
        *model.train_on_batch([x["a"], x["b"]], targets, sample_weight=weights),
        *np.ravel(model.predict([x["a"], x["b"]])[0][:2]),
    ]


class Own(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.last = L.Dense(3, activation="tanh"), L.Dense(1)
        self.normal = L.BatchNormalization()

    def call(self, inputs, training=None):
        return self.last(self.normal(self.first(inputs), training=training))


def subclass():
    model = Own()
    model.compile("sgd", "mse", metrics=["mae"])
    model.predict(X)
    return [*fitted(with_weights(model), X, Y), model.predict(X)[2, 0]]


def deferred():
    model = tf.keras.Sequential([L.Dense(3, activation="tanh"), L.Dense(1)])
    model.compile("sgd", "mse")
    model.predict(X)
    return [*fitted(with_weights(model), X, Y), model.predict(X)[2, 0]]


def stateful():
    first = L.LSTM(2, stateful=True, batch_input_shape=(2, 3, 1))
    model = with_weights(tf.keras.Sequential([first, L.Dense(1)]))
    model.compile("sgd", "mse")
    x, y = numbers(4, 3, 1, seed=20), numbers(4, 1, seed=21)
    history = model.fit(x, y, batch_size=2, epochs=2, shuffle=False, verbose=0)
    found = history.history["loss"]
    found += list(model.predict(x, batch_size=2)[:, 0])
    found += list(model.predict(x, batch_size=2)[:, 0])
    model.reset_states()
    return found + list(model.predict(x, batch_size=2)[:, 0])


def added_losses():
    a = L.Input((4,))
    h = L.Dense(3, activity_regularizer="l2", kernel_regularizer="l1")(a)
    o = L.Dense(1)(h)
    model = with_weights(tf.keras.Model(a, o))
    model.add_loss(tf.reduce_mean(tf.abs(h)))
    model.add_metric(tf.reduce_mean(o), name="mean", aggregation="mean")
    model.compile("sgd", "mse")
    assert model.metrics_names == ["loss", "mean"]
    assert len(model.losses) == 3
    return fitted(model, X, Y)


def no_targets():
    a = L.Input((4,))
    o = L.Lambda(lambda z: z * 2)(L.Dense(3)(a))
    model = with_weights(tf.keras.Model(a, o))
    model.add_loss(tf.reduce_mean(tf.square(o - 1.0)))
    model.compile("sgd")
    return fitted(model, X)


def operations_between_layers():
    a = L.Input((4,))
    z = tf.nn.relu(L.Dense(3)(a)) * 2.0 + tf.constant([1.0, 2.0, 3.0])
    model = with_weights(tf.keras.Model(a, L.Dense(1)(z)))
    model.compile("sgd", "mse")
    again = tf.keras.Model.from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds == "InputLayer Dense".split() + ["TensorFlowOpLayer"] * 3 + ["Dense"]
    return fitted(model, X, Y)


def ways_of_graphs():
    """Gradients of inputs, a tf.compat.v1.train optimizer, Keras' updates."""
    model = with_weights(
        tf.keras.Sequential([L.Dense(3, "tanh", input_shape=(4,)), L.Dense(1)])
    )
    (slope,) = tf.gradients(model.output, [model.input])
    function = K.function([model.input], [model.layers[0].output, slope])
    found = [*np.ravel(function([X])[0][0]), *np.ravel(function([X])[1][0])]
    place = tf.compat.v1.placeholder(tf.float32, [None, 4])
    loss = tf.reduce_mean(model(place) ** 2)
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    step = optimizer.minimize(loss, var_list=model.trainable_weights)
    session = tf.compat.v1.keras.backend.get_session()
    found += [session.run([loss, step], {place: X})[0] for _ in range(2)]
    sgd = tf.keras.optimizers.legacy.SGD(0.1)
    updates = sgd.get_updates(loss, model.trainable_weights)
    train = K.function([place], [loss], updates=updates)
    return found + [train([X])[0] for _ in range(2)]


def batches():
    while True:
        yield X[:8], Y[:8]
        yield X[8:], Y[8:]


def of_generator():
    model = with_weights(tf.keras.Sequential(dense()))
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(batches(), steps_per_epoch=2, epochs=2, verbose=0).history
    found = [v for values in history.values() for v in values]
    found += list(model.evaluate(batches(), steps=2, verbose=0))
    return found + list(model.predict(batches(), steps=2)[7:9, 0])


def of_dataset():
    model = with_weights(tf.keras.Sequential(dense()))
    model.compile("sgd", "mse", metrics=["mae"])
    rows = tf.compat.v1.data.Dataset.from_tensor_slices((X, Y)).batch(4)
    history = model.fit(rows, epochs=2, verbose=0).history
    found = [v for values in history.values() for v in values]
    history = model.fit(rows.repeat(), steps_per_epoch=2, epochs=2, verbose=0).history
    found += [v for values in history.values() for v in values]
    return found + list(model.evaluate(rows, verbose=0)) + [model.predict(rows)[9, 0]]


def of_tensors():
    model = with_weights(tf.keras.Sequential(dense()))
    model.compile("sgd", "mse", metrics=["mae"])
    x, y = tf.constant(X), tf.constant(Y)
    history = model.fit(x, y, steps_per_epoch=2, epochs=2, verbose=0).history
    found = [v for values in history.values() for v in values]
    assert model.predict(x, steps=2).shape == (20, 1)
    return found + list(model.evaluate(x, y, steps=2, verbose=0))


def single_batches():
    model = with_weights(tf.keras.Sequential(dense()))
    model.compile("sgd", "mse", metrics=["mae"])
    found = [*model.train_on_batch(X, Y, reset_metrics=False)]
    found += [*model.train_on_batch(X[:4], Y[:4], reset_metrics=False)]
    found += [*model.test_on_batch(X, Y), *model.test_on_batch(X, Y)]
    return found + list(model.predict_on_batch(X)[:2, 0])


def v1_optimizer():
    model = with_weights(tf.keras.Sequential(dense()))
    model.compile(tf.compat.v1.train.AdamOptimizer(0.01), "mse")
    return fitted(model, X, Y)


def learning_phase():
    layers = [L.Dense(50, kernel_initializer="ones", input_shape=(4,)), L.Dropout(0.5)]
    model = tf.keras.Sequential(layers)
    function = K.function([model.input, K.learning_phase()], [model.output])
    x = np.ones((2, 4))
    dropped = (function([x, 1])[0] == 0).sum()
    assert 20 < dropped < 80
    return [float((function([x, 0])[0] == 0).sum()), model.predict(x)[0, 0]]


EXPECTED = {
    several_outputs: [
        0.776648,
        0.772912,
        0.737278,
        0.734505,
        0.0843714,
        0.08282,
        0.4,
        0.4,
        0.215996,
        0.21475,
        0.770013,
        0.733598,
        0.0728288,
        0.4,
        0.21408,
        3.28187,
        1.98953,
        0.0728288,
        0.4,
        0.21408,
        0.510858,
        0.489142,
        0.429799,
        0.570201,
    ],
    subclass: [
        0.0638806,
        0.0632141,
        0.229188,
        0.227795,
        0.0633566,
        0.225656,
        -0.125818,
    ],
    deferred: [0.0756, 0.0739424, 0.0728156, -0.10194],
    stateful: [
        0.535882,
        0.49818,
        0.399609,
        0.397254,
        0.398196,
        0.396923,
        0.399587,
        0.397235,
        0.398193,
        0.39692,
        0.401982,
        0.399647,
        0.398577,
        0.397319,
    ],
    added_losses: [0.356266, 0.347067, -0.0719783, -0.0754243, 0.34097, -0.0798004],
    no_targets: [1.78349, 1.52024, 1.35084],
    operations_between_layers: [0.496759, 0.0912263, 0.0665653],
    ways_of_graphs: [
        -0.121473,
        0.425554,
        -0.237517,
        -0.0818036,
        0.0336452,
        -0.126431,
        -0.104549,
        0.00885652,
        0.00658927,
        0.00540343,
        0.00476318,
    ],
    of_generator: [
        0.0768595,
        0.0758741,
        0.244302,
        0.242643,
        0.0490053,
        0.241061,
        -0.112095,
        -0.101519,
    ],
    of_dataset: [
        0.0646663,
        0.0631868,
        0.243532,
        0.240543,
        0.0901254,
        0.0489553,
        0.278775,
        0.221998,
        0.0603895,
        0.234333,
        0.0107701,
    ],
    of_tensors: [0.0765274, 0.0751393, 0.243704, 0.24136, 0.0741768, 0.23967],
    single_batches: [
        0.076891,
        0.244303,
        0.0983121,
        0.261862,
        0.0751831,
        0.253347,
        0.0751831,
        0.241425,
        -0.172318,
        0.0137153,
    ],
    v1_optimizer: [0.0754365, 0.0658834, 0.060469],
    learning_phase: [0.0, 4.0],
}


@pytest.mark.parametrize("model", EXPECTED)
def test_models_train(model):
    np.testing.assert_allclose(model(), EXPECTED[model], rtol=2e-5, atol=2e-6)
