"""tf.cond and tf.while_loop of TensorFlow 1's nodes: Switch, Merge, Enter, Exit."""

import functools

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.control_flow import bodies, loop_shapes
from headrace.control_flow.flow_contexts import CondContext, WhileContext
from headrace.framework import conversion, nest, tensor_shape
from headrace.graph.operation import Operation

# --- branches


def cond(pred, true_fn, false_fn, name, check_slices):
    """tf.cond in a graph of sessions, without functions."""
    graph = stack.current()
    with graph.name_scope(name or "cond"):
        if isinstance(pred, bool):
            raise TypeError("'pred' must not be a Python bool.")
        pred = conversion.convert_to_tensor(pred)
        off, on = raw.Switch(pred, pred)
        graph.prevent_fetching(on.op)
        on = raw.Identity(on, name="switch_t")
        off = raw.Identity(off, name="switch_f")
        pred = raw.Identity(pred, name="pred_id")
        for t in (on, off, pred):
            graph.prevent_fetching(t.op)
        taken = _Branch(graph, true_fn, "true_fn", pred, on, 1)
        other = _Branch(graph, false_fn, "false_fn", pred, off, 0)
        check_slices((taken, other), "cond")
        _check_alike(taken, other)
        merged = [_merge(f, t) for f, t in zip(other.results, taken.results)]
    taken.context._collect()
    other.context._collect()
    return bodies.like(taken.value, merged)


class _Branch:
    """One branch, made where the graph is.

    Attributes:
      value: what its function returned, as tensors.
      results: the tensors of that, seen in the branch.
    """

    def __init__(self, graph, function, label, pred, pivot, side):
        name = graph.unique_name("cond_text")
        outer = graph._flow_context
        self.context = CondContext(graph, name, outer, pred, pivot, side)
        with self.context.entered():
            value = function()
            if value is None:
                raise ValueError(f"'{label}' must have a return value.")
            self.value = nest.map_structure(functools.partial(_tensor, pivot), value)
            self.results = [
                self.context.bring_in(t) for t in bodies.tensors_of(self.value)
            ]


def _tensor(pivot, x):
    """A result as a tensor: an operation as something that waits for it."""
    if x is None:
        raise ValueError("None values not supported.")
    if isinstance(x, Operation):
        with stack.current().control_dependencies([x]):
            return raw.Identity(pivot, name="control_dependency")
    return x if bodies.is_composite(x) else conversion.convert_to_tensor(x)


def _merge(*values):
    """Whichever lives: a reference where all are."""
    join = raw.RefMerge if all(v.dtype._is_ref_dtype for v in values) else raw.Merge
    return join(list(values))[0]


def _check_alike(taken, other):
    nest.assert_same_structure(taken.value, other.value, expand_composites=True)
    for t, f in zip(taken.results, other.results):
        if t.dtype.base_dtype != f.dtype.base_dtype:
            raise ValueError(
                "Outputs of 'true_fn' and 'false_fn' must have the same type(s). "
                f"Received {t.dtype.name} from 'true_fn' and {f.dtype.name} from "
                "'false_fn'."
            )


# --- loops


def while_loop(condition, body, loop_vars, most, shape_invariants, name, **options):
    """tf.while_loop in a graph of sessions, without functions.

    `options` are parallel_iterations, back_prop and swap_memory.
    """
    graph = stack.current()
    with graph.name_scope(name or "while"):
        loop = _Loop(graph, loop_vars, most, shape_invariants, options)
        return loop.of(condition, body)


