"""tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater."""

import os

from headrace.io import gfile
from headrace.saved_model import constants
from headrace.v1 import meta_graph
from headrace.v1.saved import loader


class MethodNameUpdater:
    """Changes names of methods in the signatures of a SavedModel that is on disk.

    `replace_method_name` any number of times, then `save`. Raises OSError where there
    is no model in the folder or it is damaged.
    """

    def __init__(self, export_dir):
        self._folder = os.fsdecode(export_dir)
        self._model = loader.parse_saved_model(self._folder)

    def replace_method_name(self, signature_key, method_name, tags=None):
        """Gives the signature of that key another method, in the graph that has exactly
        these tags, a string or some; in all graphs where `tags` is None. ValueError
        where there is no such graph or signature."""
        if not signature_key:
            raise ValueError("`signature_key` must be defined.")
        if not method_name:
            raise ValueError("`method_name` must be defined.")
        if tags is not None:
            tags = [tags] if isinstance(tags, str) else list(tags)
        graphs = [
            g
            for g in self._model.meta_graphs
            if tags is None or set(tags) == set(g.meta_info_def.tags)
        ]
        if not graphs:
            raise ValueError(
                f"MetaGraphDef associated with tags {tags} could not be found in "
                "SavedModel. This means either you specified invalid tags or your "
                "SavedModel does not have a MetaGraphDef with the specified tags."
            )
        for graph in graphs:
            if signature_key not in graph.signature_def:
                raise ValueError(
                    f"MetaGraphDef associated with tags {tags} does not have a "
                    f"signature_def with key: '{signature_key}'. This means either you "
                    "specified the wrong signature key or forgot to put the "
                    "signature_def with the corresponding key in your SavedModel."
                )
            graph.signature_def[signature_key].method_name = method_name

    def save(self, new_export_dir=None):
        """Writes the model's file, in the form that it had, into its own folder or
        another, which gets no variables or assets."""
        folder = self._folder
        binary = os.path.join(folder, constants.SAVED_MODEL_FILENAME_PB)
        as_text = not gfile.exists(binary)
        if new_export_dir is not None:
            folder = os.fsdecode(new_export_dir)
            gfile.makedirs(folder)
        if as_text:
            name = constants.SAVED_MODEL_FILENAME_PBTXT
        else:
            name = constants.SAVED_MODEL_FILENAME_PB
        meta_graph.write_proto(self._model, os.path.join(folder, name), as_text)
