"""Parts of Keras programs in graphs of TensorFlow 1.

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


X, Y = numbers(10, 4, seed=20), numbers(10, 1, seed=21)
ONCE = dict(shuffle=False, verbose=0)


def losses(model, x, y=Y, loss="mse", optimizer="sgd", **given):
    """Those of two epochs, in batches of all rows unless told."""
    model.compile(optimizer, loss)
    return model.fit(x, y, epochs=2, **{**ONCE, **given}).history["loss"]


def made(*layers):
    return with_weights(tf.keras.Sequential(list(layers)))


class Counting(L.Layer):
    """A layer as programs of TensorFlow 1 wrote them."""

    def build(self, input_shape):
        self.kernel = self.add_weight("kernel", (int(input_shape[-1]), 2))
        self.calls = self.add_weight("calls", (), trainable=False)
        super().build(input_shape)

    def call(self, inputs):
        self.add_update(K.update_add(self.calls, 1.0))
        self.add_loss(tf.reduce_mean(inputs) * 0.1)
        return K.dot(inputs, self.kernel)


def own_layer():
    model = made(Counting(input_shape=(4,)), L.Dense(1))
    found = losses(model, X, batch_size=5)
    assert len(model.updates) == len(model.losses) == 1
    return [*found, K.get_value(model.layers[0].calls)]


def own_loss_and_metric():
    def largest(y_true, y_pred):
        return K.max(K.abs(y_true - y_pred))

    model = made(*dense())
    away = lambda y_true, y_pred: K.mean(K.abs(y_true - y_pred), axis=-1)
    model.compile("sgd", away, metrics=[largest])
    history = model.fit(X, Y, epochs=2, batch_size=4, **ONCE).history
    assert list(history) == ["loss", "largest"]
    return history["loss"] + history["largest"]


def sequence_to_sequence():
    first, second = L.Input((5, 3)), L.Input((5, 2))
    _, h, c = L.LSTM(4, return_state=True)(first)
    x = L.LSTM(4, return_sequences=True)(second, initial_state=[h, c])
    model = tf.keras.Model([first, second], L.Dense(2, activation="softmax")(x))
    x = [numbers(10, 5, 3, seed=1), numbers(10, 5, 2, seed=2)]
    y = np.eye(2)[np.random.RandomState(0).randint(0, 2, (10, 5))]
    return losses(with_weights(model), x, y, "categorical_crossentropy", "rmsprop")


def attention():
    q = L.Input((5, 4))
    x = L.Flatten()(L.Attention()([q, q]))
    model = with_weights(tf.keras.Model(q, L.Dense(1)(x)))
    return losses(model, numbers(10, 5, 4, seed=1))


def shared_layer():
    a, b, layer = L.Input((4,)), L.Input((4,)), L.Dense(2)
    model = tf.keras.Model([a, b], L.dot([layer(a), layer(b)], 1))
    assert layer.get_output_at(1).name == "dense_1/BiasAdd:0"
    assert len(layer.inbound_nodes) == 2
    return losses(with_weights(model), [X, X[::-1]])


def nested_model():
    inner = made(L.Dense(3, input_shape=(4,)), L.BatchNormalization())
    a = L.Input((4,))
    model = tf.keras.Model(a, L.Dense(1, kernel_initializer="ones")(inner(a)))
    found = losses(model, X)
    assert len(model.layers) == 3
    return [*found, *inner.get_weights()[4]]


def two_models_that_compete():
    maker = made(L.Dense(4, input_shape=(2,)))
    judge = made(L.Dense(1, activation="sigmoid", input_shape=(4,)))
    judge.compile("sgd", "binary_crossentropy")
    judge.trainable = False  # in the other model alone, as it is compiled already
    a = L.Input((2,))
    both = tf.keras.Model(a, judge(maker(a)))
    both.compile("sgd", "binary_crossentropy")
    noise, found = numbers(10, 2, seed=3), []
    for _ in range(2):
        seen = np.concatenate([X, maker.predict(noise)])
        found.append(judge.train_on_batch(seen, np.r_[np.ones(10), np.zeros(10)]))
        found.append(both.train_on_batch(noise, np.ones(10)))
    return found


def limits():
    layers = [
        L.Dense(
            3, kernel_constraint="non_neg", bias_regularizer="l2", input_shape=(4,)
        ),
        L.Dense(1),
    ]
    adam = tf.keras.optimizers.legacy.Adam(0.05, clipnorm=0.1, amsgrad=True)
    model = made(*layers)
    return losses(model, X, optimizer=adam) + list(np.ravel(model.get_weights()[0])[:4])


def rates_of_a_schedule():
    rate = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    sgd = tf.keras.optimizers.legacy.SGD(rate)
    return losses(made(*dense()), X, optimizer=sgd, batch_size=4)


def rates_that_decay_or_are_set():
    sgd = tf.keras.optimizers.legacy.SGD(lr=0.1, decay=0.1, momentum=0.9, nesterov=True)
    model = made(*dense())
    found = losses(model, X, optimizer=sgd, batch_size=4)
    K.set_value(model.optimizer.lr, 0.0)
    return found + model.fit(X, Y, epochs=2, **ONCE).history["loss"]


class Parts(tf.keras.utils.Sequence):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        rows = slice(index * 4, index * 4 + 4)
        return X[rows], Y[rows]


def parts_of_data():
    model = made(*dense())
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(Parts(), epochs=2, validation_data=Parts(), **ONCE).history
    found = [v for values in history.values() for v in values]
    assert model.predict(Parts()).shape == (10, 1)
    return [*found, *model.evaluate(Parts(), verbose=0)]


def phases():
    model = made(L.Dense(3, input_shape=(4,)), L.BatchNormalization(), L.Dense(1))
    session, phase = tf.compat.v1.keras.backend.get_session(), K.learning_phase()
    asked = K.function([model.input], [model.output])
    told = K.function([model.input, phase], [model.output])
    trains = session.run(model.output, {model.input: X, phase: 1})
    found = [*asked([X])[0][:2], *trains[:2], *told([X, True])[0][:2]]
    return list(np.ravel(found))


def masks_and_weights():
    layers = [
        L.Embedding(5, 3, mask_zero=True, input_length=6),
        L.LSTM(4, return_sequences=True),
        L.Dense(1),
    ]
    model = made(*layers)
    model.compile("sgd", "mse", metrics=["mae"], weighted_metrics=["mse"])
    x, y = np.random.RandomState(0).randint(0, 5, (10, 6)), numbers(10, 6, 1, seed=2)
    weights = np.arange(10.0)
    history = model.fit(x, y, sample_weight=weights, batch_size=4, **ONCE).history
    return [v for values in history.values() for v in values]


def compiled_twice():
    model = made(*dense())
    return losses(model, X) + losses(model, X, loss="mae", optimizer="adam")


def frozen_graph():
    model = made(*dense())
    session = tf.compat.v1.keras.backend.get_session()
    frozen = tf.compat.v1.graph_util.convert_variables_to_constants(
        session, session.graph.as_graph_def(), [model.output.op.name]
    )
    with tf.Graph().as_default() as graph:
        names = [model.output.name]
        (out,) = tf.graph_util.import_graph_def(frozen, return_elements=names, name="")
        with tf.compat.v1.Session(graph=graph) as own:
            return list(own.run(out, {model.input.name: X[:3]})[:, 0])


def slopes_of_a_layer():
    layers = [L.Conv2D(2, 3, input_shape=(6, 6, 1)), L.Flatten(), L.Dense(2)]
    model = made(*layers)
    seen = model.layers[0].output
    slope = K.gradients(model.output[:, 0], seen)[0]
    function = K.function([model.input], [K.mean(slope, axis=(0, 1, 2)), seen[0, 0, 0]])
    return list(np.ravel(function([numbers(1, 6, 6, 1, seed=1)])))


def layers_of_a_model():
    model = made(*dense())
    part = tf.keras.Model(model.input, model.layers[0].output)
    assert part.layers[1] is model.layers[0]
    return list(part.predict(X)[0])


EXPECTED = {
    own_layer: [0.118554, 0.114369, 3.91702],
    own_loss_and_metric: [0.243102, 0.238039, 0.303178, 0.290346],
    sequence_to_sequence: [0.685923, 0.684799],
    attention: [0.146774, 0.14525],
    shared_layer: [0.103679, 0.103294],
    nested_model: [0.262035, 0.241106, 0.456141, 0.0507357, 0.453982],
    two_models_that_compete: [0.682411, 0.749258, 0.682283, 0.74941],
    limits: [0.0781573, 0.0627413, 0.126591, 0.27532, 0.0576892, 0.133977],
    rates_of_a_schedule: [0.0736121, 0.0666801],
    rates_that_decay_or_are_set: [0.0737717, 0.0615564, 0.05613, 0.0550339],
    parts_of_data: [
        0.0764459,
        0.0747125,
        0.243532,
        0.240543,
        0.0635369,
        0.0621914,
        0.241279,
        0.238461,
        0.0621914,
        0.238461,
    ],
    phases: [-0.467463, -0.509969, -0.34647, -0.591124, -0.34647, -0.591124],
    masks_and_weights: [1.20633, 0.42219, 0.271144],
    compiled_twice: [0.076891, 0.0761639, 0.241932, 0.24113],
    frozen_graph: [-0.164647, 0.0206071, -0.0687917],
    slopes_of_a_layer: [-0.0054746, 0.0144666, -0.0639236, -0.407567],
    layers_of_a_model: [0.0, 0.454455, 0.0],
}


@pytest.mark.parametrize("program", EXPECTED)
def test_programs(program):
    np.testing.assert_allclose(program(), EXPECTED[program], rtol=3e-5, atol=2e-6)


def test_what_graphs_do_not_have():
    with pytest.raises(ValueError, match="if eager execution is enabled"):
        made(*dense()).compile("sgd", "mse", run_eagerly=True)
    half = tf.keras.Sequential([L.Dense(1, input_shape=(4,), dtype="float16")])
    scaled = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
    with pytest.raises(NotImplementedError, match="losses are not scaled in graphs"):
        half.compile(scaled, "mse")
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = tf.keras.Sequential(dense())
        with pytest.raises(NotImplementedError, match="strategies do not train"):
            model.compile("sgd", "mse")
