"""A small convolutional network for images of digits."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(7)
rng = np.random.default_rng(0)
labels = rng.integers(0, 4, 96)
images = rng.normal(0, 0.3, (96, 12, 12, 1)).astype("float32")
for image, label in zip(images, labels):
    image[2 + 2 * label : 4 + 2 * label, 2:10] += 1.0
model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((12, 12, 1)),
        tf.keras.layers.Rescaling(0.5),
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(4),
    ]
)
model.summary(line_length=70)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
history = model.fit(
    images, labels, batch_size=16, epochs=4, validation_split=0.25, verbose=0
)
for name in sorted(history.history):
    print(name, np.round(history.history[name], 3).tolist())
print(np.round(model.evaluate(images, labels, verbose=0), 3))
print(tf.argmax(model.predict(images[:8], verbose=0), 1).numpy(), labels[:8])
