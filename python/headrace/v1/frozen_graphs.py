"""tf.compat.v1.graph_util.convert_variables_to_constants."""

from headrace.framework.settings import logging
from headrace.framework.support import protos
from headrace.graph import tensor_protos
from headrace.v1 import sub_graphs

_BY_REFERENCE = ("Variable", "VariableV2")
# Ops that hand a resource on as it is, and the attribute of its type.
_PASSING = {
    "Identity": "T",
    "Enter": "T",
    "Exit": "T",
    "Switch": "T",
    "Merge": "T",
    "NextIteration": "T",
}
# Ops that call functions: the attributes of these, and the first input that they take.
_CALLS = {
    "PartitionedCall": (("f",), 0),
    "StatefulPartitionedCall": (("f",), 0),
    "If": (("then_branch", "else_branch"), 1),
    "StatelessIf": (("then_branch", "else_branch"), 1),
    "While": (("cond", "body"), 0),
    "StatelessWhile": (("cond", "body"), 0),
}
_LOOPS = ("While", "StatelessWhile")


def convert_variables_to_constants(
    sess,
    input_graph_def,
    output_node_names,
    variable_names_whitelist=None,
    variable_names_blacklist=None,
):
    """A GraphDef of what the output nodes need, with constants for variables.

    Args:
      sess: the session that has the variables' values.
      input_graph_def: the GraphDef of its graph.
      output_node_names: names of nodes, a list.
      variable_names_whitelist: the names of the only variables to convert; None: all.
      variable_names_blacklist: the names of variables to leave as they are.

    Raises:
      AssertionError: if the graph lacks an output node.
      ValueError: if a node that is kept changes a converted variable.
    """
    graph_def = sub_graphs.extract_sub_graph(input_graph_def, output_node_names)
    kinds = (*_BY_REFERENCE, "VarHandleOp")
    names = [
        node.name
        for node in graph_def.node
        if node.op in kinds
        and (variable_names_whitelist is None or node.name in variable_names_whitelist)
        and node.name not in (variable_names_blacklist or ())
    ]
    values = _values(sess, graph_def, names)
    logging.info("Froze %d variables.", len(values))
    frozen = _Frozen(graph_def, values)
    logging.info("Converted %d variables to const ops.", len(values))
    return frozen.graph


def _values(session, graph_def, names):
    """{name of a variable's node: its value} in the session."""
    wanted, fetches = set(names), {}
    for node in graph_def.node:
        if node.name in wanted and node.op in _BY_REFERENCE:
            fetches[node.name] = f"{node.name}:0"
    for name in wanted - set(fetches):
        handle = session.graph.get_tensor_by_name(f"{name}:0")
        read = [op for op in handle.consumers() if op.type == "ReadVariableOp"]
        if not read:
            raise ValueError(f"The graph does not read the variable {name}")
        fetches[name] = read[0].outputs[0]
    return session.run(fetches) if fetches else {}


def _constant(node, value):
    """The node becomes a constant."""
    proto = tensor_protos.make_tensor_proto(value)
    for part in ("attr", "input"):
        node.ClearField(part)
    node.op = "Const"
    node.attr["dtype"].type = proto.dtype
    node.attr["value"].tensor.CopyFrom(proto)


