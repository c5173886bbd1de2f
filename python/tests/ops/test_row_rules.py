"""The rules of ops for tf.vectorized_map: what an op gives for all rows at once is what
it gives row by row, whichever of its inputs have rows. The inputs are those of the rows
that TensorFlow wrote, or of row_rule_cases.py."""

import headrace as tf
import numpy as np
import pytest
import rows
from headrace._load import _headrace
from row_rule_cases import CASES

# What draws numbers, or gives what cannot be compared.
_DRAWS = ("Random", "TruncatedNormal", "Multinomial")
_REFUSED = "expected to be loop invariant|No pfor vectorization of op"
# Ops that call functions or hold lists: test_vectorized_map.py has programs of them.
_IN_PROGRAMS = {
    *("Case", "If", "PartitionedCall", "StatefulPartitionedCall", "StatelessCase"),
    *("StatelessIf", "StatelessWhile", "While", "Assert", "Print", "PrintV2"),
    *("EmptyTensorList", "TensorListConcatV2", "TensorListElementShape"),
    *("TensorListFromTensor", "TensorListGather", "TensorListGetItem"),
    *("TensorListLength", "TensorListPopBack", "TensorListPushBack"),
    *("TensorListReserve", "TensorListResize", "TensorListScatter"),
    *("TensorListScatterIntoExistingList", "TensorListScatterV2"),
    *("TensorListSetItem", "TensorListStack"),
}


def _is_tensor(x):
    return isinstance(x, _headrace.Tensor) and x.dtype not in (tf.variant, tf.resource)


def _with(arguments, at, values):
    flat = list(tf.nest.flatten(arguments))
    for i, value in zip(at, values):
        flat[i] = value
    return tf.nest.pack_sequence_as(arguments, flat)


def _varied(call, arguments, at):
    """Three rows for the inputs at those places: as they are, in reverse, as they are."""
    flat = tf.nest.flatten(arguments)
    given = [flat[i] for i in at]
    reverse = [tf.reshape(tf.reverse(tf.reshape(t, [-1]), [0]), t.shape) for t in given]
    try:
        call(_with(arguments, at, reverse))
    except (tf.errors.OpError, ValueError):
        reverse = given
    return [given, reverse, given]


def _plain(result):
    flat = [x for x in tf.nest.flatten(result) if x is not None]
    return [np.asarray(x.numpy()) for x in flat if x.dtype != tf.variant]


def _same(op, given, wanted):
    assert len(given) == len(wanted)
    for a, b in zip(given, wanted):
        assert a.shape == b.shape
        if b.dtype.kind in "SO":
            assert a.tolist() == b.tolist()
            continue
        assert a.dtype == b.dtype
        if any(name in op for name in _DRAWS):
            continue
        if a.dtype.kind in "fcV" and a.size:
            kind = np.complex128 if a.dtype.kind == "c" else np.float64
            a, b = a.astype(kind), b.astype(kind)
            scale = np.nanmax(np.abs(np.where(np.isfinite(b), b, 0)), initial=1.0)
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4 * scale)
        else:
            np.testing.assert_array_equal(a, b)


def _check(op, call, arguments, at):
    """Whether there is a form for these inputs with rows; it must be right."""
    varied = _varied(call, arguments, at)
    try:
        each = [_plain(call(_with(arguments, at, row))) for row in varied]
    except (tf.errors.OpError, ValueError):
        return None  # the row is one of a refusal
    if any(a.shape != b.shape for row in each for a, b in zip(row, each[0])):
        return None
    wanted = [np.stack(column) for column in zip(*each)]
    stacked = [tf.stack(column) for column in zip(*varied)]

    def of_row(row):
        result = tf.nest.flatten(call(_with(arguments, at, row)))
        return [x for x in result if x is not None and x.dtype != tf.variant]

    try:
        given = tf.vectorized_map(of_row, stacked, fallback_to_while_loop=False)
        found = True
    except ValueError as e:
        assert any(part in str(e) for part in _REFUSED.split("|")), e
        given = tf.vectorized_map(of_row, stacked, warn=False)
        found = False
    _same(op, [np.asarray(x.numpy()) for x in given], wanted)
    if found:
        try:
            none = tf.vectorized_map(of_row, [t[:0] for t in stacked])
        except tf.errors.InvalidArgumentError as e:
            # A loop without a turn does not find out what it would have made.
            assert "empty list with non-fully-defined" in str(e)
            return found
        for x, y in zip(none, wanted):
            assert x.shape.as_list() == [0, *y.shape[1:]]
    return found


def _names():
    return sorted(set(_headrace.vectorized_op_names()) - _IN_PROGRAMS)


def _calls(op):
    if op in CASES:
        return [CASES[op]()]
    recorded = list(rows.golden().calls(op))[:2]
    return [rows.compare_ops().tensors_of(tf, kwargs, [], []) for kwargs, _ in recorded]


@pytest.mark.parametrize("op", [n for n in _names() if not n.startswith("_")])
def test_all_rows_at_once(op):
    raw = getattr(tf.raw_ops, op)
    found = []
    for arguments in _calls(op):
        places = [i for i, x in enumerate(tf.nest.flatten(arguments)) if _is_tensor(x)]
        subsets = [[i] for i in places] + ([places] if len(places) > 1 else [])
        for at in subsets:
            found.append(_check(op, lambda a: raw(**a), arguments, at))
    # What draws numbers of a shape has no other input, and rows share that; what is done
    # in a loop is so without fallback, too.
    assert True in found or any(name in op for name in _DRAWS), found
