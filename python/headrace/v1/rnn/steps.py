"""What the loops of recurrent networks share: first states, steps that some rows of the
batch have behind them, sizes."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.v1.rnn.cells import RNNCell, zero_states


def is_keras_cell(cell):
    """Whether a cell is Keras', which gets a list of its states."""
    return isinstance(cell, tf.keras.layers.Layer) and not isinstance(cell, RNNCell)


def first_state(cell, given, batch_size, dtype):
    """The state to begin with: `given`, else the cell's; ValueError without a dtype."""
    if given is not None:
        return given
    if not dtype:
        raise ValueError(
            "If no initial_state is provided, argument `dtype` must be specified"
        )
    if getattr(cell, "get_initial_state", None) is not None:
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def batch_size_of(tensors, axis=0):
    """The length of an axis of some tensors: an int where one of them knows it."""
    for tensor in tensors:
        shape = tensor.shape
        if shape.rank is not None and shape.rank > axis and shape[axis] is not None:
            return shape[axis]
    return tf.shape(tensors[0])[axis]


def caller_of(cell, states_known=None):
    """cell(inputs, state), of Keras' cells with a list of states."""
    if not is_keras_cell(cell) or tf.nest.is_nested(cell.state_size):
        return cell

    def call(inputs, state):
        output, new = cell(inputs, [state])
        return output, new[0] if isinstance(new, (list, tuple)) else new

    return call


def zeros_like_output(cell, batch_size, dtype):
    """Zeros in the structure of a cell's output, [batch, *size] each."""
    return zero_states(cell.output_size, batch_size, dtype)


def choose_rows(done, before, after):
    """`before` for the rows of the batch that are done, else `after`; arrays and scalars
    are always `after`."""
    if isinstance(before, tf.TensorArray) or before.shape.rank == 0:
        return after
    return tf.compat.v1.where(done, before, after)


class Step:
    """A call of a cell after which some rows of the batch, shorter ones, give zeros and
    keep their state."""

    def __init__(self, time, lengths, zero_output, state):
        self._time, (self._lengths, self._least, self._most) = time, lengths
        self._zero, self._state = zero_output, state

    def _checked(self, call):
        output, state = call()
        tf.nest.assert_same_structure(self._zero, output)
        tf.nest.assert_same_structure(self._state, state)
        return output, state

    def _copied(self, output, state):
        done = self._time >= self._lengths
        before, after = (self._zero, self._state), (output, state)
        return tf.nest.map_structure(
            lambda b, a: choose_rows(done, b, a), before, after
        )

    def always(self, call):
        """Calls the cell and chooses rows."""
        return self._shaped(*self._copied(*self._checked(call)))

    def sparingly(self, call):
        """Calls the cell unless all rows are done, chooses rows where some are."""

        def run():
            found = self._checked(call)
            return tf.cond(
                self._time < self._least,
                lambda: tf.nest.flatten(found),
                lambda: tf.nest.flatten(self._copied(*found)),
            )

        kept = self._zero, self._state
        flat = tf.cond(self._time >= self._most, lambda: tf.nest.flatten(kept), run)
        flat = flat if isinstance(flat, (list, tuple)) else [flat]
        return self._shaped(*tf.nest.pack_sequence_as(kept, list(flat)))

    def _shaped(self, output, state):
        """With the shapes that are known from before the step."""
        before = tf.nest.flatten((self._zero, self._state))
        for old, new in zip(before, tf.nest.flatten((output, state)), strict=True):
            if isinstance(new, _headrace.Tensor) and isinstance(old, _headrace.Tensor):
                new.set_shape(old.shape)
        return output, state
