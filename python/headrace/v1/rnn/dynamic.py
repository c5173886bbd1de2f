"""Loops over steps of a length that is known when they run: dynamic_rnn, raw_rnn."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.control_flow import flow_contexts
from headrace.framework.support import signatures
from headrace.v1.rnn import steps
from headrace.v1.rnn.cells import assert_like_rnncell, zero_states
from headrace.v1.variable_scope import variable_scope


def _time_first(x):
    """[batch, time, ...] and [time, batch, ...] into each other; nothing of a rank below
    2."""
    rank = x.shape.rank
    if rank is not None and rank < 2:
        raise ValueError(
            f"Expected input tensor {x.name} to have rank at least 2, but saw shape: "
            f"{x.shape}"
        )
    if rank is None:
        return tf.transpose(x, tf.concat([[1, 0], tf.range(2, tf.rank(x))], 0))
    return tf.transpose(x, [1, 0, *range(2, rank)])


def _checked_lengths(sequence_length, batch_size):
    """The lengths as int32, one a row of the batch."""
    lengths = tf.convert_to_tensor(sequence_length)
    if lengths.dtype != tf.int32:
        lengths = tf.cast(lengths, tf.int32)
    if lengths.shape.rank not in (None, 1):
        raise ValueError(
            "Argument sequence_length must be a vector of length batch_size. Received "
            f"sequence_length={lengths} of shape: {lengths.shape}"
        )
    return tf.identity(lengths, name="sequence_length")


def _with_lengths_checked(lengths, batch_size):
    """The lengths, in graphs after a check that they are as many as rows."""
    if _headrace.is_eager():
        return lengths
    found = tf.shape(lengths)
    wanted = tf.stack([batch_size])
    text = [f"Expected shape for Tensor {lengths.name} is ", wanted]
    text += [" but saw shape: ", found]
    check = tf.debugging.Assert(tf.reduce_all(tf.equal(found, wanted)), text)
    with tf.control_dependencies([check]):
        return tf.identity(lengths, name="CheckSeqLen")


@signatures.having(
    "cell, inputs, sequence_length=None, initial_state=None, dtype=None, "
    "parallel_iterations=None, swap_memory=False, time_major=False, scope=None"
)
def dynamic_rnn(
    cell, inputs, sequence_length, initial_state, dtype, time_major, scope, **how
):
    """Runs a cell over time.

    Args:
      cell: an RNNCell, or a cell of Keras.
      inputs: [batch, time, ...], with time_major [time, batch, ...], or a structure of
        such tensors; all sizes but those of batch and time are known.
      sequence_length: the number of steps of each row, ints [batch]: later outputs are
        zeros, the final state is that after the last step. All steps, without it.
      initial_state: the state before the first step; by default the cell's of `dtype`.
      parallel_iterations, swap_memory: as of tf.while_loop.
      scope: a variable scope or its name, "rnn" by default.

    Returns:
      (outputs, laid out like the inputs; the final state).

    Raises:
      TypeError: if `cell` is not like an RNNCell.
      ValueError: if there is neither initial_state nor dtype, or shapes do not fit.
    """
    assert_like_rnncell("cell", cell)
    with variable_scope(scope or "rnn"):
        flat = [tf.convert_to_tensor(x) for x in tf.nest.flatten(inputs)]
        for x in flat:
            if x.shape.rank is None:
                raise ValueError(
                    "The rank of the inputs of dynamic_rnn must be known, but saw input "
                    f"{x}"
                )
        if not time_major:
            flat = [_time_first(x) for x in flat]
        how["parallel_iterations"] = how["parallel_iterations"] or 32
        if sequence_length is not None:
            sequence_length = _checked_lengths(sequence_length, None)
        batch_size = steps.batch_size_of(flat, axis=1)
        state = steps.first_state(cell, initial_state, batch_size, dtype)
        if sequence_length is not None:
            sequence_length = _with_lengths_checked(sequence_length, batch_size)
        loop = _Loop(cell, inputs, flat, dtype)
        outputs, state = loop.run(state, sequence_length, batch_size, how)
        if not time_major:
            outputs = tf.nest.map_structure(_time_first, outputs)
        return outputs, state


class _Loop:
    """The steps of dynamic_rnn, as a tf.while_loop over arrays."""

    def __init__(self, cell, inputs, flat, dtype):
        self._cell, self._structure, self._flat = cell, inputs, flat
        self._dtype = dtype
        self._shapes = [x.shape.with_rank_at_least(3) for x in flat]
        known = {"Time steps": None, "Batch_size": None}
        for x, shape in zip(flat, self._shapes):
            if not shape[2:].is_fully_defined():
                raise ValueError(
                    "Input size (depth of inputs) must be accessible via shape "
                    f"inference, but saw value None for input={x}."
                )
            for axis, what in enumerate(known):
                size = shape[axis]
                if known[what] is None:
                    known[what] = size
                elif size is not None and size != known[what]:
                    raise ValueError(
                        f"{what} is not the same for all the elements in the input"
                        f"{' in a batch' if axis == 0 else ''}. Received "
                        f"{what.lower() if axis == 0 else 'batch_size'}={size} for "
                        f"input={x}."
                    )
        self._time, self._batch = known.values()

    def run(self, state, lengths, batch_size, how):
        sizes = tf.shape(self._flat[0])
        count = sizes[0] if self._time is None else self._time
        batch = sizes[1] if self._batch is None else self._batch
        zero = zero_states(self._cell.output_size, batch, self._dtypes(state))
        self._zero = zero
        self._lengths, bound = None, count
        if lengths is not None:
            least, most = tf.reduce_min(lengths), tf.reduce_max(lengths)
            self._lengths = (lengths, least, most)
        time = tf.constant(0, tf.int32, name="time")
        self._reads = [
            tf.TensorArray(x.dtype, size=count, element_shape=shape[1:]).unstack(x)
            for x, shape in zip(self._flat, self._shapes)
        ]
        writes = tuple(
            tf.TensorArray(z.dtype, size=count, element_shape=self._known(z))
            for z in tf.nest.flatten(zero)
        )
        if lengths is not None:
            bound = tf.minimum(count, tf.maximum(1, most))
        _, writes, state = tf.while_loop(
            lambda time, *_: time < bound,
            self._step,
            (time, writes, state),
            maximum_iterations=count,
            **how,
        )
        outputs = [
            self._stacked(array, z, (bound, count))
            for array, z in zip(writes, tf.nest.flatten(zero))
        ]
        outputs = tf.nest.pack_sequence_as(self._cell.output_size, outputs)
        return outputs, state

    def _dtypes(self, state):
        """The dtype of the outputs: that given, else the states'."""
        return self._dtype or tf.nest.flatten(state)[0].dtype

    def _known(self, zero):
        return tf.TensorShape([self._batch]).concatenate(zero.shape[1:])

    def _stacked(self, array, zero, turns):
        bound, count = turns
        if bound is not count and flow_contexts.wanted():
            # Such arrays refuse to give what was not written.
            out = array.gather(tf.range(bound))
            more = [[0, count - bound], *([0, 0] for _ in zero.shape)]
            out = tf.pad(out, more)
        else:
            out = array.stack()
        shape = tf.TensorShape([self._time]).concatenate(self._known(zero))
        if not isinstance(out, _headrace.EagerTensor):
            out.set_shape(shape)
        return out

    def _step(self, time, writes, state):
        read = [array.read(time) for array in self._reads]
        for x, shape in zip(read, self._shapes):
            x.set_shape(shape[1:])
        inputs = tf.nest.pack_sequence_as(self._structure, read)
        call = steps.caller_of(self._cell)
        if self._lengths is None:
            output, new = call(inputs, state)
            tf.nest.assert_same_structure(self._zero, output)
        else:
            step = steps.Step(time, self._lengths, self._zero, state)
            output, new = step.always(lambda: call(inputs, state))
        new = tf.nest.pack_sequence_as(state, tf.nest.flatten(new))
        flat = tf.nest.flatten(output)
        writes = tuple(a.write(time, out) for a, out in zip(writes, flat))
        return time + 1, writes, new


