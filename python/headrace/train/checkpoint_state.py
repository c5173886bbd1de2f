"""Which checkpoints a folder holds: its state file, and CheckpointManager."""

import glob
import os
import re
import time

from headrace._load import _headrace
from headrace.context import errors
from headrace.context.properties import read_only
from headrace.framework.settings import logging
from headrace.framework.support import protos, signatures
from headrace.io import gfile


def _proto(latest, paths, timestamps, last_preserved):
    state = protos.CheckpointState(
        model_checkpoint_path=latest,
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=timestamps,
    )
    if last_preserved:
        state.last_preserved_timestamp = last_preserved
    return state


def _read(checkpoint_dir, latest_filename):
    """(newest, all, times, last preserved) as a state file has them, or None."""
    checkpoint_dir = os.fspath(checkpoint_dir)
    try:
        state = _headrace.read_checkpoint_state(
            checkpoint_dir, latest_filename or "checkpoint"
        )
    except errors.DataLossError as e:
        if e.message.startswith("Invalid checkpoint state"):
            raise ValueError(e.message) from None
        logging.warn("%s", e)
        logging.warn("%s: Checkpoint ignored", checkpoint_dir)
        return None
    except (errors.OpError, ValueError) as e:
        logging.warn("%s", e)
        return None
    return state


def get_checkpoint_state(checkpoint_dir, latest_filename=None):
    """The CheckpointState of a folder; None when it has none that can be read."""
    state = _read(checkpoint_dir, latest_filename)
    return None if state is None else _proto(*state)


def _ending_in(newest, paths, times):
    """(the paths, the newest last; their times)"""
    paths, times = list(paths or []), list(times or [])
    if not paths or paths[-1] != newest:
        logging.info(
            "%s is not in all_model_checkpoint_paths. Manually adding it.", newest
        )
        paths.append(newest)
    if times and len(times) != len(paths):
        raise ValueError(
            "Checkpoint timestamps, if provided, must match checkpoint paths (got "
            f"paths {paths} and timestamps {times})"
        )
    return paths, times


def generate_checkpoint_state_proto(
    save_dir,
    model_checkpoint_path,
    all_model_checkpoint_paths=None,
    all_model_checkpoint_timestamps=None,
    last_preserved_timestamp=None,
):
    """A CheckpointState that names the newest checkpoint last; relative paths are
    relative to `save_dir`."""
    paths, times = _ending_in(
        model_checkpoint_path,
        all_model_checkpoint_paths,
        all_model_checkpoint_timestamps,
    )

    def relative(path):
        if os.path.isabs(path) or os.path.isabs(save_dir):
            return path
        return os.path.relpath(path, save_dir or ".")

    return _proto(
        relative(model_checkpoint_path),
        [relative(p) for p in paths],
        times,
        last_preserved_timestamp,
    )


def update_checkpoint_state(
    save_dir,
    model_checkpoint_path,
    all_model_checkpoint_paths=None,
    latest_filename=None,
    all_model_checkpoint_timestamps=None,
    last_preserved_timestamp=None,
    _relative=False,
):
    """Writes a folder's state file, with the newest checkpoint last. Absolute paths
    stay absolute."""
    paths, times = _ending_in(
        model_checkpoint_path,
        all_model_checkpoint_paths,
        all_model_checkpoint_timestamps,
    )
    _headrace.write_checkpoint_state(
        os.fspath(save_dir),
        model_checkpoint_path,
        paths,
        latest_filename or "checkpoint",
        times,
        last_preserved_timestamp or 0.0,
        keep_absolute=not _relative,
    )


def checkpoint_exists(checkpoint_prefix):
    """Whether there is a checkpoint of that prefix, of either format."""
    return _headrace.checkpoint_exists(os.fspath(checkpoint_prefix))


def get_checkpoint_mtimes(checkpoint_prefixes):
    """When the checkpoints that are there were written, seconds since 1970."""
    times = []
    for prefix in checkpoint_prefixes:
        for path in (f"{prefix}.index", prefix):
            if gfile.exists(path):
                times.append(gfile.stat(path).mtime_nsec / 1e9)
                break
    return times


