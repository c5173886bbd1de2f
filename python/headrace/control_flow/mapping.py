"""tf.map_fn, tf.scan, tf.foldl and tf.foldr."""

from headrace._load import _headrace
from headrace.context import late
from headrace.control_flow.bodies import is_composite
from headrace.control_flow.loops import while_loop
from headrace.control_flow.tensor_array import TensorArray
from headrace.elements import structure
from headrace.framework import conversion, dtypes, nest
from headrace.framework.name_scopes import composite
from headrace.framework.sparse_tensor import SparseTensorSpec
from headrace.framework.support import signatures
from headrace.framework.type_spec import TensorSpec, TypeSpec
from headrace.ops import array_ops


def _tensors(elems):
    return [conversion.convert_to_tensor(e) for e in nest.flatten(elems)]


def _length(flat):
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
    if is_composite(elem):
        return structure.unbatched(_batchable(elem))
    return conversion.convert_to_tensor(elem).dtype


def _batchable(elem):
    """The spec of a composite that has rows."""
    spec = structure.spec_of(elem)
    if not hasattr(spec, "_to_batched_tensor_list"):
        raise TypeError(f"map_fn can not consume {spec} inputs: got {elem}")
    return spec


def _is_composite_spec(leaf):
    return isinstance(leaf, TypeSpec) and not isinstance(leaf, TensorSpec)


class Rows:
    """Tensors and composites as tensors of rows: those of a composite are components."""

    def __init__(self, elems):
        self._elems, self.tensors, self._specs = elems, [], []
        for e in nest.flatten(elems):
            spec = None
            if is_composite(e):
                whole = _batchable(e)
                self.tensors += structure.to_slices(whole, e)
                spec = structure.unbatched(whole)
            else:
                self.tensors.append(conversion.convert_to_tensor(e))
            self._specs.append(spec)

    def row(self, parts):
        """The structure of a row whose components are `parts`."""
        rest = iter(parts)
        leaves = [
            next(rest) if s is None else structure.of_components(s, rest)
            for s in self._specs
        ]
        return _like(self._elems, leaves)


class _Results:
    """The arrays of what one leaf of the signature stands for."""

    def __init__(self, leaf, n, infer_shape):
        self._leaf, self._n = leaf, n
        self._is_composite = _is_composite_spec(leaf)
        if self._is_composite and not hasattr(leaf, "_batch"):
            raise TypeError(f"map_fn can not generate {leaf} outputs")
        self.arrays = [
            TensorArray(dtype, size=n, infer_shape=infer_shape, element_shape=shape)
            for dtype, shape in self._elements()
        ]

    def _elements(self):
        leaf = self._leaf
        if self._is_composite:
            # Those of sparse tensors are vectors of three variants.
            vector = [3] if isinstance(leaf, SparseTensorSpec) else []
            return [
                (s.dtype, s.shape if s.dtype != dtypes.variant else vector)
                for s in structure.component_specs(leaf)
            ]
        if isinstance(leaf, TypeSpec):
            return [(leaf.dtype, leaf.shape)]
        return [(dtypes.as_dtype(leaf), None)]

    def parts(self, value):
        """What is written for a value, one for each array."""
        if not self._is_composite:
            return [value]
        is_tensor = self._leaf.value_type is _headrace.Tensor  # of ragged rank 0
        if not is_tensor and not self._leaf.is_compatible_with(value):
            raise ValueError(
                f"Error in map_fn:\n  Expected `fn` to return a:\n    {self._leaf}\n"
                f"  But it returned a:\n    {structure.spec_of(value)}\n    (value="
                f"{value})\n  To fix, update the `fn_output_signature` (or `dtype`) "
                "argument to `map_fn`."
            )
        return structure.components_of(self._leaf, value)

    def stacked(self, arrays):
        """The next arrays' rows as one tensor or composite."""
        rows = (next(arrays).stack() for _ in self.arrays)
        if not self._is_composite:
            return next(rows)
        size = self._n if isinstance(self._n, int) else None
        return structure.of_components(structure.batched(self._leaf, size), rows)


@composite("map")
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
    elements = Rows(elems)
    n = _length(elements.tensors)
    signature = _signature(fn_output_signature, dtype, elems)
    rows = _arrays(elements.tensors, n)
    results = [_Results(leaf, n, infer_shape) for leaf in nest.flatten(signature)]

    def turn(i, arrays):
        value = fn(elements.row([r.read(i) for r in rows]))
        nest.assert_same_structure(signature, value)
        pairs = zip(results, nest.flatten(value))
        parts = [part for result, v in pairs for part in result.parts(v)]
        return i + 1, [a.write(i, part) for a, part in zip(arrays, parts)]

    _, arrays = while_loop(
        lambda i, _: i < n,
        turn,
        (conversion.convert_to_tensor(0), [a for r in results for a in r.arrays]),
        parallel_iterations=parallel_iterations or 10,
        back_prop=back_prop,
        maximum_iterations=n,
    )
    arrays = iter(arrays)
    return nest.pack_sequence_as(signature, [r.stacked(arrays) for r in results])


def _taken_apart(fn, elems):
    """(how many rows; an array of each tensor's); TypeError unless `fn` can be called."""
    if not callable(fn):
        raise TypeError(f"{fn.__class__.__name__} is not callable.")
    flat = _tensors(elems)
    n = _length(flat)
    return n, _arrays(flat, n)


@composite("scan")
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
    n, rows = _taken_apart(fn, elems)
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
        (begin, state, results),
        parallel_iterations=parallel_iterations,
        back_prop=back_prop,
        maximum_iterations=turns,
    )
    stacked = [a.stack() for a in results]
    return nest.pack_sequence_as(structure, stacked)


def _folding(own_name, reverse, doc):
    @composite(own_name)
    def fold(
        fn,
        elems,
        initializer=None,
        parallel_iterations=10,
        back_prop=True,
        swap_memory=False,
        name=None,
    ):
        n, rows = _taken_apart(fn, elems)
        at = n if reverse else 0  # backwards, the row before is next
        if initializer is None:
            at = at - 1 if reverse else at
            state = _like(elems, [r.read(at) for r in rows])
            at = at if reverse else at + 1
        else:
            state = nest.map_structure(conversion.convert_to_tensor, initializer)

        def turn(i, accumulated):
            after = i - 1 if reverse else i + 1
            row = _like(elems, [r.read(after if reverse else i) for r in rows])
            return after, fn(accumulated, row)

        return while_loop(
            (lambda i, _: i > 0) if reverse else (lambda i, _: i < n),
            turn,
            (at if reverse else conversion.convert_to_tensor(at), state),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            maximum_iterations=n,
        )[1]

    return signatures.called(fold, own_name, doc)


foldl = _folding("foldl", False, "fn(...fn(fn(initial, row 0), row 1)...).")
foldr = _folding("foldr", True, "The fold from the last row to the first.")
