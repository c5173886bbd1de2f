"""tf.cond, tf.case and tf.switch_case."""

from headrace._load import _headrace, raw
from headrace.context import errors, stack
from headrace.control_flow import bodies, flow_contexts, frames
from headrace.framework import conversion, dtypes, nest
from headrace.framework.indexed_slices import IndexedSlices
from headrace.framework.name_scopes import graph_scope
from headrace.framework.sparse_tensor import SparseTensor
from headrace.ops import array_ops, check_ops, math_ops


def _most_general(shapes):
    result = shapes[0]
    for s in shapes[1:]:
        result = result.most_specific_compatible_shape(s)
    return result


def _check_alike(traced, names, function):
    """Branches must return structures of the same kind and dtypes."""
    first = traced[0]
    _check_slices(traced, function)
    for body, name in zip(traced[1:], names[1:]):
        counts = [len(nest.flatten(b.value)) for b in (first, body)]
        if counts[0] != counts[1]:
            raise AssertionError(counts)
        try:
            nest.assert_same_structure(first.value, body.value, expand_composites=True)
        except (ValueError, TypeError) as e:
            raise TypeError(
                _unlike(first, body, names[0], name, function) + str(e)
            ) from None
        sizes = [len(b.results) for b in (first, body)]
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"Lengths of branch outputs of {function} must match.\n"
                f"len(graphs[0].outputs): {sizes[0]}\n"
                f"len(graphs[1].outputs): {sizes[1]}\n"
            )
        for a, b in zip(first.results, body.results):
            if a.dtype != b.dtype:
                raise TypeError(
                    _unlike(first, body, names[0], name, function)
                    + f"{a} and {b} have different types"
                )


def _check_slices(traced, function):
    """IndexedSlices meet IndexedSlices only."""
    for i, leaves in enumerate(zip(*(nest.flatten(b.value) for b in traced))):
        kinds = {isinstance(leaf, IndexedSlices) for leaf in leaves}
        if len(kinds) > 1:
            raise TypeError(
                f"Cannot reconcile tf.{function} {i}-th outputs:\n  outputs from all "
                f"branches: {list(leaves)}."
            )


def _unlike(first, other, first_name, name, function):
    return (
        f"{first_name} and {name} arguments to tf.{function} must have the same number, "
        f"type, and overall structure of return values.\n\n{first_name} output: "
        f"{first.value}\n{name} output: {other.value}\n\nError details:\n"
    )


def _emit(op, selector, traced, attrs, scope):
    """Asks If or Case of the traced branches; the outputs."""
    captures = bodies.captures_of(traced)
    functions = [b.finish(captures) for b in traced]
    if not bodies.is_stateful(traced):
        op = "Stateless" + op
    columns = list(zip(*(b.results for b in traced)))
    all_attrs = dict(attrs(functions))
    all_attrs["Tout"] = [c[0].dtype for c in columns]
    all_attrs["output_shapes"] = [_most_general([t.shape for t in c]) for c in columns]
    with bodies.waiting(traced):
        return _headrace.call_op(op, [selector, *captures], all_attrs, scope)


def cond(pred, true_fn=None, false_fn=None, name=None):
    """What `true_fn` returns where `pred` holds, else what `false_fn` does."""
    if not callable(true_fn):
        raise TypeError("'true_fn' must be callable.")
    if not callable(false_fn):
        raise TypeError("'false_fn' must be callable.")
    if _headrace.is_eager():
        return true_fn() if pred else false_fn()
    if flow_contexts.wanted():
        return frames.cond(pred, true_fn, false_fn, name, _check_slices)
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool", pred)
    pred = conversion.convert_to_tensor(pred)
    if pred.shape.rank != 0:  # one element in any shape, found out by the run at last
        if pred.shape.is_fully_defined() and pred.shape.num_elements() != 1:
            raise ValueError(
                f"The second input must be a scalar, but it has shape {list(pred.shape)}"
            )
        pred = array_ops.reshape(pred, [])
    graph = stack.current()
    with graph.name_scope(name or "cond") as scope:
        traced = [
            bodies.Body(bodies.name_in(scope, "true"), true_fn, (), pred, "true_fn"),
            bodies.Body(bodies.name_in(scope, "false"), false_fn, (), pred, "false_fn"),
        ]
        _check_alike(traced, ["true_fn", "false_fn"], "cond")
        outputs = _emit(
            "If",
            pred,
            traced,
            lambda f: {"then_branch": f[0], "else_branch": f[1]},
            scope,
        )
    return _results(traced, outputs, scope)


