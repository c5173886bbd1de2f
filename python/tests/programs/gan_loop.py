"""Two networks against each other, by hand in a traced step."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(9)
L = tf.keras.layers
generator = tf.keras.Sequential(
    [
        L.Input((3,)),
        L.Dense(2 * 2 * 4, use_bias=False),
        L.BatchNormalization(),
        L.LeakyReLU(),
        L.Reshape((2, 2, 4)),
        L.UpSampling2D(2),
        L.Conv2D(3, 3, padding="same", activation="relu"),
        L.UpSampling2D(2),
        L.Conv2D(1, 3, padding="same", activation="tanh"),
    ]
)
critic = tf.keras.Sequential(
    [
        L.Input((8, 8, 1)),
        L.Conv2D(4, 3, strides=2),
        L.LeakyReLU(0.2),
        L.Flatten(),
        L.Dense(1),
    ]
)
print(generator.output_shape, critic.output_shape)
entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
first, second = tf.keras.optimizers.Adam(1e-3), tf.keras.optimizers.Adam(2e-3)


@tf.function
def step(images, noise):
    with tf.GradientTape() as one, tf.GradientTape() as two:
        fake = generator(noise, training=True)
        real_out, fake_out = critic(images, training=True), critic(fake, training=True)
        made = entropy(tf.ones_like(fake_out), fake_out)
        judged = entropy(tf.ones_like(real_out), real_out) + entropy(
            tf.zeros_like(fake_out), fake_out
        )
    first.apply_gradients(
        zip(
            one.gradient(made, generator.trainable_variables),
            generator.trainable_variables,
        )
    )
    second.apply_gradients(
        zip(
            two.gradient(judged, critic.trainable_variables), critic.trainable_variables
        )
    )
    return made, judged


rng = np.random.default_rng(3)
images = rng.normal(0.5, 0.2, (32, 8, 8, 1)).astype("float32")
for i in range(6):
    noise = rng.normal(size=(16, 3)).astype("float32")
    made, judged = step(images[i % 2 * 16 : i % 2 * 16 + 16], noise)
    print(i, "%.3f %.3f" % (made, judged))
print(len(generator.trainable_variables))
