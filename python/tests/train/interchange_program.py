"""Python's twin of tests/programs/interchange.cc, for any TensorFlow.

As a program it reads trainings from its input, a line each and all in one process
(TensorFlow takes long to start): MODEL OPTIMIZER FROM TO STEPS legacy|slots|lists
"""

import sys

import numpy as np


def waves(shape):
    i = np.arange(np.prod(shape)) % 7
    return (i.astype("float32") / 8 - np.float32(0.25)).reshape(shape)


def words():
    return (np.arange(20, dtype="int32") ** 2 % 9).reshape(4, 5)


def held(tf, k, init):
    """Penalties and constraints of all kinds."""
    reg, con = tf.keras.regularizers, tf.keras.constraints
    first = k.Dense(
        4,
        "tanh",
        kernel_initializer=init.GlorotUniform(1),
        kernel_regularizer=reg.L2(0.1),
        bias_regularizer="l1",
        kernel_constraint=con.MaxNorm(0.9),
    )
    second = k.Dense(
        4,
        kernel_initializer=init.GlorotUniform(2),
        kernel_regularizer=reg.L1L2(0.01, 0.02),
        kernel_constraint=con.MinMaxNorm(0.5, 0.8, 0.9),
        bias_constraint="non_neg",
    )
    third = k.Dense(
        2,
        kernel_initializer=init.HeNormal(3),
        kernel_regularizer=reg.OrthogonalRegularizer(0.1),
        kernel_constraint=con.UnitNorm(1),
    )
    return tf.keras.Sequential([first, second, third]), waves((10, 3))


def series(tf, k, init):
    first = k.Conv1D(
        4,
        3,
        padding="causal",
        dilation_rate=2,
        activation="relu",
        kernel_initializer=init.GlorotUniform(1),
    )
    stack = [
        first,
        k.MaxPooling1D(2, padding="same"),
        k.Conv1D(4, 2, strides=2, kernel_initializer=init.GlorotUniform(2)),
        k.AveragePooling1D(2, strides=1),
        k.Flatten(),
        k.Dense(2, kernel_initializer=init.GlorotUniform(3)),
    ]
    return tf.keras.Sequential(stack), waves((3, 18, 2))


def volumes(tf, k, init):
    first = k.Conv3D(
        3,
        (2, 3, 3),
        padding="same",
        activation="tanh",
        kernel_initializer=init.GlorotUniform(1),
    )
    stack = [
        first,
        k.MaxPooling3D(2),
        k.AveragePooling3D((1, 2, 2), strides=1),
        k.GlobalAveragePooling3D(),
        k.Dense(2, kernel_initializer=init.GlorotUniform(3)),
    ]
    return tf.keras.Sequential(stack), waves((2, 4, 6, 6, 2))


def images(tf, k, init):
    separable = k.SeparableConv2D(
        4,
        3,
        strides=2,
        depth_multiplier=2,
        activation="relu",
        depthwise_initializer=init.GlorotUniform(1),
        pointwise_initializer=init.GlorotUniform(2),
    )
    transposed = k.Conv2DTranspose(
        3,
        3,
        strides=2,
        padding="same",
        output_padding=1,
        kernel_initializer=init.GlorotUniform(3),
    )
    stack = [
        k.ZeroPadding2D(((1, 0), (2, 1))),
        separable,
        transposed,
        k.UpSampling2D((2, 1)),
        k.GlobalAveragePooling2D(),
        k.Dense(2, kernel_initializer=init.GlorotUniform(4)),
    ]
    return tf.keras.Sequential(stack), waves((2, 8, 8, 2))


def masked(tf, k, init):
    """Masks from layer to layer."""
    embedding = k.Embedding(
        9,
        4,
        init.RandomUniform(-0.1, 0.1, 6),
        embeddings_regularizer="l2",
        mask_zero=True,
    )
    lstm = k.LSTM(
        3,
        kernel_initializer=init.GlorotUniform(7),
        recurrent_initializer=init.Orthogonal(1, 8),
        return_sequences=True,
        kernel_regularizer="l2",
    )
    simple = k.SimpleRNN(
        3,
        kernel_initializer=init.GlorotUniform(10),
        recurrent_initializer=init.Orthogonal(1, 11),
        return_sequences=True,
        recurrent_constraint="unit_norm",
    )
    each = k.Dense(3, "tanh", kernel_initializer=init.GlorotUniform(9))
    stack = [
        embedding,
        k.Bidirectional(lstm),
        k.TimeDistributed(each),
        simple,
        k.GlobalAveragePooling1D(),
        k.Dense(2, kernel_initializer=init.GlorotUniform(12)),
    ]
    return tf.keras.Sequential(stack), words()


