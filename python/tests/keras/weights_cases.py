"""Models whose weights lie in tests/golden/keras/weights, for any TensorFlow.

As a program, run with TensorFlow (TF_USE_LEGACY_KERAS=1 for tf_keras), it writes
FOLDER/NAME.FORMAT, and the predictions of the models beside them, in NAME.npz.
"""

import sys

import numpy as np


def tagger(tf):
    layers = tf.keras.layers
    x = tf.keras.Input((4,))
    y = layers.Embedding(5, 2, name="words")(x)
    z = layers.MultiHeadAttention(1, 2)(y, y)
    y = layers.Bidirectional(layers.LSTM(2, return_sequences=True))(
        layers.Add()([y, z])
    )
    y = layers.TimeDistributed(layers.Dense(2, name="each"))(y)
    y = layers.BatchNormalization()(y)
    inner = tf.keras.Sequential([layers.Dense(2), layers.Dense(1)], name="head")
    return tf.keras.Model(x, inner(y)), np.array([[1, 2, 0, 4], [3, 3, 1, 0]])


def blocks(tf):
    layers = tf.keras.layers

    class Block(layers.Layer):
        def __init__(self):
            super().__init__()
            self.first = layers.Dense(2)
            self.more = [layers.Dense(2), layers.Dense(2)]
            self.named = {"x": layers.Dense(2), "y": layers.LayerNormalization()}

        def build(self, shape):
            self.scale = self.add_weight(shape=(2,), name="scale")
            super().build(shape)

        def call(self, x):
            x = self.first(x) * self.scale
            for layer in self.more:
                x = layer(x)
            return self.named["y"](self.named["x"](x))

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.zero = Block()
            self.one = Block()
            self.same = self.one
            self.net = tf.keras.Sequential([layers.Dense(2), layers.Dense(1)])

        def call(self, x):
            return self.net(self.same(self.one(self.zero(x))))

    return Model(), np.array([[1.0, 2.0, 0.5], [0.25, -1.0, 0.0]], "f")


CASES = {"tagger": tagger, "blocks": blocks}


def make(tf, name):
    """(the model, built and with weights of its own, inputs)."""
    tf.keras.utils.set_random_seed(3)
    model, x = CASES[name](tf)
    model(x)
    random = np.random.RandomState(1)
    model.set_weights(
        [random.randint(1, 9, w.shape).astype(w.dtype) / 8 for w in model.get_weights()]
    )
    return model, x


def main(folder, kind):
    import tensorflow as tf

    for name in CASES:
        model, x = make(tf, name)
        endings = [".weights.h5"] if kind == "keras3" else [".h5", ".weights.h5"]
        for ending in endings:
            model.save_weights(f"{folder}/{name}_{kind}{ending}")
        np.savez(f"{folder}/{name}_{kind}.npz", model.predict(x, verbose=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