@signatures.having(
    "cell_fw, cell_bw, inputs, sequence_length=None, initial_state_fw=None, "
    "initial_state_bw=None, dtype=None, parallel_iterations=None, swap_memory=False, "
    "time_major=False, scope=None"
)
def bidirectional_dynamic_rnn(
    cell_fw, cell_bw, inputs, sequence_length, scope, time_major, **given
):
    """Two runs of dynamic_rnn, one of them from the end of each row to its beginning.

    The arguments are those of dynamic_rnn, with a cell and a first state for each run;
    the variables are under "fw" and "bw" of the scope, "bidirectional_rnn" by default.

    Returns:
      ((outputs forward, outputs backward), (final state forward, backward)): the outputs
      of both runs are in the order of the inputs.
    """
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    states = {way: given.pop(f"initial_state_{way}") for way in ("fw", "bw")}
    given.update(sequence_length=sequence_length, time_major=time_major)
    time, batch = (0, 1) if time_major else (1, 0)

    def turned(x):
        if sequence_length is None:
            return tf.reverse(x, axis=[time])
        return tf.reverse_sequence(x, sequence_length, seq_axis=time, batch_axis=batch)

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as inner:
            fw, state_fw = dynamic_rnn(
                cell_fw, inputs, initial_state=states["fw"], scope=inner, **given
            )
        with variable_scope("bw") as inner:
            other = tf.nest.map_structure(turned, inputs)
            bw, state_bw = dynamic_rnn(
                cell_bw, other, initial_state=states["bw"], scope=inner, **given
            )
    return (fw, tf.nest.map_structure(turned, bw)), (state_fw, state_bw)


