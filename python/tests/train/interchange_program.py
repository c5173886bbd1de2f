"""Python's twin of tests/programs/interchange.cc, for any TensorFlow.

As a program it reads trainings from its input, a line each and all in one process
(TensorFlow takes long to start): MODEL OPTIMIZER FROM TO STEPS legacy|current
"""

import sys

import numpy as np


def waves(shape):
    i = np.arange(np.prod(shape)) % 7
    return (i.astype("float32") / 8 - np.float32(0.25)).reshape(shape)


def make_case(tf, kind):
    k, init = tf.keras.layers, tf.keras.initializers
    if kind == "mlp":
        stack = [
            k.Dense(4, "relu", kernel_initializer=init.GlorotUniform(1)),
            k.BatchNormalization(),
            k.Dropout(0),
            k.Dense(2, kernel_initializer=init.HeNormal(2)),
        ]
        x = waves((10, 3))
    elif kind == "cnn":
        stack = [
            k.Conv2D(
                4,
                3,
                padding="same",
                activation="relu",
                kernel_initializer=init.LecunNormal(3),
            ),
            k.BatchNormalization(),
            k.MaxPooling2D(),
            k.DepthwiseConv2D(
                2,
                activation="tanh",
                depthwise_initializer=init.TruncatedNormal(0, 0.2, 4),
            ),
            k.AveragePooling2D(2, strides=1),
            k.Flatten(),
            k.Dense(2, kernel_initializer=init.RandomNormal(0, 0.1, 5)),
        ]
        x = waves((2, 8, 8, 1))
    else:
        stack = [
            k.Embedding(9, 4, init.RandomUniform(-0.1, 0.1, 6)),
            k.LSTM(
                3,
                kernel_initializer=init.GlorotNormal(7),
                recurrent_initializer=init.Orthogonal(1, 8),
                return_sequences=True,
            ),
            k.GRU(
                3,
                kernel_initializer=init.GlorotUniform(9),
                recurrent_initializer=init.Orthogonal(1, 10),
            ),
            k.LayerNormalization(),
            k.Dense(2, kernel_initializer=init.LecunUniform(11)),
        ]
        x = (np.arange(20, dtype="int32") ** 2 % 9).reshape(4, 5)
    return tf.keras.Sequential(stack), tf.constant(x)


def make_optimizer(tf, kind, legacy=False):
    k = tf.keras.optimizers.legacy if legacy else tf.keras.optimizers
    if kind == "Momentum":
        return k.SGD(0.1, 0.9, True)
    rates = dict(SGD=0.1, Adam=0.05, AdamW=0.05, RMSprop=0.01, Adagrad=0.1, Ftrl=0.1)
    return getattr(k, kind)(rates[kind])


def run(tf, model, optimizer, source, target, steps, legacy=False):
    net, x = make_case(tf, model)
    optimizer = make_optimizer(tf, optimizer, legacy)
    root = tf.train.Checkpoint(net=net, optimizer=optimizer)
    if source != "-":
        root.restore(source)

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            error = net(x, training=True) - 1.0
            loss = tf.reduce_mean(error * error)
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    for _ in range(steps):
        train(x)
    return root.write(target)


if __name__ == "__main__":
    import tensorflow

    for line in sys.stdin:
        *names, steps, legacy = line.split()
        tensorflow.keras.backend.clear_session()
        run(tensorflow, *names, int(steps), legacy == "legacy")
