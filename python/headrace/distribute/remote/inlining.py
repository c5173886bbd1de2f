"""The graph of a traced function without its calls and branches.

A call and a loop run whole on one task; what a function does with variables of several
tasks has to lie in the graph itself, so that each operation can go where its variable is.
"""

import functools

from headrace._load import _headrace
from headrace.context import errors
from headrace.framework.support import protos

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_BRANCHES = ("If", "StatelessIf")


@functools.cache
def _op(name):
    return protos.OpDef.FromString(_headrace.export_op_named(name))


def _count(arg, attrs):
    """How many tensors an argument or result of an op is."""
    if arg.number_attr:
        return attrs[arg.number_attr].i
    if arg.type_list_attr:
        return len(attrs[arg.type_list_attr].list.type)
    return 1


def _place(op, attrs, output, index):
    """The number among a node's outputs of a function's "node:output:index"."""
    before = 0
    for arg in op.output_arg:
        if arg.name == output:
            return before + int(index)
        before += _count(arg, attrs)
    raise errors.InvalidArgumentError._of(f"{op.name} has no output {output}")


class _Body:
    """A function's nodes, put into the graph under names of their own.

    Attributes:
      outputs: what its results are called there.
      effects: the names of the nodes that a call has to wait for.
    """

    def __init__(self, graph, function, prefix, arguments, before):
        self._graph, self._prefix, self._before = graph, prefix, before
        signature = function.signature
        self._arguments = {
            arg.name: value for arg, value in zip(signature.input_arg, arguments)
        }
        self._nodes = {node.name: node for node in function.node_def}
        for node in function.node_def:
            self._add(node)
        rets = [function.ret[arg.name] for arg in signature.output_arg]
        self.outputs = [self._name(ret) for ret in rets]
        self.effects = [prefix + name for name in function.control_ret.values()]

    def _name(self, given):
        """An input of a function's node as nodes of graphs name it."""
        if given.startswith("^"):
            own = given[1:]
            source = self._arguments.get(own)
            if source is None:
                return f"^{self._prefix}{own}"
            return "^" + _node_of(source)
        node, _, rest = given.partition(":")
        if not rest:
            return self._arguments[node]
        output, _, index = rest.partition(":")
        made = self._nodes[node]
        if made.op in self._graph.functions:  # a call by the function's own name
            names = [
                a.name for a in self._graph.functions[made.op].signature.output_arg
            ]
            return f"{self._prefix}{node}:{names.index(output)}"
        place = _place(_op(made.op), made.attr, output, index)
        return f"{self._prefix}{node}:{place}"

    def _add(self, node):
        copy = protos.NodeDef()
        copy.CopyFrom(node)
        copy.name = self._prefix + node.name
        del copy.input[:]
        copy.input.extend(self._name(i) for i in node.input)
        if self._before is not None:
            copy.input.append("^" + self._before)
        self._graph.add(copy)


def _node_of(tensor):
    return tensor.partition(":")[0]


def _node(op, name, inputs, **types):
    made = protos.NodeDef(op=op, name=name, input=inputs)
    for attr, value in types.items():
        made.attr[attr].type = value
    return made


