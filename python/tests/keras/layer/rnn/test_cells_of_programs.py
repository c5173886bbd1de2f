"""Cells that programs derive from the layers' own, which say their steps themselves."""

import headrace as tf
import numpy as np
import pytest

layers = tf.keras.layers


class Adds(layers.LSTMCell):
    def call(self, inputs, states, training=None):
        mask = self.get_dropout_mask_for_cell(inputs, training)
        out = states[0] + 1.0
        return (out if mask is None else mask), [out, states[1]]


class Sums(layers.GRUCell):
    def build(self, input_shape):
        self.w = self.add_weight("w", (input_shape[-1], self.units), initializer="ones")
        self.built = True

    def call(self, inputs, states, training=None):
        h = inputs @ self.w + states[0]
        return h, [h]


class Twice(layers.SimpleRNNCell):
    def call(self, inputs, states, training=None):
        return inputs * 2.0, [states[0] + 1.0]


def test_steps_of_derived_cells():
    x = tf.ones((2, 3, 4))
    every = layers.RNN(Adds(4), return_sequences=True)(x)
    assert every.numpy()[0, :, 0].tolist() == [1.0, 2.0, 3.0]
    out, state = layers.RNN(Twice(2), return_state=True)(tf.ones((1, 3, 2)))
    assert (out.numpy().tolist(), state.numpy().tolist()) == ([[2, 2]], [[3, 3]])


def test_both_directions_of_derived_cells():
    both = layers.Bidirectional(layers.RNN(Sums(3)))
    assert both(tf.ones((1, 3, 2))).numpy().tolist() == [[6.0] * 6]


def test_masks_of_a_cell():
    cell = layers.LSTMCell(3, dropout=0.5, recurrent_dropout=0.5)
    x, h = tf.ones((2, 4)), tf.ones((2, 3))
    assert (cell.get_dropout_mask_for_cell(x, False).numpy() == 1).all()
    cell.reset_dropout_mask()
    mask = cell.get_dropout_mask_for_cell(x, True)
    assert mask.shape == (2, 4) and set(mask.numpy().ravel()) <= {0.0, 2.0}
    assert cell.get_dropout_mask_for_cell(x, False) is mask
    assert cell.get_dropout_mask_for_cell(x, True, count=4) is mask
    several = cell.get_recurrent_dropout_mask_for_cell(h, True, count=3)
    assert [m.shape for m in several] == [(2, 3)] * 3
    assert cell.get_recurrent_dropout_mask_for_cell(h, True, count=3) is several
    cell.reset_recurrent_dropout_mask()
    again = cell.get_recurrent_dropout_mask_for_cell(h, True, count=3)
    assert again is not several
    assert cell.get_dropout_mask_for_cell(x, True) is mask
    plain = layers.GRUCell(3)
    assert plain.get_dropout_mask_for_cell(x, True) is None
    assert plain.get_recurrent_dropout_mask_for_cell(h, True, 3) is None


def test_masks_belong_to_a_graph():
    cell = layers.LSTMCell(3, dropout=0.5)
    eager = cell.get_dropout_mask_for_cell(tf.ones((2, 4)), True)

    @tf.function
    def masked(x):
        mask = cell.get_dropout_mask_for_cell(x, False)
        assert mask is not eager and mask is cell.get_dropout_mask_for_cell(x, False)
        return mask

    assert (masked(tf.ones((2, 4))).numpy() == 1).all()
    assert (cell.get_dropout_mask_for_cell(tf.ones((2, 4)), False).numpy() == 1).all()


@pytest.mark.parametrize("training", [False, True])
def test_masks_of_sequences(training):
    tf.random.set_seed(3)
    rnn = layers.RNN(Adds(64, dropout=0.5), return_sequences=True)
    x = tf.ones((2, 5, 64))
    first = rnn(x, training=training).numpy()
    assert (first == first[:, :1]).all()
    second = rnn(x, training=training).numpy()
    assert (first == second).all() != training


def _filled_cell():
    cell = layers.LSTMCell(2)
    cell.build((None, 3))
    random = np.random.RandomState(0)
    for weight in cell.weights:
        weight.assign(random.rand(*weight.shape))
    new = lambda: tf.constant(random.rand(1, 2), tf.float32)
    return cell, [new() for _ in range(4)], [new() for _ in range(4)], new()


def test_gates_of_lstm_cells():
    cell, z, h, before = _filled_cell()
    c, o = cell._compute_carry_and_output_fused(z, before)
    np.testing.assert_allclose(c, [[0.5630913376808167, 0.2841495871543884]], 1e-5)
    np.testing.assert_allclose(o, [[0.5520301461219788, 0.5402401685714722]], 1e-5)
    c, o = cell._compute_carry_and_output(z, h, before)
    np.testing.assert_allclose(c, [[0.6370624303817749, 0.43771469593048096]], 1e-5)
    np.testing.assert_allclose(o, [[0.6254912614822388, 0.682151734828949]], 1e-5)


class Counts(layers.LSTMCell):
    def _compute_carry_and_output_fused(self, z, c_tm1):
        return c_tm1 + 1.0, z[0] * 0.0 + 2.0


def test_gates_that_cells_define():
    found = layers.RNN(Counts(2), return_state=True)(tf.ones((1, 3, 2)))
    np.testing.assert_allclose(found[0], [[1.9901094436645508] * 2], 1e-5)
    assert found[2].numpy().tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize("kind", [layers.LSTMCell, layers.GRUCell])
def test_how_cells_are_meant_to_compute(kind):
    assert (kind(2).implementation, kind(2, implementation=1).implementation) == (2, 1)
    assert not hasattr(layers.SimpleRNNCell(2), "implementation")
