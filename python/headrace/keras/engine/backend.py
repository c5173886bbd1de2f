"""tf.keras.backend's loops over time, and functions between tensors of models or graphs."""

from headrace import _api as tf
from headrace.context import late
from headrace.graph import placeholders
from headrace.keras.engine import input_layer
from headrace.keras.engine.functional import Functional


def placeholder(
    shape=None, ndim=None, dtype=None, sparse=False, name=None, ragged=False
):
    """What a value will stand for: a tensor for models, in a graph its placeholder.

    `shape` is with the batch; `ndim` says how many unknown sizes there are in its place.
    """
    if sparse and ragged:
        raise ValueError(
            "Cannot set both sparse and ragged to True when creating a placeholder."
        )
    dtype = tf.as_dtype(dtype or tf.keras.backend.floatx())
    if shape is None and ndim is not None:
        shape = (None,) * ndim
    if tf.executing_eagerly() and (sparse or ragged):
        return input_layer.Input(
            batch_shape=shape, dtype=dtype, name=name, sparse=sparse, ragged=ragged
        )
    if sparse or ragged:
        return input_layer.placeholder_of(shape, dtype, name, ragged)
    if tf.executing_eagerly():
        spec = tf.TensorSpec(shape, dtype, name)
        return input_layer.Input(type_spec=spec, name=name)
    return placeholders.placeholder(dtype, shape, name)


def gradients(loss, variables):
    """The gradients of a graph's loss by variables or tensors; RuntimeError outside of
    graphs."""
    return tf.gradients(loss, variables)


def function(inputs, outputs, updates=None, name=None, **kwargs):
    """A function of values for `inputs`, a list, that gives arrays for `outputs`.

    Of tensors of models; in a graph of its placeholders, where the operations or pairs
    (variable, new value) in `updates` run, too. `kwargs` are Session.run's.
    """
    if tf.executing_eagerly():
        if kwargs:
            raise ValueError(
                "Session keyword arguments are not supported during eager execution. "
                f"You passed: {kwargs}"
            )
        if updates:
            raise ValueError(
                "`updates` argument is not supported during eager execution. You "
                f"passed: {updates}"
            )
        return _of_model(inputs, outputs, name)
    return _of_graph(inputs, outputs, updates or [], kwargs)


def _array(x):
    return x.numpy() if isinstance(x, tf.Tensor) else x


def _of_model(inputs, outputs, name):
    model = Functional(inputs=inputs, outputs=outputs, name=name)

    def run(values):
        found = model(values)
        if isinstance(outputs, list) and len(outputs) == 1:
            found = found if isinstance(found, list) else [found]
        return tf.nest.map_structure(_array, found)

    return run


def _of_graph(inputs, outputs, updates, kwargs):
    with tf.control_dependencies(tf.nest.flatten(outputs)):
        made = [u[0].assign(u[1]) if isinstance(u, tuple) else u for u in updates]
    fetched = outputs, tf.group(*made)

    def run(values):
        session = late.keras_session(tf.nest.flatten(inputs))
        many = isinstance(inputs, (list, tuple))
        fed = dict(zip(inputs, values)) if many else {inputs: values}
        return session.run(fetched, fed, **kwargs)[0]

    return run


