"""Cells around cells: dropout, residual connections, devices; of TensorFlow 1 and, under
tf.nn.RNNCell…, of Keras."""

import hashlib
import numbers

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.support import signatures
from headrace.keras.layer import registry
from headrace.keras.layer.rnn.cells import AbstractRNNCell, initial_states
from headrace.v1.rnn.cells import LSTMStateTuple, RNNCell, assert_like_rnncell


class _Wrapping:
    """What the wrappers share: sizes and states are those of the cell."""

    @property
    def state_size(self):
        """That of the wrapped cell."""
        return self.cell.state_size

    @property
    def output_size(self):
        """That of the wrapped cell."""
        return self.cell.output_size

    def zero_state(self, batch_size, dtype):
        """Those of the wrapped cell."""
        with tf.name_scope(f"{type(self).__name__}ZeroState"):
            return self.cell.zero_state(batch_size, dtype)

    def _call_wrapped_cell(self, inputs, state, cell_call_fn, **kwargs):
        """(output, new state) of the cell, called by cell_call_fn. Subclasses change
        what goes in and comes out."""
        raise NotImplementedError

    def _cell_config(self):
        cell = self.cell
        return {"class_name": type(cell).__name__, "config": cell.get_config()}

    def get_config(self):
        """The constructor's arguments as a dict; functions are not among what it can
        hold: NotImplementedError."""
        config = {"name": self.name, "trainable": self.trainable, "dtype": self.dtype}
        return {**config, "cell": self._cell_config(), **self._own_config()}

    def _own_config(self):
        return {}

    def _no_function(self, name, function):
        if function is not None:
            raise NotImplementedError(
                f"{type(self).__name__}: a configuration cannot hold the function that "
                f"`{name}` is"
            )


def _checked_share(name, value):
    """A share to keep: a float from 0 to 1, or a tensor whose value is not known yet."""
    found = tf.convert_to_tensor(value)
    known = tf.get_static_value(found)
    if known is None:
        return found
    known = known.item() if hasattr(known, "item") else known
    if not isinstance(known, numbers.Number):
        raise TypeError(f"Parameter {name} must be a number. Received {value!r}")
    if not 0 <= known <= 1:
        raise ValueError(f"Parameter {name} must be between 0 and 1. Received {known}")
    return float(known)


def _drops(share):
    return not isinstance(share, float) or share < 1


