"""One step of a recurrent layer."""

import inspect

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.keras import initializer as initializers
from headrace.keras import serialization
from headrace.keras.base.base_layer import Layer
from headrace.keras.phase import dropped, is_off
from headrace.keras.layer import registry
from headrace.keras.layer.parts import Weighted, takes, times_kernel
from headrace.keras.layer.rnn.kept_masks import KeptMasks


_WEIGHTS = ("kernel", "recurrent", "bias")


def within_one(share):
    """A share to drop: a number from 0 to 1."""
    return min(1.0, max(0.0, share))


@takes(
    "units, activation='tanh', recurrent_activation=None, use_bias=True, "
    "dropout=0.0, recurrent_dropout=0.0, **kwargs",
    *_WEIGHTS,
    before="dropout",
    activity=False,
)
class _Cell(KeptMasks, Weighted, Layer):
    """What the cells share.

    A cell has `gates` products of the input side by side. `project` computes them
    for any number of steps at once, `step` does what needs the state. A subclass with a
    `call` of its own is called for each step.
    """

    gates = 1
    _state_count = 1

    def _before(self, given):
        if given["units"] <= 0:
            raise ValueError(
                "Received an invalid value for argument `units`, expected a positive "
                f"integer, got {given['units']}."
            )
        # Both kinds give the same values; cells of programs ask which one is meant.
        chosen = given.pop("implementation", None)
        if chosen is not None and self.gates > 1:
            object.__setattr__(self, "implementation", chosen)

    def _kept(self, name, value):
        value = super()._kept(name, value)
        return within_one(value) if name.endswith("dropout") else value

    @property
    def state_size(self):
        """units, or a list of it for each state where there are several."""
        if self._state_count == 1:
            return self.units
        return [self.units] * self._state_count

    output_size = read_only("units", "units.")

    def get_config(self):
        """Adds the implementation, of which LSTM and GRU cells had two."""
        config = super().get_config()
        if self.gates > 1:
            config["implementation"] = self.implementation
        return config

    def build(self, input_shape):
        """Makes kernel [features, n], recurrent_kernel [units, n] and bias [n].

        n is units for each gate; the bias of a GRU with reset_after is [2, n].
        """
        size = tf.TensorShape(input_shape)[-1]
        wide = self.units * self.gates
        self.kernel = self._new_weight("kernel", (size, wide))
        self.recurrent_kernel = self._new_weight(
            "recurrent", (self.units, wide), name="recurrent_kernel"
        )
        self.bias = self._new_bias() if self.use_bias else None
        self.built = True

    def _new_bias(self):
        return self._new_weight("bias", (self.units * self.gates,))

    # --- dropout: one mask a sequence ---

    def new_masks(self, batch, size, training):
        """(mask of inputs, mask of states); None where nothing is dropped."""
        if is_off(training):
            return None, None

        def mask(rate, width):
            if not rate:
                return None
            ones = tf.ones(tf.stack([batch, width]), self._computed)
            return dropped(ones, rate, training)

        return mask(self.dropout, size), mask(self.recurrent_dropout, self.units)

    # --- computing ---

    def computes_as_told(self):
        """Whether its steps are those of project() and step()."""
        return type(self).call is _Cell.call

    def project(self, inputs):
        """inputs @ kernel (+ bias), over the last axis."""
        out = times_kernel(inputs, self.kernel, self.units * self.gates)
        return out if self.bias is None else out + self._input_bias()

    def _input_bias(self):
        return self.bias

    def step(self, projected, states, drop):
        """(output, list of new states) of projected inputs. Subclasses define it."""
        raise NotImplementedError(type(self).__name__)

    def call(self, inputs, states, training=None):
        """One step: (output, new states), of [batch, features] and the states before.

        A single state may stand without a list, and is given back without one.
        """
        states = states if tf.nest.is_nested(states) else [states]
        batch = tf.shape(inputs)[0]
        drop_in, drop = self.new_masks(batch, inputs.shape[-1], training)
        if drop_in is not None:
            inputs = inputs * drop_in
        out, states = self.step(self.project(inputs), list(states), drop)
        return out, states if self._state_count > 1 else states[0]

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        """Zeros: [batch, units] for each state,
        as `inputs` or the other arguments say."""
        if inputs is not None:
            batch_size, dtype = tf.shape(inputs)[0], inputs.dtype
        return zero_states(self.state_size, batch_size, dtype or self._computed)


