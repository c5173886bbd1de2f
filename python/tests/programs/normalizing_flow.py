"""Coupling layers trained by likelihood: train_step on plain data, no targets."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(3)
L = tf.keras.layers


def coupling():
    x = tf.keras.Input((2,))
    t = L.Dense(
        8, activation="relu", kernel_regularizer=tf.keras.regularizers.l2(0.01)
    )(x)
    s = L.Dense(8, activation="relu")(x)
    return tf.keras.Model(x, [L.Dense(2, activation="tanh")(s), L.Dense(2)(t)])


class Flow(tf.keras.Model):
    def __init__(self, count):
        super().__init__()
        self.tracker = tf.keras.metrics.Mean(name="loss")
        self.masks = np.array([[0, 1], [1, 0]] * (count // 2), "float32")
        self.parts = [coupling() for _ in range(count)]

    @property
    def metrics(self):
        return [self.tracker]

    def call(self, x, training=True):
        log_det, way = 0.0, -1 if training else 1
        for i in range(len(self.parts))[::way]:
            kept = x * self.masks[i]
            s, t = self.parts[i](kept)
            free = 1 - self.masks[i]
            s, t = s * free, t * free
            gate = (way - 1) / 2
            x = free * (x * tf.exp(way * s) + way * t * tf.exp(gate * s)) + kept
            log_det += gate * tf.reduce_sum(s, [1])
        return x, log_det

    def log_loss(self, x):
        y, log_det = self(x)
        normal = -0.5 * tf.reduce_sum(y**2, -1) - np.log(2 * np.pi)
        return -tf.reduce_mean(normal + log_det)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self.log_loss(data)
        g = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(g, self.trainable_variables))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}

    def test_step(self, data):
        self.tracker.update_state(self.log_loss(data))
        return {"loss": self.tracker.result()}


angle = np.random.default_rng(0).uniform(0, np.pi, 96)
moons = np.stack([np.cos(angle), np.sin(angle) - 0.3], 1).astype("float32")
model = Flow(4)
model.compile(optimizer=tf.keras.optimizers.Adam(0.01))
logs = model.fit(
    moons,
    batch_size=32,
    epochs=4,
    verbose=0,
    validation_data=(moons[:32], None),
    shuffle=False,
)
print({k: np.round(v, 2).tolist() for k, v in logs.history.items()})
z, _ = model(moons[:3])
back, _ = model(z, training=False)
print("%.4f" % np.abs(back - moons[:3]).max(), len(model.losses))
