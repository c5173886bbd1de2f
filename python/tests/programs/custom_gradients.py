"""tf.custom_gradient, stop_gradient, clipping and recomputing."""

import numpy as np
import tensorflow as tf


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


@tf.custom_gradient
def clipped(x):
    return tf.identity(x), lambda dy: tf.clip_by_norm(dy, 0.5)


x = tf.constant([0.0, 1.0, 20.0])
for f in (log1pexp, tf.function(log1pexp)):
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        dy = tape.gradient(y, x)
    print(np.round(dy.numpy(), 4), np.round(second.gradient(dy, x).numpy()[:2], 4))
v = tf.Variable([3.0, 4.0])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(clipped(v * 2.0))
print(np.round(tape.gradient(loss, v).numpy(), 4))
dense = tf.keras.layers.Dense(2, kernel_initializer="ones")
again = tf.recompute_grad(lambda t: tf.tanh(dense(t)))
with tf.GradientTape() as tape:
    out = tf.reduce_sum(again(tf.constant([[0.1, 0.2]])))
print(
    [
        np.round(g.numpy(), 4).tolist()
        for g in tape.gradient(out, dense.trainable_variables)
    ]
)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = x * tf.stop_gradient(x) + tf.grad_pass_through(tf.round)(x * 1.4)
print(tape.gradient(y, x).numpy())
g, norm = tf.clip_by_global_norm([tf.constant([3.0]), tf.constant([4.0])], 1.0)
print([a.numpy().tolist() for a in g], norm.numpy())
