"""tf.while_loop."""

from headrace._load import _headrace, raw
from headrace.context import stack, strategies
from headrace.control_flow import bodies, flow_contexts, frames, loop_shapes
from headrace.framework import conversion, dtypes, nest
from headrace.framework.support import signatures
from headrace.framework.type_spec import TensorSpec
from headrace.ops import array_ops, math_ops


@signatures.having(
    "cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, "
    "back_prop=True, swap_memory=False, maximum_iterations=None, name=None"
)
def while_loop(cond, body, loop_vars, maximum_iterations, swap_memory, **in_graphs):
    """Calls `body` on its own results while `cond` of them holds."""
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if in_graphs["parallel_iterations"] < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")
    by_frames = flow_contexts.wanted()
    if isinstance(loop_vars, (list, tuple)) and not loop_vars:
        raise ValueError(
            f"'loop_vars' must be {'provided' if by_frames else 'non-empty'}."
        )
    if by_frames:
        in_graphs["swap_memory"] = swap_memory
        return frames.while_loop(cond, body, loop_vars, maximum_iterations, **in_graphs)
    if maximum_iterations is not None:
        maximum_iterations = conversion.convert_to_tensor(
            maximum_iterations, name="maximum_iterations"
        )
        if maximum_iterations.shape.rank not in (0, None):
            raise ValueError(
                "'maximum_iterations' must be a scalar. Received shape: "
                f"{maximum_iterations.shape}"
            )
    if _headrace.is_eager():
        return _run(cond, body, loop_vars, maximum_iterations)
    return _Traced(cond, body, loop_vars, maximum_iterations, **in_graphs).result


def _spec(value):
    if isinstance(value, (_headrace.Tensor, _headrace.VariableBase)):
        return TensorSpec(value.shape, value.dtype)
    if bodies.is_composite(value) or hasattr(value, "_type_spec"):
        return value
    try:
        tensor = conversion.convert_to_tensor(value)
    except (TypeError, ValueError):
        return value
    return TensorSpec(tensor.shape, tensor.dtype)


def _run(cond, body, loop_vars, maximum_iterations):
    """The loop as a Python loop, for eager."""
    single = not isinstance(loop_vars, (list, tuple))
    if single:
        loop_vars = (loop_vars,)
    specs = nest.map_structure(_spec, loop_vars)
    most = None if maximum_iterations is None else int(maximum_iterations)
    turns = 0
    while (most is None or turns < most) and cond(*loop_vars):
        loop_vars = body(*loop_vars)
        single = not isinstance(loop_vars, (list, tuple))
        if single:
            loop_vars = (loop_vars,)
        _check_structure(specs, loop_vars)
        turns += 1
    result = nest.map_structure(_converted, loop_vars)
    return result[0] if turns and single and len(result) == 1 else result


def _check_structure(specs, values):
    if len(specs) == len(values) and type(specs) is type(values):
        flat = zip(specs, values)
        if not any(nest.is_nested(a) or nest.is_nested(b) for a, b in flat):
            return
    if isinstance(specs, (list, tuple)) and not isinstance(values, type(specs)):
        values = type(specs)(values) if type(specs) in (list, tuple) else values
    nest.assert_same_structure(list(specs), list(values))


def _converted(x):
    if x is None or bodies.is_composite(x) or hasattr(x, "_type_spec"):
        return x
    return conversion.convert_to_tensor(x)


