"""Callbacks that save: ModelCheckpoint and BackupAndRestore."""

import contextlib
import os
import re
import shutil
import tempfile

from headrace import _api as tf
from headrace.context import stack
from headrace.framework.settings import logging
from headrace.keras import settings
from headrace.keras.callback.base import Callback
from headrace.keras.callback.steering import Monitor
from headrace.keras.classes import takes


@takes(
    "filepath, monitor='val_loss', verbose=0, save_best_only=False, "
    "save_weights_only=False, mode='auto', save_freq='epoch', options=None, "
    "initial_value_threshold=None, **kwargs"
)
class ModelCheckpoint(Callback):
    """Saves the model, or its weights alone, after epochs or every so many batches.

    `period`, of Keras 1, says after how many epochs: it is 1 unless given.
    """

    def _further(self, arguments):
        self.period = arguments.pop("period", 1)
        if arguments:
            raise TypeError(f"ModelCheckpoint: unknown arguments {list(arguments)}")

    def _begin(self):
        if self.save_freq != "epoch" and not isinstance(self.save_freq, int):
            raise ValueError(
                f"Unrecognized save_freq: {self.save_freq}. Expected save_freq are "
                '"epoch" or integer'
            )
        self.filepath = os.fspath(self.filepath)
        self._monitor = Monitor(self.monitor, self.mode)
        self.best = self.initial_value_threshold
        if self.best is None:
            self.best = self._monitor.worst
        self.epochs_since_last_save = self._batches = self._epoch = 0

    def on_epoch_begin(self, epoch, logs=None):
        """Notes the epoch, for the names of files."""
        self._epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        """Saves where save_freq batches have passed since the last time."""
        if self.save_freq == "epoch":
            return
        self._batches += 1
        if self._batches >= self.save_freq:
            self._batches = 0
            self._save(self._epoch, batch, logs)

    def on_epoch_end(self, epoch, logs=None):
        """Saves where save_freq is "epoch" and `period` epochs passed."""
        self.epochs_since_last_save += 1
        if self.save_freq != "epoch" or self.epochs_since_last_save < self.period:
            return
        self.epochs_since_last_save = 0
        self._save(epoch, None, logs)

    def _path(self, epoch, batch, logs):
        values = dict(logs or {})
        if batch is not None and "batch" not in values:
            values["batch"] = batch + 1
        try:
            return self.filepath.format(epoch=epoch + 1, **values)
        except KeyError as e:
            raise KeyError(
                f'Failed to format this callback filepath: "{self.filepath}". Reason: {e}'
            ) from e

    def _save(self, epoch, batch, logs):
        path = self._path(epoch, batch, logs)
        if self.save_best_only:
            current = (logs or {}).get(self.monitor)
            if current is None:
                logging.warn(
                    "Can save best model only with %s available, skipping.",
                    self.monitor,
                )
                return
            if not self._monitor.better(current, self.best):
                if self.verbose > 0:
                    print(
                        f"\nEpoch {epoch + 1}: {self.monitor} did not improve from "
                        f"{self.best:.5f}"
                    )
                return
            if self.verbose > 0:
                print(
                    f"\nEpoch {epoch + 1}: {self.monitor} improved from {self.best:.5f} "
                    f"to {current:.5f}, saving model to {path}"
                )
            self.best = current
        elif self.verbose > 0:
            print(f"\nEpoch {epoch + 1}: saving model to {path}")
        with _place_of(self.model, path) as path:
            if self.save_weights_only:
                self.model.save_weights(path, overwrite=True, options=self.options)
            elif path.endswith(".keras"):
                self.model.save(path, overwrite=True)
            else:
                self.model.save(path, overwrite=True, options=self.options)


class SidecarEvaluatorModelExport(ModelCheckpoint):
    """Saves the model of a tf.keras.utils.SidecarEvaluator where it was never better.

    Args:
      export_filepath: where to; `{epoch}` is the checkpoint's number.
      checkpoint_filepath: the names of the checkpoints that are evaluated, as
        "folder/ckpt-{epoch}".
      kwargs: of ModelCheckpoint: `monitor`, `mode`, `save_weights_only`, ...
    """

    def __init__(self, export_filepath, checkpoint_filepath, **kwargs):
        super().__init__(filepath=export_filepath, save_best_only=True, **kwargs)
        self._checkpoint_filepath = os.fspath(checkpoint_filepath)

    def on_test_begin(self, logs=None):
        """Finds the checkpoint; ValueError where there is none of such a name."""
        self._epoch = _latest_epoch(self._checkpoint_filepath)

    def on_test_end(self, logs=None):
        """Saves, if the metric is better than before."""
        self._save(self._epoch - 1, None, logs)


