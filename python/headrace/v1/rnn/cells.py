"""tf.compat.v1.nn.rnn_cell: one step of a recurrent network, as a layer."""

import collections

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.framework.settings import logging
from headrace.keras import activation as activations
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.base.tracking import unique
from headrace.ops.random import initializers_v1
from headrace.v1 import partitioned_variables
from headrace.v1.layer.base import Layer, takes
from headrace.v1.variable_scope import get_variable_scope, variable_scope


def zero_states(sizes, batch_size, dtype):
    """Zeros, [batch_size, *size], for each size or shape of a structure of them."""
    known = None
    if not isinstance(batch_size, _headrace.Tensor):
        known = tf.TensorShape([batch_size])[0]
    else:
        known = tf.get_static_value(batch_size)

    def zeros(size):
        sizes = tf.TensorShape(size).as_list()
        if known is not None and not isinstance(batch_size, _headrace.Tensor):
            return tf.zeros([known, *sizes], dtype)
        batch = tf.expand_dims(tf.cast(batch_size, tf.int32), 0)
        made = tf.zeros(tf.concat([batch, sizes], 0), dtype)
        made.set_shape([None if known is None else int(known), *sizes])
        return made

    return tf.nest.map_structure(zeros, sizes)


def assert_like_rnncell(cell_name, cell):
    """TypeError unless a cell has sizes, a first state, and can be called."""
    missing = []
    for name in ("output_size", "state_size"):
        if not _has(cell, name):
            missing.append(f"'{name}' property is missing")
    if not _has(cell, "zero_state") and not _has(cell, "get_initial_state"):
        missing.append("either 'zero_state' or 'get_initial_state' method is required")
    if not callable(cell):
        missing.append("is not callable")
    if missing:
        raise TypeError(
            f"The argument '{cell_name}' ({cell}) is not an RNNCell: "
            f"{', '.join(missing)}."
        )


def _has(cell, name):
    if isinstance(cell, RNNCell):  # properties that subclasses define late may raise
        return True
    return hasattr(cell, name)


class LSTMStateTuple(collections.namedtuple("LSTMStateTuple", ("c", "h"))):
    """The state of an LSTM: what it remembers, c, and its output, h."""

    __slots__ = ()

    @property
    def dtype(self):
        """The dtype of both; TypeError where they differ."""
        if self.c.dtype != self.h.dtype:
            raise TypeError(
                f"Inconsistent dtypes for internal state: {self.c.dtype} vs "
                f"{self.h.dtype}"
            )
        return self.c.dtype