def _by_default(substate):
    """Which parts of a state are dropped: not the memory of an LSTM."""
    if isinstance(substate, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(substate, tf.TensorArray)


def _flags(visitor, state):
    """The structure, as deep as it is needed, of what a visitor says of a state."""
    found = visitor(state)
    if not tf.nest.is_nested(state) or found is False:
        return found
    if tf.nest.is_nested(found):
        tf.nest.assert_same_structure(found, tf.nest.map_structure(bool, found))
        children = [
            _flags(visitor, part) if flag is True else flag
            for flag, part in zip(_children(found), _children(state), strict=True)
        ]
    else:
        children = [_flags(visitor, part) for part in _children(state)]
    return _rebuilt(state, children)


def _children(structure):
    values = structure.values() if isinstance(structure, dict) else structure
    return list(values)


def _rebuilt(structure, children):
    if isinstance(structure, dict):
        return type(structure)(zip(structure, children))
    if hasattr(structure, "_fields"):
        return type(structure)(*children)
    return type(structure)(children)


def _map_to_flags(flags, function, *values):
    """function(number, flag, *values) at the ends of the flags' structure."""
    count = iter(range(1 << 30))

    def walk(flags, *values):
        if not tf.nest.is_nested(flags):
            return function(next(count), flags, *values)
        parts = zip(_children(flags), *map(_children, values), strict=True)
        return _rebuilt(values[-1], [walk(*part) for part in parts])

    return walk(flags, *values)


class _Dropout(_Wrapping):
    """Drops parts of a cell's inputs, outputs and states while it runs.

    The shares that are kept are floats or scalar tensors. variational_recurrent: the
    same mask for all steps (https://arxiv.org/abs/1512.05287), for which dtype and, where
    inputs are dropped, input_size are needed. dropout_state_filter_visitor: a function of
    (parts of) the state that says, by True and False, what may be dropped.
    """

    _shares = ("input_keep_prob", "state_keep_prob", "output_keep_prob")

    def _set_up(self, dtype, seed, dropout_state_filter_visitor, **given):
        visitor = dropout_state_filter_visitor
        if visitor is not None and not callable(visitor):
            raise TypeError(
                f"dropout_state_filter_visitor must be callable. Received: {visitor}"
            )
        self._own_visitor, self._visitor = visitor, visitor or _by_default
        with tf.name_scope("DropoutWrapperInit"):
            for name in self._shares:
                setattr(self, f"_{name}", _checked_share(name, given[name]))
        self._variational_recurrent = given["variational_recurrent"]
        self._input_size, self._seed = given["input_size"], seed
        self._noise = dict.fromkeys(("input", "state", "output"))
        if self._variational_recurrent:
            self._make_noise(dtype, given["input_size"])

    def _make_noise(self, dtype, input_size):
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")

        def noise(salt, sizes):
            return tf.nest.pack_sequence_as(
                sizes,
                [
                    tf.random.uniform(
                        tf.concat([[1], tf.TensorShape(size).as_list()], 0),
                        seed=self._seed_of(salt, number),
                        dtype=dtype,
                    )
                    for number, size in enumerate(tf.nest.flatten(sizes))
                ],
            )

        if _drops(self._input_keep_prob):
            if input_size is None:
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is "
                    "unknown, input_size must be provided"
                )
            self._noise["input"] = noise("input", input_size)
        self._noise["state"] = noise("state", self.cell.state_size)
        self._noise["output"] = noise("output", self.cell.output_size)

    def _seed_of(self, salt, number):
        if self._seed is None:
            return None
        text = f"{self._seed}{salt}_{number}".encode()
        return int(hashlib.md5(text).hexdigest()[:8], 16) & 0x7FFFFFFF

    @property
    def wrapped_cell(self):
        """The cell."""
        return self.cell

    def _dropped(self, values, salt, share, flags=True):
        """The values, some of them zero and the others larger, where the flags say so."""
        if flags is True:
            flags = tf.nest.map_structure(lambda _: True, values)
        noise = self._noise[salt]

        def drop(number, flag, *own):
            value = own[-1]
            if flag is False:
                return value
            if noise is None:
                return tf.nn.dropout(
                    value, rate=1.0 - share, seed=self._seed_of(salt, number)
                )
            kept = tf.floor(share + own[0])
            out = tf.divide(value, share) * kept
            out.set_shape(value.shape)
            return out

        more = [] if noise is None else [noise]
        return _map_to_flags(flags, drop, *more, values)

    def _call_wrapped_cell(self, inputs, state, cell_call_fn, **kwargs):
        if _drops(self._input_keep_prob):
            inputs = self._dropped(inputs, "input", self._input_keep_prob)
        output, state = cell_call_fn(inputs, state, **kwargs)
        if _drops(self._state_keep_prob):
            flags = _flags(self._visitor, state)
            state = self._dropped(state, "state", self._state_keep_prob, flags)
        if _drops(self._output_keep_prob):
            output = self._dropped(output, "output", self._output_keep_prob)
        return output, state

    def _own_config(self):
        self._no_function("dropout_state_filter_visitor", self._own_visitor)
        names = ("input_keep_prob", "output_keep_prob", "state_keep_prob")
        names += ("variational_recurrent", "input_size", "seed")
        return {name: getattr(self, f"_{name}") for name in names}


class _Residual(_Wrapping):
    """Adds a cell's inputs to its outputs, or what residual_fn(inputs, outputs) makes of
    both."""

    def _set_up(self, residual_fn):
        self._residual_fn = residual_fn

    def _call_wrapped_cell(self, inputs, state, cell_call_fn, **kwargs):
        outputs, state = cell_call_fn(inputs, state, **kwargs)
        return (self._residual_fn or _sum)(inputs, outputs), state

    def _own_config(self):
        self._no_function("residual_fn", self._residual_fn)
        return {}


def _sum(inputs, outputs):
    tf.nest.assert_same_structure(inputs, outputs)

    def added(x, y):
        x.shape.assert_is_compatible_with(y.shape)
        return x + y

    return tf.nest.map_structure(added, inputs, outputs)