def _latest_epoch(pattern):
    """The number in the newest checkpoint's name."""
    parts = pattern.split("{epoch}")
    name = re.compile(r"(\d+)".join(map(re.escape, parts)) + r"\.index")
    found = tf.io.gfile.glob("*".join(parts) + ".index")
    matches = [m for m in map(name.fullmatch, found) if m and m.groups()]
    if not matches:
        raise ValueError(
            f"no checkpoint is called like checkpoint_filepath, {pattern!r}, which is to "
            "have {epoch} in the place of their number"
        )
    newest = max(matches, key=lambda m: tf.io.gfile.stat(m[0]).mtime_nsec)
    return int(newest[1])


def _writes(model):
    """Whether what this process saves stays."""
    return model.distribute_strategy.extended.should_checkpoint


@contextlib.contextmanager
def _place_of(model, path):
    """Where a worker writes: all have to, as some values are of all of them, and what
    others than the first write goes away."""
    if _writes(model):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, os.path.basename(path))


@takes(
    "backup_dir, save_freq='epoch', delete_checkpoint=True, "
    "save_before_preemption=False"
)
class BackupAndRestore(Callback):
    """Saves the state of training so that an interrupted fit goes on."""

    def _begin(self):
        often = self.save_freq
        if not self.backup_dir:
            raise ValueError("Empty `backup_dir` argument passed")
        if self.save_before_preemption:
            raise NotImplementedError("BackupAndRestore: save_before_preemption")
        if not (often == "epoch" or isinstance(often, int)) or not often:
            raise ValueError(
                f"Invalid value for argument `save_freq`. Received: save_freq={often}"
            )
        self.backup_dir = os.fspath(self.backup_dir)
        self._start = None
        self._batches = 0

    def on_train_begin(self, logs=None):
        """Restores the newest state in the folder, where one is;
        fit goes on behind it. ValueError in a graph."""
        if stack.plain_graph() is not None:
            raise ValueError(
                "BackupAndRestore only supports eager mode. In graph mode, consider using "
                "ModelCheckpoint to manually save and restore weights with "
                "`model.load_weights()` and by providing `initial_epoch` in `model.fit()` "
                "for fault tolerance."
            )
        self._last_epoch = tf.Variable(-1, dtype=tf.int64, trainable=False)
        self._checkpoint = tf.train.Checkpoint(
            model=self.model, ckpt_saved_epoch=self._last_epoch
        )
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, os.path.join(self.backup_dir, "chief"), max_to_keep=1
        )
        self._start = None
        if self._manager.latest_checkpoint:
            self._checkpoint.restore(self._manager.latest_checkpoint)
            self._start = int(self._last_epoch) + 1

    def _first_epoch(self):
        """Where fit goes on; None from the beginning."""
        return self._start

    def _save(self, epoch):
        settings.set_value(self._last_epoch, epoch)
        if _writes(self.model):
            self._manager.save()
            return
        with _place_of(self.model, "checkpoint") as path:
            self._checkpoint.write(path)

    def on_epoch_begin(self, epoch, logs=None):
        """Notes the epoch."""
        self._epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        """Saves at every save_freq-th batch; the epoch under way is then run again."""
        if self.save_freq == "epoch":
            return
        self._batches += 1
        if self._batches % self.save_freq == 0:
            self._save(self._epoch - 1)

    def on_epoch_end(self, epoch, logs=None):
        """Saves where save_freq is "epoch"."""
        if self.save_freq == "epoch":
            self._save(epoch)

    def on_train_end(self, logs=None):
        """Removes what it wrote, unless delete_checkpoint is False."""
        if self.delete_checkpoint and _writes(self.model):
            shutil.rmtree(self._manager.directory, ignore_errors=True)
