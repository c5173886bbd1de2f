"""tf.compat.v1.saved_model.Builder: writes graphs of sessions as a SavedModel."""

import contextlib
import os

import numpy as np

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import tensor as tensor_module
from headrace.framework.settings import logging, versions
from headrace.framework.support import protos
from headrace.framework.support.signatures import having
from headrace.graph.operation import Operation
from headrace.io import gfile
from headrace.saved_model import constants
from headrace.v1 import meta_graph
from headrace.v1.collections import GraphKeys
from headrace.v1.saved import signature_defs
from headrace.v1.saver import Saver

_RESERVED = {
    constants.INIT_OP_KEY: "initialization",
    constants.TRAIN_OP_KEY: "the train op",
}
_INIT_COLLECTIONS = (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY)
_WITH_ASSETS = (
    "signature_def_map=None, assets_list=None, clear_devices=False, init_op=None, "
    "train_op=None"
)
_WITH_COLLECTIONS = (
    "signature_def_map=None, assets_collection=None, legacy_init_op=None, "
    "clear_devices=False, main_op=None, strip_default_attrs=False, saver=None"
)


class GraphsBuilder:
    """Writes one or more graphs, told apart by tags, which share variables and assets.

    `add_meta_graph_and_variables` comes first, `save` last. This one keeps assets and
    operations in fields of their own, tf.compat.v1.saved_model.Builder in collections.
    Raises AssertionError where the folder has something in it already.
    """

    def __init__(self, export_dir):
        self._folder = os.fsdecode(export_dir)
        if gfile.exists(self._folder):
            if gfile.listdir(self._folder):
                raise AssertionError(
                    f"Export directory {self._folder} already exists, and isn't empty. "
                    "Please choose a different export directory, or delete all the "
                    "contents of the specified directory."
                )
        else:
            gfile.makedirs(self._folder)
        self._model = protos.SavedModel(
            saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION
        )
        self._has_variables = False
        self._assets = {}  # name in the folder -> path of the file

    @having(f"self, tags, {_WITH_ASSETS}, saver=None")
    def add_meta_graph(self, tags, **given):
        """Adds the current graph; the variables are those that were written before."""
        self._check_has_variables()
        self._take(tags, strip_default_attrs=True, **given)

    @having(f"self, sess, tags, {_WITH_ASSETS}, strip_default_attrs=False, saver=None")
    def add_meta_graph_and_variables(self, sess, tags, **given):
        """Adds the graph of a session and writes the values of its variables."""
        self._check_has_no_variables()
        self._take(tags, sess, **given)

    def _take(
        self,
        tags,
        sess=None,
        *,
        signature_def_map,
        clear_devices,
        strip_default_attrs,
        saver,
        **given,
    ):
        """Adds the current graph, or that of a session with its variables' values."""
        how = clear_devices, strip_default_attrs
        signatures = _checked_signatures(signature_def_map)
        with contextlib.nullcontext() if sess is None else sess.graph.as_default():
            assets = self._prepared(signatures, **given)
            saver = saver or Saver(sharded=True, write_version=2, allow_empty=True)
            if sess is not None:
                self._write_variables(sess, saver)
            self._add(tags, signatures, assets, *how, saver)

    def _prepared(self, signatures, assets_list, init_op, train_op):
        """Names what the graph is to run; the AssetFileDefs that the model keeps."""
        for key, op in (
            (constants.INIT_OP_KEY, init_op),
            (constants.TRAIN_OP_KEY, train_op),
        ):
            if op is not None:
                signatures[key] = signature_defs.op_signature_def(op, key)
        return self._take_assets(assets_list)

    def save(self, as_text=False, experimental_image_format=False, **unsupported):
        """Writes saved_model.pb, .pbtxt or, in chunks, .cpb; its path, as bytes."""
        for name, value in unsupported.items():
            if value:
                raise NotImplementedError(f"save: {name} is not supported")
        if experimental_image_format:
            _headrace.write_model_in_chunks(
                self._folder, self._model.SerializeToString()
            )
            path = os.path.join(self._folder, constants.SAVED_MODEL_FILENAME_CPB)
            return path.encode()
        if as_text:
            name = constants.SAVED_MODEL_FILENAME_PBTXT
        else:
            name = constants.SAVED_MODEL_FILENAME_PB
        path = os.path.join(self._folder, name)
        meta_graph.write_proto(self._model, path, as_text)
        return path.encode()

    def _check_has_variables(self):
        if not self._has_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. "
                "Please invoke `add_meta_graph_and_variables()` first."
            )

    def _check_has_no_variables(self):
        if self._has_variables:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. "
                "Please invoke `add_meta_graph()` instead."
            )

    def _write_variables(self, sess, saver):
        folder = os.path.join(self._folder, constants.VARIABLES_DIRECTORY)
        gfile.makedirs(folder)
        saver.save(
            sess,
            os.path.join(folder, constants.VARIABLES_FILENAME),
            write_meta_graph=False,
            write_state=False,
        )
        self._has_variables = True

    def _take_assets(self, tensors):
        """Copies the files that constants name; AssetFileDefs, with the names that they
        have in the model."""
        found = []
        for tensor in tensors or ():
            path = _path_in(tensor)
            name = self._name_of_asset(path)
            asset = protos.AssetFileDef(filename=name)
            asset.tensor_info.name = tensor.name
            found.append(asset)
        return found

    def _name_of_asset(self, path):
        """A file's name in the model, into which it is copied unless it is there."""
        base = name = os.path.basename(path)
        number = 0
        while name in self._assets and not _same_file(path, self._assets[name]):
            number += 1
            name = f"{base}_{number}"
        if name not in self._assets:
            self._assets[name] = path
            self._copy(path, name)
        return name

    def _copy(self, path, name):
        if not gfile.exists(path):
            logging.warn("The asset %s is not there, and not in the model", path)
            return
        folder = os.path.join(self._folder, constants.ASSETS_DIRECTORY)
        gfile.makedirs(folder)
        gfile.copy(path, os.path.join(folder, name), overwrite=True)

    def _add(self, tags, signatures, assets, clear_devices, strip, saver):
        exported = saver.export_meta_graph(
            clear_devices=clear_devices, strip_default_attrs=strip
        )
        made = self._model.meta_graphs.add()
        made.CopyFrom(exported)
        made.meta_info_def.tags.extend(tags)
        made.meta_info_def.tensorflow_git_version = versions.GIT_VERSION
        made.asset_file_def.extend(assets)
        for key, signature in signatures.items():
            made.signature_def[key].CopyFrom(signature)


