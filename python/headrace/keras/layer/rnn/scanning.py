"""The loop of recurrent layers over time."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.control_flow import flow_contexts
from headrace.keras.layer.parts import shaped

# Steps that traced code writes out; longer sequences loop in the graph, whose turns
# share what they pack and sum up weights' gradients at once. Turns of few rows or
# columns gain nothing by that, and frames of TensorFlow 1's loops run op by op.
_MOST_UNROLLED, _MOST_UNROLLED_SMALL = 16, 256
_FEW_ROWS, _FEW_COLUMNS = 4, 256


def scan(step, inputs, states, mask=None, unroll=False, keep_all=True):
    """Runs step(x, states) -> (output, states) along the first axis of inputs.

    Inputs, outputs and states are tensors or structures of them.

    Where `mask` (time, batch) is False, states and outputs stay what they were.
    Gives (last output, all outputs stacked on axis 0 or None, last states).
    """
    first = tf.nest.flatten(inputs)[0]
    length = first.shape[0]
    eager = isinstance(first, _headrace.EagerTensor)
    most = _MOST_UNROLLED_SMALL if _are_small(first) else _MOST_UNROLLED
    if length is not None and (eager or unroll or length <= most):
        return _scan_unrolled(step, inputs, states, mask, keep_all)
    if unroll:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    return _scan_in_graph(step, inputs, states, mask, keep_all)


def _are_small(inputs):
    """Whether turns over inputs, [time, batch, ...], have little to do."""
    batch, columns = inputs.shape[1], inputs.shape[2:].num_elements()
    if flow_contexts.wanted() or (batch is not None and batch <= _FEW_ROWS):
        return True
    return columns is not None and columns < _FEW_COLUMNS


def shown(mask, like):
    """A mask of samples with the rank of `like`."""
    while mask.shape.rank < like.shape.rank:
        mask = tf.expand_dims(mask, -1)
    return mask


def _masked(mask, new, old):
    return tf.nest.map_structure(lambda a, b: tf.where(shown(mask, a), a, b), new, old)


def _scan_unrolled(step, inputs, states, mask, keep_all):
    parts = [tf.unstack(x) for x in tf.nest.flatten(inputs)]
    steps = [tf.nest.pack_sequence_as(inputs, list(row)) for row in zip(*parts)]
    masks = [None] * len(steps) if mask is None else tf.unstack(mask)
    outputs, out = [], None
    for x, mask in zip(steps, masks):
        new, new_states = step(x, states)
        if mask is not None:
            old = tf.nest.map_structure(tf.zeros_like, new) if out is None else out
            new = _masked(mask, new, old)
            new_states = _masked(mask, new_states, states)
        out, states = new, new_states
        if keep_all:
            outputs.append(out)
    if not steps:
        raise ValueError("A recurrent layer needs at least one time step")
    if not keep_all:
        return out, None, states
    return out, tf.nest.map_structure(lambda *x: tf.stack(x), *outputs), states


def _scan_in_graph(step, inputs, states, mask, keep_all):
    length = tf.nest.flatten(inputs)[0].shape[0]
    count = tf.shape(tf.nest.flatten(inputs)[0])[0]

    # Rows of arrays, as a gradient of a row taken from `inputs` itself would be as
    # large as all of them, in each turn.
    rows = [
        tf.TensorArray(x.dtype, size=count, element_shape=x.shape[1:]).unstack(x)
        for x in tf.nest.flatten(inputs)
    ]

    def at(i):
        return tf.nest.pack_sequence_as(inputs, [row.read(i) for row in rows])

    first, _ = step(tf.nest.map_structure(lambda x: x[0], inputs), states)
    firsts = tf.nest.flatten(first)
    tables = [tf.TensorArray(f.dtype, size=count if keep_all else 0) for f in firsts]

    def body(i, out, tables, *flat):
        out = tf.nest.pack_sequence_as(first, list(out))
        old = tf.nest.pack_sequence_as(states, list(flat))
        new, new_states = step(at(i), old)
        if mask is not None:
            now = tf.gather(mask, i)
            new = _masked(now, new, out)
            new_states = _masked(now, new_states, old)
        new = tf.nest.flatten(new)
        if keep_all:
            tables = [table.write(i, x) for table, x in zip(tables, new)]
        return (i + 1, new, tables, *tf.nest.flatten(new_states))

    zeros = [tf.zeros_like(f) for f in firsts]
    start = (tf.constant(0), zeros, tables, *tf.nest.flatten(states))
    _, out, tables, *flat = tf.while_loop(lambda i, *_: i < count, body, start)
    out = tf.nest.pack_sequence_as(first, out)
    states = tf.nest.pack_sequence_as(states, flat)
    if not keep_all:
        return out, None, states
    every = [
        shaped(table.stack(), [length, *f.shape.as_list()])
        for table, f in zip(tables, firsts)
    ]
    return out, tf.nest.pack_sequence_as(first, every), states
