"""An encoder and decoder with attention, a loss and an accuracy that mask."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(5)
L = tf.keras.layers


class Positional(L.Layer):
    def __init__(self, size, width):
        super().__init__()
        self.embedding = L.Embedding(size, width, mask_zero=True)
        places = np.arange(64)[:, None] / 100 ** (np.arange(width)[None] / width)
        self.table = tf.constant(np.sin(places), tf.float32)
        self.width = width

    def compute_mask(self, *args, **kwargs):
        return self.embedding.compute_mask(*args, **kwargs)

    def call(self, x):
        length = tf.shape(x)[1]
        x = self.embedding(x) * tf.math.sqrt(tf.cast(self.width, tf.float32))
        return x + self.table[None, :length]


class Block(L.Layer):
    def __init__(self, width, cross):
        super().__init__()
        self.own = L.MultiHeadAttention(2, width)
        self.other = L.MultiHeadAttention(2, width) if cross else None
        self.norms = [L.LayerNormalization() for _ in range(3)]
        self.add = L.Add()
        self.feed = tf.keras.Sequential([L.Dense(16, "relu"), L.Dense(width)])

    def call(self, x, context=None):
        causal = context is not None
        x = self.norms[0](self.add([x, self.own(x, x, use_causal_mask=causal)]))
        if causal:
            x = self.norms[1](self.add([x, self.other(x, context)]))
        return self.norms[2](self.add([x, self.feed(x)]))


class Translator(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.enter, self.leave = Positional(12, 8), Positional(14, 8)
        self.encoder, self.decoder = Block(8, False), Block(8, True)
        self.final = L.Dense(14)

    def call(self, inputs):
        context, x = inputs
        context = self.encoder(self.enter(context))
        logits = self.final(self.decoder(self.leave(x), context))
        try:
            del logits._keras_mask
        except AttributeError:
            pass
        return logits


def masked_loss(label, pred):
    mask = label != 0
    each = tf.keras.losses.SparseCategoricalCrossentropy(True, reduction="none")
    loss = each(label, pred)
    mask = tf.cast(mask, loss.dtype)
    return tf.reduce_sum(loss * mask) / tf.reduce_sum(mask)


def masked_accuracy(label, pred):
    pred = tf.cast(tf.argmax(pred, axis=2), label.dtype)
    match, mask = label == pred, label != 0
    match = tf.cast(match & mask, tf.float32)
    return tf.reduce_sum(match) / tf.reduce_sum(tf.cast(mask, tf.float32))


rng = np.random.default_rng(2)
source = rng.integers(1, 12, (32, 6))
source[:, 4:] *= rng.integers(0, 2, (32, 1))
target = np.where(source > 0, source + 1, 0)
shifted = np.concatenate([np.ones((32, 1), int), target[:, :-1]], 1)
model = Translator()
model.compile(tf.keras.optimizers.Adam(0.01), masked_loss, [masked_accuracy])
history = model.fit(
    (source, shifted), target, epochs=6, batch_size=8, verbose=0, shuffle=False
)
for name, values in history.history.items():
    print(name, np.round(values, 2).tolist())
print(model((source[:2], shifted[:2])).shape, model.count_params())
