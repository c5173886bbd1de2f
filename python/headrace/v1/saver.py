"""tf.compat.v1.train.Saver: checkpoints by variables' names."""

import os
import time

from headrace._load import _headrace
from headrace.context import errors, stack
from headrace.framework import conversion, execution
from headrace.framework.settings import logging
from headrace.framework.support import protos, signatures
from headrace.graph.placeholders import placeholder_with_default
from headrace.io import gfile
from headrace.train import saver_graph
from headrace.train.checkpoint_state import (
    checkpoint_exists,
    get_checkpoint_mtimes,
    remove_checkpoint,
    update_checkpoint_state,
)
from headrace.v1 import collections, meta_graph, name_scopes

_V1, _V2 = 1, 2
_META = "meta"


class Saver:
    """Writes and reads a graph's variables under their own names."""

    @signatures.keeping(
        "var_list=None, reshape=False, sharded=False, max_to_keep=5, "
        "keep_checkpoint_every_n_hours=10000.0, name=None, restore_sequentially=False, "
        "saver_def=None, builder=None, defer_build=False, allow_empty=False, "
        "write_version=2, pad_step_number=False, save_relative_paths=False, "
        "filename=None"
    )
    def __init__(self):
        if self._defer_build and self._var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set "
                "defer_build=False or var_list=None."
            )
        if self._builder is not None:
            raise NotImplementedError("Saver: builder is not supported")
        if _headrace.is_eager() and self._var_list is None:
            raise RuntimeError(
                "When eager execution is enabled, `var_list` must specify a list or "
                "dict of variables to save"
            )
        self._version = self._write_version
        if self._version not in (_V1, _V2):
            raise ValueError(
                f"Saver: write_version must be SaverDef.V1 or V2, not {self._version}"
            )
        self._keep_hours = self._keep_checkpoint_every_n_hours
        self._last_checkpoints = []
        self._next_kept = time.time() + (self._keep_hours or 0) * 3600
        self._is_built = self._is_empty = False
        self.saver_def = self._saver_def
        if self.saver_def is not None:
            self._take(self.saver_def)
        elif not self._defer_build and not _headrace.is_eager():
            self.build()

    def _take(self, saver_def):
        for field in ("save_tensor_name", "restore_op_name", "filename_tensor_name"):
            if not getattr(saver_def, field):
                raise ValueError(f"saver_def must specify the {field}: {saver_def}")
        self._max_to_keep = saver_def.max_to_keep
        self._keep_hours = saver_def.keep_checkpoint_every_n_hours
        self._sharded = saver_def.sharded
        self._version = saver_def.version or _V1
        self._is_built = True

    # --- the graph ---

    def build(self):
        """Adds the nodes that save and restore."""
        execution.only_in_graphs("Use save/restore instead of build in eager mode.")
        if self._is_built:
            return
        self._is_built = True
        variables = self._var_list
        if variables is None:
            graph = stack.default_graph()
            variables = graph.get_collection(collections.GraphKeys.GLOBAL_VARIABLES)
            variables += graph.get_collection(collections.GraphKeys.SAVEABLE_OBJECTS)
        if not variables:
            if not self._allow_empty:
                raise ValueError("No variables to save")
            self._is_empty = True
            return
        self._var_list = variables
        self.saver_def = self._add_nodes(saver_graph.saveables(variables))

    def _add_nodes(self, saveables):
        graph = stack.default_graph()
        with graph.name_scope(self._name or "save"), graph.control_dependencies(None):
            filename = placeholder_with_default(
                self._filename or "model", shape=(), name="filename"
            )
            filename = placeholder_with_default(filename, shape=(), name="Const")
            add = saver_graph.save_sharded if self._sharded else saver_graph.save
            saved = add(filename, saveables, self._version == _V1)
            restore = (
                saver_graph.restore_sharded if self._sharded else saver_graph.restore
            )
            restored = restore(
                filename, saveables, self._restore_sequentially, self._reshape
            )
        return protos.SaverDef(
            filename_tensor_name=filename.name,
            save_tensor_name=saved.name,
            restore_op_name=restored.name,
            max_to_keep=self._max_to_keep or 0,
            sharded=self._sharded,
            keep_checkpoint_every_n_hours=self._keep_hours or 0,
            version=self._version,
        )

    # --- which checkpoints there are ---

    @property
    def last_checkpoints(self):
        """A list of the prefixes of the checkpoints that are kept, the oldest first."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints):
        """Takes over a list of prefixes of checkpoints, the oldest first.

        Their times count as later than any, so that each is due to be kept for
        keep_checkpoint_every_n_hours and none is removed.
        """
        if not isinstance(last_checkpoints, list):
            raise TypeError("last_checkpoints must be a list")
        self._last_checkpoints = [(path, float("inf")) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time):
        """Takes over a list of (prefix, time in seconds), the oldest first."""
        if not isinstance(last_checkpoints_with_time, list):
            raise TypeError("last_checkpoints_with_time must be a list")
        self._last_checkpoints = last_checkpoints_with_time

    def recover_last_checkpoints(self, checkpoint_paths):
        """Takes on the checkpoints of an earlier program that are still there."""
        there = [p for p in checkpoint_paths if checkpoint_exists(p)]
        self._last_checkpoints = list(zip(there, get_checkpoint_mtimes(there)))

    def _record(self, path, meta_suffix):
        """The checkpoint is the newest; those beyond max_to_keep go."""
        if not self._max_to_keep:
            return
        kept = [(p, t) for p, t in self._last_checkpoints if p != path]
        kept.append((path, time.time()))
        self._last_checkpoints = kept
        if len(kept) <= self._max_to_keep:
            return
        oldest, written = kept.pop(0)
        if self._keep_hours and written > self._next_kept:
            self._next_kept += self._keep_hours * 3600
            return
        remove_checkpoint(oldest, meta_graph_suffix=meta_suffix)

    def _path_of(self, sess, save_path, global_step):
        if global_step is None:
            if os.path.basename(save_path) == "checkpoint" and self._sharded:
                raise ValueError(
                    "'latest_filename' collides with 'save_path': 'checkpoint'"
                )
            return save_path
        if not isinstance(global_step, int):
            global_step = saver_graph.step_value(global_step, sess)
        return f"{save_path}-{global_step:0{8 if self._pad_step_number else 1}d}"

    # --- saving and restoring ---

    def save(
        self,
        sess,
        save_path,
        global_step=None,
        latest_filename=None,
        meta_graph_suffix=_META,
        write_meta_graph=True,
        write_state=True,
        strip_default_attrs=False,
        save_debug_info=False,
    ):
        """Writes a checkpoint; its path."""
        if save_debug_info:
            raise NotImplementedError("Saver.save: save_debug_info is not supported")
        latest_filename = latest_filename or "checkpoint"
        if os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        save_path = os.fspath(save_path)
        if not _headrace.is_eager() and not hasattr(sess, "run"):
            raise TypeError(f"'sess' must be a Session; {sess}")
        path = self._path_of(sess, save_path, global_step)
        if not path:
            raise ValueError("no path specified")
        if os.path.basename(save_path) == latest_filename:
            raise ValueError(
                f"'latest_filename' collides with 'save_path': '{latest_filename}' and "
                f"'{save_path}'"
            )
        folder, prefix = os.path.dirname(save_path), path
        if not self._is_empty:
            self._make_folder(folder, save_path)
            path = self._write(sess, path)
            if write_state:
                self._record(path, meta_graph_suffix)
                update_checkpoint_state(
                    folder,
                    path,
                    self.last_checkpoints,
                    latest_filename,
                    _relative=self._save_relative_paths,
                )
        if write_meta_graph and not _headrace.is_eager():
            with sess.graph.as_default():
                self.export_meta_graph(
                    f"{prefix}.{meta_graph_suffix}",
                    strip_default_attrs=strip_default_attrs,
                )
        return None if self._is_empty else path

    def _make_folder(self, folder, save_path):
        """Makes the checkpoint's folder in one that is there, as files of the second
        format are written upstream."""
        if not folder or gfile.isdir(folder):
            return
        try:
            if self._version == _V2:
                gfile.mkdir(folder)
                return
        except errors.OpError:
            pass
        raise ValueError(f"Parent directory of {save_path} doesn't exist, can't save.")

    def _write(self, sess, path):
        """What the checkpoint is found by: of shards of the first format a pattern."""
        if _headrace.is_eager():
            saver_graph.save(
                conversion.constant(path),
                saver_graph.saveables(self._var_list),
                self._version == _V1,
            )
            return path
        if not self._is_built:
            raise RuntimeError(
                "`build()` should be called before save if defer_build==True"
            )
        saved = sess.run(
            self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: path}
        )
        return saved.decode() if isinstance(saved, bytes) else path

    def restore(self, sess, save_path):
        """Gives the variables the values of a checkpoint."""
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        path = os.fspath(save_path)
        if not checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        logging.info("Restoring parameters from %s", path)
        try:
            self._read(sess, path)
        except errors.NotFoundError as e:
            why = "Variable name or other graph key that is missing from the checkpoint"
            raise errors.NotFoundError._of(_restoring_failed(why, e)) from None
        except errors.InvalidArgumentError as e:
            why = "mismatch between the current graph and the graph from the checkpoint"
            raise errors.InvalidArgumentError._of(_restoring_failed(why, e)) from None

    def _read(self, sess, path):
        if _headrace.is_eager():
            saver_graph.restore(
                conversion.constant(path),
                saver_graph.saveables(self._var_list),
                False,
                self._reshape,
            )
            return
        sess.run(
            self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: path}
        )

    # --- as messages ---

    def _add_collection_def(self, meta_graph_def, key):  # upstream's tests ask for it
        meta_graph.add_collection_def(meta_graph_def, key, stack.default_graph())

    def as_saver_def(self):
        """The SaverDef proto of the operations that save and restore."""
        return self.saver_def

    def to_proto(self, export_scope=None):
        """The SaverDef proto; with an `export_scope` under the names within it, None
        where the operations are not below it."""
        if not export_scope:
            return self.saver_def
        scope = name_scopes.NameScope(export_scope)
        if not scope.has(self.saver_def.filename_tensor_name):
            return None
        return saver_graph.renamed(self.saver_def, scope.without)

    @staticmethod
    def from_proto(saver_def, import_scope=None):
        """A Saver for the operations that a SaverDef names, under `import_scope`."""
        if import_scope:
            saver_def = saver_graph.scoped(saver_def, import_scope)
        return Saver(saver_def=saver_def)

    @signatures.taking(
        signatures.from_text(
            "filename=None, collection_list=None, as_text=False, export_scope=None, "
            "clear_devices=False, clear_extraneous_savers=False, "
            "strip_default_attrs=False, save_debug_info=False"
        )
    )
    def export_meta_graph(self, **given):
        """The graph, its collections and how to save it, as a MetaGraphDef."""
        return meta_graph.export_meta_graph(saver_def=self.saver_def, **given)


def _restoring_failed(why, error):
    return (
        f"Restoring from checkpoint failed. This is most likely due to a {why}. Please "
        "ensure that you have not altered the graph expected based on the checkpoint. "
        f"Original error:\n\n{error.message}"
    )