def raw_rnn(cell, loop_fn, parallel_iterations=None, swap_memory=False, scope=None):
    """Runs a cell as a function says.

    loop_fn(time, cell_output, cell_state, loop_state) is called before the first step
    with time 0 and None for the others, then after each step. It gives

      finished: bools [batch], the rows that are done;
      next_input: a structure of [batch, ...] for the next step;
      next_cell_state: in the structure of cell.state_size; before the first step the
        state to begin with;
      emit_output: what this step gives; before the first step a structure of tensors
        without the batch that are like it, or None for that of cell.output_size;
      next_loop_state: anything that tf.while_loop takes, given back at the next call; or
        None.

    Rows that were finished before a step give zeros and keep their state. The loop ends
    when all are.

    Returns:
      (emitted outputs, TensorArrays of [batch, ...]; the final state; the final loop
      state).

    Raises:
      TypeError: if `cell` is not like an RNNCell or loop_fn cannot be called.
      ValueError: if structures or shapes do not fit.
    """
    assert_like_rnncell("cell", cell)
    if not callable(loop_fn):
        raise TypeError(f"Argument `loop_fn` must be a callable. Received: {loop_fn}.")
    with variable_scope(scope or "rnn"):
        loop = _Raw(cell, loop_fn)
        return loop.run(
            parallel_iterations=parallel_iterations or 32, swap_memory=swap_memory
        )


class _Raw:
    """The steps of raw_rnn, as a tf.while_loop."""

    def __init__(self, cell, loop_fn):
        self._cell, self._loop_fn = cell, loop_fn
        self._call = steps.caller_of(cell)

    def run(self, **how):
        time = tf.constant(0, tf.int32)
        finished, inputs, state, emitted, loop_state = self._loop_fn(
            time, None, None, None
        )
        inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
        finished = tf.convert_to_tensor(finished)
        self._has_loop_state = loop_state is not None
        if loop_state is None:
            loop_state = tf.constant(0, tf.int32)
        flat = tf.nest.flatten(inputs)
        tf.nest.assert_same_structure(state, self._cell.state_size)
        known = flat[0].shape[0]
        for x in flat:
            x.shape[:1].assert_is_compatible_with([known])
        batch = tf.shape(flat[0])[0] if known is None else known
        arrays = self._arrays(emitted, state, known, batch)
        _, finished, inputs, arrays, state, loop_state = tf.while_loop(
            lambda time, finished, *_: tf.logical_not(tf.reduce_all(finished)),
            self._step,
            (time, finished, inputs, arrays, state, loop_state),
            **how,
        )
        return arrays, state, loop_state if self._has_loop_state else None

    def _arrays(self, emitted, state, known, batch):
        """The arrays that outputs go to, and the zeros of rows that are finished."""
        if emitted is not None:
            emitted = tf.nest.map_structure(tf.convert_to_tensor, emitted)
            flat = tf.nest.flatten(emitted)
            of = [(e.dtype, e.shape, e) for e in flat]
            self._structure = emitted
        else:
            self._structure = self._cell.output_size
            dtype = tf.nest.flatten(state)[0].dtype
            sizes = tf.nest.flatten(self._structure)
            of = [(dtype, tf.TensorShape(size), None) for size in sizes]
        arrays, zeros = [], []
        for number, (dtype, shape, like) in enumerate(of):
            arrays.append(
                tf.TensorArray(
                    dtype,
                    size=0,
                    dynamic_size=True,
                    element_shape=tf.TensorShape([known]).concatenate(shape),
                    name=f"rnn_output_{number}",
                )
            )
            sizes = shape if shape.is_fully_defined() else tf.shape(like)
            zeros.append(tf.zeros(tf.concat([[batch], sizes], 0), dtype))
            zeros[-1].set_shape(tf.TensorShape([known]).concatenate(shape))
        self._zeros = tf.nest.pack_sequence_as(self._structure, zeros)
        return tf.nest.pack_sequence_as(self._structure, arrays)

    def _step(self, time, finished, inputs, arrays, state, loop_state):
        output, new = self._call(inputs, state)
        tf.nest.assert_same_structure(state, new)
        tf.nest.assert_same_structure(self._cell.output_size, output)
        time_after = time + 1
        found = self._loop_fn(
            time_after, output, new, loop_state if self._has_loop_state else None
        )
        finished_after, inputs_after, state_after, emit, loop_state_after = found
        tf.nest.assert_same_structure(state, state_after)
        tf.nest.assert_same_structure(inputs, inputs_after)
        tf.nest.assert_same_structure(arrays, emit)
        if loop_state_after is None:
            loop_state_after = loop_state

        def kept(before, after):
            return steps.choose_rows(finished, before, tf.convert_to_tensor(after))

        emit = tf.nest.map_structure(kept, self._zeros, emit)
        state_after = tf.nest.map_structure(
            lambda b, a: a if isinstance(a, tf.TensorArray) else kept(b, a),
            state,
            state_after,
        )
        arrays = tf.nest.map_structure(lambda a, e: a.write(time, e), arrays, emit)
        finished = tf.logical_or(finished, finished_after)
        state_after = tf.nest.pack_sequence_as(state, tf.nest.flatten(state_after))
        inputs_after = tf.nest.pack_sequence_as(inputs, tf.nest.flatten(inputs_after))
        return (
            time_after,
            finished,
            inputs_after,
            arrays,
            state_after,
            loop_state_after,
        )
