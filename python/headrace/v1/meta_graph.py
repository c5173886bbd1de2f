"""MetaGraphDefs: a graph with its collections and how its variables are saved."""

import os

from headrace._load import _headrace
from headrace.context import late, stack
from headrace.control_flow import flow_contexts
from headrace.framework import execution
from headrace.framework.settings import logging, versions
from headrace.framework.support import protos
from headrace.graph import import_graph
from headrace.graph.graph_keys import GraphKeys
from headrace.io import gfile
from headrace.v1 import collections, imported_variables, name_scopes, saver


_NO_GRAPH = (
    "Exporting/importing meta graphs is not supported when eager execution is enabled. "
    "No graph exists when eager execution is enabled."
)


_CONTEXTS = {  # the protos of collections that hold control flow, and what they become
    GraphKeys.COND_CONTEXT: ("CondContextDef", flow_contexts.CondContext),
    GraphKeys.WHILE_CONTEXT: ("WhileContextDef", flow_contexts.WhileContext),
}


def _kind_of(key, value, scope=None):
    """(the list of a CollectionDef that holds such values, the value in it); None for
    values that have no such form. Collections of variables alone have all there is to
    say of those, others their tensors; names are those within the scope."""
    if imported_variables.is_variable(value):
        if key not in imported_variables.COLLECTIONS:
            return "node_list", _name_in(scope, value)
        proto = imported_variables.to_proto(value, scope and scope.name)
        return "bytes_list", proto.SerializeToString()
    if hasattr(value, "type_url"):  # a message in an Any
        return "any_list", value
    if hasattr(value, "to_proto"):
        proto = value.to_proto(scope and scope.name)
        return "bytes_list", proto and proto.SerializeToString()
    if isinstance(value, (str, bytes)):
        return "bytes_list", value.encode() if isinstance(value, str) else value
    if isinstance(value, int):
        return "int64_list", value
    if isinstance(value, float):
        return "float_list", value
    if hasattr(value, "graph") and hasattr(value, "name"):
        return "node_list", _name_in(scope, value)
    return None


def _name_in(scope, value):
    return value.name if scope is None else scope.without(value.name)


def _collection_of(key, values, kind, scope=None):
    """A collection's values as a CollectionDef, of the kind of the first of them; None,
    and a warning, where they have no such form."""
    out, name = kind(), None
    for value in values:
        found = _kind_of(key, value, scope)
        if found == ("int64_list", value) and name == "float_list":
            found = name, float(value)
        if found is None or name not in (None, found[0]):
            logging.warn(
                "Issue encountered when serializing %s.\nType is unsupported, or the "
                "types of the items don't match field type in CollectionDef. Note this "
                "is a warning and probably safe to ignore.\n%r",
                key,
                value,
            )
            return None
        name = found[0]
        if found[1] is None:  # not within the scope
            continue
        getattr(out, name).value.extend([found[1]])
    return out


def _unsupported(**arguments):
    for name, value in arguments.items():
        if value:
            raise NotImplementedError(f"export_meta_graph: {name} is not supported")