def rnn(
    step_function,
    inputs,
    initial_states,
    go_backwards=False,
    mask=None,
    constants=None,
    unroll=False,
    input_length=None,
    time_major=False,
    zero_output_for_mask=False,
    return_all_outputs=True,
):
    """(last output, outputs of all steps, last states) of a step run over time.

    `step_function(input, states)` gives (output, new states); its states are followed by
    `constants`. Inputs are [batch, time, ...], or [time, batch, ...] with `time_major`. What
    `mask`, [batch, time], hides keeps states and repeats the output before, or gives zeros
    with `zero_output_for_mask`; a vector `input_length` hides what lies behind each row's
    end. Without `return_all_outputs` the outputs are the last one alone.
    """

    def turned(x):
        if x.shape.rank is None or x.shape.rank < 2:
            raise ValueError(f"rnn: inputs are [batch, time, ...], got {x.shape}")
        return tf.transpose(x, [1, 0, *range(2, x.shape.rank)])

    if not time_major:
        inputs = tf.nest.map_structure(turned, inputs)
    flat = tf.nest.flatten(inputs)
    for x in flat:
        x.shape.with_rank_at_least(3)
    steps = flat[0].shape[0]
    if unroll and not steps:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    count = steps or tf.shape(flat[0])[0]
    mask = _mask_of(mask, input_length, count, go_backwards, time_major)
    if go_backwards:
        inputs = tf.nest.map_structure(lambda x: tf.reverse(x, [0]), inputs)
        mask = None if mask is None else tf.reverse(mask, [0])
    step = _Step(step_function, inputs, mask, constants, zero_output_for_mask)
    outputs, states = (_unrolled if unroll else _looped)(step, count, initial_states)
    last = tf.nest.map_structure(lambda x: x[-1], outputs)
    if not return_all_outputs:
        outputs = tf.nest.map_structure(lambda x: x[-1:], outputs)
    if not time_major:
        outputs = tf.nest.map_structure(turned, outputs)
    return last, outputs, states


def _mask_of(mask, lengths, count, go_backwards, time_major):
    """The mask as [time, batch], or None."""
    if mask is None:
        lengths = tf.convert_to_tensor(0 if lengths is None else lengths)
        if lengths.shape.rank == 0:
            return None
        return tf.range(count)[:, tf.newaxis] < tf.cast(lengths, tf.int32)
    mask = tf.cast(mask, tf.bool)
    if mask.shape.rank == 3:
        mask = tf.squeeze(mask, -1)
    return mask if time_major else tf.transpose(mask)


class _Step:
    """One step: rows that the mask hides keep what they had."""

    def __init__(self, function, inputs, mask, constants, zeros):
        self._function, self._inputs, self._mask = function, inputs, mask
        self._constants, self._zeros = tuple(constants or ()), zeros

    def first(self, states):
        """The output of the first step."""
        return self._run(0, states)[0]

    def _run(self, time, states):
        now = tf.nest.map_structure(lambda x: x[time], self._inputs)
        out, new = self._function(now, tuple(states) + self._constants)
        return out, list(new)

    def __call__(self, time, before, states):
        out, new = self._run(time, states)
        if self._mask is None:
            return out, new
        shown = self._mask[time]
        kept = before
        if self._zeros:
            kept = tf.nest.map_structure(tf.zeros_like, out)
        pick = lambda one, other: tf.where(  # noqa: E731
            tf.reshape(shown, [-1, *[1] * (one.shape.rank - 1)]), one, other
        )
        out = tf.nest.map_structure(pick, out, kept)
        return out, tf.nest.map_structure(pick, new, list(states))


def _unrolled(step, count, states):
    before = tf.nest.map_structure(tf.zeros_like, step.first(states))
    found = []
    for time in range(count):
        before, states = step(time, before, states)
        found.append(before)
    return tf.nest.map_structure(lambda *x: tf.stack(x), *found), states


def _looped(step, count, states):
    before = tf.nest.map_structure(tf.zeros_like, step.first(states))
    arrays = [
        tf.TensorArray(x.dtype, count, element_shape=x.shape)
        for x in tf.nest.flatten(before)
    ]

    def body(time, before, states, arrays):
        before, states = step(time, before, states)
        flat = tf.nest.flatten(before)
        arrays = [a.write(time, x) for a, x in zip(arrays, flat)]
        return time + 1, before, states, arrays

    begin = tf.constant(0), before, list(states), arrays
    _, _, states, arrays = tf.while_loop(lambda time, *rest: time < count, body, begin)
    return tf.nest.pack_sequence_as(before, [a.stack() for a in arrays]), states
