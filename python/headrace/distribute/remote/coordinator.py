"""tf.distribute.coordinator.ClusterCoordinator: has workers run functions."""

import atexit
import math
import threading
import time
import weakref

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import errors, strategies
from headrace.context.properties import read_only
from headrace.distribute.remote import closures, datasets
from headrace.distribute.remote.closures import PerWorkerValue, RemoteValue
from headrace.framework.settings import logging
from headrace.function.concrete import ConcreteFunction

_NOT_A_FUNCTION = (
    "`tf.distribute.experimental.coordinator.ClusterCoordinator.schedule` only accepts a "
    "`tf.function` or a concrete function."
)
_NO_REMOTE_INPUT = (
    "`tf.distribute.experimental.coordinator.RemoteValue` used as an input to scheduled "
    "function is not yet supported."
)
_NO_WORKER = (
    "Cannot retrieve the worker index. `get_worker_idx_and_num_workers` should be called "
    "from within a tf.function being executed on a worker. This method should only be "
    "called from either a dataset_fn that is passed into "
    "`ClusterCoordinator.create_per_worker_dataset`, or a tf.function that is passed into "
    "`ClusterCoordinator.schedule`."
)
# What says that a task is gone, or has forgotten what it was told.
_LOST = (errors.UnavailableError, errors.AbortedError)
_PAUSE_SECONDS = 0.2  # between two questions whether a worker has come back
_SECONDS_TO_END = 2  # that a process waits for calls which it ends
_MOST_SECONDS_AWAY = 3600  # after which a worker is given up, as in TensorFlow
# What the functions of one call are expected to take, at most: by then a call costs little
# beside them, and another worker that has nothing to do waits that long. None begins in it
# later; where no result has come for so long, others than those that are begun go back.
_SECONDS_TOGETHER = 0.01
_SECONDS_WITHOUT_NEWS = 0.005


class ClosureInputError(Exception):
    """What made an argument of a scheduled function failed."""

    def __init__(self, original_exception):
        if isinstance(original_exception, ClosureInputError):
            original_exception = original_exception.original_exception
        self.original_exception = original_exception
        super().__init__(
            "Input has an error, the original exception is "
            f"{original_exception!r}, error message is {original_exception}."
        )