def _dropped(state, drop):
    return state if drop is None else state * drop


@takes(
    "units, activation='tanh', use_bias=True, dropout=0.0, recurrent_dropout=0.0, "
    "**kwargs",
    *_WEIGHTS,
    before="dropout",
    activity=False,
)
class SimpleRNNCell(_Cell):
    """activation(x @ kernel + h @ recurrent_kernel + bias)."""

    _config_without = ("recurrent_activation",)

    def step(self, projected, states, drop):
        """h = activation(projected + h @ recurrent_kernel)."""
        out = projected + tf.matmul(_dropped(states[0], drop), self.recurrent_kernel)
        out = self.activation(out)
        return out, [out]


def new_lstm_bias(cell, units):
    """The bias of a cell with four gates; of the forget gate ones, where asked for."""
    if not cell.unit_forget_bias:
        return cell._new_weight("bias", (units * 4,))
    plain = cell.bias_initializer

    def with_forget(shape, dtype=None, **kwargs):
        parts = ((plain, units), (initializers.Ones(), units), (plain, units * 2))
        return tf.concat([make([size], dtype=dtype) for make, size in parts], 0)

    return cell._new_weight("bias", (units * 4,), initializer=with_forget)


@takes(
    "units, activation='tanh', recurrent_activation='sigmoid', use_bias=True, "
    "dropout=0.0, recurrent_dropout=0.0, **kwargs",
    *_WEIGHTS,
    between="unit_forget_bias=True",
    before="dropout",
    activity=False,
)
class LSTMCell(_Cell):
    """Long short-term memory; gates in the order input, forget, cell, output."""

    gates = 4
    implementation = 2
    _state_count = 2

    def _new_bias(self):
        return new_lstm_bias(self, self.units)

    def step(self, projected, states, drop):
        """c = f * c + i * activation(g); h = o * activation(c).

        Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000).
        """
        h, c = states
        z = projected + tf.matmul(_dropped(h, drop), self.recurrent_kernel)
        c, o = self._compute_carry_and_output_fused(tf.split(z, 4, axis=1), c)
        h = o * self.activation(c)
        return h, [h, c]

    def _compute_carry_and_output_fused(self, z, c_tm1):
        """(new c, output gate) of the inputs of the four gates, a list, and c before.
        Cells of programs call it and define it, as the next one."""
        return lstm_gates(self, z, c_tm1)

    def _compute_carry_and_output(self, x, h_tm1, c_tm1):
        """The same of what inputs and state give for each gate, lists of four: the
        states are yet to be multiplied by their parts of the recurrent kernel."""
        parts = tf.split(self.recurrent_kernel, 4, axis=1)
        z = [a + tf.matmul(h, part) for a, h, part in zip(x, h_tm1, parts)]
        return self._compute_carry_and_output_fused(z, c_tm1)


def lstm_gates(cell, z, c):
    """(new c, output gate) of a cell of the inputs of its four gates and c before."""
    i, f, g, o = z
    inner = cell.recurrent_activation
    return inner(f) * c + inner(i) * cell.activation(g), inner(o)


@takes(
    "units, activation='tanh', recurrent_activation='sigmoid', use_bias=True, "
    "dropout=0.0, recurrent_dropout=0.0, reset_after=True, **kwargs",
    *_WEIGHTS,
    before="dropout",
    activity=False,
)
class GRUCell(_Cell):
    """Gated recurrent unit; gates in the order update, reset, candidate."""

    gates = 3
    implementation = 2

    def _new_bias(self):
        wide = 3 * self.units
        return self._new_weight("bias", (2, wide) if self.reset_after else (wide,))

    def _input_bias(self):
        return self.bias[0] if self.reset_after else self.bias

    def step(self, projected, states, drop):
        """h = z * h + (1 - z) * candidate; reset_after says where r is multiplied in.

        Cho et al. (2014), https://arxiv.org/abs/1406.1078.
        """
        h = states[0]
        mixed = _dropped(h, drop)
        kernel = tf.convert_to_tensor(self.recurrent_kernel)
        inner = self.recurrent_activation
        x_z, x_r, x_h = tf.split(projected, 3, axis=1)
        if self.reset_after:
            state = tf.matmul(mixed, kernel)
            if self.bias is not None:
                state = state + self.bias[1]
            h_z, h_r, h_h = tf.split(state, 3, axis=1)
            z, r = inner(x_z + h_z), inner(x_r + h_r)
            candidate = self.activation(x_h + r * h_h)
        else:
            units = self.units
            state = tf.matmul(mixed, kernel[:, : 2 * units])
            h_z, h_r = tf.split(state, 2, axis=1)
            z, r = inner(x_z + h_z), inner(x_r + h_r)
            candidate = self.activation(
                x_h + tf.matmul(r * mixed, kernel[:, 2 * units :])
            )
        h = z * h + (1.0 - z) * candidate
        return h, [h]


