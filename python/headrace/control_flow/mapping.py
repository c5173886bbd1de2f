"""tf.map_fn, tf.vectorized_map, tf.scan, tf.foldl and tf.foldr."""

from headrace._load import _headrace
from headrace.context import late
from headrace.control_flow.bodies import Body, tensors_of
from headrace.control_flow.loops import while_loop
from headrace.control_flow.tensor_array import TensorArray
from headrace.elements import structure
from headrace.framework import conversion, dtypes, nest, tensor_shape
from headrace.framework.sparse_tensor import SparseTensorSpec
from headrace.framework.support import signatures
from headrace.framework.tensor import is_tensor
from headrace.framework.type_spec import TensorSpec, TypeSpec
from headrace.ops import array_ops

_PLAIN = (_headrace.Tensor, _headrace.VariableBase)


def _tensors(elems):
    return [conversion.convert_to_tensor(e) for e in nest.flatten(elems)]


def _length(flat, what):
    """The number of rows: an int where it is known, else a tensor."""
    if not flat:
        raise ValueError(
            "elems must be a Tensor or (possibly nested) sequence of Tensors. Got [], "
            "which does not contain any Tensors."
        )
    for t in flat:
        if t.shape.rank == 0:
            raise ValueError(
                "Elements in elems must be 1+ dimensional Tensors, not scalars"
                if what == "map_fn"
                else "elems must be a 1+ dimensional Tensor, not a scalar"
            )
    sizes = {t.shape[0] for t in flat if t.shape.rank is not None}
    known = [n for n in sizes if n is not None]
    if len(known) > 1:
        raise ValueError(f"Dimensions {min(known)} and {max(known)} are not compatible")
    if known:
        return known[0]
    return array_ops.shape(flat[0])[0]


def _arrays(flat, n):
    return [
        TensorArray(
            t.dtype,
            size=n,
            dynamic_size=False,
            infer_shape=True,
            clear_after_read=False,
        ).unstack(t)
        for t in flat
    ]


def _like(elems, flat):
    return nest.pack_sequence_as(elems, flat)


def _signature(signature, dtype, elems):
    if signature is None:
        signature = dtype
    if signature is None:
        return nest.map_structure(_same_row, elems)
    return signature


def _same_row(elem):
    """What a result like a row of `elem` is."""
    if is_tensor(elem) and not isinstance(elem, _PLAIN):
        return structure.unbatched(structure.spec_of(elem))
    return conversion.convert_to_tensor(elem).dtype


def _leaf_dtype(leaf):
    if _is_composite_spec(leaf):
        return dtypes.variant
    return leaf.dtype if isinstance(leaf, TypeSpec) else dtypes.as_dtype(leaf)


def _leaf_shape(leaf):
    if _is_composite_spec(leaf):
        return tensor_shape.TensorShape(
            [3] if isinstance(leaf, SparseTensorSpec) else []
        )
    return leaf.shape if isinstance(leaf, TypeSpec) else None


def _is_composite_spec(leaf):
    return isinstance(leaf, TypeSpec) and not isinstance(leaf, TensorSpec)


class _Rows:
    """Tensors and composites as tensors of rows; a composite's row is a variant."""

    def __init__(self, elems):
        self._elems, self.tensors, self._specs = elems, [], []
        for e in nest.flatten(elems):
            spec = None
            if is_tensor(e) and not isinstance(e, _PLAIN):
                whole = structure.spec_of(e)
                (rows,) = structure.to_slices(whole, e)
                spec = structure.unbatched(whole)
            else:
                rows = conversion.convert_to_tensor(e)
            self.tensors.append(rows)
            self._specs.append(spec)

    def row(self, parts):
        """The structure of a row whose components are `parts`."""
        return _like(
            self._elems,
            [
                p if s is None else structure.from_variant(s, p)
                for s, p in zip(self._specs, parts)
            ],
        )


