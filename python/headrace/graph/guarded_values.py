"""First values that are made of other variables, which may have none yet themselves."""

from headrace.context import stack
from headrace.framework.support import protos
from headrace.graph import import_graph
from headrace.graph.graph_keys import GraphKeys

# What is read so is not a value that may be missing, or cannot be copied.
_WHOLE = ("IsVariableInitialized", "VarIsInitializedOp", "ReadVariableOp", "If")
_VARIABLES = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)


def guarded(graph, value, name):
    """`value`, computed of the first values of variables by reference that have none
    yet: what lies between them and it is copied, under names that end in `name`.

    With control flow v2 it is `value` itself: branches would read the references.
    """
    known = {}
    if not stack.control_flow_v2_enabled():
        known = {
            v.op.name: v
            for key in _VARIABLES
            for v in graph.get_collection(key)
            if hasattr(v, "_reference")
        }
    order = _behind(value.op, known) if known else None
    copied = {}  # names of copies by those of their operations
    for op in order or ():
        if op.type in _WHOLE:
            continue
        if any(t.op.name in known or t.op.name in copied for t in op.inputs):
            copied[op.name] = f"{op.name}_{name}"
    if value.op.name not in copied:
        return value
    return _copy(graph, [op for op in order if op.name in copied], copied, known, value)


def _behind(end, known):
    """What `end` is made of, each operation behind its inputs, down to variables; None
    where that goes in a circle."""
    order, state, open_ops = [], {}, [end]
    while open_ops:
        op = open_ops[-1]
        if state.setdefault(op.name, "open") == "done":
            open_ops.pop()
            continue
        inputs = [] if op.type in _WHOLE else [t.op for t in op.inputs]
        inputs = [i for i in inputs if i.name not in known]
        waits = [i for i in inputs if state.get(i.name) != "done"]
        if any(state.get(i.name) == "open" for i in waits):
            return None
        if waits:
            open_ops.append(waits[0])
            continue
        state[op.name] = "done"
        order.append(open_ops.pop())
    return order


def _copy(graph, ops, copied, known, value):
    definition, given, values = protos.GraphDef(), {}, {}
    definition.versions.CopyFrom(graph.as_graph_def().versions)

    def text(tensor):
        made_by = tensor.op.name
        if made_by in copied:
            return f"{copied[made_by]}:{tensor.value_index}"
        if made_by in known:
            if made_by not in values:
                values[made_by] = known[made_by].initialized_value()
            tensor = values[made_by]
        key = f"given/{tensor._id}"
        given[f"{key}:0"] = tensor
        return key

    for op in ops:
        node = definition.node.add()
        node.CopyFrom(op.node_def)
        node.name = copied[op.name]
        # (RefSwitch and its like; what comes in place of the variable is a value.)
        node.op = op.type.removeprefix("Ref")
        node.input[:] = [text(t) for t in op.inputs]
        node.attr.pop("_class", None)
    wanted = f"{copied[value.op.name]}:{value.value_index}"
    with graph.name_scope(None):
        (made,) = import_graph.import_graph_def(
            definition, input_map=given, return_elements=[wanted], name=""
        )
    return made
