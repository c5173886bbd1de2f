"""Checkpoint.write inside a traced function: a SaveV2 of the graph."""

import re

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes, execution
from headrace.ops import array_ops, string_ops
from headrace.train.checkpoint_options import GRAPH_KEY

_ATTRIBUTES = ".ATTRIBUTES/"


def _symbolic(key, owner):
    """The value of a key as the graph computes it."""
    if isinstance(owner, _headrace.VariableBase):
        return owner.read_value()
    return owner._serialize_to_tensors()[name_in(key)]


def name_in(key):
    """What the object of a key calls its value: in keys ".S" stands for "/" and ".."
    for "."."""
    part = key.rpartition(_ATTRIBUTES)[2]
    return re.sub(r"\.(.)", lambda m: "/" if m[1] == "S" else m[1], part)


def write(gather, prefix):
    """Adds the op to the graph being built; gives the prefix, once it ran."""
    with execution.init_scope():
        values = gather()
        items, graph = values.items(), values.serialized_graph()
    prefix = conversion.convert_to_tensor(prefix, dtype=dtypes.string)
    keys = [key for key, _, _ in items]
    tensors = [_symbolic(key, owner) for key, _, owner in items]
    # The files get their names when they are whole; the folder must be there.
    temporary = string_ops.join([prefix, "_temp/part"])
    saved = raw.SaveV2(
        temporary,
        conversion.constant([*keys, GRAPH_KEY]),
        conversion.constant([""] * (len(keys) + 1)),
        [*tensors, conversion.constant(graph)],
    )
    with execution.control_dependencies([saved]):
        merged = raw.MergeV2Checkpoints(
            array_ops.reshape(temporary, [1]), prefix, delete_old_dirs=True
        )
    with execution.control_dependencies([merged]):
        return array_ops.identity(prefix)
