"""A first program: fits a line, with a traced training step."""

import headrace as tf

x = tf.constant([-1.0, 0.0, 1.0, 2.0])
y = 3.0 * x + 1.0
w, b = tf.Variable(0.0), tf.Variable(0.0)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(w * x + b - y))
    for v, g in zip([w, b], tape.gradient(loss, [w, b])):
        v.assign_sub(0.1 * g)
    return loss


for _ in range(200):
    loss = step(x, y)
print(f"y = {float(w):.3f} x + {float(b):.3f}")
print(tf.stack([w, b]))