class RNNCell(Layer):
    """Base of cells: called with inputs, [batch, features], and the state before, a
    structure of [batch, size], a cell gives its output and the new state.

    Subclasses define state_size, output_size and either `call(inputs, state)`, whose
    variables are under the scope of the cell, or `__call__(inputs, state, scope=None)`.
    """

    _is_tf_rnn_cell = True

    def __init__(self, trainable=True, name=None, dtype=None, **kwargs):
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)

    def __call__(self, inputs, state, scope=None):
        target = get_variable_scope() if scope is None else scope
        with variable_scope(target, custom_getter=self._found) as entered:
            how = {} if scope is None else {"scope": entered}
            return super().__call__(inputs, state, **how)

    def _found(self, getter, *args, **kwargs):
        """get_variable for what `call` asks for: the layer's variables, too."""
        variable = getter(*args, **kwargs)
        parts = getattr(variable, "_get_variable_list", None)
        for part in [variable] if parts is None else parts():
            if not any(v is part for v in self._keras.own):
                self._keras.own.append(part)
        return variable

    @property
    def state_size(self):
        """The size, or shape, of the state, or a structure of them."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self):
        """The size, or shape, of the output."""
        raise NotImplementedError("Abstract method")

    def build(self, _):
        """Nothing: the variables are made by `call`."""

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        """zero_state() of the batch and the dtype of inputs, [batch, ...], or of the
        other arguments; ValueError where they are missing or say something else."""
        if inputs is not None:
            inputs = tf.convert_to_tensor(inputs)
            known = inputs.shape[0] if inputs.shape.rank else None
            self._agree("batch size", "batch", "batch_size", known, batch_size)
            self._agree("dtype", "dtype", "dtype", inputs.dtype, dtype)
            batch_size = tf.shape(inputs)[0] if known is None else known
            dtype = inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)

    @staticmethod
    def _agree(what, short, name, found, given):
        if given is None or found is None:
            return
        if isinstance(given, _headrace.Tensor):
            given = tf.get_static_value(given)
        if given is not None and found != given:
            raise ValueError(
                f"{what} from input tensor is different from the input param. Input "
                f"tensor {short}: {found}, {name}: {given}"
            )

    def zero_state(self, batch_size, dtype):
        """Zeros, [batch_size, size], in the structure of state_size."""
        sizes = self.state_size
        with tf.name_scope(f"{type(self).__name__}ZeroState"):
            return zero_states(sizes, batch_size, dtype)


class LayerRNNCell(RNNCell):
    """A cell that makes its variables in `build`."""

    def __call__(self, inputs, state, scope=None, *args, **kwargs):
        return Layer.__call__(self, inputs, state, *args, scope=scope, **kwargs)

    _config_attributes = {
        name: f"_{name}"
        for name in (
            "num_units forget_bias state_is_tuple activation reuse use_peepholes "
            "cell_clip initializer num_proj proj_clip num_unit_shards num_proj_shards "
            "kernel_initializer bias_initializer"
        ).split()
    }

    def _kept(self, name, value):
        if name == "activation":
            return activations.get(value) if value else tf.tanh
        return value

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = InputSpec(ndim=2)

    output_size = read_only("_num_units", "num_units.")
    state_size = read_only("_num_units", "num_units.")

    def _depth(self, input_shape):
        """The size of the features; ValueError where it is not known."""
        self._settle_dtype()
        shape = tf.TensorShape(input_shape)
        size = shape[-1]
        if size is None:
            raise ValueError(
                "Expected inputs.shape[-1] to be known, received shape: "
                f"{tuple(shape.as_list())}"
            )
        if not (self._dtype.is_floating or self._dtype.is_complex):
            raise ValueError(
                "RNN cell only supports floating point inputs, but received dtype: "
                f"{self._dtype}"
            )
        return size

    def _zero_bias(self, name, size):
        zeros = initializers_v1.Zeros(dtype=self._dtype)
        return self.add_variable(name, shape=[size], initializer=zeros)

    @staticmethod
    def _product(inputs, kernel, bias):
        return tf.nn.bias_add(tf.matmul(tf.concat(inputs, 1), kernel), bias)


@takes("num_units, activation=None, reuse=None, name=None, dtype=None, **kwargs")
class BasicRNNCell(LayerRNNCell):
    """output = state = activation([inputs, state] @ kernel + bias)."""

    def build(self, inputs_shape):
        """Makes kernel, [features + num_units, num_units], and bias."""
        size = self._depth(inputs_shape) + self._num_units
        self._kernel = self.add_variable("kernel", shape=[size, self._num_units])
        self._bias = self._zero_bias("bias", self._num_units)
        self.built = True

    def call(self, inputs, state):
        """(output, new state): the same tensor."""
        out = self._activation(self._product([inputs, state], self._kernel, self._bias))
        return out, out


@takes(
    "num_units, activation=None, reuse=None, kernel_initializer=None, "
    "bias_initializer=None, name=None, dtype=None, **kwargs"
)
class GRUCell(LayerRNNCell):
    """Gated recurrent unit, https://arxiv.org/abs/1406.1078."""

    def build(self, inputs_shape):
        """Makes a kernel and a bias under "gates" and under "candidate"."""
        units, more = self._num_units, self._kernel_initializer
        size = self._depth(inputs_shape) + units
        first = self._bias_initializer
        for scope, count, begin in (("gates", 2, 1.0), ("candidate", 1, 0.0)):
            made = initializers_v1.Constant(begin, dtype=self._dtype)
            kernel = self.add_variable(
                f"{scope}/kernel", shape=[size, count * units], initializer=more
            )
            bias = self.add_variable(
                f"{scope}/bias",
                shape=[count * units],
                initializer=made if first is None else first,
            )
            setattr(self, f"_{scope}", (kernel, bias))
        self.built = True

    def call(self, inputs, state):
        """(output, new state): u * state + (1 - u) * candidate."""
        gates = tf.sigmoid(self._product([inputs, state], *self._gates))
        r, u = tf.split(gates, 2, axis=1)
        mixed = self._product([inputs, r * state], *self._candidate)
        candidate = self._activation(mixed)
        out = u * state + (1 - u) * candidate
        return out, out


