"""The trees in which profiles show operations: by scope, by graph, by kind, by line."""

import os

from headrace.framework.support import protos
from headrace.v1.profiler.stats import NAMES, Stats, shape

ROOT = "_TFProfRoot"


class Node:
    """A node of such a tree; `entries` are the operations behind it."""

    def __init__(self, name, types, entries=()):
        self.name, self.types, self.entries = name, set(types), list(entries)
        self.parent, self.children = None, {}  # by name
        self.shown = []  # of the children, and of those of hidden ones
        self.own, self.total, self.accounted = Stats(), Stats(), False

    def child(self, name, types):
        """The child of that name, made where it is not there."""
        return self.children.get(name) or self.put(Node(name, types))

    def put(self, node):
        """Makes the node a child."""
        self.children[node.name], node.parent = node, self
        return node

    @property
    def entry(self):
        """The only operation, or None."""
        return self.entries[0] if len(self.entries) == 1 else None


def by_scope(facts):
    """Names as paths."""
    root = Node(ROOT, ["_kTFScopeParent"])
    for entry in facts.entries.values():
        node, path = root, ""
        for part in entry.name.split("/"):
            path = f"{path}/{part}" if path else part
            node = node.child(path, ["_kTFScopeParent"])
        node.entries, node.types = [entry], set(entry.types)
    return root


def by_graph(facts):
    """Operations above what they read; each stands where it is met first."""
    root = Node(ROOT, ["_TFGraphParent"])
    read = {source.name for e in facts.entries.values() for source, _ in e.inputs}
    seen = set()
    for name in sorted(facts.entries):
        if name in read or name in seen:
            continue
        seen.add(name)
        todo = [(facts.entries[name], root, None)]
        while todo:
            entry, above, rest = todo.pop()
            if rest is None:
                node = above.put(Node(entry.name, entry.types, [entry]))
                rest = iter([source for source, _ in entry.inputs])
            else:
                node = above.children[entry.name]
            for source in rest:
                if source.name not in seen:
                    seen.add(source.name)
                    todo += [(entry, above, rest), (source, node, None)]
                    break
    return root


def by_operation(facts):
    """One node for all operations of a kind."""
    root = Node(ROOT, [])
    for entry in facts.entries.values():
        node = root.child(entry.kind, [])
        node.entries.append(entry)
        node.types |= entry.types
    return root


def by_line(facts):
    """Lines of programs, below those that called them."""
    root = Node(ROOT, [])
    for entry in facts.entries.values():
        node = root
        for file, line, function in entry.trace:
            if len(function) >= 20:
                function = function[:17] + "..."
            # Of no type, which only an expression for anything fits.
            node = node.child(f"{os.path.basename(file)}:{line}:{function}", [""])
        if node is not root:
            node.entries.append(entry)
            node.types |= entry.types
    return root


def _ordered(nodes, options, of):
    """Nodes in the order that the options ask for; `of` has a node's counts."""
    nodes = sorted(nodes, key=lambda n: n.name)
    field = NAMES.get(options.order_by)
    if field is not None:
        nodes.sort(key=lambda n: -getattr(of(n), field))
    return nodes


def _is_shown(node, depth, options, totals):
    """Whether the options let it be shown; `totals` are those of all that counts."""
    for name, field in NAMES.items():
        # Parameters and operations are its own, time and memory that of all below.
        of = node.own if name in ("params", "float_ops", "occurrence") else totals
        if getattr(of, field) < getattr(options, f"min_{name}"):
            return False
    if depth > options.max_depth:
        return False
    return options.fits(node.name, "show_name") and not options.fits(
        node.name, "hide_name"
    )


class TreeView:
    """A tree with what the options let be seen of it: by scope, by graph or by line."""

    def __init__(self, root, options):
        self._options = options
        self.root = self._begin(root)
        self._account(self.root)
        self._show()

    def _begin(self, root):
        """A root above the first nodes that the options begin with."""
        begun = Node(ROOT, root.types)
        open_nodes = list(root.children.values())[::-1]
        while open_nodes:
            node = open_nodes.pop()
            if self._options.fits(node.name, "start_name"):
                begun.put(node)
            else:
                open_nodes += list(node.children.values())[::-1]
        return begun

    def _account(self, root):
        options = self._options
        order = [root]
        for node in order:
            order += node.children.values()
        for node in reversed(order):
            node.total = Stats()
            node.accounted = node is not root and any(
                options.fits(t, "account_type") for t in node.types
            )
            node.own = Stats(definition_count=1)
            for entry in node.entries:
                node.own.add(entry.stats(options.step))
                node.own.definition_count = 1
            for child in node.children.values():
                node.total.add(child.total)
            if node.accounted:
                node.total.add(node.own)
            elif node is not root and node.total.definition_count:
                node.total.definition_count += 1

    def _show(self):
        """Finds the shown children of each node: its own, and those of hidden ones."""
        options, order = self._options, [(self.root, 1)]
        for node, depth in order:
            if node is self.root or not options.fits(node.name, "trim_name"):
                order += [(child, depth + 1) for child in node.children.values()]
        below = {id(node): [] for node, _ in order}
        for node, depth in reversed(order):
            children = below.pop(id(node))
            if node is self.root:
                node.shown = self._sorted(children)
            elif not _is_shown(node, depth, options, node.total):
                below[id(node.parent)] += children
                continue
            elif node.accounted or children:
                node.shown = self._sorted(children)
                below[id(node.parent)].append(node)
            if options.account_displayed_op_only:
                self._add_shown(node)

    def _add_shown(self, node):
        node.total = Stats(definition_count=1)
        if node.accounted:
            node.total = Stats()
            node.total.add(node.own)
        for child in node.shown:
            node.total.add(child.total)

    def _sorted(self, nodes):
        return _ordered(nodes, self._options, lambda n: n.total)

    def proto(self, kind):
        """The tree as a GraphNodeProto or a MultiGraphNodeProto."""
        made = kind()
        open_nodes = [(self.root, made)]
        for node, proto in open_nodes:
            self._write(node, proto)
            open_nodes += [(child, proto.children.add()) for child in node.shown]
        return made

    def _write(self, node, proto):
        proto.name = node.name
        node.total.write(proto, "total_")
        if node.accounted:
            node.own.write(proto)
        if not hasattr(proto, "graph_nodes"):
            if node.entry is not None:
                _write_entry(node.entry, proto, self._options.step)
            return
        for entry in sorted(node.entries, key=lambda entry: entry.name):
            _write_member(entry, proto.graph_nodes.add(), self._options.step)