class _Frozen:
    """A graph whose variables become constants, its functions included.

    What handed a variable on is `known` in a graph or a function's body: {(name of a
    node or argument, number of an output or None for all): dtype}.
    """

    def __init__(self, graph_def, values):
        self.graph = protos.GraphDef()
        self.graph.CopyFrom(graph_def)
        self._functions = {f.signature.name: f for f in self.graph.library.function}
        known = {}
        for node in self.graph.node:
            if node.name not in values:
                continue
            if node.op == "VarHandleOp":
                known[node.name, None] = node.attr["dtype"].type
            _constant(node, values[node.name])
        self._pass_on(self.graph.node, known)

    def _pass_on(self, nodes, known):
        """Changes the nodes that take what is known, and knows what these hand on."""
        before, done = -1, set()
        while len(done) != before:
            before = len(done)
            for node in nodes:
                taken = {} if node.name in done else _taken(node, known)
                if taken:
                    self._change(nodes, node, taken, known)
                    done.add(node.name)

    def _change(self, nodes, node, taken, known):
        if node.op in _PASSING:
            dtype = taken[min(taken)]
            node.attr[_PASSING[node.op]].type = dtype
            known[node.name, None] = dtype
        elif node.op == "ReadVariableOp":
            del node.attr["dtype"]
            node.op = "Identity"
            node.attr["T"].type = taken[0]
        elif node.op == "ResourceGather":
            _gather(nodes, node, taken[0])
        elif node.op in _CALLS:
            self._call(node, taken, known)
        else:
            raise ValueError(
                f"The node {node.name}, {node.op}, cannot take a variable that becomes "
                "a constant"
            )

    def _call(self, node, taken, known):
        attributes, first = _CALLS[node.op]
        loops = node.op in _LOOPS
        arguments = {i - first: dtype for i, dtype in taken.items()}
        types = node.attr["T" if loops else "Tin"].list.type
        for i, dtype in arguments.items():
            types[i] = dtype
            if loops:
                known[node.name, i] = dtype
        for attribute in attributes:
            function = node.attr[attribute].func
            results = loops and attribute == "body"
            function.name = self._function(function.name, arguments, results)

    def _function(self, name, arguments, results):
        """The name of a copy of a function that takes tensors for these arguments, and
        with `results` gives them back, too."""
        kinds = "_".join(f"{i}_{dtype}" for i, dtype in sorted(arguments.items()))
        new = f"{name}_frozen_{kinds}"
        if new in self._functions:
            return new
        made = self.graph.library.function.add()
        made.CopyFrom(self._functions[name])
        made.signature.name = new
        self._functions[new] = made
        known = {}
        for i, dtype in arguments.items():
            argument = made.signature.input_arg[i]
            argument.type = dtype
            argument.ClearField("handle_data")
            known[argument.name, None] = dtype
            if results:
                made.signature.output_arg[i].type = dtype
        reads = {n.name for n in made.node_def if n.op == "ReadVariableOp"}
        self._pass_on(made.node_def, known)
        reads -= {n.name for n in made.node_def if n.op == "ReadVariableOp"}
        # Bodies name outputs, and those of ReadVariableOp and Identity differ.
        new_edges = {f"{name}:value:0": f"{name}:output:0" for name in reads}
        for node in made.node_def:
            node.input[:] = [new_edges.get(edge, edge) for edge in node.input]
        for result, edge in made.ret.items():
            made.ret[result] = new_edges.get(edge, edge)
        return new


def _taken(node, known):
    """{number of an input: dtype} of the inputs that are known."""
    found = {}
    for i, edge in enumerate(node.input):
        name, *rest = edge.split(":")
        index = int(rest[-1]) if rest else 0
        dtype = known.get((name, index), known.get((name, None)))
        if dtype is not None and not edge.startswith("^"):
            found[i] = dtype
    return found


def _gather(nodes, node, dtype):
    """ResourceGather becomes GatherV2 of the same rows."""
    axis = nodes.add()
    axis.name = f"{node.name}/axis"
    _constant(axis, 0)
    indices = node.attr["Tindices"].type
    node.ClearField("attr")
    node.op = "GatherV2"
    for name, kind in (
        ("Tparams", dtype),
        ("Tindices", indices),
        ("Taxis", axis.attr["dtype"].type),
    ):
        node.attr[name].type = kind
    controls = [edge for edge in node.input if edge.startswith("^")]
    inputs = [edge for edge in node.input if not edge.startswith("^")]
    del node.input[:]
    node.input.extend([*inputs, axis.name, *controls])