class _Device(_Wrapping):
    """Runs a cell on a device."""

    def _set_up(self, device):
        self._device = device

    def zero_state(self, batch_size, dtype):
        """Those of the wrapped cell, on the device."""
        with tf.device(self._device):
            return super().zero_state(batch_size, dtype)

    def _call_wrapped_cell(self, inputs, state, cell_call_fn, **kwargs):
        with tf.device(self._device):
            return cell_call_fn(inputs, state, **kwargs)

    def _own_config(self):
        return {"device": self._device}


class _OfCells:
    """A wrapper of cells of TensorFlow 1: has no scope of its own."""

    def _wrap(self, cell):
        assert_like_rnncell("cell", cell)
        self.cell = cell
        if isinstance(cell, tf.Module):
            self._track_trackable(cell, name="cell")

    def __call__(self, inputs, state, scope=None):
        return self._call_wrapped_cell(inputs, state, self.cell.__call__, scope=scope)

    def call(self, inputs, state, **kwargs):
        """(output, new state) of one step."""
        return self._call_wrapped_cell(inputs, state, self.cell.call, **kwargs)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A wrapper of what get_config() gave, in which "cell" is a cell."""
        if isinstance(config["cell"], dict):
            raise ValueError(
                "RNNCellWrapper cannot reconstruct the wrapped cell. Please overwrite "
                "the cell in the config with a RNNCell instance."
            )
        return cls(**config)


class _OfKeras:
    """A wrapper of Keras' cells."""

    def _wrap(self, cell):
        if not hasattr(cell, "call"):
            raise AttributeError(
                f"{type(cell).__name__!r} object has no attribute 'call'"
            )
        self.cell = cell

    def build(self, inputs_shape):
        """Makes the weights of the cell."""
        self.cell.build(inputs_shape)
        self.cell.built = self.built = True

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        """What the wrapped cell begins with."""
        return initial_states(self.cell, inputs, batch_size, dtype)

    def call(self, inputs, state, **kwargs):
        """(output, new state) of one step."""
        return self._call_wrapped_cell(inputs, state, self.cell.call, **kwargs)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A wrapper of what get_config() gave."""
        config = dict(config)
        cell = registry.deserialize(config.pop("cell"), custom_objects)
        return cls(cell, **config)


_DROPOUT = (
    "cell, input_keep_prob=1.0, output_keep_prob=1.0, state_keep_prob=1.0, "
    "variational_recurrent=False, input_size=None, dtype=None, seed=None, "
    "dropout_state_filter_visitor=None, **kwargs"
)


def _wrapper(name, what, text, family, base):
    """A class of wrappers: what it does, its constructor's parameters, of which cells."""
    names = [p.name for p in signatures.from_text(text) if p.kind is not p.VAR_KEYWORD]

    def begin(self, **given):
        own = {key: given.pop(key) for key in names}
        if "dtype" in own:
            given["dtype"] = own["dtype"]
        base.__init__(self, **given)
        self._wrap(own.pop("cell"))
        self._set_up(**own)

    made = type(name, (family, what, base), {"__doc__": what.__doc__})
    made.__module__ = __name__
    made.__init__ = signatures.constructor(text, begin)
    return made


def _of_keras(what, text):
    explicit = _wrapper("Explicit", what, text, _OfKeras, AbstractRNNCell).__init__

    def __init__(self, *args, **kwargs):
        explicit(self, *args, **kwargs)

    name = what.__name__.strip("_") + "Wrapper"
    members = {"__doc__": what.__doc__, "__init__": __init__, "__module__": __name__}
    return type(name, (_OfKeras, what, AbstractRNNCell), members)


_RESIDUAL, _DEVICE = "cell, residual_fn=None, **kwargs", "cell, device, **kwargs"
DropoutWrapper = _wrapper("DropoutWrapper", _Dropout, _DROPOUT, _OfCells, RNNCell)
ResidualWrapper = _wrapper("ResidualWrapper", _Residual, _RESIDUAL, _OfCells, RNNCell)
DeviceWrapper = _wrapper("DeviceWrapper", _Device, _DEVICE, _OfCells, RNNCell)
KerasDropoutWrapper = _of_keras(_Dropout, _DROPOUT)
KerasResidualWrapper = _of_keras(_Residual, _RESIDUAL)
KerasDeviceWrapper = _of_keras(_Device, _DEVICE)