def _write_entry(entry, proto, step):
    proto.devices.extend(entry.devices(step))
    for place, sizes in entry.input_shapes().items():
        for size in sizes:
            proto.input_shapes[place].dim.add(size=size)


def _write_member(entry, proto, step):
    """One of the operations behind a node, with its own counts."""
    proto.name = entry.name
    stats = entry.stats(step)
    stats.write(proto)
    stats.write(proto, "total_")
    _write_entry(entry, proto, step)


class ChainView:
    """Kinds of operations in their order; what a node has in total is what it and those
    behind it have."""

    def __init__(self, root, options):
        self._options = options
        self.root, self.shown = root, []
        nodes = list(root.children.values())
        for node in nodes:
            for entry in node.entries:
                node.own.add(entry.stats(options.step))
            node.entries.sort(key=lambda entry: entry.name)
            node.accounted = any(options.fits(t, "account_type") for t in node.types)
        nodes = _ordered(nodes, options, lambda n: n.own)
        if options.order_by == "occurrence":
            nodes.sort(key=lambda n: (-len(n.entries), n.name))
        nodes = self._between(nodes)
        self._sum(nodes)
        shown = [n for i, n in enumerate(nodes) if self._is_shown(n, i)]
        if options.account_displayed_op_only:
            self._sum(shown)
        self.shown = shown

    def _between(self, nodes):
        """From the first that the options begin with to the first that they cut off."""
        starts = (i for i, n in enumerate(nodes) if self._fits(n, "start_name"))
        nodes = nodes[next(starts, len(nodes)) :]
        cuts = (i for i, n in enumerate(nodes) if self._fits(n, "trim_name"))
        return nodes[: next(cuts, len(nodes))]

    def _fits(self, node, kind):
        return self._options.fits(node.name, kind)

    def _sum(self, nodes):
        running = Stats()
        for node in reversed(nodes):
            if node.accounted:
                running.add(node.own)
            node.total = Stats()
            node.total.add(running)
        self.root.total = running

    def _is_shown(self, node, depth):
        count = len(node.entries)
        ran, node.own.run_count = node.own.run_count, count
        shown = _is_shown(node, depth, self._options, node.total)
        node.own.run_count = ran
        return shown and node.accounted

    def proto(self, kind):
        """The chain as a MultiGraphNodeProto: each the child of the one before."""
        made = kind(name=ROOT)
        self.root.total.write(made, "total_")
        proto = made
        for node in self.shown:
            proto = proto.children.add(name=node.name)
            node.own.write(proto)
            node.total.write(proto, "total_")
            for entry in node.entries:
                _write_member(entry, proto.graph_nodes.add(), self._options.step)
        return made


# By command: the tree, its view, the proto, and the name that the report gives it.
_VIEWS = {
    "scope": (by_scope, TreeView, "GraphNodeProto", "scope"),
    "graph": (by_graph, TreeView, "GraphNodeProto", "scope"),
    "op": (by_operation, ChainView, "MultiGraphNodeProto", "op"),
    "code": (by_line, TreeView, "MultiGraphNodeProto", "code"),
}
COMMANDS = tuple(_VIEWS)


def view_of(command, facts, options):
    """What the command shows of a graph."""
    tree, view, _, _ = _VIEWS[command]
    return view(tree(facts), options)


def proto_of(command):
    """The class of the proto that a command's view is."""
    return getattr(protos, _VIEWS[command][2])


def title_of(command):
    """The name that reports have for a command's view."""
    return _VIEWS[command][3]


def input_text(entry):
    """The shapes of an operation's inputs: "0:2x3|1:3"."""
    return "|".join(f"{i}:{shape(s)}" for i, s in entry.input_shapes().items())
