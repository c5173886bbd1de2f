"""tf.compat.v1.saved_model.load: SavedModels in sessions."""

import os

from headrace._load import _headrace
from headrace.framework.support import protos
from headrace.saved_model import constants
from headrace.saved_model.loading import contains_saved_model
from headrace.v1 import meta_graph
from headrace.v1.saved import signature_defs

maybe_saved_model_directory = contains_saved_model


def parse_saved_model(export_dir):
    """The SavedModel proto of a folder; OSError where it has none or a damaged one."""
    return protos.SavedModel.FromString(
        _headrace.read_saved_model(os.fsdecode(export_dir))
    )


def load(sess, tags, export_dir, import_scope=None, **saver_kwargs):
    """Loads a SavedModel into a session: adds the graph that has exactly these tags to
    the session's graph, restores the variables and runs what initializes it.

    Names come under `import_scope` where one is given; `saver_kwargs` go to
    tf.compat.v1.train.import_meta_graph. Returns the MetaGraphDef, as it is in the
    file but for defaults of attributes, which are there again. Raises OSError where
    there is no model or it is damaged, RuntimeError where no graph has the tags.
    """
    folder = os.fsdecode(export_dir)
    loaded = protos.MetaGraphDef.FromString(
        _headrace.read_meta_graph(folder, list(tags))
    )
    with sess.graph.as_default():
        saver = meta_graph.import_meta_graph(
            loaded, import_scope=import_scope, **saver_kwargs
        )
        meta_graph.add_defaults(loaded.graph_def)
        assets = _assets(loaded, folder, import_scope)
        # In a safe mode it may read its own files.
        permits = _headrace.permit_model_files(folder, list(assets.values()))
        try:
            if saver is not None:
                saver.restore(sess, _variables_of(folder))
        finally:
            permits.end()
        init_op = _init_op(sess.graph, loaded, import_scope)
        if init_op is not None:
            sess.run(init_op, feed_dict=assets)
    return loaded


def _variables_of(folder):
    return os.path.join(
        folder, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME
    )


def _assets(loaded, folder, import_scope):
    """{name of a tensor: path of the file that it is to hold}."""
    files = list(loaded.asset_file_def)
    if constants.ASSETS_KEY in loaded.collection_def:
        for packed in loaded.collection_def[constants.ASSETS_KEY].any_list.value:
            files.append(protos.AssetFileDef.FromString(packed.value))
    scope = f"{import_scope}/" if import_scope else ""
    assets = os.path.join(folder, constants.ASSETS_DIRECTORY)
    return {
        scope + file.tensor_info.name: os.path.join(assets, file.filename)
        for file in files
    }


def _init_op(graph, loaded, import_scope):
    """What is to be run after the variables were restored, or None."""
    if constants.INIT_OP_KEY in loaded.signature_def:
        return signature_defs.load_op_from_signature_def(
            loaded.signature_def[constants.INIT_OP_KEY],
            constants.INIT_OP_KEY,
            import_scope,
        )
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        if key not in loaded.collection_def:
            continue
        names = loaded.collection_def[key].node_list.value
        if len(names) > 1:
            raise RuntimeError(
                f"Expected exactly one main op in SavedModel. Found {len(names)}."
            )
        if names:
            scope = f"{import_scope}/" if import_scope else ""
            return graph.as_graph_element(scope + names[0])
    return None