def remove_checkpoint(
    checkpoint_prefix, checkpoint_format_version=2, meta_graph_suffix="meta"
):
    """Deletes a checkpoint's files and its meta graph; absent ones are no error."""
    checkpoint_prefix = os.fspath(checkpoint_prefix)
    shards = re.fullmatch(r"(.*)-\?+(-of-\d+)", checkpoint_prefix)
    if shards:  # of the first format
        for path in gfile.glob(glob.escape(shards[1]) + "-?????" + shards[2]):
            gfile.remove(path)
        checkpoint_prefix = shards[1]
    else:
        _headrace.delete_checkpoint(checkpoint_prefix)
    meta = f"{checkpoint_prefix}.{meta_graph_suffix}"
    if gfile.exists(meta):
        gfile.remove(meta)


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    """The prefix of a folder's newest checkpoint whose files are there, or None."""
    state = _read(checkpoint_dir, latest_filename)
    if state is None or not _headrace.checkpoint_exists(state[0]):
        return None
    return state[0]


def checkpoints_iterator(
    checkpoint_dir, min_interval_secs=0, timeout=None, timeout_fn=None
):
    """Yields each new checkpoint of a folder as it appears; ends after `timeout`
    seconds without one (and when timeout_fn, if given, says so)."""
    last = None
    while True:
        start = time.time()
        while True:
            path = latest_checkpoint(checkpoint_dir)
            if path is not None and path != last:
                break
            if timeout is not None and time.time() - start > timeout:
                if timeout_fn is None or timeout_fn():
                    return
                start = time.time()
            time.sleep(0.1 if timeout is None else min(0.1, max(timeout / 10, 0.01)))
        last, began = path, time.time()
        yield path
        time.sleep(max(0.0, began + min_interval_secs - time.time()))


class CheckpointManager:
    """Keeps the newest checkpoints of one Checkpoint in a folder."""

    @signatures.keeping(
        "checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours=None, "
        "checkpoint_name='ckpt', step_counter=None, checkpoint_interval=None, "
        "init_fn=None, last_checkpoint_step=None"
    )
    def __init__(self):
        if self._max_to_keep is not None and self._max_to_keep <= 0:
            raise ValueError(
                "Expected a positive integer or `None` for `max_to_keep`, got "
                f"{self._max_to_keep}."
            )
        if self._checkpoint_interval is not None and self._step_counter is None:
            raise ValueError(
                "`step_counter` should be passed if `checkpoint_interval` is not None."
            )
        self._directory = os.fspath(self._directory)
        self._last_step = self._last_checkpoint_step
        if self._directory:
            _headrace.make_folder(self._directory)
        hours = float(self._keep_checkpoint_every_n_hours or 0)
        self._rotation = _headrace.CheckpointRotation(
            self._directory, self._max_to_keep or 0, hours
        )

    directory = read_only("_directory", "The folder that the checkpoints are in.")
    checkpoint_interval = read_only(
        "_checkpoint_interval",
        "How many steps lie between checkpoints at least, or None.",
    )
    checkpoint = read_only("_checkpoint", "The tf.train.Checkpoint that is saved.")

    @property
    def checkpoints(self):
        """Prefixes, oldest first."""
        return self._rotation.checkpoints()

    @property
    def latest_checkpoint(self):
        """The prefix of the newest checkpoint, or None where there is none."""
        return self._rotation.latest()

    _latest_checkpoint = latest_checkpoint  # upstream's name; its tests ask for it

    def _due(self):
        if self._checkpoint_interval is None or self._last_step is None:
            return True
        return int(self._step_counter) >= self._last_step + self._checkpoint_interval

    def save(self, checkpoint_number=None, check_interval=True, options=None):
        """Writes a checkpoint and deletes old ones; its prefix, or None inside the
        interval."""
        if self._checkpoint_interval is not None and check_interval and not self._due():
            return None
        if self._step_counter is not None:
            self._last_step = int(self._step_counter)
        self._checkpoint.sync()
        self._rotation.begin_save()
        counter = self._checkpoint.save_counter
        counter.assign_add(1)
        number = int(counter) if checkpoint_number is None else int(checkpoint_number)
        path = os.path.join(self._directory, f"{self._checkpoint_name}-{number}")
        self._checkpoint._write(path, options, self._rotation.added)
        return path

    def restore_or_initialize(self):
        """Restores the newest checkpoint, or calls init_fn; its prefix or None."""
        latest = self.latest_checkpoint
        if latest is not None:
            self._checkpoint.restore(latest)
            if self._checkpoint_interval is not None:
                self._last_step = int(self._step_counter)
            return latest
        if self._init_fn is not None:
            self._init_fn()
        return None

    def sync(self):
        """Returns when asynchronous writes are done; raises what they raised."""
        self._checkpoint.sync()
