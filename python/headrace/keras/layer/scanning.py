"""The loop of recurrent layers over time."""

import headrace as tf
from headrace._load import _headrace
from headrace.keras.layer.parts import shaped

_MOST_UNROLLED = 256  # steps; longer sequences of traced code loop in the graph


def scan(step, inputs, states, mask=None, unroll=False, keep_all=True):
    """Runs step(x, states) -> (output, states) along the first axis of inputs.

    Where `mask` (time, batch) is False, states and outputs stay what they were.
    Gives (last output, all outputs stacked on axis 0 or None, last states).
    """
    length = inputs.shape[0]
    eager = isinstance(inputs, _headrace.EagerTensor)
    if length is not None and (eager or unroll or length <= _MOST_UNROLLED):
        return _scan_unrolled(step, inputs, states, mask, keep_all)
    if unroll:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    return _scan_in_graph(step, inputs, states, mask, keep_all)


def _shown(mask, like):
    """A mask of samples with the rank of `like`."""
    while mask.shape.rank < like.shape.rank:
        mask = tf.expand_dims(mask, -1)
    return mask


def _masked(mask, new, old):
    return tf.nest.map_structure(lambda a, b: tf.where(_shown(mask, a), a, b), new, old)


def _scan_unrolled(step, inputs, states, mask, keep_all):
    steps = tf.unstack(inputs)
    masks = [None] * len(steps) if mask is None else tf.unstack(mask)
    outputs, out = [], None
    for x, shown in zip(steps, masks):
        new, new_states = step(x, states)
        if shown is not None:
            old = tf.nest.map_structure(tf.zeros_like, new) if out is None else out
            new = _masked(shown, new, old)
            new_states = _masked(shown, new_states, states)
        out, states = new, new_states
        if keep_all:
            outputs.append(out)
    if not steps:
        raise ValueError("A recurrent layer needs at least one time step")
    return out, tf.stack(outputs) if keep_all else None, states


def _scan_in_graph(step, inputs, states, mask, keep_all):
    count = tf.shape(inputs)[0]
    flat = tf.nest.flatten(states)
    first, _ = step(inputs[0], states)
    table = tf.TensorArray(first.dtype, size=count if keep_all else 0)

    def body(i, out, table, *flat):
        old = tf.nest.pack_sequence_as(states, list(flat))
        new, new_states = step(tf.gather(inputs, i), old)
        if mask is not None:
            shown = tf.gather(mask, i)
            new = _masked(shown, new, out)
            new_states = _masked(shown, new_states, old)
        if keep_all:
            table = table.write(i, new)
        return (i + 1, new, table, *tf.nest.flatten(new_states))

    found = tf.while_loop(
        lambda i, *_: i < count,
        body,
        (tf.constant(0), tf.zeros_like(first), table, *flat),
    )
    states = tf.nest.pack_sequence_as(states, list(found[3:]))
    if not keep_all:
        return found[1], None, states
    every = found[2].stack()
    every = shaped(every, [inputs.shape[0], *first.shape.as_list()])
    return found[1], every, states