def _warn_of_joined_state(cell):
    if not cell._state_is_tuple:
        logging.warning(
            f"{cell}: Using a concatenated state is slower and will soon be deprecated. "
            "Use state_is_tuple=True."
        )


@takes(
    "num_units, forget_bias=1.0, state_is_tuple=True, activation=None, reuse=None, "
    "name=None, dtype=None, **kwargs"
)
class BasicLSTMCell(LayerRNNCell):
    """Long short-term memory without peepholes, https://arxiv.org/abs/1409.2329."""

    def _begin(self):
        _warn_of_joined_state(self)

    @property
    def state_size(self):
        """LSTMStateTuple(num_units, num_units), or their sum."""
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    def build(self, inputs_shape):
        """Makes kernel, [features + num_units, 4 * num_units], and bias."""
        size = self._depth(inputs_shape) + self._num_units
        self._kernel = self.add_variable("kernel", shape=[size, 4 * self._num_units])
        self._bias = self._zero_bias("bias", 4 * self._num_units)
        self.built = True

    def call(self, inputs, state):
        """(h, new state), gates in the order input, candidate, forget, output."""
        one = tf.constant(1, dtype=tf.int32)
        if self._state_is_tuple:
            c, h = state
        else:
            c, h = tf.split(value=state, num_or_size_splits=2, axis=one)
        gates = self._product([inputs, h], self._kernel, self._bias)
        i, j, f, o = tf.split(value=gates, num_or_size_splits=4, axis=one)
        forget = tf.constant(self._forget_bias, dtype=f.dtype)
        kept = tf.multiply(c, tf.sigmoid(tf.add(f, forget)))
        c = tf.add(kept, tf.multiply(tf.sigmoid(i), self._activation(j)))
        h = tf.multiply(self._activation(c), tf.sigmoid(o))
        if self._state_is_tuple:
            return h, LSTMStateTuple(c, h)
        return h, tf.concat([c, h], 1)