def _written(leaf, value):
    """A result as its array holds it."""
    if not _is_composite_spec(leaf):
        return value
    return structure.to_variant(leaf, value)


def _stacked(leaf, array, n):
    """An array's rows as one tensor or composite."""
    rows = array.stack()
    if not _is_composite_spec(leaf):
        return rows
    size = n if isinstance(n, int) else None
    return structure.from_variant(structure.batched(leaf, size), rows)


def map_fn(
    fn,
    elems,
    dtype=None,
    parallel_iterations=None,
    back_prop=True,
    swap_memory=False,
    infer_shape=True,
    name=None,
    fn_output_signature=None,
):
    """`fn` over the rows of `elems`, its results stacked."""
    if not callable(fn):
        raise TypeError(
            f"The provided function {fn} is not callable.fn must be callable."
        )
    fn = late.in_graph(fn)
    elements = _Rows(elems)
    n = _length(elements.tensors, "map_fn")
    signature = _signature(fn_output_signature, dtype, elems)
    leaves = nest.flatten(signature)
    rows = _arrays(elements.tensors, n)
    results = [
        TensorArray(
            _leaf_dtype(s),
            size=n,
            infer_shape=infer_shape,
            element_shape=_leaf_shape(s),
        )
        for s in leaves
    ]

    def turn(i, arrays):
        value = fn(elements.row([r.read(i) for r in rows]))
        nest.assert_same_structure(signature, value)
        values = zip(arrays, leaves, nest.flatten(value))
        return i + 1, [a.write(i, _written(s, v)) for a, s, v in values]

    _, results = while_loop(
        lambda i, _: i < n,
        turn,
        (conversion.convert_to_tensor(0), results),
        parallel_iterations=parallel_iterations or 10,
        back_prop=back_prop,
        maximum_iterations=n,
        name=name or "map",
    )
    stacked = [_stacked(s, a, n) for s, a in zip(leaves, results)]
    return nest.pack_sequence_as(signature, stacked)


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    """`fn` over the rows of `elems`; what does not depend on the row is repeated.

    Where `fallback_to_while_loop` is false, ValueError for what has no form for all rows
    at once: ops whose sizes follow from data, texts, changes of variables.
    """
    flat = _tensors(elems)
    n = _length(flat, "vectorized_map")
    if not fallback_to_while_loop:
        _check_vectorizes(fn, elems, flat)
    if not isinstance(n, int):
        signature = _results_of(fn, elems, flat)
        return map_fn(fn, elems, fn_output_signature=signature)
    if n == 0:
        raise ValueError("vectorized_map: elems have no rows")
    columns = [array_ops.unstack(t, num=n) for t in flat]
    values = [fn(_like(elems, list(row))) for row in zip(*columns)]
    parts = [nest.flatten(v) for v in values]
    stacked = [array_ops.stack(list(c)) for c in zip(*parts)]
    return nest.pack_sequence_as(values[0], stacked)


def _check_vectorizes(fn, elems, flat):
    rows = [(t, t.shape[1:]) for t in flat]
    body = Body("loop_body", lambda *row: fn(_like(elems, list(row))), rows)
    of_rows = {x.op.name for x in body.arguments}
    for op in body.graph.get_operations():  # inputs in front of their users
        if not any(x.op.name in of_rows for x in op.inputs):
            continue
        of_rows.add(op.name)
        writes = not op.outputs and any(x.dtype == dtypes.resource for x in op.inputs)
        if writes or op._node.sizes_from_data:
            _refuse_to_vectorize(op)
    found = [x.op for x in tensors_of(body.value)]
    seen = set()
    while found:  # texts that results are made of
        op = found.pop()
        if op.name in seen or op.name not in of_rows:
            continue
        seen.add(op.name)
        if op.inputs and any(x.dtype == dtypes.string for x in op.outputs):
            _refuse_to_vectorize(op)
        found.extend(x.op for x in op.inputs)


