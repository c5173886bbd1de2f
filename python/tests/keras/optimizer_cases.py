"""Trainings by each optimizer, whose checkpoints tests/golden/keras/optimizers keeps.

Written anew by a Python that has TensorFlow 2.21 and tf-keras, from this folder:
`TF_USE_LEGACY_KERAS=1 python optimizer_cases.py ../../../tests/golden/keras/optimizers`.
"""

import os
import sys

import numpy as np


def optimizers(module):
    """{name: optimizer}, with what makes further variables."""
    decay = module.schedules.ExponentialDecay
    return {
        "sgd": lambda: module.SGD(0.1),
        "sgd_momentum": lambda: module.SGD(0.1, momentum=0.9, nesterov=True),
        "adam": lambda: module.Adam(0.1),
        "adam_amsgrad": lambda: module.Adam(0.1, amsgrad=True),
        "adam_schedule": lambda: module.Adam(decay(0.1, 2, 0.5)),
        "adam_average": lambda: module.Adam(0.1, use_ema=True, ema_momentum=0.5),
        "adamw": lambda: module.AdamW(0.1),
        "rmsprop": lambda: module.RMSprop(0.1),
        "rmsprop_centered": lambda: module.RMSprop(0.1, momentum=0.5, centered=True),
        "adagrad": lambda: module.Adagrad(0.1),
        "ftrl_average": lambda: module.Ftrl(
            0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2
        ),
        "adadelta": lambda: module.Adadelta(1.0),
        "adamax": lambda: module.Adamax(0.1),
        "nadam": lambda: module.Nadam(0.1),
        "adam_adaptive": lambda: module.Adam(0.1, adaptive_epsilon=True, epsilon=0.1),
        "lion": lambda: module.Lion(0.1, weight_decay=0.1),
        "adafactor": lambda: module.Adafactor(0.5),
        "adafactor_schedule": lambda: module.Adafactor(
            decay(0.5, 2, 0.5), clip_threshold=0.5, weight_decay=0.1
        ),
    }


def build(tf, name):
    k, module = tf.keras.layers, tf.keras.optimizers
    constant = tf.keras.initializers.Constant
    layers = [
        k.Dense(3, "tanh", kernel_initializer=constant(0.1)),
        k.Dense(2, kernel_initializer=constant(0.2)),
    ]
    net = tf.keras.Sequential(layers)
    optimizer = optimizers(module)[name]()
    return net, optimizer, tf.train.Checkpoint(net=net, optimizer=optimizer)


def train(tf, net, optimizer, steps):
    x = tf.constant(np.sin(np.arange(30, dtype="float32")).reshape(10, 3))
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x) - 1.0))
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


def main(folder):
    import tensorflow as tf

    os.makedirs(folder, exist_ok=True)
    weights = {}
    for name in optimizers(tf.keras.optimizers):
        net, optimizer, root = build(tf, name)
        train(tf, net, optimizer, 3)
        root.write(os.path.join(folder, name))
        train(tf, net, optimizer, 2)
        for i, weight in enumerate(net.weights):
            weights[f"{name}/{i}"] = weight.numpy()
    np.savez(os.path.join(folder, "weights.npz"), **weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
