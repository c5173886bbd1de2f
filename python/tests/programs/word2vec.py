"""Skip-grams with drawn negatives, as in the word2vec tutorial."""

import random

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(42)
text = "the wide road shimmered in the hot sun and the hot road was wide".split()
vocabulary = {"<pad>": 0}
for word in text:
    vocabulary.setdefault(word, len(vocabulary))
sequence = [vocabulary[w] for w in text]
random.seed(1)
pairs, labels = tf.keras.preprocessing.sequence.skipgrams(
    sequence, len(vocabulary), window_size=2, negative_samples=0, shuffle=False
)
print(len(pairs), pairs[:4], set(labels))
table = tf.keras.preprocessing.sequence.make_sampling_table(6)
print(np.round(table, 5))
negatives, _, _ = tf.random.log_uniform_candidate_sampler(
    tf.constant([[1]], tf.int64), 1, 4, True, len(vocabulary), seed=42
)
print(negatives.shape, int(tf.reduce_max(negatives)) < len(vocabulary))
fixed = np.array(
    [[(t + k) % (len(vocabulary) - 1) + 1 for k in (1, 3)] for t, _ in pairs]
)
targets = np.array([t for t, _ in pairs])
contexts = np.concatenate([[[c] for _, c in pairs], fixed], 1)
truth = np.tile([1, 0, 0], (len(pairs), 1))


class Word2Vec(tf.keras.Model):
    def __init__(self, size, width):
        super().__init__()
        self.target = tf.keras.layers.Embedding(size, width, name="w2v")
        self.context = tf.keras.layers.Embedding(size, width)

    def call(self, pair):
        target, context = pair
        if len(target.shape) == 2:
            target = tf.squeeze(target, axis=1)
        return tf.einsum("be,bce->bc", self.target(target), self.context(context))


model = Word2Vec(len(vocabulary), 4)
loss = tf.keras.losses.CategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.Adam(0.05), loss, metrics=["accuracy"])
data = tf.data.Dataset.from_tensor_slices(((targets, contexts), truth)).batch(10)
logs = model.fit(data, epochs=5, verbose=0).history
print(np.round(logs["loss"], 3), np.round(logs["accuracy"], 3))
print(model.get_layer("w2v").get_weights()[0].shape)
