"""The part of a graph below a name scope, as a MetaGraphDef of its own."""

UNBOUND = "unbound_inputs"  # the collection of what such a part reads from outside
_MARK = "$unbound_inputs_"  # begins the names of these


class NameScope:
    """A scope's name, and what of other names is below it."""

    def __init__(self, name):
        self.name = name.rstrip("/")
        self.unbound = []  # the inputs from outside, one a reader

    def has(self, name):
        """Whether a node, a tensor or a variable of that name is in the scope."""
        node = name.partition(":")[0]
        return node == self.name or node.startswith(f"{self.name}/")

    def has_value(self, value):
        """Whether a collection's value is: a name, or what has one; others always are."""
        name = value if isinstance(value, str) else getattr(value, "name", None)
        return not isinstance(name, str) or self.has(name)

    def without(self, name):
        """The name as it is within the scope."""
        return name.removeprefix(f"{self.name}/")

    def part_of(self, graph_def):
        """A GraphDef of the scope's nodes; what they read from outside is named so, what
        they wait for there is not in it."""
        part = type(graph_def)()
        part.library.CopyFrom(graph_def.library)
        part.versions.CopyFrom(graph_def.versions)
        for node in graph_def.node:
            if self.has(node.name):
                self._add(part.node.add(), node)
        return part

    def _add(self, made, node):
        made.CopyFrom(node)
        made.name = self.without(node.name)
        del made.input[:]
        for source in node.input:
            if source.startswith("^"):
                if self.has(source[1:]):
                    made.input.append(f"^{self.without(source[1:])}")
            elif self.has(source):
                made.input.append(self.without(source))
            else:
                self.unbound.append(f"{_MARK}{source}")
                made.input.append(self.unbound[-1])
        groups = made.attr["_class"].list.s if "_class" in made.attr else []
        kept = [g.decode().removeprefix("loc:@") for g in groups]
        if kept:
            kept = [f"loc:@{self.without(g)}".encode() for g in kept if self.has(g)]
            made.attr["_class"].list.s[:] = kept
            if not kept:
                del made.attr["_class"]


def check_bound(meta, input_map):
    """ValueError where a MetaGraphDef's part of a graph reads what nobody gives it."""
    if UNBOUND not in meta.collection_def:
        return
    wanted = [v.decode() for v in meta.collection_def[UNBOUND].bytes_list.value]
    if sorted(wanted) != sorted(input_map or ()):
        raise ValueError(
            f"Graph contains unbound inputs: {','.join(wanted)}. Must provide these "
            "inputs through input_map."
        )
