"""Recurrent layers: states, masks, both ways, stacked and own cells."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(12)
L = tf.keras.layers
x = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float32")
ids = np.array([[1, 2, 3, 0, 0], [4, 5, 0, 0, 0], [1, 1, 1, 1, 1]])


class Minimal(L.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units, self.state_size = units, units

    def build(self, shape):
        self.kernel = self.add_weight(
            shape=(shape[-1], self.units), initializer="ones", name="kernel"
        )
        self.inner = self.add_weight(
            shape=(self.units, self.units), initializer="zeros", name="inner"
        )
        self.built = True

    def call(self, inputs, states):
        h = (
            tf.matmul(inputs, self.kernel) * 0.1
            + tf.matmul(states[0], self.inner)
            + 0.5 * states[0]
        )
        return h, [h]


def show(name, value):
    print(
        name,
        tf.nest.map_structure(
            lambda t: (tuple(t.shape), round(float(tf.reduce_sum(t)), 3)), value
        ),
    )


show("own", L.RNN(Minimal(3))(x))
show(
    "stack",
    L.RNN(
        [
            Minimal(5),
            L.GRUCell(4, kernel_initializer="ones", recurrent_initializer="zeros"),
        ],
        return_state=True,
    )(x),
)
lstm = L.LSTM(3, return_sequences=True, return_state=True)
whole, h, c = lstm(x)
show("lstm", [whole, h, c])
first = lstm(x[:, :2])
second = lstm(x[:, 2:], initial_state=first[1:])
print("%.5f" % tf.reduce_max(tf.abs(second[0] - whole[:, 2:])))
embedding = L.Embedding(6, 4, mask_zero=True)
masked = L.GRU(3, return_sequences=True)(embedding(ids))
print(
    masked._keras_mask.numpy().astype(int).tolist(),
    "%.5f" % tf.reduce_max(tf.abs(masked[1, 1] - masked[1, 4])),
)
both = L.Bidirectional(L.LSTM(2, return_sequences=True), merge_mode="ave")
show("both", both(embedding(ids)))
state = L.SimpleRNN(2, stateful=True)
one, two = state(x), state(x)
state.reset_states()
print("%.5f" % tf.reduce_max(tf.abs(state(x) - one)), bool(tf.reduce_any(one != two)))
show("conv", L.ConvLSTM1D(2, 2)(x[:, :, :, None]))
show("each", L.TimeDistributed(L.Dense(2, kernel_initializer="ones"))(x))
model = tf.keras.Sequential([L.Input((None, 4)), L.Masking(0.0), L.LSTM(4), L.Dense(1)])
model.compile("adam", "mse")
padded = x.copy()
padded[0, 3:] = 0
print(
    np.round(
        model.fit(padded, np.ones((3, 1)), epochs=3, verbose=0, shuffle=False).history[
            "loss"
        ],
        4,
    )
)
print(model.predict(x[:, :2], verbose=0).shape, [w.shape for w in model.get_weights()])