class _Graph:
    """The nodes of a graph so far, and what the outputs of calls are by now."""

    def __init__(self, graph_def):
        self.functions = {f.signature.name: f for f in graph_def.library.function}
        self.made = protos.GraphDef(versions=graph_def.versions)
        self.made.library.CopyFrom(graph_def.library)
        self._outputs = {}  # of calls: {"node:output": "node:output"}
        for node in graph_def.node:
            self.add(node)

    def settle(self):
        """Puts what calls give in the place of their outputs."""
        for node in self.made.node:
            given = list(node.input)
            data = [self.resolved(i) for i in given if not i.startswith("^")]
            controls = dict.fromkeys(i for i in given if i.startswith("^"))
            del node.input[:]
            node.input.extend([*data, *controls])

    def add(self, node):
        """A node, or what it is made of."""
        if node.op in _CALLS:
            self._call(node, self.functions[node.attr["f"].func.name])
        elif node.op in self.functions:
            self._call(node, self.functions[node.op])
        elif node.op in _BRANCHES and _RESOURCE in node.attr["Tin"].list.type:
            self._branch(node)
        else:
            self.made.node.append(node)

    def resolved(self, name):
        """What gives a tensor, which may be a call's."""
        name = name.removesuffix(":0")
        while name in self._outputs:
            name = self._outputs[name].removesuffix(":0")
        return name

    def _stand_for(self, name, outputs):
        for i, output in enumerate(outputs):
            self._outputs[f"{name}:{i}" if i else name] = output

    def _call(self, node, function):
        data = [i for i in node.input if not i.startswith("^")]
        controls = [i for i in node.input if i.startswith("^")]
        before = None
        if controls:
            before = f"{node.name}/before"
            self.made.node.append(_node("NoOp", before, controls))
        body = _Body(self, function, f"{node.name}/", data, before)
        self._stand_for(node.name, body.outputs)
        after = [f"^{n}" for n in body.effects] + controls
        self.made.node.append(_node("NoOp", node.name, after))

    def _branch(self, node):
        """Both branches, of which one is dead: what they take goes through Switch, but
        for resources; what they give through Merge."""
        data = [i for i in node.input if not i.startswith("^")]
        controls = [i for i in node.input if i.startswith("^")]
        name, types = node.name, node.attr["Tin"].list.type
        on = f"{name}/predicate"
        self.made.node.append(_node("Identity", on, [data[0], *controls], T=_BOOL))
        if node.attr["Tcond"].type not in (0, _BOOL):
            raise errors.UnimplementedError._of(
                f"{name}: a branch on a condition that is no bool, on tasks of a cluster"
            )
        self.made.node.append(_node("Switch", f"{name}/pivot", [on, on], T=_BOOL))
        taken = []
        for i, (value, dtype) in enumerate(zip(data[1:], types)):
            if dtype == _RESOURCE:
                taken.append((value, value))
                continue
            switch = f"{name}/switch_{i}"
            self.made.node.append(_node("Switch", switch, [value, on], T=dtype))
            taken.append((switch, f"{switch}:1"))
        sides = [
            self._side(node, which, attr, [t[which] for t in taken])
            for which, attr in enumerate(("else_branch", "then_branch"))
        ]
        results = []
        for i, dtype in enumerate(node.attr["Tout"].list.type):
            if dtype == _RESOURCE:
                raise errors.UnimplementedError._of(
                    f"{name}: a branch that gives a resource, on tasks of a cluster"
                )
            results.append(self._merge(f"{name}/merge_{i}", [s[0][i] for s in sides]))
        self._stand_for(name, results)
        done = self._merge(f"{name}/done", [s[1] for s in sides], _BOOL)
        self.made.node.append(_node("NoOp", name, ["^" + done]))

    def _side(self, node, which, attr, arguments):
        """(the outputs, what is there when all is done) of a branch."""
        pivot, name = f"{node.name}/pivot_{which}", f"{node.name}/{attr}"
        source = f"{node.name}/pivot:{which}" if which else f"{node.name}/pivot"
        self.made.node.append(_node("Identity", pivot, [source], T=_BOOL))
        function = self.functions[node.attr[attr].func.name]
        body = _Body(self, function, f"{name}/", arguments, pivot)
        outputs = []
        types = node.attr["Tout"].list.type
        for i, (output, dtype) in enumerate(zip(body.outputs, types)):
            given = f"{name}/result_{i}"
            self.made.node.append(_node("Identity", given, [output], T=dtype))
            outputs.append((given, dtype))
        done = f"{name}/done"
        after = [pivot, *(f"^{n}" for n in body.effects)]
        self.made.node.append(_node("Identity", done, after, T=_BOOL))
        return outputs, done

    def _merge(self, name, sides, dtype=None):
        if dtype is None:
            dtype, sides = sides[0][1], [s[0] for s in sides]
        merged = _node("Merge", name, sides, T=dtype)
        merged.attr["N"].i = len(sides)
        self.made.node.append(merged)
        return name


_BOOL, _RESOURCE = 10, 20  # of the enum DataType


def inlined(graph_def):
    """A GraphDef that computes the same, with functions' bodies in the place of calls,
    and TensorFlow 1's branches in that of branches that use resources. Loops stay as they
    are."""
    made = _Graph(graph_def)
    made.settle()
    return made.made


def body_of(library, types, *functions):
    """A GraphDef of functions of which each takes what the one before gives: (it, the
    names of the first one's arguments, of the outputs of each, and of what each does)."""
    made = _Graph(protos.GraphDef(library=library))
    arguments = [f"argument_{i}" for i in range(len(types))]
    for name, dtype in zip(arguments, types):
        made.made.node.append(_node("Placeholder", name, [], dtype=dtype))
    given, outputs, effects, before = arguments, [], [], None
    for i, name in enumerate(functions):
        body = _Body(made, made.functions[name], f"part_{i}/", given, before)
        given = body.outputs
        outputs.append(given)
        effects.extend(body.effects)
        before = f"part_{i}/done"
        made.made.node.append(_node("NoOp", before, [f"^{e}" for e in body.effects]))
    made.settle()
    return made.made, arguments, [list(map(made.resolved, o)) for o in outputs], effects
