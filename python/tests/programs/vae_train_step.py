"""A variational autoencoder with a train_step of its own."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(2)
L = tf.keras.layers


class Sampling(L.Layer):
    def call(self, inputs):
        mean, log_var = inputs
        noise = tf.random.stateless_normal(tf.shape(mean), [1, 2])
        return mean + tf.exp(0.5 * log_var) * noise


class VAE(tf.keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder, self.decoder = encoder, decoder
        self.total = tf.keras.metrics.Mean(name="loss")
        self.kl = tf.keras.metrics.Mean(name="kl_loss")

    @property
    def metrics(self):
        return [self.total, self.kl]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            mean, log_var, z = self.encoder(data)
            error = tf.reduce_mean(
                tf.reduce_sum(
                    tf.keras.losses.binary_crossentropy(data, self.decoder(z)),
                    axis=(1, 2),
                )
            )
            kl = -0.5 * (1 + log_var - tf.square(mean) - tf.exp(log_var))
            kl = tf.reduce_mean(tf.reduce_sum(kl, axis=1))
            loss = error + kl
        grads = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.total.update_state(loss)
        self.kl.update_state(kl)
        return {m.name: m.result() for m in self.metrics}


x = inputs = tf.keras.Input((8, 8, 1))
x = L.Conv2D(4, 3, activation="relu", strides=2, padding="same")(x)
x = L.Flatten()(x)
mean, log_var = L.Dense(2, name="mean")(x), L.Dense(2, name="log_var")(x)
encoder = tf.keras.Model(
    inputs, [mean, log_var, Sampling()([mean, log_var])], name="encoder"
)
x = latent = tf.keras.Input((2,))
x = L.Reshape((4, 4, 2))(L.Dense(32, activation="relu")(x))
x = L.Conv2DTranspose(4, 3, activation="relu", strides=2, padding="same")(x)
decoder = tf.keras.Model(
    latent, L.Conv2DTranspose(1, 3, activation="sigmoid", padding="same")(x)
)
images = (np.random.default_rng(0).random((64, 8, 8, 1)) > 0.6).astype("float32")
images[:, 2:6, 2:6] = 1
vae = VAE(encoder, decoder)
vae.compile(tf.keras.optimizers.Adam(0.01))
for values in vae.fit(
    images, epochs=4, batch_size=16, verbose=0, shuffle=False
).history.items():
    print(values[0], np.round(values[1], 2).tolist())
data = tf.data.Dataset.from_tensor_slices(images).batch(16)
print({k: round(v[0], 2) for k, v in vae.fit(data, verbose=0).history.items()})
print(decoder.predict(np.zeros((2, 2)), verbose=0).shape)