class _Loop:
    def __init__(self, graph, loop_vars, most, shape_invariants, options):
        self._graph = graph
        self._is_sequence = isinstance(loop_vars, (list, tuple))
        if not self._is_sequence:
            loop_vars = (loop_vars,)
            if shape_invariants is not None:
                shape_invariants = (shape_invariants,)
        self._most = self._count = None
        if most is not None:
            self._most = conversion.convert_to_tensor(most, name="maximum_iterations")
            if self._most.shape.rank not in (0, None):
                raise ValueError(
                    "'maximum_iterations' must be a scalar. Received shape: "
                    f"{self._most.shape}"
                )
            self._count = conversion.convert_to_tensor(
                0, self._most.dtype, name="iteration_counter"
            )
        self._vars = bodies.to_tensors(loop_vars)
        self._declared = shape_invariants is not None
        self._shapes = loop_shapes.shapes_of(self._vars, loop_vars, shape_invariants)
        self._first = bodies.tensors_of(self._vars)
        if most is not None:
            self._first.insert(0, self._count)
            self._shapes.insert(0, self._count.shape)
        name = graph.unique_name("while_context")
        self._context = WhileContext(
            graph, name, graph._flow_context, self._most, **options
        )
        self._context._collect()

    def _own(self, tensors):
        """The loop variables that these tensors stand for."""
        return bodies.like(self._vars, tensors[self._most is not None :])

    def of(self, condition, body):
        with self._context.entered(by_hand=True):
            merges = self._merges()
        with self._context.entered():
            holds = self._holds(condition, merges)
        with self._context.entered(by_hand=True):
            switches = [self._switch(m, holds) for m in merges]
        with self._context.entered():
            inside = [raw.Identity(on) for _, on in switches]
            self._context.begin_body(holds, inside[0])
            for merge, after in zip(merges, self._turn(body, inside)):
                merge.op._node.set_input(1, raw.NextIteration(after))
        with self._context.entered(by_hand=True):
            exits = [raw.Exit(off) for off, _ in switches]
        self._context.leave(exits)
        structured = bodies.like(self._result, exits[self._most is not None :])
        return structured if self._is_sequence else structured[0]

    def _merges(self):
        merges = []
        outer, first = self._context.outer_context, self._first
        if outer is not None:
            first = [outer.bring_in(t) for t in first]
        enters = [self._context.enter(t) for t in first]
        for enter, first, shape in zip(enters, self._first, self._shapes):
            enter.set_shape(first.shape)
            merge = raw.Merge([enter, enter])[0]
            # An invariant may say less than what enters.
            _headrace.replace_shape(merge, tensor_shape.as_shape(shape))
            merges.append(merge)
        return merges

    def _holds(self, condition, merges):
        self._context.begin_condition(merges[0])
        within = None
        if self._most is not None:
            within = raw.Less(merges[0], self._most)
        holds = condition(*self._own(merges))
        if within is not None:
            holds = raw.LogicalAnd(within, holds)
        return raw.LoopCond(holds)

    def _switch(self, merge, holds):
        group = {"_class": [g.decode() for g in merge.op.colocation_groups()]}
        with self._graph._attributes(group):
            return raw.Switch(merge, holds)

    def _turn(self, body, inside):
        counted = []
        if self._most is not None:
            counted = [inside[0] + 1]
        value = body(*self._own(inside))
        if not isinstance(value, (list, tuple)):
            value = [value]
        if value == [None]:
            raise ValueError("None values not supported.")
        value = bodies.to_tensors(value)
        nest.assert_same_structure(
            list(self._vars), list(value), expand_composites=True
        )
        self._result = value
        after = counted + bodies.tensors_of(value)
        for first, shape, t in zip(self._first, self._shapes, after):
            self._check(first, shape, t)
        return after

    def _check(self, first, shape, after):
        if first.dtype != after.dtype:
            raise TypeError(
                f"Loop var {first.name} enters the loop with type {first.dtype!s} but "
                f"has type {after.dtype!s} after 1 iteration. {first.name} type should "
                "remain constant."
            )
        if not after.shape.is_subtype_of(shape):
            entered_with = shape if self._declared else first.shape
            raise ValueError(
                f"Input tensor '{first.name}' enters the loop with shape "
                f"{entered_with}, but has shape {after.shape} after one iteration. To "
                "allow the shape to vary across iterations, use the "
                "`shape_invariants` argument of tf.while_loop to specify a "
                "less-specific shape."
            )
