"""A training that TensorFlow and this package do in turns (test_checkpoints.py).

As a program, TensorFlow's part: `go_on` or `begin`, kind, checkpoint, results.
"""

import sys

import numpy as np


def build(tf, kind):
    k = tf.keras.layers
    constant = tf.keras.initializers.Constant
    net = tf.keras.Sequential(
        [
            k.Dense(4, "relu", kernel_initializer=constant(0.1)),
            k.BatchNormalization(),
            k.Dense(2, kernel_initializer=constant(0.2)),
        ]
    )
    module = tf.keras.optimizers
    rooms = {"legacy": module.legacy, "experimental": module.experimental}
    optimizer = rooms.get(kind, module).Adam(0.05)
    return net, optimizer, tf.train.Checkpoint(net=net, optimizer=optimizer)


def train(tf, net, optimizer, steps):
    x = tf.constant(np.sin(np.arange(30, dtype="float32")).reshape(10, 3))
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x, training=True) - 1.0))
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


def main(mode, kind, path, out):
    import tensorflow as tf

    net, optimizer, root = build(tf, kind)
    if mode == "go_on":
        root.restore(path)
    else:
        train(tf, net, optimizer, 3)
        root.save(path)
    train(tf, net, optimizer, 1)
    weights = [w.numpy() for w in net.weights]
    np.savez(out, *weights, step=np.array(int(optimizer.iterations)))


if __name__ == "__main__":
    main(*sys.argv[1:])