class _Traced:
    """The loop as a While operation of the graph being built."""

    def __init__(
        self,
        cond,
        body,
        loop_vars,
        maximum_iterations,
        shape_invariants,
        parallel_iterations,
        back_prop,
        name,
    ):
        self._original = loop_vars
        graph = stack.current()
        with graph.name_scope(name or "while") as scope:
            self._name = scope.rstrip("/")
            self._start(loop_vars, shape_invariants, maximum_iterations)
            self._cond_fn, self._body_fn = cond, body
            self._parallel = parallel_iterations
            condition = bodies.Body(
                bodies.name_in(scope, "cond"), self._condition, self._arguments
            )
            self._check_condition(condition)
            turn = bodies.Body(
                bodies.name_in(scope, "body"), self._turn, self._arguments
            )
            self._check_turn(turn)
            outputs = self._emit(condition, turn, scope)
        outputs = bodies.identities(outputs[: len(self._flat)], scope, self._names())
        if self._counted:
            outputs = outputs[1:]
        if not back_prop:
            stop = _headrace.raw_op("StopGradient")
            outputs = [stop(input=t) for t in outputs]
        structured = bodies.like(self._vars, outputs)
        self.result = structured if self._is_sequence else structured[0]

    def _start(self, loop_vars, shape_invariants, maximum_iterations):
        self._is_sequence = isinstance(loop_vars, (list, tuple))
        if not self._is_sequence:
            loop_vars = (loop_vars,)
            if shape_invariants is not None:
                shape_invariants = (shape_invariants,)
        self._vars = bodies.to_tensors(loop_vars)
        tensors = bodies.tensors_of(self._vars)
        shapes = loop_shapes.shapes_of(self._vars, loop_vars, shape_invariants)
        # An invariant may say more than the trace knows: then it is checked.
        tensors = [
            t if t.shape.is_subtype_of(s) else array_ops.ensure_shape(t, s)
            for t, s in zip(tensors, shapes)
        ]
        self._declared = shape_invariants is not None
        self._most = None
        if maximum_iterations is not None:
            self._most = math_ops.cast(maximum_iterations, dtypes.int32)
        self._counted = self._most is not None or strategies.turns_are_told()
        if self._counted:
            zero = conversion.convert_to_tensor(0, dtypes.int32)
            tensors = [zero] + tensors
            shapes = [zero.shape] + shapes
        self._flat = tensors
        self._arguments = list(zip(tensors, shapes))

    def _names(self):
        """The names of the results: upstream's loops count turns and know the most of
        them, whether or not one is set, ahead of the loop's own variables."""
        own = len(self._flat) - self._counted
        numbers = [*([0] if self._counted else []), *range(2, 2 + own)]
        return [f"Identity_{n}" if n else "Identity" for n in numbers]

    def _own(self, tensors):
        rest = tensors
        if self._counted:
            stack.current().turn = self._name, tensors[0]
            rest = tensors[1:]
        return bodies.like(self._vars, rest)

    def _condition(self, *tensors):
        holds = self._cond_fn(*self._own(list(tensors)))
        holds = conversion.convert_to_tensor(holds)
        if holds.shape.rank != 0 and holds.shape.num_elements() in (1, None):
            holds = array_ops.reshape(holds, [])
        if self._most is None:
            return holds
        return raw.LogicalAnd(raw.Less(tensors[0], self._most), holds)

    def _check_condition(self, condition):
        result = condition.results[0]
        if result.dtype != dtypes.bool:
            raise TypeError(
                f"tf.while_loop: `cond` must return a bool, got {result.dtype.name}"
            )
        if result.shape.rank not in (0, None):
            raise ValueError(
                f"tf.while_loop: `cond` must return a scalar, got shape {result.shape}"
            )

    def _turn(self, *tensors):
        value = self._body_fn(*self._own(list(tensors)))
        if not isinstance(value, (list, tuple)):
            value = (value,)
        value = bodies.to_tensors(value)
        nest.assert_same_structure(
            list(value), list(self._vars), expand_composites=True
        )
        value = bodies.tensors_of(value)
        if not self._counted:
            return value
        one = conversion.convert_to_tensor(1, dtypes.int32)
        return [raw.AddV2(tensors[0], one), *value]

    def _check_turn(self, turn):
        if len(turn.results) != len(self._flat):
            raise ValueError(
                f"The body of a loop gives {len(turn.results)} tensors, expected "
                f"{len(self._flat)}"
            )
        for (before, shape), after in zip(self._arguments, turn.results):
            if before.dtype != after.dtype:
                raise TypeError(
                    f"Loop var {before.name} enters the loop with type "
                    f"{before.dtype!s} but has type {after.dtype!s} after 1 iteration. "
                    f"{before.name} type should remain constant."
                )
            if not after.shape.is_subtype_of(shape):
                self._refuse_shape(before, shape, after)

    def _refuse_shape(self, before, shape, after):
        entered = shape if self._declared else before.shape
        raise ValueError(
            f"Input tensor `{before.name}` enters the loop with shape {entered}, but has "
            f"shape {after.shape} after one iteration. To allow the shape to vary across "
            "iterations, use the `shape_invariants` argument of tf.while_loop to specify "
            "a less-specific shape."
        )

    def _emit(self, condition, turn, scope):
        both = [condition, turn]
        captures = bodies.captures_of(both)
        names = condition.finish(captures), turn.finish(captures, pass_through=True)
        shapes = [shape for _, shape in self._arguments]
        attrs = {
            "cond": names[0],
            "body": names[1],
            "output_shapes": shapes + [c.shape for c in captures],
            "parallel_iterations": self._parallel,
        }
        op = "While" if bodies.is_stateful(both) else "StatelessWhile"
        with bodies.waiting(both):
            return _headrace.call_op(op, self._flat + captures, attrs, scope)
