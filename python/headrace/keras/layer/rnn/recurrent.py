"""RNN, SimpleRNN, LSTM and GRU."""

import numpy as np

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.framework.support import signatures
from headrace.keras import regularizer, serialization, settings
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.call_context import context
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.classes import add_classes
from headrace.keras.layer import recurrent_call, registry
from headrace.keras.layer.parts import takes
from headrace.keras.layer.rnn import cells, kept_masks, scanning


@takes(
    "cell, return_sequences=False, return_state=False, go_backwards=False, "
    "stateful=False, unroll=False, time_major=False, zero_output_for_mask=False, "
    "**kwargs"
)
class RNN(Layer):
    """Runs a cell over time."""

    supports_masking = True
    _num_constants = None  # how many the cell was called with, last in lists of inputs
    _names_cell = True  # whether names of weights have the cell's
    _config_names = ("return_sequences", "return_state", "go_backwards", "stateful")
    _config_names += ("unroll", "time_major", "cell")

    def _before(self, given):
        cell = given["cell"]
        if isinstance(cell, (list, tuple)):
            cell = given["cell"] = cells.StackedRNNCells(cell)
        for name in ("call", "state_size"):
            if not hasattr(cell, name):
                raise ValueError(
                    f"The RNN cell should have a `{name}`. Received: cell={cell}"
                )

    def _begin(self):
        self._states = None  # of stateful layers: variables
        plain = isinstance(self.cell, cells._Cell)
        self.input_spec = InputSpec(ndim=3) if plain else None

    # --- states ---

    states = read_only(
        "_states", "The states that go on from batch to batch, where `stateful`."
    )

    def _state_sizes(self):
        size = self.cell.state_size
        return size if isinstance(size, (list, tuple)) else [size]

    def _initial_states(self, inputs):
        """A list of states: zeros, or what the last batch left."""
        if self.stateful:
            if self._states is None:
                self._make_states(inputs)
            kept = [v._read() for v in tf.nest.flatten(self._states)]
            return tf.nest.pack_sequence_as(self._state_sizes(), kept)
        return self._states_of_cell(None, tf.nest.flatten(inputs)[0], 1)

    def get_initial_state(self, inputs):
        """A list of the states that a sequence begins with where none are given, for
        inputs of that batch: what the cell says, else zeros."""
        axis = 1 if self.time_major else 0
        return self._states_of_cell(inputs, tf.nest.flatten(inputs)[0], axis)

    def _states_of_cell(self, inputs, first, axis):
        """What the cell begins with for as many rows as `first` has along the axis."""
        batch = tf.shape(first)[axis]
        found = cells.initial_states(self.cell, inputs, batch, first.dtype)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    def _make_states(self, inputs):
        first = tf.nest.flatten(inputs)[0]
        if first.shape[1] is None:
            raise ValueError(
                "If a RNN is stateful, it needs to know its batch size. Specify the "
                "batch size of your input tensors: \n- If using a Sequential model, "
                "specify the batch size by passing a `batch_input_shape` argument to "
                "your first layer.\n- If using the functional API, specify the batch "
                "size by passing a `batch_shape` argument to your Input layer."
            )
        with tf.init_scope():
            made = [
                tf.Variable(tf.zeros(shape, first.dtype), trainable=False)
                for shape in self._state_shapes(inputs)
            ]
        for variable in made:
            settings.keep(variable)
        object.__setattr__(self, "_states", made)

    def _state_shapes(self, inputs):
        """Shapes of a stateful layer's states, given its inputs, time first."""
        batch = tf.nest.flatten(inputs)[0].shape[1]
        sizes = map(tf.TensorShape, tf.nest.flatten(self._state_sizes()))
        return [[batch, *size.as_list()] for size in sizes]

    def reset_states(self, states=None):
        """States of a stateful layer: zeros, or the values given."""
        if not self.stateful:
            raise AttributeError("Layer must be stateful.")
        for i, v in enumerate(self._states or ()):
            zeros = np.zeros(v.shape.as_list(), v.dtype.as_numpy_dtype)
            settings.set_value(v, zeros if states is None else states[i])

    # --- computing ---

    def build(self, input_shape):
        """Builds the cell for a step of the inputs, [batch, features]."""
        if isinstance(input_shape, list):  # initial states follow
            input_shape = input_shape[0]
        step = tf.nest.map_structure(self._step_shape, input_shape)
        if isinstance(self.cell, Layer) and not self.cell.built:
            if self._names_cell:
                context.names.append(self.cell.name)
            try:
                self.cell._build_now(step)
            finally:
                if self._names_cell:
                    context.names.pop()
        self.built = True

    def _step_shape(self, shape):
        sizes = tf.TensorShape(shape).as_list()
        batch = sizes[1] if self.time_major else sizes[0]
        return tf.TensorShape([batch, *sizes[2:]])

    def __call__(self, inputs, initial_state=None, constants=None, **kwargs):
        """Lists as input are the input, its initial states and the constants that its
        cell takes; inputs of several parts are tuples or dicts.
        """
        inputs, initial_state, constants = recurrent_call.parts_of_call(
            inputs, initial_state, constants, self._num_constants
        )
        if initial_state is not None:
            kwargs["initial_state"] = initial_state
            self._check_states(tf.nest.flatten(initial_state))
        if constants is not None:
            kwargs["constants"] = constants
            self._num_constants = len(constants)
        return super().__call__(inputs, **kwargs)

    def _check_states(self, states):
        """ValueError for states that are not as many as the cell's, or vectors of other
        sizes."""
        sizes = tf.nest.flatten(self.cell.state_size)
        shapes = [tf.TensorShape(state.shape) for state in states]
        fits = len(shapes) == len(sizes) and all(
            shape.rank != 2 or shape[1] in (None, size)
            for shape, size in zip(shapes, sizes)
        )
        if not fits and all(isinstance(size, int) for size in sizes):
            specs = [InputSpec(shape=(None, *shape[1:])) for shape in shapes]
            raise ValueError(
                "An `initial_state` was passed that is not compatible with "
                f"`cell.state_size`. Received `state_spec`={specs}; however "
                f"`cell.state_size` is {sizes}"
            )

    def call(
        self, inputs, mask=None, training=None, initial_state=None, constants=None
    ):
        """Runs the cell over [batch, time, ...] (time first with time_major).

        The output of the last step, [batch, units], or with return_sequences of all,
        [batch, time, units]; with return_state a list of it and the states. Where
        `mask`, [batch, time], is False, output and states are those of the step before.
        Ragged inputs end where their rows do; ValueError for a mask of such. The
        cell's `constants` are the same at every step; ValueError for a cell whose call()
        has no such argument.
        """
        self._check_constants(constants)
        return self._run(inputs, mask, training, initial_state, constants)

    def _run(self, inputs, mask, training, initial_state, constants=None):
        mask, lengths = tf.nest.flatten(mask)[0], None
        if isinstance(inputs, tf.RaggedTensor):
            inputs, mask, lengths = self._padded(inputs, mask)
        if not self.time_major:
            inputs = tf.nest.map_structure(self._swapped, inputs)
            mask = None if mask is None else tf.transpose(mask, [1, 0])
        if self.go_backwards and lengths is None:
            inputs = tf.nest.map_structure(lambda x: tf.reverse(x, [0]), inputs)
            mask = None if mask is None else tf.reverse(mask, [0])
        if initial_state is None:
            states = self._initial_states(inputs)
        elif isinstance(initial_state, (list, tuple)):
            states = list(initial_state)
        else:
            states = [initial_state]
        step, inputs = self._step_function(inputs, training, constants)
        last, every, states = scanning.scan(
            step, inputs, states, mask, self.unroll, self.return_sequences
        )
        if self.zero_output_for_mask and self.return_sequences and mask is not None:
            every = tf.nest.map_structure(
                lambda x: tf.where(scanning.shown(mask, x), x, tf.zeros_like(x)), every
            )
        if self.stateful:
            for v, s in zip(self._states, tf.nest.flatten(states)):
                self.add_update(v.assign(s, read_value=False))
        out = last
        if self.return_sequences:
            out = every
            if not self.time_major:
                out = tf.nest.map_structure(self._swapped, every)
            if lengths is not None:
                out = tf.RaggedTensor.from_tensor(out, lengths)
        return [out, *states] if self.return_state else out

    def _padded(self, inputs, mask):
        """(rows of one length in the order of the steps, what of them is true, lengths)."""
        if mask is not None:
            raise ValueError(
                f"The mask that was passed in was {mask}, which cannot be applied to "
                "RaggedTensor inputs. Please make sure that there is no mask injected by "
                "upstream layers."
            )
        if self.time_major:
            raise ValueError(f"{self.name}: ragged inputs have the batch first")
        lengths = inputs.row_lengths()
        rows = inputs.to_tensor()
        if self.go_backwards:
            rows = tf.reverse_sequence(rows, lengths, seq_axis=1)
        return rows, tf.sequence_mask(lengths, tf.shape(rows)[1]), lengths

    @staticmethod
    def _swapped(x):
        """Batch first for time first, and the other way round."""
        return tf.transpose(x, [1, 0, *range(2, x.shape.rank)])

    def _check_constants(self, constants):
        if constants is not None and not cells.takes(self.cell, "constants"):
            raise ValueError(
                f"RNN cell {self.cell} does not support constants. "
                f"Received: constants={constants}"
            )

    def _step_function(self, inputs, training, constants):
        """(step(x, states), what it walks over)."""
        cell = self.cell
        if isinstance(cell, cells._Cell) and cell.computes_as_told():
            drop_in, drop = cell.new_masks(
                tf.shape(inputs)[1], inputs.shape[-1], training
            )
            if drop_in is not None:
                inputs = inputs * drop_in
            return lambda x, s: cell.step(x, s, drop), cell.project(inputs)
        kept_masks.forget(cell)
        sizes = cell.state_size
        nested = isinstance(sizes, (list, tuple))
        given = {} if constants is None else {"constants": tuple(constants)}

        def step(x, states):
            states = tuple(states)
            out, new = cells.call_cell(cell, x, states, sizes, training, **given)
            return out, list(new) if nested else [new]

        return step, inputs

    def compute_mask(self, inputs, mask=None):
        """The mask of the inputs with return_sequences, else None;
        None for each state."""
        mask = mask[0] if isinstance(mask, list) else mask
        shown = mask if self.return_sequences else None
        if not self.return_state:
            return shown
        return [shown] + [None] * len(tf.nest.flatten(self._state_sizes()))

    def get_config(self):
        """Adds num_constants where the cell was called with constants."""
        config = super().get_config()
        if self._num_constants is not None:
            config["num_constants"] = self._num_constants
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A layer, without weights, of what get_config() gave."""
        config = dict(config)
        constants = config.pop("num_constants", None)
        made = registry.around(cls, config, custom_objects, "cell")
        made._num_constants = constants
        return made


_LOOP = (*RNN._config_names[:-1], "zero_output_for_mask")
_LAYER = ("name", "trainable", "dtype", "input_shape", "batch_input_shape")
_LAYER += ("input_dim", "batch_size", "weights", "dynamic")


class _WithCell(RNN):
    """A layer that makes its own cell; further arguments are the cell's."""

    _config_names = RNN._config_names[:-1]
    _says_implementation = True
    _cell_class = None
    _cell_name = None

    def __init__(self, **kwargs):
        of_layer = {k: kwargs.pop(k) for k in _LOOP + _LAYER if k in kwargs}
        activity = kwargs.pop("activity_regularizer", None)
        if "input_length" in kwargs:
            length = kwargs.pop("input_length")
            if "input_dim" in of_layer:
                of_layer["input_shape"] = (length, of_layer.pop("input_dim"))
        dtype = {"dtype": of_layer["dtype"]} if "dtype" in of_layer else {}
        cell = self._cell_class(name=self._cell_name, **dtype, **kwargs)
        super().__init__(cell, **of_layer)
        self.activity_regularizer = regularizer.get(activity)
        self._implementation = kwargs.get("implementation", 2)

    def call(self, inputs, mask=None, training=None, initial_state=None):
        """As RNN's; its cell takes no constants."""
        return self._run(inputs, mask, training, initial_state)

    def __getattr__(self, name):
        """What the cell was told: units, activation, kernel_initializer, …"""
        cell = self.__dict__.get("cell")
        if cell is not None and name[0] != "_":
            if name in serialization.config_names(type(cell)):
                return getattr(cell, name)
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def get_config(self):
        """Adds the arguments of the layer and of its cell."""
        config = {**super().get_config(), **serialization.config_of(self.cell)}
        config["activity_regularizer"] = serialization.serialize(
            self.activity_regularizer
        )
        if self._says_implementation:
            config["implementation"] = self._implementation
        return config


