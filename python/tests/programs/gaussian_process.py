"""Regression by a kernel: Cholesky, solves, log-likelihood by gradients."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 4, 14))[:, None]
y = np.sin(x) + 0.05 * rng.normal(size=x.shape)
length, noise = tf.Variable(0.0, dtype=tf.float64), tf.Variable(-2.0, dtype=tf.float64)


def kernel(a, b):
    distance = tf.square(a[:, None, 0] - b[None, :, 0])
    return tf.exp(-0.5 * distance / tf.exp(2 * length))


@tf.function
def negative_log_likelihood():
    k = kernel(x, x) + tf.exp(2 * noise) * tf.eye(14, dtype=tf.float64)
    chol = tf.linalg.cholesky(k)
    alpha = tf.linalg.cholesky_solve(chol, y)
    logdet = 2 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(chol)))
    return 0.5 * (tf.reduce_sum(y * alpha) + logdet + 14 * np.log(2 * np.pi))


optimizer = tf.keras.optimizers.Adam(0.1)
for i in range(30):
    with tf.GradientTape() as tape:
        loss = negative_log_likelihood()
    grads = tape.gradient(loss, [length, noise])
    optimizer.apply_gradients(zip(grads, [length, noise]))
    if i % 10 == 0:
        print(i, "%.4f" % loss)
new = np.linspace(0, 4, 5)[:, None]
k = kernel(x, x) + tf.exp(2 * noise) * tf.eye(14, dtype=tf.float64)
mean = tf.matmul(kernel(new, x), tf.linalg.solve(k, y))
print(np.round(mean.numpy().ravel(), 3), "%.3f" % tf.linalg.logdet(k))
values, _ = tf.linalg.eigh(k)
print(np.round(values[-3:].numpy(), 3), bool(values[0] > 0))
u, s, v = (
    tf.linalg.svd(tf.constant([[3.0, 1.0], [1.0, 2.0], [0.0, 1.0]]))[1],
    None,
    None,
)
print(np.round(u.shape, 1))
q, r = tf.linalg.qr(tf.constant([[3.0, 1.0], [4.0, 2.0]]))
print(np.round(tf.abs(tf.matmul(q, r)).numpy(), 4))
print(
    np.round(
        tf.linalg.lstsq(
            tf.constant([[1.0, 0], [1, 1], [1, 2]]), tf.constant([[1.0], [3], [5]])
        )
        .numpy()
        .ravel(),
        3,
    )
)
print(np.round(tf.linalg.expm([[0.0, 1.0], [-1.0, 0.0]]).numpy(), 4))
print(
    np.round(
        tf.linalg.triangular_solve([[2.0, 0], [1, 1]], [[4.0], [5.0]]).numpy().ravel(),
        3,
    )
)
