"""Functions that dispatch does not reach: tf.raw_ops, and tf.map_fn run eagerly."""

import functools

from headrace import _api as tf
from headrace import _names
from headrace._load import _headrace
from headrace.control_flow import mapping
from headrace.dtensor import calls, tensors, values
from headrace.dtensor.layout import UNSHARDED
from headrace.dtensor.structures import leaves
from headrace.dtensor.tensors import layout_of
from headrace.ops import raw


def _laid_out(*given):
    if not _headrace.is_eager() or tensors.is_inside():
        return False
    return any(layout_of(v) is not None for v in leaves(given))


def _raw(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        if _laid_out(args, kwargs):
            return calls.run(function, args, kwargs)
        return function(*args, **kwargs)

    return call


raw.wrap_all(_raw)
_plain_map = mapping.map_fn


@functools.wraps(_plain_map)
def map_fn(fn, elems, *args, **kwargs):
    """tf.map_fn, whose rows and results have layouts where `elems` have."""
    if not _laid_out(elems):
        return _plain_map(fn, elems, *args, **kwargs)
    rows = [tf.unstack(t) for t in tf.nest.flatten(elems)]
    if len({len(r) for r in rows}) != 1 or not rows[0]:
        return _plain_map(fn, elems, *args, **kwargs)  # which says what is wrong
    found = [fn(tf.nest.pack_sequence_as(elems, row)) for row in zip(*rows)]
    flat = zip(*(tf.nest.flatten(f) for f in found))
    return tf.nest.pack_sequence_as(found[0], [_stacked(parts) for parts in flat])


def _stacked(parts):
    """The parts of one result, in a tensor that lies as they do."""
    stacked = tf.stack(parts)
    layout = layout_of(parts[0])
    if layout is None:
        return stacked
    return values.relayout(stacked, layout._like([UNSHARDED, *layout._specs]))


_names.replace("control_flow.mapping:map_fn", map_fn)