def _results(traced, outputs, scope):
    if not outputs:
        return traced[0].value
    made = bodies.like(traced[0].value, bodies.identities(outputs, scope))
    # What is known of sparse results stands beside their tensors.
    for leaf, *of_branches in zip(
        *map(nest.flatten, [made, *(b.value for b in traced)])
    ):
        if isinstance(leaf, SparseTensor):
            leaf.set_shape(_most_general([x.shape for x in of_branches]))
    return made


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    """The result of the branch that the index names, or of the default."""
    if isinstance(branch_index, int):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    fns = _indexed(branch_fns, default)
    given = getattr(branch_index, "dtype", None)
    if given is not None and not dtypes.as_dtype(given).is_integer:
        raise TypeError(
            f"'branch_index' must be an integer Tensor, got {dtypes.as_dtype(given)!r}"
        )
    if _headrace.is_eager():
        index = int(branch_index)
        return fns[index]() if 0 <= index < len(fns) - 1 else fns[-1]()
    index = conversion.convert_to_tensor(branch_index, dtypes.int32)
    graph = stack.current()
    with (
        graph.name_scope(name or "switch_case"),
        graph.name_scope("indexed_case") as scope,
    ):
        traced = [
            bodies.Body(bodies.name_in(scope, f"branch{i}"), f, label=f"branch {i}")
            for i, f in enumerate(fns)
        ]
        names = [f"branches[{i}]" for i in range(len(fns))]
        _check_alike(traced, names, "switch_case")
        outputs = _emit("Case", index, traced, lambda f: {"branches": f}, scope)
    return _results(traced, outputs, scope)


def _indexed(branch_fns, default):
    """The branches by index, the default last."""
    if isinstance(branch_fns, dict):
        pairs = list(branch_fns.items())
    elif not isinstance(branch_fns, (list, tuple)):
        raise TypeError("'branch_fns' must be a list, tuple, or dict")
    elif branch_fns and not callable(branch_fns[0]):
        pairs = list(branch_fns)
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(
                    f"Each entry in 'branch_fns' must be a 2-tuple. Received {pair}."
                )
    else:
        pairs = list(enumerate(branch_fns))
    if not pairs:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    for key, function in pairs:
        if not callable(function):
            raise TypeError(f"fn for key {key} must be callable, but is {function!r}.")
        if not isinstance(key, int):
            raise TypeError(f"Key must be a Python `int`, got {type(key)}.")
    keys = sorted(k for k, _ in pairs)
    if keys != list(range(len(pairs))):
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) "
            f"but found {{{','.join(map(str, keys))}}}"
        )
    fns = [f for _, f in sorted(pairs, key=lambda p: p[0])]
    if default is not None:
        if not callable(default):
            raise TypeError("default must be callable.")
        fns.append(default)
    else:
        fns.append(fns[-1])
    return fns


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    """The result of the first function whose predicate holds, or of the default."""
    if isinstance(pred_fn_pairs, dict):
        pairs = [
            (p.deref() if hasattr(p, "deref") else p, f)
            for p, f in pred_fn_pairs.items()
        ]
    elif isinstance(pred_fn_pairs, (list, tuple)):
        pairs = list(pred_fn_pairs)
    else:
        raise TypeError(
            "'pred_fn_pairs' must be a list, tuple, or dict. Received: "
            f"{type(pred_fn_pairs)}"
        )
    if not pairs:
        raise ValueError("The argument 'pred_fn_pairs' must be nonempty.")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair}."
            )
        if not callable(pair[1]):
            raise TypeError(f"Callable expected, got {pair[1]}")
    if exclusive:
        pairs = _exclusive(pairs)
    if default is None:
        default = _none_holds([p for p, _ in pairs], pairs[-1][1])
    if not callable(default):
        raise TypeError("'default' must be callable.")

    chain = default
    for pred, function in reversed(pairs):
        chain = _choice(pred, function, chain)
    with graph_scope(name, "case"):
        return chain()


def _choice(pred, function, otherwise):
    return lambda: cond(pred, function, otherwise)


def _exclusive(pairs):
    """The pairs, after a check that one predicate holds at most."""
    preds = array_ops.stack([p for p, _ in pairs])
    count = raw.Sum(math_ops.cast(preds, dtypes.int32), [0])
    text = "Input error: exclusive=True: more than 1 conditions evaluated as True"
    if _headrace.is_eager():
        check_ops.assert_less_equal(count, 1, message=text)
        return pairs
    check = check_ops.Assert(count <= 1, [text, preds])
    with stack.current().control_dependencies([check]):
        first = array_ops.identity(pairs[0][0])
    return [(first, pairs[0][1])] + pairs[1:]


def _none_holds(preds, last):
    """A default that fails: without one, some predicate must hold."""

    def fail():
        text = "Input error: None of conditions evaluated as True:"
        stacked = array_ops.stack(preds)
        if _headrace.is_eager():
            value = preds[0] if len(preds) == 1 else stacked
            flat = str(stacked.numpy().ravel()[0])
            raise errors.InvalidArgumentError._of(
                f"Expected '{conversion.convert_to_tensor(False)!s}' to be true. "
                f"Summarized data: {text.encode()!r}\n{flat if value is not None else ''}"
            )
        _headrace.call_op(
            "Assert", [conversion.convert_to_tensor(False), text, stacked], {}
        )
        return last()

    return fail
