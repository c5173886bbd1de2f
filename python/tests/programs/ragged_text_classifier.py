"""Sentences of any length: TextVectorization to ragged ids, embeddings, a classifier."""

import numpy as np
import tensorflow as tf

L = tf.keras.layers
good = "fine great happy lovely bright".split()
bad = "awful sad poor broken dull".split()
plain = "the a film was story and it really plot".split()
rng = np.random.default_rng(8)


def sentence(words):
    count = rng.integers(2, 9)
    found = [str(rng.choice(plain)) for _ in range(count)]
    found.insert(int(rng.integers(0, count)), str(rng.choice(words)))
    return " ".join(found).capitalize() + rng.choice([".", "!", "", " ?"])


labels = np.array([i % 2 for i in range(60)])
texts = [sentence(good if label else bad) for label in labels]
print(texts[:2])

vectorize = L.TextVectorization(max_tokens=30, ragged=True)
vectorize.adapt(tf.data.Dataset.from_tensor_slices(texts).batch(16))
words = [str(w) for w in vectorize.get_vocabulary()]
print(len(words), sorted(words[2:6]))
ids = vectorize(texts[:4] + [""])
print(type(ids).__name__, ids.row_lengths().numpy().tolist(), ids.shape)
# Words of one count may come in any order: ids by the words themselves.
names = sorted(words)
vectorize = L.TextVectorization(ragged=True, vocabulary=names[2:], ngrams=None)
table = tf.constant(vectorize.get_vocabulary())
print(tf.gather(table, vectorize(texts[:2])).to_list())

width = 4
vectors = tf.Variable(
    np.sin(np.arange(len(names) * width)).reshape(-1, width), dtype=tf.float32
)
dense = L.Dense(1, kernel_initializer="ones")


@tf.function(
    input_signature=[tf.RaggedTensorSpec([None, None], tf.int64, ragged_rank=1)]
)
def scores(ids):
    """A mean over words, with more weight on those that stand out."""
    rows = tf.nn.embedding_lookup(vectors, ids)
    size = tf.reduce_sum(rows * rows, axis=-1)
    weights = tf.ragged.map_flat_values(tf.sqrt, size)
    weights = weights / (tf.reduce_sum(weights, axis=1, keepdims=True) + 1e-6)
    mixed = tf.reduce_sum(rows * tf.expand_dims(weights, -1), axis=1)
    return tf.squeeze(dense(mixed), -1)


data = tf.data.Dataset.from_tensor_slices((texts, labels.astype("float32")))
data = data.batch(20).map(lambda text, label: (vectorize(text), label)).cache()
print(data.element_spec[0].shape, data.element_spec[0].ragged_rank)
optimizer = tf.keras.optimizers.legacy.Adagrad(0.5)
for epoch in range(6):
    mean = tf.keras.metrics.Mean()
    accuracy = tf.keras.metrics.BinaryAccuracy(threshold=0.0)
    for ids, label in data:
        with tf.GradientTape() as tape:
            logits = scores(ids)
            loss = tf.nn.sigmoid_cross_entropy_with_logits(label, logits)
            loss = tf.reduce_mean(loss)
        variables = [vectors, *dense.trainable_variables]
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))
        mean.update_state(loss)
        accuracy.update_state(label, logits)
    print(epoch, "%.3f %.3f" % (mean.result(), accuracy.result()))
print(type(gradients[0]).__name__)

# What each word says, and what the lengths have to do with it.
lengths = tf.strings.length(tf.ragged.constant([t.split() for t in texts[:3]]))
print(lengths.to_list(), tf.reduce_max(lengths, axis=1).numpy().tolist())
says = tf.nn.softmax(tf.stack([scores(vectorize(good)), scores(vectorize(bad))]), 0)
print(np.round(says.numpy()[0], 2).tolist())
pairs = tf.strings.ngrams(tf.strings.split(tf.strings.lower(texts[:3])), 2)
print(pairs.row_lengths().numpy().tolist(), pairs[0, 0].numpy())
longest = tf.argmax(tf.cast(vectorize(texts).row_lengths(), tf.int32)).numpy()
print(texts[longest], np.round(scores(vectorize([texts[longest]])).numpy(), 2))
padded = vectorize(texts[:3]).to_tensor(-1, shape=[None, 6])
print(padded.numpy().tolist())

# The same network by Keras, on dense ids with a mask.
model = tf.keras.Sequential(
    [L.Embedding(len(names), width, mask_zero=True), L.GlobalAveragePooling1D(), dense]
)
ids = vectorize(texts).to_tensor()
model(ids)
model.layers[0].set_weights([vectors.numpy()])
model.compile(
    tf.keras.optimizers.legacy.SGD(0.1),
    tf.keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[tf.keras.metrics.BinaryAccuracy(threshold=0.0)],
)
history = model.fit(ids, labels, batch_size=20, epochs=2, shuffle=False, verbose=0)
print({k: np.round(v, 3).tolist() for k, v in sorted(history.history.items())})
print(np.round(model.predict(ids[:3], verbose=0)[:, 0], 2).tolist())