def layer_init(base, cell, loop, **changed):
    """The constructor of a layer around a cell: the cell's parameters, some with
    defaults that are `changed`, the layer's activity_regularizer among them, and those
    of the text `loop`, which come last. It hands all on to base.__init__, without a `rank`, which layers know."""
    own = [
        p.replace(default=changed.get(p.name, p.default))
        for p in signatures.parameters_of(cell.__init__)
        if p.name != "rank"
    ]
    names = [p.name for p in own]
    place = names.index("bias_regularizer") + 1
    own.insert(place, signatures.parameter("activity_regularizer", None))
    behind = signatures.from_text(
        "return_sequences=False, return_state=False, go_backwards=False, "
        f"stateful=False, {loop}, **kwargs"
    )
    last = {p.name for p in behind}

    def begin(self, **given):
        base.__init__(self, **given)

    parameters = [p for p in own if p.name not in last] + behind
    return signatures.function_of(signatures.named("__init__"), parameters, begin)


def _around(cell, name, loop="unroll=False"):
    """What a row says of its cell."""
    return {
        "_cell_class": cell,
        "_cell_name": name,
        "__init__": layer_init(_WithCell, cell, loop),
    }


_SIMPLE = _around(cells.SimpleRNNCell, "simple_rnn_cell")
_LSTM = _around(cells.LSTMCell, "lstm_cell", "time_major=False, unroll=False")
_GRU = "unroll=False, time_major=False, reset_after=True"
_GRU = _around(cells.GRUCell, "gru_cell", _GRU)
add_classes(
    globals(),
    """
SimpleRNN(_WithCell, **_SIMPLE)
    The plain recurrent layer: its output is its state.
LSTM(_WithCell, **_LSTM)
    Long short-term memory: [batch, steps, features] to [batch, (steps,) units].
GRU(_WithCell, **_GRU)
    Gated recurrent units: [batch, steps, features] to [batch, (steps,) units].
""",
)
