"""What layers and models keep: names, weights, losses, configurations."""

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
layers = keras.layers


@pytest.fixture(autouse=True)
def fresh_names():
    keras.backend.clear_session()


def names(weights):
    return [w.name for w in weights]


def test_names():
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.a = layers.Dense(5)
            self.bs = [layers.Dense(2), layers.BatchNormalization()]

        def call(self, x):
            return self.bs[1](self.bs[0](self.a(x)))

    net = Net()
    assert net.name == "net" and not net.built and net.weights == []
    net(tf.ones([1, 1]))
    assert names(net.weights) == [
        "net/dense/kernel:0",
        "net/dense/bias:0",
        "net/dense_1/kernel:0",
        "net/dense_1/bias:0",
        "net/batch_normalization/gamma:0",
        "net/batch_normalization/beta:0",
        "net/batch_normalization/moving_mean:0",
        "net/batch_normalization/moving_variance:0",
    ]
    assert [x.name for x in net.layers] == ["dense", "dense_1", "batch_normalization"]
    assert len(net.trainable_weights) == 6
    net.bs[1].trainable = False
    assert len(net.trainable_weights) == 4
    model = keras.Sequential([layers.Dense(2, input_shape=(3,)), layers.LSTM(2)][:1])
    assert names(model.weights) == ["dense_2/kernel:0", "dense_2/bias:0"]


def test_own_layer():
    class Own(layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = units

        def build(self, input_shape):
            self.w = self.add_weight("w", (input_shape[-1], self.units))
            self.count = tf.Variable(0.0, trainable=False)

        def call(self, x, training=None):
            self.add_loss(tf.reduce_sum(x))
            return x @ self.w if training else x

    layer = Own(2)
    layer(np.ones((1, 3)))
    assert names(layer.weights) == ["own/w:0", "own/Variable:0"]
    assert [float(v) for v in layer.losses] == [3.0]
    layer(tf.ones([1, 3]), training=True)
    assert len(layer.losses) == 1
    assert layer.get_config() == {"units": 2}
    assert Own.from_config(layer.get_config()).units == 2
    with pytest.raises(NotImplementedError, match="must override `get_config"):
        Own(keras.optimizers.SGD()).get_config()


def test_regularizers_and_activity():
    dense = layers.Dense(
        1,
        kernel_initializer="ones",
        kernel_regularizer=keras.regularizers.L2(0.1),
        activity_regularizer="l1",
    )
    dense(tf.ones([2, 3]))
    assert sorted(float(v) for v in dense.losses) == pytest.approx([0.03, 0.3])


def test_errors():
    with pytest.raises(ValueError, match="expected a positive integer"):
        layers.Dense(-1)
    with pytest.raises(TypeError, match="Keyword argument not understood"):
        layers.Dense(3, foo=1)
    with pytest.raises(ValueError, match=r"expected min_ndim=2, found ndim=1. Full"):
        layers.Dense(3)(tf.constant([1.0, 2.0]))
    dense = layers.Dense(3, name="d")
    dense(tf.ones([1, 2]))
    with pytest.raises(ValueError, match='Input 0 of layer "d" is incompatible'):
        dense(tf.ones([1, 4]))

    class Bad(keras.Model):
        def __init__(self):
            self.d = layers.Dense(1)

    with pytest.raises(RuntimeError, match="you forgot to call"):
        Bad()
    with pytest.raises(ValueError, match="not yet been built"):
        keras.Sequential([layers.Dense(1)]).summary()
    i = keras.Input((2,))
    with pytest.raises(TypeError, match="Lambda"):
        np.asarray(i)


def test_functional_configuration_round_trip():
    a, b = keras.Input((4,), name="a"), keras.Input((3,), name="b")
    shared = layers.Dense(3, name="shared")
    x = layers.Add(name="sum")([shared(a), b])
    y = layers.Concatenate(name="cat")([x, shared(a)])
    model = keras.Model([a, b], {"y": y, "x": x})
    copy = keras.Model.from_config(model.get_config())
    copy.set_weights(model.get_weights())
    inputs = [tf.ones([2, 4]), tf.ones([2, 3])]
    for key, value in model(inputs).items():
        np.testing.assert_array_equal(value, copy(inputs)[key])
    assert [x.name for x in copy.layers] == [x.name for x in model.layers]


def test_models_in_models_and_masks():
    ids = keras.Input((None,), dtype="int32")
    x = layers.Embedding(10, 4, mask_zero=True)(ids)
    x = layers.LSTM(3, return_sequences=True)(x)
    encoder = keras.Model(ids, x)
    out = layers.GRU(2)(encoder(ids))
    model = keras.Model(ids, out)
    padded = model(tf.constant([[1, 2, 0, 0]]))
    short = model(tf.constant([[1, 2]]))
    np.testing.assert_allclose(padded, short, atol=1e-6)


def test_summary(capsys):
    model = keras.Sequential([layers.Dense(8, input_shape=(2,)), layers.Dense(1)])
    model.summary()
    assert capsys.readouterr().out == (
        'Model: "sequential"\n'
        "_________________________________________________________________\n"
        " Layer (type)                Output Shape              Param #   \n"
        "=================================================================\n"
        " dense (Dense)               (None, 8)                 24        \n"
        "                                                                 \n"
        " dense_1 (Dense)             (None, 1)                 9         \n"
        "                                                                 \n"
        "=================================================================\n"
        "Total params: 33 (132.00 Byte)\n"
        "Trainable params: 33 (132.00 Byte)\n"
        "Non-trainable params: 0 (0.00 Byte)\n"
        "_________________________________________________________________\n"
    )


def test_imports_as_in_programs():
    from headrace.keras import layers as by_from
    from headrace.keras.layers import Dense

    assert by_from.Dense is Dense is tf.keras.layers.Dense
