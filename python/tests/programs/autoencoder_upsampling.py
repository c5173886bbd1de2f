"""A functional autoencoder that scales up by repeating."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
L = tf.keras.layers
inputs = tf.keras.Input((8, 8, 2), name="image")
x = L.Conv2D(6, 3, activation="relu", padding="same")(inputs)
x = L.MaxPooling2D(2, padding="same")(x)
code = L.Conv2D(3, 3, activation="relu", padding="same", name="code")(x)
x = L.UpSampling2D(2)(code)
x = L.Conv2D(2, 3, padding="same")(x)
flat = L.Dense(5, name="head")(L.Flatten()(x))
model = tf.keras.Model(inputs, {"picture": x, "flat": flat})
print(
    {k: v.shape for k, v in model.output.items()}
    if isinstance(model.output, dict)
    else model.output_shape
)
rng = np.random.default_rng(5)
images = rng.random((24, 8, 8, 2)).astype("float32")
model.compile(
    "rmsprop",
    {"picture": "mse", "flat": "mae"},
    loss_weights={"picture": 1.0, "flat": 0.1},
)
logs = model.fit(
    images,
    {"picture": images, "flat": np.zeros((24, 5))},
    epochs=3,
    batch_size=8,
    verbose=0,
    shuffle=False,
)
for name in sorted(logs.history):
    print(name, np.round(logs.history[name], 3).tolist())
encoder = tf.keras.Model(model.input, model.get_layer("code").output)
print(encoder.predict(images[:2], verbose=0).shape)
one = tf.keras.Sequential([L.Input((6, 3)), L.UpSampling1D(3), L.Flatten(), L.Dense(2)])
print(one.output_shape, L.UpSampling3D((1, 2, 2))(tf.keras.Input((2, 3, 4, 1))).shape)
