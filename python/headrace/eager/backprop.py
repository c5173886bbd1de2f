"""tf.GradientTape over the native tape."""

import contextlib
import enum

from headrace._load import _headrace
from headrace.context import late
from headrace.framework import conversion, dtypes, nest, variables
from headrace.framework.indexed_slices import from_gradient
from headrace.framework.settings import logging
from headrace.ops import array_ops, math_ops


class UnconnectedGradients(enum.Enum):
    """What a gradient is where nothing connects target and source."""

    NONE = "none"
    ZERO = "zero"


def _is_trainable(dtype):
    return (
        dtype.is_floating or dtype.is_complex or dtype.name in ("resource", "variant")
    )


def _source(x):
    """x, or the tensor or variable that an object of another class acts as."""
    if isinstance(x, _headrace.Tensor) or getattr(x, "_is_set_up", False):
        return x
    if getattr(x, "_is_weak_tensor", False):
        return x.tensor
    if not getattr(x, "_should_act_as_resource_variable", False):
        return x
    variable = variables.of_handle(x.handle)
    return x if variable is None else variable


def _like_source(gradient, source):
    """The gradient, weak where the source is."""
    is_weak = getattr(source, "_is_weak_tensor", False)
    return source._gradient_from([gradient]) if is_weak else gradient


def _check_composites(structure):
    """ValueError for what is made of tensors and has no gradients of its own kind."""
    for x in nest.flatten(structure):
        kind = type(x)
        if getattr(kind, "_is_composite_tensor", False):
            if not hasattr(kind, "_gradient_from"):
                raise ValueError(
                    f"Type {kind.__name__} is not supported as a gradient source or "
                    "gradient target."
                )


def _plain(x):
    """x as a tensor, or the variable that it is."""
    if isinstance(x, (_headrace.Tensor, _headrace.VariableBase)):
        return x
    return conversion.convert_to_tensor(x)