class _Worker(threading.Thread):
    """Has a worker run one closure after another."""

    def __init__(self, cluster, queue, index):
        super().__init__(name=f"WorkerClosureProcessingLoop-{index}", daemon=True)
        self._cluster, self._queue, self.index = cluster, queue, index
        self.task = cluster.worker(index)
        # What functions took here when they last ran.
        self._seconds = weakref.WeakKeyDictionary()

    def run(self):
        while taken := self._queue.take(self._joins):
            if len(taken) > 1:
                goes_on = self._process_together(taken)
            else:
                goes_on = self._process(taken[0])
            if not goes_on:
                return
            del taken  # arguments may end while this waits

    def _joins(self, taken, closure, waiting):
        """Whether a closure goes to the worker with those before it: not where another
        worker might take it, or where any may take long."""
        alike = closure.cancellation is taken[0].cancellation
        share = (len(taken) + waiting) / len(self._cluster.workers)
        if not alike or len(taken) >= share:
            return False
        took = [self._seconds.get(c.concrete, math.inf) for c in (*taken, closure)]
        return sum(took) <= _SECONDS_TOGETHER

    def _process(self, closure):
        """Runs one; False where the worker is given up."""
        try:
            if closure.cancellation.cancelled:
                closure.cancel()
                self._queue.finished()
                return True
            closure.result._set(self._result_of(closure))
        except Exception as e:
            return self._ended_by(closure, e)
        self._queue.finished()
        return True

    def _ended_by(self, closure, error):
        """Deals with what a closure raised; False where the worker is given up."""
        if isinstance(error, _LOST):
            return self._lost(closure, error)
        is_cancelled = closure.cancellation.cancelled
        if not isinstance(error, errors.CancelledError) or not is_cancelled:
            return self._failed(closure, error)
        self._keep_places(closure)
        closure.cancel()
        self._queue.finished()
        return True

    def _keep_places(self, closure):
        """What it was asked to end may go on for a moment."""
        for x in tf.nest.flatten((closure.args, closure.kwargs)):
            if isinstance(x, PerWorkerValue):
                x._keep_place()

    def _result_of(self, closure):
        self.task.collect()
        with strategies.for_worker(self.index), closure.cancellation:
            leaves = self._leaves_of(closure)
            since = time.monotonic()
            result = self.task.call(closure.concrete, leaves)
            self._seconds[closure.concrete] = time.monotonic() - since
            return result

    def _leaves_of(self, closure):
        args, kwargs = self._own((closure.args, closure.kwargs))
        return closure.concrete._leaves(args, kwargs)

    def _process_together(self, taken):
        """As _process of several, by one call, as far as they can be: what is not begun
        goes back."""
        left = taken
        try:
            self.task.collect()
            with strategies.for_worker(self.index), taken[0].cancellation:
                calls = self._calls_of(taken)
                together = None
                if len(calls) > 1:
                    left = self._give_back(taken, len(calls))
                    since = time.monotonic()
                    together = self.task.run_together(calls, _SECONDS_TOGETHER)
                while together and together.calls:
                    new = together.results(_SECONDS_WITHOUT_NEWS)
                    for closure, result in zip(left, new):
                        closure.result._set(result)
                    self._queue.finished(len(new))
                    left = self._give_back(left[len(new) :], len(together.calls))
        except Exception as e:
            for closure in left[1:]:
                self._keep_places(closure)
            return self._ended_by(self._give_back(left, 1)[0], e)
        if together is None:
            return self._process(self._give_back(left, 1)[0])
        took = (time.monotonic() - since) / len(calls)
        for closure in taken[: len(calls)]:
            self._seconds[closure.concrete] = took
        return True

    def _calls_of(self, taken):
        """Calls of the first ones, as far as each is one. What raises where it is not the
        first will raise again where it is."""
        calls = []
        for closure in taken:
            try:
                leaves = self._leaves_of(closure)
                call = self.task.one_call(closure.concrete, leaves)
            except Exception:
                if not calls:
                    raise
                call = None
            if call is None:
                break
            calls.append(call)
        return calls

    def _give_back(self, closures, kept):
        """The first ones; the others are for any worker."""
        if len(closures) > kept:
            self._queue.put_back(closures[kept:])
        return closures[:kept]

    def _own(self, structure):
        """The structure with this worker's value in the place of one for each."""

        def own(x):
            if not isinstance(x, PerWorkerValue):
                return x
            try:
                return x._values[self.index]._on(self.task)
            except _LOST:
                raise
            except Exception as e:
                raise ClosureInputError(e) from e

        return tf.nest.map_structure(own, structure)

    def _failed(self, closure, error):
        logging.error(
            " /job:worker/task:%d encountered the following error when processing "
            "closure: %r:%s",
            self.index,
            error,
            error,
        )
        closure.result._set(error=error)
        self._queue.failed(closure, error)
        return True

    def _lost(self, closure, error):
        """A task is gone: without a server nothing goes on, without this worker another
        one takes the closure."""
        server = self._cluster.lost_server()
        if server is not None:
            return self._failed(closure, _of_server(server, error))
        logging.error(
            "Worker %s failed with %r:%s", self.task.name, error, error.message
        )
        self._queue.put_back([closure])
        return self._comes_back()

    def _comes_back(self):
        """Waits until the worker answers; False where it does not."""
        until = time.monotonic() + _MOST_SECONDS_AWAY
        while time.monotonic() < until and not self._queue.stopped:
            try:
                self.task.probe()
            except errors.OpError:
                time.sleep(_PAUSE_SECONDS)
                continue
            self.task.begin_anew()
            logging.info("Worker %s has been recovered.", self.task.name)
            return True
        logging.error("Worker %s is given up.", self.task.name)
        return False


def _of_server(lost, error):
    """The error of a server, which says which one it is."""
    name, found = lost
    if isinstance(error, errors.UnavailableError) and name in error.message:
        return error
    return errors.UnavailableError._of(f"{name} is lost: {found.message}")


