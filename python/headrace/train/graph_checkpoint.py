"""Checkpoints of a plain graph: nodes save and restore, in a session.

Values of a graph's variables are with its sessions. So an object graph gives
keys and variables here, and a checkpoint's values arrive by operations, which
`Operations` lists for the status of their restore.
"""

import weakref

from headrace._load import raw
from headrace.context import stack
from headrace.framework import conversion, dtypes, trackable
from headrace.framework.name_scopes import name_scope
from headrace.graph.placeholders import placeholder_with_default
from headrace.train import checkpoint_options, saver_graph, traced_write
from headrace.train.checkpoint_options import GRAPH_KEY


class Operations(list):
    """The operations that restore one checkpoint; more come as objects do. `feeds` says
    to run them with which path."""

    def __init__(self):
        super().__init__()
        self.feeds = {}


_under_way = weakref.WeakValueDictionary()  # prefix -> Operations of the latest


def begin(prefix):
    """The list that operations reading `prefix`, or the checkpoint of a SavedModel in that
    folder, are added to from here on."""
    operations = _under_way[prefix] = Operations()
    _under_way[f"{prefix.rstrip('/')}/variables/variables"] = operations
    return operations


def restored_from(variable, prefix, key):
    """Adds the operation that gives the variable the value of `key`; there is one for
    all checkpoints, for graphs that are finalized after a first restore."""
    known = variable.__dict__.setdefault("_restore_nodes", {})
    if key not in known:
        known[key] = _restore_nodes(variable, prefix, key)
    path, variable._restoring = known[key]
    if prefix in _under_way:
        _under_way[prefix].append(variable._restoring)
        _under_way[prefix].feeds[path] = prefix


def _restore_nodes(variable, prefix, key):
    """(the path, by default that of the first checkpoint; the operation)"""
    with saver_graph.apart(variable.graph, f"{variable._shared_name}/Restore"):
        path = placeholder_with_default(prefix, shape=(), name="path")
        value = raw.RestoreV2(
            path, [key], [""], dtypes=[dtypes.as_dtype(variable.dtype).base_dtype]
        )[0]
        return path, saver_graph.assigned(variable, value, False)


def own_tensors(owner):
    """Called natively: {name: tensor} of an object's own values: in a plain graph nodes
    that are made once, but for a session that is being saved; in a trace eager ones, as
    nothing of the trace reads them."""
    graph = stack.plain_graph()
    if graph is None:
        with stack.entering(None):
            return owner._serialize_to_tensors()
    known = graph.__dict__.setdefault("_own_tensors", {})
    kept = known.get(id(owner))
    if kept is None or kept[0]() is not owner:  # variables cannot be keys
        kept = known[id(owner)] = weakref.ref(owner), owner._serialize_to_tensors()
    values = trackable.of_session(kept[1].values())
    return kept[1] if values is None else dict(zip(kept[1], values))


def restored_object(owner, prefix, names, keys):
    """Called natively: adds the operations that give an object its own values, {name:
    tensor}, those of `keys`; an empty key is not in the checkpoint."""
    found = [(n, k) for n, k in zip(names, keys) if k]
    if owner._restored_at_once or stack.plain_graph() is None:
        with stack.entering(None):
            _restore_values(owner, prefix, found)
        return
    graph = stack.current()
    with graph.control_dependencies(None), name_scope("Restore"):
        _restore_values(owner, prefix, found)
        operation = graph._last_operation()
    if prefix in _under_way:
        _under_way[prefix].append(operation)


def _restore_values(owner, prefix, found):
    """Reads the (name, key) pairs and gives them to their object."""
    known = own_tensors(owner) if stack.plain_graph() else owner._serialize_to_tensors()
    tensors = raw.RestoreV2(
        prefix,
        [k for _, k in found],
        [""] * len(found),
        dtypes=[known[n].dtype for n, _ in found],
    )
    owner._restore_from_tensors({n: t for (n, _), t in zip(found, tensors)})


def initializers(variables):
    """The operations that give these their first values."""
    found = [getattr(v, "initializer", None) for v in variables]
    return [op for op in found if op is not None]


class _Constant:
    """Bytes that are saved beside variables, and never restored."""

    device = ""

    def __init__(self, tensor):
        self.tensor = tensor


class GraphSaveable(saver_graph.Saveable):
    """The serialized object graph."""

    restored = False

    def __init__(self, name, tensor):
        self.name, self.slice_spec = name, ""
        self.variable = _Constant(tensor)
        self.is_reference = False

    dtype = dtypes.string

    def to_save(self):
        return self.variable.tensor


class ObjectSaveable(saver_graph.Saveable):
    """A variable under its key of an object graph."""

    def __init__(self, key, variable):
        super().__init__(key, variable)
        self.name, self.slice_spec = key, ""


class ValueSaveable(GraphSaveable):
    """A value that a graph's nodes compute, or that was known when it was made."""

    def __init__(self, name, tensor):
        super().__init__(name, tensor)
        self.dtype = tensor.dtype


def saveables(values, object_graph=None):
    """Saveables of gathered values and of their object graph."""
    found = []
    for key, value, owner in values.items():
        if saver_graph.is_variable(owner):
            found.append(ObjectSaveable(key, owner))
            continue
        if value is None:
            value = own_tensors(owner)[traced_write.name_in(key)]
        found.append(ValueSaveable(key, conversion.convert_to_tensor(value)))
    if object_graph is None:
        object_graph = conversion.constant(values.serialized_graph())
    return [GraphSaveable(GRAPH_KEY, object_graph), *found]


class SessionWriter:
    """The nodes that write a checkpoint; made anew when other objects join."""

    def __init__(self):
        self._made_for = self._read_for = None

    def write(self, values, path, session, sharding=None):
        """Writes the values that the session's variables have now; `sharding` is the
        ShardingCallback that says how, or None."""
        graph = session.graph
        if not checkpoint_options.is_one_file(sharding):
            self._write_shards(graph, values, path, session, sharding)
            return
        made_for = (graph, [(key, id(owner)) for key, _, owner in values.items()])
        if self._made_for != made_for:
            self._add_nodes(graph, values)
            self._made_for = made_for
        feeds = {self._path: path, self._object_graph: values.serialized_graph()}
        session.run(self._saved, feeds)

    def _write_shards(self, graph, values, path, session, sharding):
        """By a callback, which gets the values."""
        made_for = (graph, [(key, id(owner)) for key, _, owner in values.items()])
        if self._read_for != made_for:
            with graph.as_default(), graph.control_dependencies(None):
                items = saveables(values, None)[1:]
                self._read = [x.to_save() for x in items]
            self._read_for = made_for
        found = session.run(self._read)
        with stack.entering(None):
            tensors = [conversion.constant(x) for x in found]
            checkpoint_options.write_called(
                path,
                [(k, t, o) for (k, _, o), t in zip(values.items(), tensors)],
                values.serialized_graph(),
                sharding,
            )

    def _add_nodes(self, graph, values):
        with saver_graph.apart(graph, "checkpoint"):
            self._path = placeholder_with_default("model", shape=(), name="path")
            self._object_graph = placeholder_with_default(
                values.serialized_graph(), shape=(), name="object_graph"
            )
            items = saveables(values, self._object_graph)
            self._saved = saver_graph.save(self._path, items)