def _refuse_to_vectorize(op):
    raise ValueError(f"No pfor vectorization defined for {op.type}\n{op.node_def}")


def _results_of(fn, elems, flat):
    """The dtypes that `fn` gives for a row, found by tracing it."""
    rows = [(t, t.shape[1:]) for t in flat]
    body = Body("row", lambda *row: fn(_like(elems, list(row))), rows)
    return nest.map_structure(lambda t: t.dtype, body.value)


def scan(
    fn,
    elems,
    initializer=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    infer_shape=True,
    reverse=False,
    name=None,
):
    """All accumulations of `fn(accumulated, row)` over the rows, stacked."""
    if not callable(fn):
        raise TypeError(f"{fn.__class__.__name__} is not callable.")
    flat = _tensors(elems)
    n = _length(flat, "scan")
    rows = _arrays(flat, n)
    first = n - 1 if reverse else 0
    if initializer is None:
        start = _like(elems, [r.read(first) for r in rows])
        structure, turns = start, n - 1
    else:
        structure = nest.map_structure(conversion.convert_to_tensor, initializer)
        start, turns = structure, n
    state = nest.flatten(start)
    results = [
        TensorArray(
            s.dtype,
            size=n,
            infer_shape=infer_shape,
            dynamic_size=False,
            element_shape=s.shape if infer_shape else None,
        )
        for s in state
    ]
    step = -1 if reverse else 1
    begin = first
    if initializer is None:
        results = [a.write(first, s) for a, s in zip(results, state)]
        begin = first + step

    def turn(i, accumulated, arrays):
        row = _like(elems, [r.read(i) for r in rows])
        value = fn(_like(structure, accumulated), row)
        nest.assert_same_structure(structure, value)
        value = [conversion.convert_to_tensor(v) for v in nest.flatten(value)]
        return i + step, value, [a.write(i, v) for a, v in zip(arrays, value)]

    _, _, results = while_loop(
        (lambda i, *_: i >= 0) if reverse else (lambda i, *_: i < n),
        turn,
        (conversion.convert_to_tensor(begin), state, results),
        parallel_iterations=parallel_iterations,
        back_prop=back_prop,
        maximum_iterations=turns,
        name=name or "scan",
    )
    stacked = [a.stack() for a in results]
    return nest.pack_sequence_as(structure, stacked)


def _folding(own_name, reverse, doc):
    def fold(
        fn,
        elems,
        initializer=None,
        parallel_iterations=10,
        back_prop=True,
        swap_memory=False,
        name=None,
    ):
        how = (parallel_iterations, back_prop, reverse, name or own_name)
        return _fold(fn, elems, initializer, *how)

    return signatures.called(fold, own_name, doc)


foldl = _folding("foldl", False, "fn(...fn(fn(initial, row 0), row 1)...).")
foldr = _folding("foldr", True, "The fold from the last row to the first.")


def _fold(fn, elems, initializer, parallel_iterations, back_prop, reverse, name):
    if not callable(fn):
        raise TypeError(f"{fn.__class__.__name__} is not callable.")
    flat = _tensors(elems)
    n = _length(flat, "fold")
    rows = _arrays(flat, n)
    at = n - 1 if reverse else 0
    step = -1 if reverse else 1
    if initializer is None:
        state = _like(elems, [r.read(at) for r in rows])
        at = at + step
    else:
        state = nest.map_structure(conversion.convert_to_tensor, initializer)

    def turn(i, accumulated):
        return i + step, fn(accumulated, _like(elems, [r.read(i) for r in rows]))

    _, result = while_loop(
        (lambda i, _: i >= 0) if reverse else (lambda i, _: i < n),
        turn,
        (conversion.convert_to_tensor(at), state),
        parallel_iterations=parallel_iterations,
        back_prop=back_prop,
        maximum_iterations=n,
        name=name,
    )
    return result