def export_meta_graph(
    filename=None,
    meta_info_def=None,
    graph_def=None,
    saver_def=None,
    collection_list=None,
    as_text=False,
    graph=None,
    export_scope=None,
    clear_devices=False,
    clear_extraneous_savers=False,
    strip_default_attrs=False,
    save_debug_info=False,
    **kwargs,
):
    """The graph as a MetaGraphDef, also written to `filename` where that is given.

    With an `export_scope` what is below that name scope alone, under the names within it.
    What it reads from outside is listed in the collection "unbound_inputs": who imports
    it gives these in the `input_map`.
    """
    _unsupported(save_debug_info=save_debug_info, **kwargs)
    scope = name_scopes.NameScope(export_scope) if export_scope else None
    if graph is None:
        execution.only_in_graphs(_NO_GRAPH)
    graph = graph or stack.default_graph()
    meta = protos.MetaGraphDef()
    if meta_info_def is not None:
        meta.meta_info_def.CopyFrom(meta_info_def)
    meta.meta_info_def.tensorflow_version = versions.VERSION
    meta.meta_info_def.stripped_default_attrs = bool(strip_default_attrs)
    graph_def = graph_def or graph.as_graph_def(add_shapes=True)
    meta.graph_def.CopyFrom(scope.part_of(graph_def) if scope else graph_def)
    if strip_default_attrs:
        _strip_defaults(meta.graph_def)
    if clear_devices:
        _clear_devices(meta.graph_def)
    if not meta.meta_info_def.HasField("stripped_op_list"):
        _list_ops(meta)
    if saver_def is not None:
        meta.saver_def.CopyFrom(saver_def)
    keys = graph.get_all_collection_keys()
    for key in keys if collection_list is None else collection_list:
        if clear_extraneous_savers and key == collections.GraphKeys.SAVERS:
            if saver_def is not None:
                only = saver_def.SerializeToString()
                meta.collection_def[key].bytes_list.value.append(only)
            continue
        add_collection_def(meta, key, graph, scope)
    if scope is not None and scope.unbound:
        unbound = (text.encode() for text in scope.unbound)
        meta.collection_def[name_scopes.UNBOUND].bytes_list.value.extend(unbound)
    if filename:
        write_proto(meta, os.fspath(filename), as_text)
    return meta


def add_collection_def(meta, key, graph, scope=None):
    """Adds a collection of the graph to a MetaGraphDef, where its key is a text and its
    values have such a form."""
    if not isinstance(key, (str, bytes)):
        logging.warn(
            "Only collections with string type keys will be serialized, not %r", key
        )
        return
    values = [
        value
        for value in graph.get_collection(key)
        if scope is None or scope.has_value(value)
    ]
    found = _collection_of(key, values, protos.CollectionDef, scope)
    if found is not None and found.WhichOneof("kind"):
        meta.collection_def[key].CopyFrom(found)


def _clear_devices(graph_def):
    for node in graph_def.node:
        node.device = ""


def _list_ops(meta):
    """Lists the definitions of all ops that the graph and its functions have."""
    nodes = list(meta.graph_def.node)
    functions = set()
    for function in meta.graph_def.library.function:
        functions.add(function.signature.name)
        nodes.extend(function.node_def)
    for name in sorted({node.op for node in nodes} - functions):
        op = _headrace.export_op_named(name)
        meta.meta_info_def.stripped_op_list.op.add().ParseFromString(op)


def _nodes_with_defaults(graph_def):
    """(node, its op's attributes that have defaults) of all nodes whose op has some,
    those of functions included."""
    functions = {f.signature.name for f in graph_def.library.function}
    nodes = list(graph_def.node)
    for function in graph_def.library.function:
        nodes.extend(function.node_def)
    defaults = {}
    for node in nodes:
        if node.op in functions:
            continue
        if node.op not in defaults:
            op = protos.OpDef.FromString(_headrace.export_op_named(node.op))
            defaults[node.op] = [
                (a.name, a.default_value)
                for a in op.attr
                if a.HasField("default_value")
            ]
        yield node, defaults[node.op]


def _strip_defaults(graph_def):
    """Takes attributes that have their ops' default values off all nodes."""
    for node, defaults in _nodes_with_defaults(graph_def):
        for name, value in defaults:
            if name in node.attr and node.attr[name] == value:
                del node.attr[name]


def add_defaults(graph_def):
    """Gives all nodes the attributes that they lack, with their ops' default values."""
    for node, defaults in _nodes_with_defaults(graph_def):
        for name, value in defaults:
            if name not in node.attr:
                node.attr[name].CopyFrom(value)


def write_proto(proto, path, as_text):
    """Writes a message to a file, as text or as bytes that are always the same."""
    if as_text:
        from google.protobuf import text_format

        data = text_format.MessageToString(proto).encode()
    else:
        data = proto.SerializeToString(deterministic=True)
    _headrace.write_file_atomically(path, data)


