"""Workers that come and go while the others train on.

This is Headrace's own: TensorFlow has no such strategy. It works as Horovod's elastic
state does: a program commits what it has after each step, and when the workers are other
ones than before, all that are there go on behind the last commit.
"""

import itertools
import zlib

import numpy as np

from headrace import _api as tf
from headrace.context import errors, strategies
from headrace.context.properties import read_only
from headrace.distribute import mirrored, workers
from headrace.distribute.multi_worker import (
    CollectiveAllReduceExtended,
    Workers,
    tasks_of,
)
from headrace.distribute.variables import DistributedVariable, SyncOnReadVariable
from headrace.framework.settings import logging
from headrace.framework.variables import ResourceVariable
from headrace.train.checkpoint import Checkpoint
from headrace.train.views import TrackableView

_FILES = (".index", ".data-00000-of-00001")  # of a checkpoint
_folders = itertools.count()


def _task(job, index):
    return f"/job:{job}/replica:0/task:{index}"


class _ElasticWorkers(Workers):
    """Workers of which those count that are in the present generation: before the first
    one this one alone.

    Attributes:
      tasks: the names of all that may take part.
      members: the names of those that do.
      generation: the number of the generation.
    """

    _may_ring = False

    def __init__(self, resolver, options):
        super().__init__(resolver, options)
        self.tasks = [_task(job, index) for job, index in tasks_of(resolver)]
        self.tasks = self.tasks or [_task("worker", 0)]
        self.is_alone = self.count == 1
        self._own = self.tasks[self.index]
        self.members, self.generation = [self._own], 0
        self.count = 1

    def regroup(self, fewest, all_within, timeout):
        """Waits for the next generation, whose members count from now on."""
        if self.is_alone:
            return
        core = self._server._core
        found = core.regroup(self._group, self.tasks, fewest, all_within, timeout)
        self.generation, devices = found
        named = map(tf.DeviceSpec.from_string, devices)
        self.members = [_task(d.job, d.task) for d in named]
        self.count, self.index = len(self.members), self.members.index(self._own)
        self._instances = itertools.count(1)
        strategies.make_traces_anew()

    def end(self):
        """Why the generation is over, None while it is not."""
        if self.is_alone or not self.generation:
            return None
        code, text = self._server._core.group_status(self._group)
        return text if code else None

    def leave(self):
        """This worker takes no part any more."""
        if not self.is_alone:
            self._server._core.leave_group(self._group)

    def of(self, index, value):
        """One worker's value of a tensor, which all have in one shape."""
        if self.index == index:
            return self._call(tf.raw_ops.CollectiveBcastSendV2, input=value)
        op = tf.raw_ops.CollectiveBcastRecvV2
        return self._call(op, shape=tf.shape(value), T=value.dtype)


class _ElasticExtended(CollectiveAllReduceExtended):
    _Workers = _ElasticWorkers
    _made = 0  # variables
    _predict_together = None  # a worker may predict on its own

    def _create_variable(self, next_creator, **kwargs):
        # Some workers make what others have long had: first values are not sent, states
        # are.
        self._made += 1
        return mirrored.MirroredExtended._create_variable(self, next_creator, **kwargs)


class ElasticStrategy(workers.MultiWorkerMirroredStrategy):
    """A MultiWorkerMirroredStrategy whose workers may come and go: those that are there
    train on without a restart. Training runs in ElasticState.run().

    The cluster names all workers that may take part, of which some may never be there.
    Until training runs, a worker is alone with its variables; then all have one state.
    What workers differ in (how many there are, which part of the input is whose) changes
    with each generation of workers, so that training has to ask the strategy anew.

    This is Headrace's own; TensorFlow has no such strategy.

    Args:
      cluster_resolver: a ClusterResolver; by default what TF_CONFIG, else a launcher's
        variables say.
      communication_options: CommunicationOptions.
      min_workers: with fewer nobody trains on; more than half of all by default. Where
        half of them suffice, a network that is cut in two may leave two halves that both
        train on.
      start_seconds: how long the first generation waits for all workers, before fewer
        suffice.
      timeout_seconds: how long `min_workers` are waited for.

    Raises:
      ValueError: for other numbers, and as MultiWorkerMirroredStrategy does.
    """

    _Extended = _ElasticExtended

    def __init__(
        self,
        cluster_resolver=None,
        communication_options=None,
        min_workers=None,
        start_seconds=60.0,
        timeout_seconds=600.0,
    ):
        super().__init__(cluster_resolver, communication_options)
        count = len(self._extended._workers.tasks)
        self._min_workers = count // 2 + 1 if min_workers is None else int(min_workers)
        if not 1 <= self._min_workers <= count:
            raise ValueError(
                f"min_workers={min_workers} of a cluster of {count} workers"
            )
        self._start_seconds = float(start_seconds)
        self._timeout_seconds = float(timeout_seconds)