class ClusterCoordinator:
    """Has the workers of a ParameterServerStrategy run functions.

    Args:
      strategy: the strategy; there is one coordinator for each.

    Raises:
      AttributeError: for another strategy.
    """

    def __new__(cls, strategy):
        if strategy._cluster_coordinator is None:
            strategy._cluster_coordinator = super().__new__(cls)
        return strategy._cluster_coordinator

    def __init__(self, strategy):
        if getattr(self, "_strategy", None) is not None:
            return
        self._strategy = strategy
        cluster = strategy._cluster
        self._queue = closures.Queue()
        self._workers = [_Worker(cluster, self._queue, i) for i in cluster.workers]
        for worker in self._workers:
            worker.start()
        atexit.register(_stop, weakref.ref(self))

    strategy = read_only("_strategy", "The ParameterServerStrategy.")

    def schedule(self, fn, args=None, kwargs=None):
        """Has some worker run a function, by and by.

        A function runs at least once: where its worker is lost meanwhile another one runs
        it again. Its result is sent here when it has run.

        Args:
          fn: a tf.function or ConcreteFunction.
          args: a tuple. Of what is made for each worker a function gets its worker's.
          kwargs: a dict.

        Returns:
          A RemoteValue.

        Raises:
          TypeError: for what is no such function.
          ValueError: for arguments that are RemoteValues.
          errors.OpError: of a function that was scheduled before: all that wait are
            cancelled then.
        """
        if not isinstance(fn, (_headrace.FunctionBase, ConcreteFunction)):
            raise TypeError(_NOT_A_FUNCTION)
        args, kwargs = tuple(args or ()), dict(kwargs or {})
        concrete = fn
        if isinstance(fn, _headrace.FunctionBase):
            with self._strategy.scope():
                given = tf.nest.map_structure(_spec_of, (args, kwargs))
                concrete = fn.get_concrete_function(*given[0], **given[1])
        closure = closures.Closure(concrete, args, kwargs)
        self._queue.put(closure)
        return closure.result

    def join(self):
        """Waits until all functions have run. Raises the first one's error, if some
        failed."""
        self._queue.wait()

    def done(self):
        """Whether all functions have run. Raises the first one's error, if some failed."""
        return self._queue.done()

    def fetch(self, val):
        """The structure with values of RemoteValues in their place, waited for."""

        def one(x):
            return x.fetch() if isinstance(x, RemoteValue) else x

        return tf.nest.map_structure(one, val)

    def create_per_worker_dataset(self, dataset_fn):
        """What iter() makes an iterator on each worker of.

        Args:
          dataset_fn: a function that gives a Dataset, which is traced here and run on each
            worker; or a Dataset, of which each worker gets a copy.

        Raises:
          ValueError: for what is neither.
        """
        return datasets.per_worker(dataset_fn, self._workers, self._strategy)


def _stop(reference):
    coordinator = reference()
    if coordinator is None:
        return
    coordinator._queue.stop()
    until = time.monotonic() + _SECONDS_TO_END
    for worker in coordinator._workers:
        worker.join(max(0.0, until - time.monotonic()))


def _spec_of(x):
    if isinstance(x, RemoteValue):
        raise ValueError(_NO_REMOTE_INPUT)
    return x._type_spec if isinstance(x, PerWorkerValue) else x


def experimental_get_current_worker_index():
    """The number of the worker that runs a function: an int64 tensor in functions that a
    coordinator has scheduled, an int where a dataset is made. RuntimeError elsewhere."""
    index = strategies.worker_index()
    if not _headrace.is_eager() and tf.inside_function():
        graph = tf.compat.v1.get_default_graph()
        spec = tf.TensorSpec([], tf.int64)
        return graph.capture_call_time_value(_index, spec, key="worker_index")
    if index is None:
        raise RuntimeError(_NO_WORKER)
    return index


def _index():
    index = strategies.worker_index()
    if index is None:
        raise RuntimeError(_NO_WORKER)
    return tf.constant(index, tf.int64)