class AbstractRNNCell(Layer):
    """Base of cells: `call(inputs, states)` gives an output and new states."""

    def call(self, inputs, states):
        """(output, new states) of one step's inputs. Subclasses define it."""
        raise NotImplementedError

    @property
    def state_size(self):
        """The size, or shape, of a state, or a structure of them.
        Subclasses define it."""
        raise NotImplementedError

    @property
    def output_size(self):
        """The size of the output. Subclasses define it."""
        raise NotImplementedError

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        """Zeros, [batch, *size] for each state, in the structure of state_size.

        Batch and dtype are those of `inputs`, else the other arguments; ValueError
        where one is missing.
        """
        if inputs is not None:
            batch_size, dtype = tf.shape(inputs)[0], inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state. "
                f"Received: batch_size={batch_size}, dtype={dtype}"
            )

        return zero_states(self.state_size, batch_size, dtype)


def zero_states(sizes, batch_size, dtype):
    """Zeros, [batch, *size], for each size or shape of a structure of them."""

    def zeros(size):
        return tf.zeros(tf.stack([batch_size, *tf.TensorShape(size).as_list()]), dtype)

    return tf.nest.map_structure(zeros, sizes)


def initial_states(cell, inputs, batch_size, dtype):
    """What a cell, of whatever class, begins with: zeros unless it says else."""
    sizes = cell.state_size
    if not hasattr(cell, "get_initial_state"):
        return zero_states(sizes, batch_size, dtype)
    found = cell.get_initial_state(inputs=inputs, batch_size=batch_size, dtype=dtype)
    return tf.nest.pack_sequence_as(sizes, tf.nest.flatten(found))


def takes(cell, name):
    """Whether the call of a cell has an argument of that name."""
    return name in inspect.signature(cell.call).parameters


def call_cell(cell, inputs, states, sizes, training=None, **further):
    """(output, new states) of a cell, the states in the structure of its sizes.

    A cell gets a list of its states, also where it has but one; cells in TensorFlow
    1's manner (`_is_tf_rnn_cell`) get the one itself. It may return either. It gets
    `training` and the `further` arguments where its call has them.
    """
    single = not tf.nest.is_nested(sizes)
    if getattr(cell, "_is_tf_rnn_cell", False):
        given = tf.nest.flatten(states)[0] if single else states
    else:
        given = states if tf.nest.is_nested(states) else [states]
    further["training"] = training
    further = {name: value for name, value in further.items() if takes(cell, name)}
    out, new = cell(inputs, given, **further)
    return out, tf.nest.pack_sequence_as(sizes, tf.nest.flatten(new))


class StackedRNNCells(Layer):
    """Cells one on top of the other, as one cell."""

    def __init__(self, cells, **kwargs):
        super().__init__(**kwargs)
        self.cells = list(cells)

    @property
    def state_size(self):
        """A list of the cells' state sizes, the lowest cell first."""
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self):
        """The output size of the last cell."""
        return self.cells[-1].output_size

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        """A list of the cells' initial states."""
        return [initial_states(cell, inputs, batch_size, dtype) for cell in self.cells]

    def call(self, inputs, states, constants=None, training=None):
        """One step through all cells: (output of the last,
        list of their new states). Cells that take constants get them."""
        new = []
        further = {} if constants is None else {"constants": constants}
        for cell, state in zip(self.cells, states):
            sizes = cell.state_size
            inputs, state = call_cell(cell, inputs, state, sizes, training, **further)
            new.append(state)
        return inputs, new

    def get_config(self):
        """Adds the cells' configs."""
        cells = [serialization.serialize(cell) for cell in self.cells]
        return {**super().get_config(), "cells": cells}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Cells, without weights, of what get_config() gave."""
        config = dict(config)
        cells = [registry.deserialize(c, custom_objects) for c in config.pop("cells")]
        return cls(cells, **config)
