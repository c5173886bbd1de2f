"""A network that solves y'' = -y, by tapes in tapes."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(8)
net = tf.keras.Sequential(
    [
        tf.keras.layers.Input((1,)),
        tf.keras.layers.Dense(12, "tanh"),
        tf.keras.layers.Dense(1),
    ]
)
x = tf.reshape(tf.linspace(0.0, 3.0, 24), [-1, 1])
optimizer = tf.keras.optimizers.Adam(0.02)


@tf.function
def train():
    with tf.GradientTape() as tape:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = net(x)
            dy = inner.gradient(y, x)
        ddy = outer.gradient(dy, x)
        loss = (
            tf.reduce_mean(tf.square(ddy + y))
            + tf.square(y[0, 0])
            + tf.square(dy[0, 0] - 1.0)
        )
    optimizer.apply_gradients(
        zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables)
    )
    return loss


losses = [float(train()) for _ in range(41)]
print(np.round(losses[::10], 2))
z = tf.constant([1.0, 2.0])
with tf.GradientTape(persistent=True) as tape:
    tape.watch(z)
    w = tf.stack([z[0] * z[1], tf.sin(z[0]), z[1] ** 3])
print(np.round(tape.jacobian(w, z).numpy(), 4))
with tf.autodiff.ForwardAccumulator(z, tf.constant([1.0, 0.5])) as acc:
    out = tf.reduce_sum(z**3)
print(acc.jvp(out).numpy())
