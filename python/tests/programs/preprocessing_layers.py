"""Tables of numbers and words made ready for a model."""

import numpy as np
import tensorflow as tf

L = tf.keras.layers
norm = L.Normalization()
norm.adapt(np.array([[1.0, 10.0], [3.0, 30.0], [5.0, 20.0]]))
print(
    np.round(norm(np.array([[2.0, 20.0]])).numpy(), 4), np.round(norm.mean.numpy(), 3)
)
lookup = L.StringLookup(output_mode="multi_hot", num_oov_indices=1)
lookup.adapt(["b", "a", "b", "c"])
print(
    [str(v) for v in lookup.get_vocabulary()],
    lookup(tf.constant([["a", "b"], ["z", "c"]])).numpy().tolist(),
)
back = L.StringLookup(vocabulary=["b", "a"], invert=True)
print(back(tf.constant([1, 2, 0])).numpy())
ints = L.IntegerLookup(vocabulary=[12, 36, 1138])
print(ints(tf.constant([[12, 1138, 42]])).numpy())
bins = L.Discretization(bin_boundaries=[0.0, 1.0, 2.0])
print(bins(np.array([-1.0, 0.5, 2.5])).numpy())
crossed = L.HashedCrossing(num_bins=5)
print(
    crossed((tf.constant([["A"], ["B"]]), tf.constant([[101], [102]]))).numpy().tolist()
)
hashed = L.Hashing(num_bins=3)
print(hashed(tf.constant([["A"], ["B"], ["C"]])).numpy().ravel())
encode = L.CategoryEncoding(num_tokens=4, output_mode="count")
print(encode(tf.constant([[0, 1, 1], [3, 3, 3]])).numpy().tolist())
text = L.TextVectorization(output_mode="tf_idf", ngrams=2)
text.adapt(["the cat sat", "the dog"])
print([str(v) for v in text.get_vocabulary()], np.round(text(["the cat"]).numpy(), 3))
counts = tf.keras.preprocessing.text.Tokenizer(num_words=5, oov_token="?")
counts.fit_on_texts(["the cat sat", "the dog, the end"])
print(
    counts.texts_to_sequences(["the dog ran"]),
    counts.texts_to_matrix(["the cat"], "tfidf").round(3).tolist(),
)
print(
    tf.keras.utils.pad_sequences(
        [[1], [2, 3], [4, 5, 6]], maxlen=2, padding="post"
    ).tolist()
)
print(
    tf.keras.utils.to_categorical([0, 2, 1]).tolist(),
    tf.keras.utils.to_ordinal([0, 2], 3).tolist(),
)
image = np.arange(16, dtype="float32").reshape(1, 4, 4, 1)
print(
    L.Resizing(2, 2)(image).numpy().ravel(),
    L.CenterCrop(2, 2)(image).numpy().ravel(),
    L.Rescaling(1 / 4, -1)(image).numpy()[0, 0].ravel(),
)
inputs = {
    "n": tf.keras.Input((1,), name="n"),
    "w": tf.keras.Input((1,), dtype=tf.string, name="w"),
}
words = L.StringLookup(vocabulary=["x", "y"], output_mode="one_hot")
merged = L.Concatenate()([L.Rescaling(0.1)(inputs["n"]), words(inputs["w"])])
tf.keras.utils.set_random_seed(1)
model = tf.keras.Model(inputs, L.Dense(1)(merged))
model.compile("sgd", "mse")
rows = tf.data.Dataset.from_tensor_slices(
    ({"n": [[1.0], [2.0], [3.0]], "w": [["x"], ["y"], ["q"]]}, [1.0, 2.0, 3.0])
).batch(3)
print(np.round(model.fit(rows, epochs=3, verbose=0).history["loss"], 4))
