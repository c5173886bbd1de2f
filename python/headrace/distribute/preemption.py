"""Checkpoints of programs that are told to end."""

import contextlib
import os
import signal
import sys
import threading
import time

from headrace import _api as tf
from headrace.context import errors
from headrace.context.properties import read_only
from headrace.distribute.multi_worker import Workers, tasks_of
from headrace.distribute.options import Options
from headrace.distribute.workers import no_transport

_EXIT = 42  # TensorFlow's, which its launchers take for a restart
_POLL = 1.0  # seconds between two questions to a watcher


class TerminationConfig:
    """What happens when a program is told to end.

    Args:
      termination_watcher_fn: a function that says whether to end, asked each second;
        SIGTERM says it by default.
      exit_fn: what ends the program: by default with exit code 42.
      grace_period: seconds to go on before the last checkpoint.
      save_fn: what writes the checkpoint; CheckpointManager.save by default.
    """

    def __init__(
        self, termination_watcher_fn=None, exit_fn=None, grace_period=None, save_fn=None
    ):
        self.termination_watcher_fn = termination_watcher_fn
        self.exit_fn = exit_fn
        self.grace_period = grace_period
        self.save_fn = save_fn


class PreemptionCheckpointHandler:
    """Writes a checkpoint, and ends the program, behind the call during which that was told
    to end; restores it when the program starts anew.

    Several workers ask each other before each call, by a sum of one number, so all write
    and end behind the same one when any of them was told to. The first worker writes the
    checkpoint that is kept. Each makes its handler, and its calls, as the others do.

    Args:
      cluster_resolver: the ClusterResolver; NotImplementedError for one with parameter
        servers.
      checkpoint_or_checkpoint_manager: a Checkpoint, or a CheckpointManager.
      checkpoint_dir: the folder of a Checkpoint's files (InvalidArgumentError without).
      termination_config: a TerminationConfig.
    """

    def __init__(
        self,
        cluster_resolver,
        checkpoint_or_checkpoint_manager,
        checkpoint_dir=None,
        termination_config=None,
    ):
        if "ps" in cluster_resolver.cluster_spec().jobs:
            raise NotImplementedError(
                "PreemptionCheckpointHandler does not support usage with "
                "tf.distribute.experimental.ParameterServerStrategy: its workers know "
                "nothing of each other's calls. The coordinator saves by a "
                "CheckpointManager, and training goes on when a worker ends"
            )
        self._workers = None
        if len(tasks_of(cluster_resolver)) > 1:
            workers = Workers(cluster_resolver, Options())
            self._workers = workers if workers.count > 1 else None
        self._config = termination_config or TerminationConfig()
        manager = checkpoint_or_checkpoint_manager
        if not isinstance(manager, tf.train.CheckpointManager):
            if checkpoint_dir is None:
                raise errors.InvalidArgumentError._of(
                    "`checkpoint_dir` is wanted beside a Checkpoint"
                )
            folder = os.fspath(checkpoint_dir)
            manager = tf.train.CheckpointManager(manager, folder, max_to_keep=1)
        self._manager = manager
        checkpoint = manager.checkpoint
        if not hasattr(checkpoint, "checkpointed_runs"):
            checkpoint.checkpointed_runs = tf.Variable(
                0, trainable=False, dtype=tf.int64, name="checkpointed_runs"
            )
        self._saved_runs = checkpoint.checkpointed_runs
        manager.restore_or_initialize()
        self._runs = 0  # since the last checkpoint
        self._told = threading.Event()
        self._told_at = None
        self._watch()

    def _watch(self):
        watcher = self._config.termination_watcher_fn
        if watcher is not None:
            threading.Thread(target=self._poll, args=(watcher,), daemon=True).start()
        elif threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda number, frame: self._tell())

    def _poll(self, watcher):
        while not self._told.is_set():
            if watcher():
                self._tell()
                return
            time.sleep(_POLL)

    def _tell(self):
        self._told_at = time.monotonic()
        self._told.set()

    @property
    def total_run_calls(self):
        """How often run() was called, counted from the first start of the program."""
        return self._saved_runs.numpy() + self._runs

    def run(self, distributed_train_function, *args, **kwargs):
        """What the function gives; where the program has been told to end the checkpoint is
        written first, and nothing is called."""
        self._end_if_told()
        self._runs += 1
        return distributed_train_function(*args, **kwargs)

    def save_checkpoint_if_preempted(self, *args, **kwargs):
        """Writes the checkpoint, and ends the program, if that was told to; arguments are
        those of CheckpointManager.save. To be called once a step."""
        self._end_if_told(*args, **kwargs)
        self._runs += 1

    @contextlib.contextmanager
    def watch_preemption_scope(self):
        """A context behind which the checkpoint is written if the program was told to
        end."""
        yield
        self._end_if_told()

    def _is_to_end(self):
        """Whether a worker was told to end and has gone on for as long as it may."""
        over = self._told.is_set() and (
            time.monotonic() - self._told_at >= (self._config.grace_period or 0)
        )
        if self._workers is None:
            return over
        return int(self._workers.sum(tf.constant(int(over)))) > 0

    def _end_if_told(self, *args, **kwargs):
        if not self._is_to_end():
            return
        self._saved_runs.assign_add(self._runs)
        self._runs = 0
        (self._config.save_fn or self._save)(*args, **kwargs)
        if self._workers is not None:
            # Launchers may kill the others when one ends: not before all have written.
            self._workers.sum(tf.constant(1))
        (self._config.exit_fn or _end)()

    def _save(self, *args, **kwargs):
        """CheckpointManager.save; into a folder that is then deleted where another worker
        writes what is kept, as values that are summed on reading are read by all."""
        if self._workers is None or self._workers.index == 0:
            self._manager.save(*args, **kwargs)
            return
        folder = os.path.join(
            self._manager.directory, f"workertemp_{self._workers.index}"
        )
        checkpoint = self._manager.checkpoint
        tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1).save(
            *args, **kwargs
        )
        tf.io.gfile.rmtree(folder)


def _end():
    sys.exit(_EXIT)


class PreemptionWatcher:
    """Tells what a coordination service says of tasks to be preempted. A program that is
    alone has none: nothing is ever said."""

    def __init__(self):
        self._preemption_message = None

    preemption_message = read_only(
        "_preemption_message", "What was said of the task to be preempted, or None."
    )

    def block_until_worker_exit(self):
        """Would wait until preempted workers have ended: UnimplementedError."""
        raise no_transport("PreemptionWatcher.block_until_worker_exit")