class ElasticState:
    """What workers of an ElasticStrategy have alike, and keep when others come or go.

    Its variables, those that a tf.train.Checkpoint of the same objects would hold, are
    set back to the last commit when a step fails with its workers, and given to workers
    that come. (Values of each replica, synchronized on reading, stay the worker's own;
    iterators and tables are given to those that come, and not set back.)

    This is Headrace's own; TensorFlow has no such class.

    Args:
      strategy: the ElasticStrategy.
      **objects: what is kept: models, optimizers, variables, as tf.train.Checkpoint
        takes them.

    Attributes:
      strategy: the strategy.
      commits: how often the workers have committed.
      generation: the number of the generation of workers, from 1.
      members: the names of the workers that take part, by rank.

    Raises:
      TypeError: for another strategy.
      ValueError: for objects that cannot be kept.
    """

    def __init__(self, strategy, **objects):
        if not isinstance(strategy, ElasticStrategy):
            raise TypeError(f"ElasticState needs an ElasticStrategy, not {strategy!r}")
        self._strategy = strategy
        self._checkpoint = Checkpoint(**objects)
        self._workers = strategy.extended._workers
        self._commits = self._of_generation = 0
        self._known, self._known_at = [], -1  # variables, and how many there were
        self._kept = []  # (variable, its value) at the last commit
        self._folder, self._is_checked = None, False

    strategy = read_only("_strategy", "The ElasticStrategy.")
    commits = read_only("_commits", "How often the workers have committed.")
    generation = read_only("_workers.generation", "The generation's number.")
    members = read_only("_workers.members", "The names of the workers, by rank.")

    def share(self, count):
        """The range of this worker's of `count` parts of a step, which are numbered alike
        whoever takes part: workers have neighbouring parts, in the order of their ranks.
        ValueError for a negative number."""
        if count < 0:
            raise ValueError(f"share: {count} parts")
        own, of = self._workers.index, self._workers.count
        return range(count * own // of, count * (own + 1) // of)

    # --- what is kept ---

    def _variables(self):
        """[(variable, whether it is each replica's own)] of the plain variables."""
        if self._known_at != (made := self._strategy.extended._made):
            found = []
            for v in TrackableView(self._checkpoint).descendants():
                if isinstance(v, DistributedVariable):
                    own = isinstance(v, SyncOnReadVariable)
                    found += [(copy, own) for copy in v.values]
                elif isinstance(v, ResourceVariable):
                    found.append((v, False))
            self._known = list({id(v): (v, own) for v, own in found}.values())
            self._known_at = made
        return self._known

    def _keep(self):
        self._kept = [(v, v.value()) for v, _ in self._variables()]

    def _set_back(self):
        for variable, value in self._kept:
            variable.assign(value)

    def commit(self):
        """Keeps the variables as they are now, on all workers after the same step.

        Raises:
          errors.AbortedError: where other workers take part from now on; run() goes on
            with them.
          errors.FailedPreconditionError: where the variables of workers differ after the
            first step together.
        """
        if not self._is_checked:
            self._check_alike()
        self._keep()
        self._commits += 1
        if (why := self._workers.end()) is not None:
            raise errors.AbortedError._of(why)

    def _check_alike(self):
        """Variables that each worker made for itself may differ: once a generation this
        is found out."""
        total = 0
        for variable, own in self._variables():
            if not own:
                total = zlib.crc32(variable.value().numpy().tobytes(), total)
        found = self._gathered([total])[:, 0]
        if len(set(found)) > 1:
            raise errors.FailedPreconditionError._of(
                f"commit {self._commits + 1}, generation {self.generation}: the variables "
                f"of workers {', '.join(self.members)} differ. Make variables before "
                "run(), or with equal seeds, and have all workers take the same steps"
            )
        self._is_checked = True

    def _gathered(self, numbers):
        """Numbers of all workers: an array of a row a worker."""
        own = tf.constant([numbers], tf.int64)
        if self._workers.count == 1:
            return own.numpy()
        return self._workers.rows(own).numpy()

    # --- workers that come ---

    def _take_the_newest(self):
        """All workers get the state of the one that has committed last in the newest
        generation."""
        states = self._gathered([self._of_generation, self._commits])
        newest = max(map(tuple, states))
        source = [tuple(s) for s in states].index(newest)
        if len({tuple(s) for s in states}) > 1 or not newest[0]:
            self._take(source, tuple(states[self._workers.index]) == newest)
        self._of_generation, self._commits = self.generation, int(newest[1])
        self._keep()
        self._is_checked = False

    def _take(self, source, is_newest):
        """The checkpoint of one worker is read by those that are not as far."""
        own, folder = self._workers.index, f"ram://headrace_state_{next(_folders)}"
        data = [b"", b""]
        if own == source:
            data = self._written(folder)
        sizes = self._workers_of(source, np.array(list(map(len, data)), np.int64))
        whole = np.zeros(-(-int(sizes.sum()) // 8), np.int64)
        if own == source:
            whole.view(np.uint8)[: sizes.sum()] = np.frombuffer(
                b"".join(data), np.uint8
            )
        whole = self._workers_of(source, whole).view(np.uint8)
        if own == source or (is_newest and self._of_generation):
            return
        at = 0
        for end, size in zip(_FILES, sizes):
            with tf.io.gfile.GFile(folder + "/state" + end, "wb") as file:
                file.write(whole[at : at + size].tobytes())
            at += size
        replicas = [(v, v.value()) for v, own in self._variables() if own]
        self._checkpoint.read(folder + "/state")
        for variable, value in replicas:
            variable.assign(value)
        # Variables that are yet to be made get their values from it.
        if self._folder is not None:
            tf.io.gfile.rmtree(self._folder)
        self._folder = folder

    def _workers_of(self, source, array):
        if self._workers.count == 1:
            return array
        return self._workers.of(source, tf.constant(array)).numpy()

    def _written(self, folder):
        """The bytes of a checkpoint's files, in which replicas' own values are zeros."""
        replicas = [(v, v.value()) for v, own in self._variables() if own]
        for variable, value in replicas:
            variable.assign(tf.zeros_like(value))
        count, self._workers.count = self._workers.count, 1  # others do not write
        try:
            self._checkpoint.write(folder + "/state")
        finally:
            self._workers.count = count
        for variable, value in replicas:
            variable.assign(value)
        data = []
        for end in _FILES:
            with tf.io.gfile.GFile(folder + "/state" + end, "rb") as file:
                data.append(file.read())
        tf.io.gfile.rmtree(folder)
        return data

    # --- the loop around training ---

    def run(self, fn):
        """What fn() gives, which trains on from the state that it finds.

        It begins when the workers have one state, and begins again, behind the last
        commit, whenever they become other ones. It ends when fn has ended on all workers.

        Args:
          fn: a function without parameters. Datasets and what else depends on the number
            of workers are made in it.

        Raises:
          errors.DeadlineExceededError: where too few workers are there; it tells what is
            known of each.
          errors.OutOfRangeError: where the others have done their work and left.
          errors.OpError: and other errors of fn that are not of other workers.
        """
        wants = self._strategy
        found, is_done = None, False
        while True:
            try:
                self._workers.regroup(
                    wants._min_workers, wants._start_seconds, wants._timeout_seconds
                )
            except errors.OutOfRangeError:
                if is_done:
                    return found
                raise
            try:
                self._take_the_newest()
                is_done = False
                found, is_done = fn(), True
                self._gathered([self._commits])  # nobody goes before all are done
                self._workers.leave()
                return found
            except errors.OpError as e:
                why = self._workers.end()
                if why is None:
                    raise
                logging.info("generation %d is over: %s", self.generation, e)
            self._set_back()