@takes(
    "num_units, use_peepholes=False, cell_clip=None, initializer=None, num_proj=None, "
    "proj_clip=None, num_unit_shards=None, num_proj_shards=None, forget_bias=1.0, "
    "state_is_tuple=True, activation=None, reuse=None, name=None, dtype=None, **kwargs"
)
class LSTMCell(LayerRNNCell):
    """Long short-term memory, with peepholes and a projection of the output where asked
    for, http://research.google.com/pubs/archive/43905.pdf."""

    def _begin(self):
        _warn_of_joined_state(self)
        if self._num_unit_shards is not None or self._num_proj_shards is not None:
            logging.warning(
                f"{self}: The num_unit_shards and proj_unit_shards parameters are "
                "deprecated and will be removed in Jan 2017. Use a variable scope with a "
                "partitioner instead."
            )

    @property
    def state_size(self):
        """LSTMStateTuple of num_units and output_size, or their sum."""
        sizes = self._num_units, self.output_size
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self):
        """num_proj where the output is projected, else num_units."""
        return self._num_proj or self._num_units

    def _weight(self, name, shape, shards=None):
        cut = None
        if shards is not None:
            cut = partitioned_variables.fixed_size_partitioner(shards)
        how = {"initializer": self._initializer, "partitioner": cut}
        return self.add_variable(name, shape=shape, **how)

    def build(self, inputs_shape):
        """Makes kernel, [features + output_size, 4 * num_units], and bias; with
        peepholes w_f_diag, w_i_diag and w_o_diag; projection/kernel."""
        units, shards = self._num_units, self._num_unit_shards
        size = self._depth(inputs_shape) + self.output_size
        self._kernel = self._weight("kernel", [size, 4 * units], shards)
        zeros = initializers_v1.Zeros(dtype=self._dtype)
        self._bias = self.add_variable("bias", shape=[4 * units], initializer=zeros)
        if self._use_peepholes:
            for name in ("w_f_diag", "w_i_diag", "w_o_diag"):
                setattr(self, f"_{name}", self._weight(name, [units]))
        if self._num_proj is not None:
            shape, shards = [units, self._num_proj], self._num_proj_shards
            self._proj_kernel = self._weight("projection/kernel", shape, shards)
        self.built = True

    def _parts(self, state):
        if self._state_is_tuple:
            return state
        c = tf.slice(state, [0, 0], [-1, self._num_units])
        return c, tf.slice(state, [0, self._num_units], [-1, self.output_size])

    def call(self, inputs, state):
        """(h, new state), gates in the order input, candidate, forget, output."""
        c, h = self._parts(state)
        i, j, f, o = tf.split(
            self._product([inputs, h], self._kernel, self._bias), 4, 1
        )
        if self._use_peepholes:
            forget = tf.sigmoid(f + self._forget_bias + self._w_f_diag * c)
            c = forget * c + tf.sigmoid(i + self._w_i_diag * c) * self._activation(j)
        else:
            kept = tf.sigmoid(f + self._forget_bias) * c
            c = kept + tf.sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = tf.clip_by_value(c, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            h = tf.sigmoid(o + self._w_o_diag * c) * self._activation(c)
        else:
            h = tf.sigmoid(o) * self._activation(c)
        if self._num_proj is not None:
            h = tf.matmul(h, self._proj_kernel)
            if self._proj_clip is not None:
                h = tf.clip_by_value(h, -self._proj_clip, self._proj_clip)
        if self._state_is_tuple:
            return h, LSTMStateTuple(c, h)
        return h, tf.concat([c, h], 1)


class MultiRNNCell(RNNCell):
    """Cells one on top of the other, as one cell. The state is a tuple of theirs, or one
    tensor, where state_is_tuple is False."""

    def __init__(self, cells, state_is_tuple=True):
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not isinstance(cells, (list, tuple)):
            raise TypeError(f"cells must be a list or tuple, but received: {cells}.")
        self._cells, self._state_is_tuple = cells, state_is_tuple
        for number, cell in enumerate(cells):
            if isinstance(cell, tf.Module):
                self._track_trackable(cell, name=f"cell-{number}")
        if not state_is_tuple and any(tf.nest.is_nested(c.state_size) for c in cells):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not "
                f"set. State sizes are: {[cell.state_size for cell in cells]}"
            )

    @property
    def state_size(self):
        """A tuple of the cells' state sizes, or their sum."""
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self):
        """The output size of the last cell."""
        return self._cells[-1].output_size

    def zero_state(self, batch_size, dtype):
        """The cells' zero states."""
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        with tf.name_scope(f"{type(self).__name__}ZeroState"):
            return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)

    def _of_cells(self, name):
        layers = [
            cell for cell in self._cells if isinstance(cell, tf.keras.layers.Layer)
        ]
        return unique(weight for cell in layers for weight in getattr(cell, name))

    @property
    def trainable_weights(self):
        """A list of those of the cells; empty where `trainable` is False."""
        return self._of_cells("trainable_weights") if self.trainable else []

    @property
    def non_trainable_weights(self):
        """A list of those of the cells; all weights where `trainable` is False."""
        found = self._of_cells("non_trainable_weights")
        if not self.trainable:
            return self._of_cells("trainable_weights") + found
        return found

    trainable_variables = read_only("trainable_weights", "The same.")
    non_trainable_variables = read_only("non_trainable_weights", "The same.")

    def call(self, inputs, state):
        """One step through all cells: (output of the last, their new states)."""
        start, new = 0, []
        for number, cell in enumerate(self._cells):
            with variable_scope(f"cell_{number}"):
                if self._state_is_tuple:
                    if not tf.nest.is_nested(state):
                        raise ValueError(
                            "Expected state to be a tuple of length "
                            f"{len(self.state_size)}, but received: {state}"
                        )
                    own = state[number]
                else:
                    own = tf.slice(state, [0, start], [-1, cell.state_size])
                    start += cell.state_size
                inputs, changed = cell(inputs, own)
                new.append(changed)
        return inputs, tuple(new) if self._state_is_tuple else tf.concat(new, 1)
