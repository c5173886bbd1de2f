"""RNN with cells of one's own: what they get, and where they are stacked."""

import headrace as tf
import numpy as np
import pytest

L = tf.keras.layers
X = np.random.RandomState(0).randn(2, 3, 4).astype("f")
ONES = dict(kernel_initializer="ones", recurrent_initializer="ones")


class Minimal(L.Layer):
    """The cell of Keras' guide: states is a list, also of one."""

    def __init__(self, units, counts=False):
        super().__init__()
        self.units, self.counts = units, counts
        self.state_size = [units, units] if counts else units

    def build(self, shape):
        self.kernel = self.add_weight("kernel", (shape[-1], self.units), None, "ones")
        self.built = True

    def call(self, inputs, states):
        assert len(states) == len(tf.nest.flatten(self.state_size))
        out = tf.matmul(inputs, self.kernel) + states[0] * 0.5
        return out, [out, states[1] + 1.0] if self.counts else [out]


class Bare(L.Layer):
    """Gives its state without a list."""

    state_size = 3

    def call(self, inputs, states):
        out = inputs[:, :3] + states[0]
        return out, out


def sums(found):
    return [round(float(tf.reduce_sum(x)), 3) for x in tf.nest.flatten(found)]


# [output, states...] as tf_keras sums them
CASES = {
    "one": (lambda: Minimal(5), [15.54, 15.54]),
    "two states": (lambda: Minimal(5, True), [15.54, 15.54, 30.0]),
    "bare": (lambda: Bare(), [7.328, 7.328]),
    "stacked": (
        lambda: [Minimal(5), L.GRUCell(4, **ONES)],
        [-3.971, 15.54, -3.971],
    ),
    "of all kinds": (
        lambda: [Minimal(5, True), L.LSTMCell(3, **ONES), L.SimpleRNNCell(2, **ONES)],
        [3.944, 15.54, 30.0, 3.118, 10.225, 3.944],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cells_of_ones_own(name):
    make, expected = CASES[name]
    for options in ({}, {"unroll": True}, {"stateful": True}):
        rnn = L.RNN(make(), return_state=True, **options)
        assert sums(rnn(X)) == pytest.approx(expected, abs=2e-3)
        if rnn.stateful:
            assert sums(rnn(X)) != pytest.approx(expected, abs=2e-3)
            rnn.reset_states()
        assert sums(tf.function(rnn)(X)) == pytest.approx(expected, abs=2e-3)
    model = tf.keras.Sequential([L.Input((3, 4)), L.RNN(make())])
    out = model.output_shape
    assert out[0] is None and len(out) == 2


class Nested(L.Layer):
    """The guide's cell of two inputs, outputs and states of shapes."""

    state_size = [tf.TensorShape([3]), tf.TensorShape([2, 4])]

    def build(self, shapes):
        (_, a), (_, b, c) = (s.as_list() for s in shapes)
        self.one = self.add_weight("one", (a, 3), None, "ones")
        self.two = self.add_weight("two", (b, c, 2, 4), None, "ones")

    def call(self, inputs, states):
        first = tf.matmul(inputs[0], self.one)
        second = tf.einsum("bij,ijkl->bkl", inputs[1], self.two)
        return (first, second), (states[0] + first, states[1] + second)


def test_nested_inputs_and_outputs():
    random = np.random.RandomState(0)
    a, b = random.rand(4, 6, 3).astype("f"), random.rand(4, 6, 2, 2).astype("f")
    rnn = L.RNN(Nested(), return_sequences=True, return_state=True)
    specs = [tf.TensorSpec([None, None, 3]), tf.TensorSpec([None, None, 2, 2])]
    looped = tf.function(lambda a, b: rnn((a, b)), input_signature=specs)
    for found in (rnn((a, b)), looped(a, b)):
        assert sums(found) == pytest.approx([107.734, 401.549] * 2, abs=2e-2)
    first, second = tf.keras.Input((None, 3)), tf.keras.Input((None, 2, 2))
    model = tf.keras.Model([first, second], L.RNN(Nested())((first, second)))
    found = model.predict([a, b], verbose=0)
    assert [x.shape for x in found] == [(4, 3), (4, 2, 4)]
    assert sums(found) == pytest.approx([15.645, 73.218], abs=2e-3)
