"""A tagger whose loss and metrics leave padding out by the model's mask."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(11)
rng = np.random.default_rng(4)
words = rng.integers(1, 20, (40, 7))
words[np.arange(7)[None] >= rng.integers(3, 8, 40)[:, None]] = 0
tags = words % 3


def share_of_zero(y_true, y_pred):
    return tf.reduce_mean(tf.cast(tf.equal(tf.argmax(y_pred, -1), 0), tf.float32))


for loss in (
    "sparse_categorical_crossentropy",
    tf.keras.losses.SparseCategoricalCrossentropy(reduction="sum"),
):
    tf.keras.utils.set_random_seed(11)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Embedding(20, 6, mask_zero=True),
            tf.keras.layers.GRU(5, return_sequences=True),
            tf.keras.layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile(tf.keras.optimizers.SGD(0.05), loss, ["accuracy", share_of_zero])
    logs = model.fit(
        words, tags, epochs=3, batch_size=10, verbose=0, shuffle=False
    ).history
    for name, values in logs.items():
        print(name, np.round(values, 3).tolist())
    weights = np.linspace(0.5, 2, 40)
    print(np.round(model.evaluate(words, tags, sample_weight=weights, verbose=0), 3))
    masked = model(words[:3])
    by_hand = tf.keras.losses.SparseCategoricalCrossentropy()(tags[:3], masked)
    print("%.3f" % by_hand, masked._keras_mask.numpy().sum())
