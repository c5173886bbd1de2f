"""First values that depend on other variables, which may have none yet."""

from headrace.context import late
from headrace.framework.support import protos
from headrace.graph import import_graph
from headrace.graph.graph_keys import GraphKeys

_REFERENCES = ("Variable", "VariableV2")
# Behind these nothing is looked for: what they read is a resource, or a branch's.
_ENDS = (
    "IsVariableInitialized",
    "VarIsInitializedOp",
    "ReadVariableOp",
    "If",
    "StatelessIf",
    "While",
    "StatelessWhile",
)


class _Loop(Exception):
    """The value comes out of a loop of nodes."""


def _variables(graph):
    """{number of a node: the variable} of the graph's variables by reference."""
    found = {}
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in graph.get_collection(key):
            if getattr(getattr(variable, "op", None), "type", "") in _REFERENCES:
                found[variable.op._id] = variable
    return found


def _depending(op, variables, known):
    """Whether an operation's value depends on the variables; all that do are True in
    `known`, by numbers of nodes."""
    todo = [(op, False)]
    while todo:
        op, seen = todo.pop()
        number = op._id
        if seen:
            inputs = [known[t.op._id] for t in op.inputs]
            known[number] = any(inputs)
        elif number in known:
            if known[number] is None:
                raise _Loop
        elif number in variables or op.type in _ENDS:
            known[number] = number in variables
        else:
            known[number] = None  # it is looked at
            todo.append((op, True))
            todo += [(t.op, False) for t in op.inputs]
    return known[op._id]


def guarded(name, value):
    """`value`, computed with the first values of variables that have none yet.

    `name` is that of the variable that is to begin with it.
    """
    graph, known = value.graph, {}
    variables = _variables(graph)
    try:
        if not variables or not _depending(value.op, variables, known):
            return value
    except _Loop:
        return value
    copied = [n for n, depends in known.items() if depends and n not in variables]
    if not copied:  # the value is a variable itself
        return variables[value.op._id].initialized_value()
    names = {n: f"{graph._core.node(n).name}_{name.replace('/', '_')}" for n in copied}
    graph_def, given = protos.GraphDef(), {}
    for number in sorted(copied):
        op = graph._operation(graph._core.node(number))
        node = graph_def.node.add()
        node.CopyFrom(op.node_def)
        node.name = names[number]
        node.attr.pop("_class", None)
        del node.input[:]
        for tensor in op.inputs:
            source, index = tensor.op._id, tensor.value_index
            if source in names:
                node.input.append(f"{names[source]}:{index}")
                continue
            if source in variables:
                tensor = variables[source].initialized_value()
            key = f"given_{len(given)}"
            given[f"{key}:0"] = tensor
            node.input.append(f"{key}:0")
    element = f"{names[value.op._id]}:{value.value_index}"
    with graph.name_scope(""):
        (found,) = import_graph.import_graph_def(
            graph_def, input_map=given, return_elements=[element], name=""
        )
    return found
