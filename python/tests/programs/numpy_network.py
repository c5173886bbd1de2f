"""A network of tf.experimental.numpy, trained in a function."""

import numpy as np
import tensorflow as tf

n = tf.experimental.numpy
n.experimental_enable_numpy_behavior(prefer_float32=True)

generator = np.random.default_rng(0)
inputs = n.array(generator.normal(size=[64, 4]), dtype=np.float32)
wanted = n.sin(inputs[:, :1]) + inputs[:, [2]] * 0.5
sizes = [4, 8, 1]
weights = [
    tf.Variable(n.array(generator.normal(size=[a, b]) / n.sqrt(a), dtype=np.float32))
    for a, b in zip(sizes, sizes[1:])
]
biases = [tf.Variable(n.zeros([b], np.float32)) for b in sizes[1:]]


def outputs(x):
    for i, (w, b) in enumerate(zip(weights, biases)):
        x = n.dot(x, w) + b
        x = n.tanh(x) if i == 0 else x
    return x


def loss(x, y):
    return n.mean(n.square(outputs(x) - y))


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        value = loss(x, y)
    parameters = weights + biases
    for p, g in zip(parameters, tape.gradient(value, parameters)):
        p.assign_sub(0.1 * g)
    return value


print(loss(inputs, wanted))
for i in range(60):
    value = step(inputs, wanted)
    if i % 20 == 19:
        print(i, value)

found = outputs(inputs)
print(found.dtype, found.shape, found.T.shape, found[inputs[:, 0] > 1.0].shape[1])
print(
    found.ravel()[[0, 1, -1]],
    found.mean(),
    found.max(axis=0),
    found.clip(0.0, 0.1)[:3, 0],
)
print(
    found[:4].reshape(2, -1).astype(np.float64), n.argmax(found), found.size, found.ndim
)
print(n.concatenate([found[:2], inputs[:2]], axis=1).tolist()[0][1:])
print(n.stack([n.arange(3), n.ones(3, np.int8)]), n.arange(3) + 1.5, n.arange(3) / 2)
try:
    found[0] = 1.0
except TypeError as error:
    print(type(error).__name__)