class SavedModelBuilder(GraphsBuilder):
    """Writes graphs of sessions as a SavedModel.

    `add_meta_graph_and_variables` comes first, with the session whose variables are
    written, then `add_meta_graph` for each further graph, with tags of its own and the
    same variables, and `save` last. Raises AssertionError where there is something in
    the folder already.
    """

    @having(f"self, tags, {_WITH_COLLECTIONS}")
    def add_meta_graph(self, tags, **given):
        """Adds the current graph; the variables are those that were written before.

        Args:
          tags: strings that name the graph together.
          signature_def_map: {name: SignatureDef}.
          assets_collection: string constants, the paths of files to be copied.
          legacy_init_op, main_op: what loading runs, the latter where both are given.
          clear_devices: whether nodes lose their devices.
          strip_default_attrs: whether they lose attributes that have their defaults.
          saver: what is to restore the variables; by default one for all of them.

        Raises:
          AssertionError: where no variables were written, and for signatures that do
            not say names and dtypes.
          KeyError: for names of signatures that have a meaning.
          TypeError: where an op or an asset is none.
          ValueError: where the graph has another main op already.
        """
        self._check_has_variables()
        self._take(tags, **given)

    @having(f"self, sess, tags, {_WITH_COLLECTIONS}")
    def add_meta_graph_and_variables(self, sess, tags, **given):
        """Adds the graph of a session, and writes the values of its variables; the
        arguments and errors are add_meta_graph's. AssertionError when called twice."""
        self._check_has_no_variables()
        self._take(tags, sess, **given)

    def _prepared(self, signatures, assets_collection, main_op, legacy_init_op):
        graph = stack.default_graph()
        assets = self._take_assets(assets_collection)
        if assets:
            kept = graph.get_collection_ref(constants.ASSETS_KEY)
            for asset in assets:
                packed = protos.message("google.protobuf.Any")()
                packed.Pack(asset)
                kept.append(packed)
        op = legacy_init_op if main_op is None else main_op
        if op is None:
            return ()
        if not isinstance(op, Operation):
            raise TypeError(
                f"Expected {op} to be an Operation but got type {type(op)} instead."
            )
        for key in _INIT_COLLECTIONS:
            if graph.get_collection(key):
                raise ValueError(
                    "Graph already contains one or more main ops under the collection "
                    f"{key}."
                )
        graph.add_to_collection(constants.MAIN_OP_KEY, op)
        return ()