def attention(tf, k, init):
    """A model of one's own with attention."""

    class Attending(tf.keras.Model):
        def __init__(self):
            super().__init__()
            table = init.RandomUniform(-0.5, 0.5, 6)
            self.embed = k.Embedding(9, 4, table, mask_zero=True)
            self.heads = k.MultiHeadAttention(
                2, 3, kernel_initializer=init.GlorotUniform(7)
            )
            self.dots = k.Attention(use_scale=True)
            self.sums = k.AdditiveAttention(use_scale=False)
            self.norm = k.LayerNormalization()
            self.out = k.Dense(2, kernel_initializer=init.GlorotUniform(9))

        def call(self, ids, training=False):
            x = self.embed(ids)
            y = self.norm(k.Add()([x, self.heads(x, x)]))
            both = k.Concatenate()([self.dots([y, y]), self.sums([y, y])])
            return self.out(k.GlobalAveragePooling1D()(both))

    return Attending(), words()


def functional(tf, k, init):
    """Two inputs, a layer that is called twice, operators, penalized outputs."""
    first, second = tf.keras.Input((3,)), tf.keras.Input((4,))
    shared = k.Dense(
        4,
        "tanh",
        kernel_initializer=init.GlorotUniform(1),
        activity_regularizer=tf.keras.regularizers.L2(0.1),
    )
    narrow = k.Dense(3, kernel_initializer=init.GlorotUniform(2))(second)
    x = k.Add()([shared(first), shared(narrow) * 0.5])
    x = k.PReLU(alpha_initializer=init.Constant(0.2))(x)
    x = k.Concatenate()([x - 0.25, second])
    out = k.Dense(2, kernel_initializer=init.GlorotUniform(3))(x)
    model = tf.keras.Model([first, second], out)
    return model, [waves((10, 3)), waves((10, 4))]


def passing(tf, k, init):
    """Layers that change what passes through."""
    stack = [
        k.Dense(4, kernel_initializer=init.GlorotUniform(1)),
        k.LeakyReLU(0.2),
        k.Dense(4, kernel_initializer=init.GlorotUniform(2)),
        k.ELU(0.5),
        k.RepeatVector(3),
        k.Permute((2, 1)),
        k.GroupNormalization(3),
        k.UpSampling1D(2),
        k.ZeroPadding1D(1),
        k.ActivityRegularization(0.01, 0.02),
        k.Flatten(),
        k.UnitNormalization(),
        k.Dense(4, kernel_initializer=init.GlorotUniform(3)),
        k.ReLU(0.5, 0.1, 0.05),
        k.ThresholdedReLU(0.01),
        k.Dense(2, kernel_initializer=init.GlorotUniform(4)),
        k.Softmax(),
    ]
    return tf.keras.Sequential(stack), waves((6, 4))


def make_case(tf, kind):
    k, init = tf.keras.layers, tf.keras.initializers
    makers = held, series, volumes, images, masked, attention, functional, passing
    for more in makers:
        if more.__name__ == kind:
            model, x = more(tf, k, init)
            if isinstance(x, list):
                return model, [tf.constant(part) for part in x]
            return model, tf.constant(x)
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
        x = words()
    return tf.keras.Sequential(stack), tf.constant(x)


def make_optimizer(tf, kind, layout):
    """One of an older interface, or one whose checkpoints have slots, or lists; for
    TensorFlow itself the last two are one, which has lists."""
    k = tf.keras.optimizers
    schedule = k.schedules.InverseTimeDecay(0.05, 2, 0.5)
    k = {"legacy": k.legacy, "slots": k, "lists": k.experimental}[layout]
    if kind == "Momentum":
        return k.SGD(0.1, 0.9, True)
    if kind == "Scheduled":
        return k.Adam(schedule, amsgrad=True)
    if kind == "Centered":
        return k.RMSprop(0.01, momentum=0.5, centered=True)
    rates = dict(SGD=0.1, Adam=0.05, AdamW=0.05, RMSprop=0.01, Adagrad=0.1, Ftrl=0.1)
    rates.update(Adadelta=0.5, Adamax=0.05, Nadam=0.05)
    return getattr(k, kind)(rates[kind])


def run(tf, model, optimizer, source, target, steps, layout="slots", all_used=False):
    net, x = make_case(tf, model)
    optimizer = make_optimizer(tf, optimizer, layout)
    root = tf.train.Checkpoint(net=net, optimizer=optimizer)
    assert root.save_counter == 0  # made, as C++ does
    status = root.restore(source) if source != "-" else None

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            error = net(x, training=True) - 1.0
            loss = tf.add_n([tf.reduce_mean(error * error), *net.losses])
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    for _ in range(steps):
        train(x)
    if not steps:
        net(x)
        optimizer.build(net.trainable_variables)
    if status and all_used:
        status.assert_consumed()
    return root.write(target)


if __name__ == "__main__":
    import tensorflow

    for line in sys.stdin:
        *names, steps, layout = line.split()
        tensorflow.keras.backend.clear_session()
        run(tensorflow, *names, int(steps), layout, all_used=layout == "lists")