def read_meta_graph_file(path):
    """The MetaGraphDef of a file, binary or text."""
    from google.protobuf import message, text_format

    path = os.fspath(path)
    if not gfile.exists(path):
        raise OSError(f"File does not exist. Received: {path}.")
    with gfile.GFile(path, "rb") as file:
        data = file.read()
    meta = protos.MetaGraphDef()
    try:
        meta.ParseFromString(data)
        return meta
    except message.DecodeError:
        pass
    try:
        return text_format.Parse(data.decode(), meta)
    except (text_format.ParseError, UnicodeDecodeError) as e:
        raise OSError(f"Cannot parse file {path}: {e}.") from None


def import_meta_graph(
    meta_graph_or_file, clear_devices=False, import_scope=None, **kwargs
):
    """Adds the graph to the current one, or to `graph`, with its collections.

    Its nodes come under `import_scope`, and under the name scope that is in force.
    `restore_collections_predicate` says by their keys which collections come.
    Returns a Saver, None where that scope has no variables.
    """
    graph = kwargs.pop("graph", None)
    if graph is not None:
        with graph.as_default():
            return import_meta_graph(
                meta_graph_or_file, clear_devices, import_scope, **kwargs
            )
    execution.only_in_graphs(_NO_GRAPH)
    input_map = kwargs.pop("input_map", None)
    predicate = kwargs.pop("restore_collections_predicate", None)
    if kwargs:
        raise NotImplementedError(f"import_meta_graph: {min(kwargs)} is not supported")
    meta = meta_graph_or_file
    if not hasattr(meta, "graph_def"):
        meta = read_meta_graph_file(meta)
    name_scopes.check_bound(meta, input_map)
    graph_def = meta.graph_def
    if clear_devices:
        graph_def = type(graph_def)()
        graph_def.CopyFrom(meta.graph_def)
        _clear_devices(graph_def)
    graph = stack.default_graph()
    import_graph.import_graph_def(
        graph_def, name=import_scope or "", input_map=input_map
    )
    scope = "/".join(s for s in (graph.get_name_scope(), import_scope) if s)
    variables = _restore_collections(graph, meta, scope, predicate)
    return _saver(graph, meta, scope, variables)


def _restore_collections(graph, meta, scope, predicate):
    by_name, variables = {}, []
    for key in sorted(meta.collection_def):
        if predicate is not None and not predicate(key) or key == name_scopes.UNBOUND:
            continue
        found = meta.collection_def[key]
        kind = found.WhichOneof("kind")
        if kind is None:
            continue
        for value in getattr(found, kind).value:
            if kind == "node_list":
                name = f"{scope}/{value}" if scope else value
                value = graph.as_graph_element(name)
            elif kind == "bytes_list" and key in imported_variables.COLLECTIONS:
                value = imported_variables.from_bytes(graph, value, scope, by_name)
                variables.append(value)
            elif kind == "bytes_list" and key in _CONTEXTS:
                proto, context = _CONTEXTS[key]
                found_proto = getattr(protos, proto).FromString(value)
                value = context.from_proto(found_proto, scope)
            elif kind == "bytes_list" and key == GraphKeys.SAVERS:
                made = protos.SaverDef.FromString(value)
                value = saver.Saver.from_proto(made, import_scope=scope)
            elif kind == "bytes_list" and key == GraphKeys.QUEUE_RUNNERS:
                made = protos.QueueRunnerDef.FromString(value)
                value = late.QueueRunner.from_proto(made, import_scope=scope)
            graph.add_to_collection(key, value)
    return variables


def _saver(graph, meta, scope, variables):
    if meta.HasField("saver_def"):
        made = saver.Saver.from_proto(meta.saver_def, import_scope=scope)
        made._var_list = variables
        return made
    keys = collections.GraphKeys
    for key in (keys.GLOBAL_VARIABLES, keys.SAVEABLE_OBJECTS):
        if graph.get_collection(key, scope or None):
            return saver.Saver()
    return None