def _checked_signatures(signature_def_map):
    """{name: SignatureDef}; KeyError and AssertionError for what is none."""
    found = dict(signature_def_map or {})
    for key, what in _RESERVED.items():
        if key in found:
            raise KeyError(
                f'SignatureDef map key "{key}" is reserved for {what}. Please use a '
                "different key."
            )
    for signature in found.values():
        for info in (*signature.inputs.values(), *signature.outputs.values()):
            _check_info(info)
    return found


def _check_info(info):
    encoding = info.WhichOneof("encoding")
    if encoding is None:
        raise AssertionError(
            f"Invalid `tensor_info`: {info}. All TensorInfo protos used in the "
            "SignatureDefs must have one of the 'encoding' fields (e.g., name or "
            "coo_sparse) set."
        )
    if encoding == "composite_tensor":
        for component in info.composite_tensor.components:
            _check_info(component)
    elif not info.dtype:
        raise AssertionError(
            f"Invalid `tensor_info`: {info}. All TensorInfo protos used in the "
            "SignatureDefs must have the dtype field set."
        )


def _path_in(tensor):
    """The path that a constant of a graph holds; TypeError and ValueError for others."""
    if not isinstance(tensor, tensor_module.SymbolicTensor):
        raise TypeError(f"Asset path tensor {tensor} must be a Tensor.")
    if tensor.op.type != "Const":
        raise TypeError(
            f"Asset path tensor {tensor} must be of type constant.Has type "
            f"{tensor.op.type} instead."
        )
    if tensor.dtype.name != "string":
        raise TypeError(
            f"Asset path tensor {tensor}` must be of dtype string.Has type "
            f"{tensor.dtype!r} instead."
        )
    path = np.asarray(tensor.op.get_attr("value").numpy()).item()
    if not path:
        raise ValueError(f"Asset filepath tensor {tensor} in is invalid.")
    return os.fsdecode(path)


def _same_file(path, other):
    if path == other:
        return True
    if not gfile.exists(path) or not gfile.exists(other):
        return False
    with gfile.GFile(path, "rb") as a, gfile.GFile(other, "rb") as b:
        return a.read() == b.read()


def simple_save(session, export_dir, inputs, outputs, legacy_init_op=None):
    """Writes the graph of a session, with its variables and the assets of its
    collection ASSET_FILEPATHS, as a model to be served.

    `inputs` and `outputs` are {name: tensor} of its signature "serving_default".
    """
    with session.graph.as_default():
        signature = signature_defs.predict_signature_def(inputs, outputs)
        builder = SavedModelBuilder(export_dir)
        builder.add_meta_graph_and_variables(
            session,
            [constants.SERVING],
            {constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
            stack.default_graph().get_collection(GraphKeys.ASSET_FILEPATHS),
            main_op=legacy_init_op,
            clear_devices=True,
        )
        builder.save()
