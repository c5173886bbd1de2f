"""MetaGraphDefs: a graph with its collections and how its variables are saved."""

import os

from headrace._load import _headrace
from headrace.framework import versions
from headrace.graph import collections, import_graph, stack
from headrace.train import imported_variables


def _collection_of(values, kind):
    """A collection's values as a CollectionDef; None where they have no such form."""
    out = kind()
    for value in values:
        if imported_variables.is_variable(value):
            proto = imported_variables.to_proto(value)
            out.bytes_list.value.append(proto.SerializeToString())
        elif hasattr(value, "to_proto"):
            out.bytes_list.value.append(value.to_proto().SerializeToString())
        elif isinstance(value, (str, bytes)):
            text = value.encode() if isinstance(value, str) else value
            out.bytes_list.value.append(text)
        elif isinstance(value, int):
            out.int64_list.value.append(value)
        elif isinstance(value, float):
            out.float_list.value.append(value)
        elif hasattr(value, "graph") and hasattr(value, "name"):
            out.node_list.value.append(value.name)
        else:
            return None
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
    """The graph as a MetaGraphDef, also written to `filename` where that is given."""
    from headrace.framework import protos

    _unsupported(export_scope=export_scope, save_debug_info=save_debug_info, **kwargs)
    if _headrace.is_eager() and graph is None:
        raise RuntimeError(
            "Exporting/importing meta graphs is not supported when eager execution is "
            "enabled. No graph exists when eager execution is enabled."
        )
    graph = graph or stack.default_graph()
    meta = protos.MetaGraphDef()
    if meta_info_def is not None:
        meta.meta_info_def.CopyFrom(meta_info_def)
    meta.meta_info_def.tensorflow_version = versions.VERSION
    meta.meta_info_def.stripped_default_attrs = bool(strip_default_attrs)
    meta.graph_def.CopyFrom(graph_def or graph.as_graph_def(add_shapes=True))
    if clear_devices:
        for node in meta.graph_def.node:
            node.device = ""
    if saver_def is not None:
        meta.saver_def.CopyFrom(saver_def)
    keys = graph.get_all_collection_keys()
    for key in keys if collection_list is None else collection_list:
        if clear_extraneous_savers and key == collections.GraphKeys.SAVERS:
            continue
        found = _collection_of(graph.get_collection(key), protos.CollectionDef)
        if found is not None and found.WhichOneof("kind"):
            meta.collection_def[key].CopyFrom(found)
    if filename:
        _write(meta, os.fspath(filename), as_text)
    return meta


def _write(meta, path, as_text):
    if as_text:
        from google.protobuf import text_format

        data = text_format.MessageToString(meta).encode()
    else:
        data = meta.SerializeToString(deterministic=True)
    _headrace.write_file_atomically(path, data)


def read_meta_graph_file(path):
    """The MetaGraphDef of a file, binary or text."""
    from google.protobuf import message, text_format

    from headrace.framework import protos

    path = os.fspath(path)
    if not os.path.exists(path):
        raise OSError(f"File does not exist. Received: {path}.")
    with open(path, "rb") as file:
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
    """Adds the graph to the current one, with its collections; the Saver of its
    variables, None where there are none.

    Args:
      graph: the graph that it is added to, in place of the current one.
      input_map: as of tf.import_graph_def.
      restore_collections_predicate: which collections come, by their keys.
    """
    into = kwargs.pop("graph", None)
    if into is not None:
        with into.as_default():
            return import_meta_graph(
                meta_graph_or_file, clear_devices, import_scope, **kwargs
            )
    if _headrace.is_eager():
        raise RuntimeError(
            "Exporting/importing meta graphs is not supported when eager execution is "
            "enabled. No graph exists when eager execution is enabled."
        )
    input_map = kwargs.pop("input_map", None)
    predicate = kwargs.pop("restore_collections_predicate", None)
    if kwargs:
        raise NotImplementedError(f"import_meta_graph: {min(kwargs)} is not supported")
    meta = meta_graph_or_file
    if not hasattr(meta, "graph_def"):
        meta = read_meta_graph_file(meta)
    graph_def = meta.graph_def
    if clear_devices:
        graph_def = type(graph_def)()
        graph_def.CopyFrom(meta.graph_def)
        for node in graph_def.node:
            node.device = ""
    graph = stack.default_graph()
    import_graph.import_graph_def(
        graph_def, name=import_scope or "", input_map=input_map
    )
    variables = _restore_collections(graph, meta, import_scope, predicate)
    return _saver(meta, import_scope, variables)


def _restore_collections(graph, meta, scope, predicate):
    by_name, variables = {}, []
    for key in sorted(meta.collection_def):
        if predicate is not None and not predicate(key):
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
            graph.add_to_collection(key, value)
    return variables


def _saver(meta, scope, variables):
    from headrace.train import saver

    if meta.HasField("saver_def"):
        made = saver.Saver.from_proto(meta.saver_def, import_scope=scope)
        made._var_list = variables
        return made
    if variables:
        return saver.Saver()
    return None
