"""tf.compat.v1.graph_util: graphs cut out of others."""

from headrace.framework.support import protos


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
