"""Texts to words to an LSTM, with masks."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(3)
good, bad = ["good", "fine", "great"], ["bad", "poor", "awful"]
rng = np.random.default_rng(1)
texts, labels = [], []
for _ in range(64):
    label = int(rng.integers(2))
    words = list(rng.choice((bad, good)[label], rng.integers(1, 4)))
    words += list(rng.choice(["the", "film", "was", "so"], rng.integers(1, 5)))
    rng.shuffle(words)
    texts.append(" ".join(words) + "!")
    labels.append(label)
texts, labels = np.array(texts), np.array(labels)
vectorize = tf.keras.layers.TextVectorization(output_sequence_length=8)
vectorize.adapt(texts)
print([str(v) for v in vectorize.get_vocabulary()])
print(vectorize(texts[:2]).numpy())
model = tf.keras.Sequential(
    [
        tf.keras.layers.Embedding(vectorize.vocabulary_size(), 8, mask_zero=True),
        tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(6)),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(tf.keras.optimizers.Adam(0.02), "binary_crossentropy", ["accuracy"])
data = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(16)
data = data.map(lambda x, y: (vectorize(x), y)).prefetch(1)
history = model.fit(data, epochs=5, verbose=0)
print(np.round(history.history["loss"], 3), np.round(history.history["accuracy"], 3))
found = model.predict(vectorize(np.array(["great fine film", "awful poor"])), verbose=0)
print(found.shape, found[0, 0] > 0.5, found[1, 0] < 0.5)