class GradientTape:
    """Records operations for gradients; see the guide on automatic differentiation."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._persistent = persistent
        self._watch_accessed_variables = watch_accessed_variables

    _tape = None
    _dropped = None  # the tape after its one use
    _recording = False
    _watched = ()  # handles of the variables watched, in order

    def __enter__(self):
        self._push()
        return self

    def __exit__(self, *error):
        if self._recording:
            self._pop()

    def _push(self):
        if self._recording:
            raise ValueError(
                "Tape is still recording, This can happen if you try to "
                "re-enter an already-active tape."
            )
        if self._tape is None:
            # Persistent below: a jacobian walks it once an element, and what is
            # used once is dropped by self._drop().
            self._tape = _headrace.Tape(True, self._watch_accessed_variables)
        self._tape.start()
        self._recording = True

    def _pop(self):
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._tape.stop()
        self._recording = False

    def watch(self, tensor):
        """Records what follows from these tensors too, as by default of variables.

        ValueError for what is neither tensor nor variable; a warning for integers.
        """
        for t in nest.flatten(tensor, expand_composites=True):
            t = _source(t)
            if not isinstance(t, (_headrace.Tensor, _headrace.VariableBase)):
                raise ValueError(
                    f"Passed in object {t} of type {type(t).__name__!r}, not tf.Tensor "
                    "or tf.Variable or ExtensionType."
                )
            if not _is_trainable(t.dtype):
                logging.warn(
                    "The dtype of the watched tensor must be floating (e.g. "
                    "tf.float32), got %r",
                    t.dtype,
                )
            if self._tape is None:
                continue
            if isinstance(t, _headrace.VariableBase):
                self._note(*self._tape.watched_variables(), t.handle)
            elif t.dtype == dtypes.resource:
                self._note_handle(t)
            self._tape.watch(t)

    def _note_handle(self, handle):
        variable = variables.of_handle(handle)
        if variable is not None and variable.trainable:
            self._note(*self._tape.watched_variables(), handle)

    def _note(self, *handles):
        watched = {h._id: h for h in (*self._watched, *handles)}
        self._watched = tuple(watched.values())

    @contextlib.contextmanager
    def _ensure_recording(self):
        """A context in which this tape records, whether or not it does so before."""
        if self._recording:
            yield
            return
        self._push()
        try:
            yield
        finally:
            self._pop()

    @contextlib.contextmanager
    def stop_recording(self):
        """A context in which this tape records nothing, for one that records."""
        if self._tape is None:
            raise RuntimeError(
                "Trying to stop recording a tape which is not recording."
            )
        self._pop()
        try:
            yield
        finally:
            self._push()

    def reset(self):
        """Forgets everything recorded so far and goes on; ValueError if it does not
        record.
        """
        self._pop()
        self._tape = None
        self._watched = ()
        self._push()

    def watched_variables(self):
        """A tuple of the variables watched, in the order in which they were made."""
        tape = self._tape or self._dropped
        if tape is not None:
            self._note(*tape.watched_variables())
        handles = sorted(self._watched, key=lambda h: h._id)
        found = [variables.of_handle(h) for h in handles]
        return variables.wholes(v for v in found if v is not None)

    def _drop(self):
        """Lets go of all but the variables that were watched."""
        self._dropped, self._tape = self._tape, None
        self._dropped.keep_variables()

    def _check_use(self):
        if self._tape is None:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of "
                "gradients (or jacobians)"
            )

    def gradient(
        self,
        target,
        sources,
        output_gradients=None,
        unconnected_gradients=UnconnectedGradients.NONE,
    ):
        """The gradient of `target` with respect to `sources`, in their structure.

        Where `target` is no scalar it is that of its sum, weighted by
        `output_gradients`. None, or zeros with UnconnectedGradients.ZERO, for sources
        that it does not depend on; tf.IndexedSlices for variables that were read by
        rows. RuntimeError at the second call, unless the tape is persistent.
        """
        self._check_use()
        if self._recording and not self._persistent:
            self._pop()
        elif self._recording:
            logging.warn(
                "Calling GradientTape.gradient on a persistent tape inside its context "
                "is significantly less efficient than calling it outside the context "
                "(it causes the gradient ops to be recorded on the tape, leading to "
                "increased CPU and memory usage). Only call GradientTape.gradient inside "
                "the context if you actually want to trace the gradient in order to "
                "compute higher order derivatives."
            )
        if target is None:
            raise TypeError(
                "Argument `target` should be a list or nested structure of Tensors, "
                "Variables or CompositeTensors to be differentiated, but received None."
            )
        unconnected = _unconnected(unconnected_gradients)
        targets = self._targets(target)
        flat_sources = self._sources(sources)
        given = self._given(output_gradients)
        if given is None:
            given = [None] * len(targets)
        # Texts have no derivative; a variable is one of itself.
        pairs = [p for p in zip(targets, given) if p[0].dtype != dtypes.string]
        plain = [p for p in pairs if not isinstance(p[0], _headrace.VariableBase)]
        if plain:
            seeds = [seed for _, seed in plain]
            found = self._tape.gradients(
                [t for t, _ in plain],
                flat_sources,
                None if all(seed is None for seed in seeds) else seeds,
            )
        else:
            found = [None] * len(flat_sources)
        result = [from_gradient(g) for g in found]
        for variable, seed in pairs:
            if isinstance(variable, _headrace.VariableBase):
                result = [
                    _with_itself(g, s, variable, seed)
                    for g, s in zip(result, flat_sources)
                ]
        if not self._persistent:
            self._drop()
        if unconnected == UnconnectedGradients.ZERO:
            result = list(map(_or_zeros, result, flat_sources))
        flat = self._joined(sources, result)
        return nest.pack_sequence_as(sources, flat)

    def _targets(self, target):
        _check_composites(target)
        return [_plain(t) for t in nest.flatten(target, expand_composites=True)]

    def _sources(self, sources):
        _check_composites(sources)
        flat = nest.flatten(sources, expand_composites=True)
        found = [_plain(_source(s)) for s in flat]
        if any(getattr(s, "is_packed", False) for s in found):
            raise ValueError(
                "GradientTape.gradient is not supported on packed EagerTensors yet."
            )
        return found

    def _given(self, output_gradients):
        if output_gradients is None:
            return None
        flat = nest.flatten(output_gradients, expand_composites=True)
        return [None if g is None else conversion.convert_to_tensor(g) for g in flat]

    def _joined(self, sources, flat):
        """Gradients of a composite's components as a composite."""
        out, at = [], 0
        for s in nest.flatten(sources):
            if getattr(type(s), "_is_composite_tensor", False):
                n = len(nest.flatten(s, expand_composites=True))
                out.append(s._gradient_from(flat[at : at + n]))
                at += n
            else:
                out.append(flat[at])
                at += 1
        return out

    def jacobian(
        self,
        target,
        sources,
        unconnected_gradients=UnconnectedGradients.NONE,
        parallel_iterations=None,
        experimental_use_pfor=True,
    ):
        """d target / d sources, in their structure: [*target.shape, *source.shape].

        The gradients of all elements of `target` are computed at once, as
        tf.vectorized_map does, or of `parallel_iterations` at a time;
        one after another where `experimental_use_pfor` is false.
        """
        self._check_use()
        self._check_persistent("jacobian", experimental_use_pfor)
        flat_sources = [_source(s) for s in nest.flatten(sources)]
        target = conversion.convert_to_tensor(target)
        shape = array_ops.shape(target)
        count = target.shape.num_elements()
        if count is None:
            count = array_ops.size(target)
        if self._recording and not self._persistent:
            self._pop()
        elements = array_ops.reshape(
            array_ops.eye(count, dtype=target.dtype),
            array_ops.concat([[count], shape], 0),
        )
        found = self._of_seeds(
            target,
            flat_sources,
            elements,
            count,
            _unconnected(unconnected_gradients),
            parallel_iterations,
            experimental_use_pfor,
        )
        if not self._persistent:
            self._drop()
        out = [
            None
            if g is None
            else array_ops.reshape(g, array_ops.concat([shape, array_ops.shape(s)], 0))
            for g, s in zip(found, flat_sources)
        ]
        out = [_like_source(*p) for p in zip(out, nest.flatten(sources))]
        return nest.pack_sequence_as(sources, out)

    def _of_seeds(
        self, target, sources, seeds, count, unconnected, parallel_iterations, use_pfor
    ):
        """The gradients of `target` for each row of `seeds`, stacked; None for none."""
        connected = []

        def of_seed(seed):
            found = self._tape.gradients([target], sources, [seed])
            found = [from_gradient(g) for g in found]
            if unconnected == UnconnectedGradients.ZERO:
                found = list(map(_or_zeros, found, sources))
            connected[:] = [g is not None for g in found]
            return [conversion.convert_to_tensor(g) for g in found if g is not None]

        if use_pfor:
            step = parallel_iterations or count
            stacks = _in_parts(of_seed, seeds, count, step)
        elif isinstance(count, int):
            each = [of_seed(seeds[i]) for i in range(count)]
            if not each:  # nothing says what is connected
                shapes = [
                    array_ops.concat([[0], array_ops.shape(s)], 0) for s in sources
                ]
                return list(map(array_ops.zeros, shapes, [s.dtype for s in sources]))
            stacks = [array_ops.stack(column) for column in zip(*each)]
        else:
            raise NotImplementedError(
                "a jacobian of a target of unknown size without experimental_use_pfor"
            )
        rest = iter(stacks)
        return [next(rest) if some else None for some in connected]

    def _check_persistent(self, what, use_pfor):
        if not use_pfor and not self._persistent and _headrace.is_eager():
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {what} "
                "with eager execution enabled and with experimental_use_pfor set to "
                "False."
            )

    def batch_jacobian(
        self,
        target,
        source,
        unconnected_gradients=UnconnectedGradients.NONE,
        parallel_iterations=None,
        experimental_use_pfor=True,
    ):
        """jacobian(target[i], source[i]) for every i, stacked.

        [batch, *rest of target, *rest of source]. Row i of
        `target` must depend on row i of `source` alone, else the result means nothing.
        ValueError where the numbers of rows differ.
        """
        self._check_use()
        self._check_persistent("batch_jacobian", experimental_use_pfor)
        given, source = source, _source(source)
        target = conversion.convert_to_tensor(target)
        for shape in (target.shape, source.shape):
            shape.with_rank_at_least(2)
        rows, of_source = target.shape[0], source.shape[0]
        if rows is not None and of_source is not None and rows != of_source:
            raise ValueError(
                "Need first dimension of target shape "
                f"({target.shape}) and source shape ({source.shape}) to match."
            )
        if self._recording and not self._persistent:
            self._pop()
        shape = array_ops.shape(target)
        per_row = target.shape[1:].num_elements()
        count = per_row
        if count is None:
            count = math_ops.reduce_prod(shape[1:])
        if (
            experimental_use_pfor
            and not self._persistent
            and parallel_iterations is not None
            and per_row is not None
            and per_row >= parallel_iterations
        ):
            raise RuntimeError(
                "GradientTape must be created with persistent=True to compute the "
                "batch_jacobian with parallel_iterations."
            )
        # Element j of every row at once, which do not depend on one another.
        one = array_ops.reshape(
            array_ops.eye(count, dtype=target.dtype),
            array_ops.concat([[count, 1], shape[1:]], 0),
        )
        seeds = array_ops.broadcast_to(one, array_ops.concat([[count], shape], 0))
        (found,) = self._of_seeds(
            target,
            [source],
            seeds,
            count,
            UnconnectedGradients.NONE,
            parallel_iterations,
            experimental_use_pfor,
        )
        if not self._persistent:
            self._drop()
        full = array_ops.concat([shape, array_ops.shape(source)[1:]], 0)
        if found is None:  # zeros, whatever is asked for, as TensorFlow has it
            return array_ops.zeros(full, target.dtype)
        rank = source.shape.rank + 1
        turned = array_ops.transpose(found, [1, 0, *range(2, rank)])
        return _like_source(array_ops.reshape(turned, full), given)


def _in_parts(fn, stacked, count, step):
    """`fn` for each row, `step` rows at a time."""
    if isinstance(count, int) and isinstance(step, int) and step < count:
        parts = [
            late.for_rows(fn, [stacked[i : i + step]], [True], min(step, count - i))
            for i in range(0, count, step)
        ]
        return [array_ops.concat(column, 0) for column in zip(*parts)]
    return late.for_rows(fn, [stacked], [True], count)


def _unconnected(value):
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {value!r}"
        ) from None


def _with_itself(gradient, source, variable, seed):
    """A source's gradient and that of `variable`, where the source is that."""
    if source is not variable:
        return gradient
    own = array_ops.ones_like(variable) if seed is None else seed
    return own if gradient is None else own + conversion.convert_to_tensor(gradient)


def _or_zeros(gradient, source):
    if gradient is not None:
        return gradient
    if isinstance(source, _headrace.VariableBase):
        source = source._read()
    return array_ops.zeros_like(source)
