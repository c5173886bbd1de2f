"""tf.vectorized_map: a function of one row, traced once and made to work on all rows.

What becomes of each operation stands in its own file in C++ (op/vectorize.h).
"""

from headrace._load import _headrace
from headrace.context import late
from headrace.control_flow.bodies import Body, captures_of, is_composite
from headrace.control_flow.mapping import Rows
from headrace.elements import structure
from headrace.framework import conversion, nest
from headrace.framework.indexed_slices import IndexedSlices
from headrace.framework.settings import logging
from headrace.graph.operation import Operation


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    """`fn` over the rows of `elems`, all at once; results stacked.

    `fn` is traced once, for a row. Each of its operations becomes one for all rows; what
    does not depend on the row is computed once. Tensors of one row serve all rows.

    Args:
      fn: takes a row, of the structure of `elems`; returns tensors or composites that
        have rows, in any structure.
      elems: tensors, or composites that have rows, of at least one dimension.
      fallback_to_while_loop: what has no form for all rows (sizes that follow from data,
        texts, changes of variables) is done row by row; else ValueError.
      warn: whether to warn of each operation that is.
    """
    for e in nest.flatten(elems):
        _check_stacks(e)
    rows = Rows(elems)
    arguments, stacked, count = _headrace.rows_of(rows.tensors)
    fn = late.in_graph(fn)
    results = _Leaves()

    def of_row(*row):
        return results.taken_apart(fn(rows.row(row)))

    stacks = for_rows(of_row, arguments, stacked, count, fallback_to_while_loop, warn)
    return results.put_together(stacks, count)


def for_rows(fn, arguments, stacked, count, loops=True, warn=True):
    """What `fn` gives for each of `count` rows: its tensors, stacked.

    `stacked` says which of `arguments` have a row for each; the others are the same for
    all. `loops`: whether what has no form for all rows is done row by row.
    """
    one = [(t, t.shape[1:] if s else t.shape) for t, s in zip(arguments, stacked)]
    body = Body("loop_body", fn, one)
    captures = captures_of([body])
    body.finish(captures)
    return body.concrete.for_rows(
        arguments + captures,
        stacked + [False for _ in captures],
        conversion.convert_to_tensor(count),
        loops,
        logging.warn if warn else None,
    )


class _Leaves:
    """What the function returns, as the tensors that it is made of."""

    def taken_apart(self, value):
        self._value = value
        self._specs = []
        parts = []
        for leaf in nest.flatten(value):
            spec = None
            if isinstance(leaf, Operation):
                raise TypeError(
                    "vectorized_map: the function returned the operation "
                    f"{leaf.name!r}, which is not a tensor"
                )
            if isinstance(leaf, IndexedSlices):
                leaf = conversion.convert_to_tensor(leaf)
            _check_stacks(leaf)
            if is_composite(leaf):
                spec = structure.spec_of(leaf)
                parts += structure.components_of(spec, leaf)
            elif leaf is not None:
                parts.append(leaf)
            self._specs.append(spec)
        return parts

    def put_together(self, stacks, count):
        size = count if isinstance(count, int) else None
        rest = iter(stacks)
        leaves = []
        for spec, leaf in zip(self._specs, nest.flatten(self._value)):
            if spec is not None:
                leaves.append(
                    structure.of_components(structure.batched(spec, size), rest)
                )
            else:
                leaves.append(None if leaf is None else next(rest))
        return nest.pack_sequence_as(self._value, leaves)


def _check_stacks(value):
    """ValueError for composites without rows: datasets, iterators, optionals."""
    if is_composite(value) and not hasattr(value._type_spec, "_to_batched_tensor_list"):
        raise ValueError(
            f"CompositeTensor instance {value} returned from parallel_for or "
            "vectorized_map loop body must provide a `BatchableTypeSpec` (saw: "
            f"{value._type_spec})."
        )
