"""Recurrent networks of a number of steps that is known when they are built."""

from headrace import _api as tf
from headrace.v1.rnn import steps
from headrace.v1.rnn.cells import assert_like_rnncell, zero_states
from headrace.v1.variable_scope import variable_scope


def _checked_inputs(inputs):
    if not tf.nest.is_nested(inputs):
        raise TypeError(f"Argument `inputs` must be a sequence. Received: {inputs}")
    if not inputs:
        raise ValueError("Argument `inputs` must not be empty.")


def _check_sizes(inputs):
    """The batch size of the inputs; ValueError where other sizes are unknown."""
    batch = None
    for x in inputs:
        shape = x.shape.with_rank_at_least(2)
        if None not in (batch, shape[0]) and batch != shape[0]:
            raise ValueError(f"Dimensions {batch} and {shape[0]} are not compatible")
        batch = shape[0] if batch is None else batch
        for number, size in enumerate(shape[1:].as_list()):
            if size is None:
                raise ValueError(
                    f"Input size (dimension {number} of input {x}) must be accessible "
                    "via shape inference, but saw value None."
                )
    return batch


def static_rnn(
    cell, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None
):
    """Calls a cell on one input after the other.

    Args:
      cell: an RNNCell, or a cell of Keras.
      inputs: a list of [batch, size], or of structures of such tensors, one a step.
      initial_state: the state before the first step; by default the cell's of `dtype`.
      sequence_length: the number of steps of each row, ints [batch]: later outputs are
        zeros, the final state is that after the last step.
      scope: a variable scope or its name, "rnn" by default.

    Returns:
      (a list of the outputs, the final state).

    Raises:
      TypeError: if `cell` is not like an RNNCell or inputs is no list.
      ValueError: if inputs is empty, a size of it unknown, or there is neither an
        initial_state nor a dtype.
    """
    assert_like_rnncell("cell", cell)
    _checked_inputs(inputs)
    outputs = []
    with variable_scope(scope or "rnn"):
        flat = [tf.convert_to_tensor(x) for x in tf.nest.flatten(inputs)]
        inputs = tf.nest.pack_sequence_as(inputs, flat)
        known = _check_sizes(flat)
        batch = tf.shape(flat[0])[0] if known is None else known
        state = steps.first_state(cell, initial_state, batch, dtype)
        lengths = None
        if sequence_length is not None:
            lengths = _lengths(sequence_length, known)
            of = dtype or tf.nest.flatten(state)[0].dtype
            zero = zero_states(cell.output_size, batch, of)
        call = steps.caller_of(cell)
        for time, x in enumerate(inputs):
            if lengths is None:
                output, state = call(x, state)
            else:
                step = steps.Step(time, lengths, zero, state)
                output, state = step.sparingly(lambda x=x, state=state: call(x, state))
            outputs.append(output)
    return outputs, state


def _lengths(sequence_length, known):
    """(the lengths, the least, the greatest)."""
    lengths = tf.convert_to_tensor(sequence_length, name="sequence_length")
    rank = lengths.shape.rank
    wrong = rank == 1 and known is not None and lengths.shape[0] not in (None, known)
    if rank not in (None, 1) or wrong:
        raise ValueError(
            f"Argument `sequence_length` must be a vector of length {known}. Received "
            f"sequence_length={sequence_length}."
        )
    lengths = tf.cast(lengths, tf.int32)
    return lengths, tf.reduce_min(lengths), tf.reduce_max(lengths)


def static_bidirectional_rnn(
    cell_fw,
    cell_bw,
    inputs,
    initial_state_fw=None,
    initial_state_bw=None,
    dtype=None,
    sequence_length=None,
    scope=None,
):
    """Two runs of static_rnn, one of them from the end of each row to its beginning.

    The arguments are those of static_rnn, with a cell and a first state for each run;
    the variables are under "fw" and "bw" of the scope, "bidirectional_rnn" by default.

    Returns:
      (a list of both outputs of each step, joined along the last axis, or a structure of
      such; the final state forward; backward).
    """
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    _checked_inputs(inputs)
    how = (dtype, sequence_length)
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as inner:
            fw, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, *how, inner)
        with variable_scope("bw") as inner:
            turned = _turned(inputs, sequence_length)
            bw, state_bw = static_rnn(cell_bw, turned, initial_state_bw, *how, inner)
    bw = _turned(bw, sequence_length)
    joined = [
        tf.concat([f, b], 1)
        for f, b in zip(tf.nest.flatten(fw), tf.nest.flatten(bw), strict=True)
    ]
    return tf.nest.pack_sequence_as(fw, joined), state_fw, state_bw


def _turned(sequence, lengths):
    """A list of steps in the other order: of each row those within its length."""
    if lengths is None:
        return list(reversed(sequence))
    columns = [tf.nest.flatten(step) for step in sequence]
    turned = []
    for column in zip(*columns):
        shape = column[0].shape
        stacked = tf.stack(column)
        back = tf.reverse_sequence(stacked, lengths, seq_axis=0, batch_axis=1)
        parts = tf.unstack(back, num=len(column))
        for part in parts:
            part.set_shape(shape)
        turned.append(parts)
    return [
        tf.nest.pack_sequence_as(step, list(flat))
        for step, flat in zip(sequence, zip(*turned))
    ]


def static_state_saving_rnn(
    cell, inputs, state_saver, state_name, sequence_length=None, scope=None
):
    """static_rnn whose first state comes from a saver and whose last one goes there.

    Args:
      state_saver: an object with `state(name)`, a tensor [batch, size], and
        `save_state(name, value)`, an operation or tensor.
      state_name: a name, or a tuple of names for a cell whose state is a tuple.

    Returns:
      (a list of the outputs, the final state); the last output and the state are computed
      after the state has been saved.

    Raises:
      TypeError: if `cell` is not like an RNNCell or inputs is no list.
      ValueError: if inputs is empty or names and states do not match.
    """
    sizes = cell.state_size
    several, named = tf.nest.is_nested(sizes), isinstance(state_name, tuple)
    if several != named:
        raise ValueError(
            "Argument `state_name` should be the same type as `cell.state_size`. "
            f"Received: state_name={state_name}, cell.state_size={sizes}."
        )
    names = tf.nest.flatten(state_name)
    count = len(tf.nest.flatten(sizes))
    if len(names) != count:
        raise ValueError(
            "Number of elements in argument `state_name` and `cell.state_size` are "
            f"mismatched. Received state_name={state_name} with {len(names)} elements "
            f"and cell.state_size={sizes} with {count} elements."
        )
    first = tf.nest.pack_sequence_as(sizes, [state_saver.state(n) for n in names])
    outputs, state = static_rnn(
        cell, inputs, first, sequence_length=sequence_length, scope=scope
    )
    flat = tf.nest.flatten(state)
    saved = [state_saver.save_state(n, s) for n, s in zip(names, flat, strict=True)]
    with tf.control_dependencies(saved):
        last = [tf.identity(x) for x in tf.nest.flatten(outputs[-1])]
        outputs[-1] = tf.nest.pack_sequence_as(outputs[-1], last)
        flat = [tf.identity(x) for x in flat]
    return outputs, tf.nest.pack_sequence_as(state, flat)
