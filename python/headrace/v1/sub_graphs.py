"""tf.compat.v1.graph_util: graphs cut out of others."""

from headrace.framework import dtypes
from headrace.framework.support import protos
from headrace.graph.operation import Operation


def extract_sub_graph(graph_def, dest_nodes):
    """The part of a graph that some of its nodes need.

    Args:
      graph_def: a GraphDef.
      dest_nodes: the names of nodes, an iterable of strings.

    Returns:
      A new GraphDef of these nodes and all that they reach by data and control
      inputs, in the order of graph_def, with all its functions and its versions.

    Raises:
      TypeError: if graph_def is no GraphDef, or dest_nodes is one string.
      AssertionError: if a node is not in the graph.
    """
    if not isinstance(graph_def, protos.GraphDef):
        raise TypeError(
            "graph_def must be a graph_pb2.GraphDef proto, but got type "
            f"{type(graph_def)}."
        )
    if isinstance(dest_nodes, str):
        raise TypeError(
            f"dest_nodes must be an iterable of strings, but got type {type(dest_nodes)}."
        )
    inputs = {node.name: node.input for node in graph_def.node}
    needed, todo = set(), list(dest_nodes)
    while todo:
        name = todo.pop()
        if name in needed:
            continue
        if name not in inputs:
            raise AssertionError(f"{name} is not in graph")
        needed.add(name)
        todo.extend(_node_of(i) for i in inputs[name])
    out = protos.GraphDef()
    out.node.extend(node for node in graph_def.node if node.name in needed)
    out.library.CopyFrom(graph_def.library)
    out.versions.CopyFrom(graph_def.versions)
    return out


def _node_of(edge):
    """The node behind an input: "x", "x:1" or, for a control input, "^x"."""
    return edge.removeprefix("^").partition(":")[0]


_ON_CPU = ("Const", "DynamicStitch")  # where they make what follows
_CPU_TYPES = (dtypes.string.as_datatype_enum, dtypes.int32.as_datatype_enum)


def must_run_on_cpu(node, pin_variables_on_cpu=False):
    """Whether an Operation or a NodeDef can run on no other device than a CPU.

    With `pin_variables_on_cpu` variables that are taken by reference are among these.
    """
    if isinstance(node, Operation):
        node_def = node.node_def
    else:
        assert isinstance(node, protos.NodeDef), f"{node} is no node"
        node_def = node
    if pin_variables_on_cpu and node_def.op in ("Variable", "VariableV2"):
        return True
    if node_def.op not in _ON_CPU:
        return False
    attribute = "dtype" if node_def.op == "Const" else "T"
    return node_def.attr[attribute].type in _CPU_TYPES


def tensor_shape_from_node_def_name(graph, input_name):
    """The TensorShape of the tensor that an input of a NodeDef names: "x" or "x:1".

    KeyError if the graph has none.
    """
    name = input_name if ":" in input_name else input_name + ":0"
    return graph.get_tensor_by_name(name).get_shape()


def remove_training_nodes(input_graph, protected_nodes=None):
    """A GraphDef without the nodes that matter to training only: CheckNumerics, and
    Identity where no control edge begins or ends. `protected_nodes`, names, stay."""
    protected = set(protected_nodes or ())
    gone, behind = set(), {}
    awaited = {
        _node_of(edge)
        for node in input_graph.node
        for edge in node.input
        if edge.startswith("^")
    }
    for node in input_graph.node:
        if node.name in protected:
            continue
        controlled = any(edge.startswith("^") for edge in node.input)
        if node.op == "CheckNumerics":
            gone.add(node.name)
            behind[node.name] = node.input[0]
        elif node.op == "Identity" and not controlled and node.name not in awaited:
            behind[node.name] = node.input[0]
    out = protos.GraphDef()
    for node in input_graph.node:
        if node.name in behind:
            continue
        kept = out.node.add()
        kept.CopyFrom(node)
        del kept.input[:]
        for edge in node.input:
            if edge.startswith("^") and _node_of(edge) in gone:
                continue
            while (name := _node_of(edge)) in behind:
                edge = "^" + _node_of(behind[name]) if edge[0] == "^" else behind[name]
            kept.input.append(edge)
    for part in ("library", "versions"):
        if input_graph.HasField(part):
            getattr(out, part).CopyFrom(getattr(input_graph, part))
    return out
