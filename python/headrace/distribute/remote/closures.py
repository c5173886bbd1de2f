"""Functions that wait for a worker, and their results."""

import collections
import threading

from headrace import _api as tf
from headrace.context import errors
from headrace.framework.cancellation import Cancellation

# As many functions wait at most; who schedules more waits for room. TensorFlow's number.
MOST_WAITING = 256 * 1024
_CANCELLED = "The corresponding function is cancelled. Please reschedule the function."


class RemoteValue:
    """What a function that a coordinator has scheduled will give."""

    def fetch(self):
        """The value, waited for, as NumPy has it."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def get(self):
        """The value, waited for: tensors."""
        raise NotImplementedError("Must be implemented in subclasses.")


class Result(RemoteValue):
    """The result of a function. It is sent to the coordinator when the function has run,
    and outlives the worker."""

    def __init__(self):
        self._settled = threading.Event()
        self._value = self._error = None

    def _set(self, value=None, error=None):
        self._value, self._error = value, error
        self._settled.set()

    def get(self):
        """The value, waited for: tensors. The function's error, or CancelledError where
        another one's had it cancelled."""
        self._settled.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def _so_far(self):
        """The value where it is there, else None."""
        return self._value if self._settled.is_set() else None

    def fetch(self):
        """The value, waited for, with arrays in the place of tensors."""
        return as_arrays(self.get())


class PerWorkerValue:
    """A RemoteValue for each worker. AssertionError for other values."""

    def __init__(self, values):
        for value in values:
            if not isinstance(value, RemoteValue):
                raise AssertionError(
                    "`PerWorkerValues` should only take `RemoteValue`s."
                )
        self._values = tuple(values)

    def _keep_place(self):
        """Has nobody take its place on workers when it is gone."""


def as_arrays(structure):
    """The structure with what tensors hold in their place."""

    def one(x):
        if isinstance(x, (tf.Tensor, tf.RaggedTensor)):
            return x.numpy()
        return x

    return tf.nest.map_structure(one, structure)


class Closure:
    """A function with its arguments, in which values of workers stand for each one's.

    Attributes:
      result: its Result.
      cancellation: what ends it when another one fails.
    """

    def __init__(self, concrete, args, kwargs):
        self.concrete, self.args, self.kwargs = concrete, args, kwargs
        self.result, self.cancellation = Result(), None

    def cancel(self):
        """Has its result say that it will not come."""
        self.result._set(error=errors.CancelledError._of(_CANCELLED))


class Queue:
    """Closures that wait or run. After the first one that fails the others are cancelled,
    and the next call of put, wait or done raises its error, once."""

    def __init__(self):
        lock = threading.Lock()
        # Of those that wait for a closure, for room, and for the end of all: each is
        # woken for its own reason alone.
        self._there = threading.Condition(lock)
        self._room = threading.Condition(lock)
        self._ended = threading.Condition(lock)
        self._waiting = collections.deque()
        self._running = 0
        self._error = None
        self._cancellation = Cancellation()  # of all since the last error
        self.stopped = False

    def put(self, closure):
        """Appends one; waits for room."""
        with self._there:
            while len(self._waiting) >= MOST_WAITING and self._error is None:
                self._room.wait()
            self._raise()
            closure.cancellation = self._cancellation
            self._waiting.append(closure)
            self._there.notify()

    def take(self, together=None):
        """The next ones, at least one, waited for; none where there will be none.

        Args:
          together: of a list of closures and how many wait beside them: whether the next
            one may join them, which is given as well.
        """
        taken = []
        with self._there:
            while not self._waiting and not self.stopped:
                self._there.wait()
            if self.stopped:
                return taken
            taken.append(self._waiting.popleft())
            while together and self._waiting:
                if not together(taken, self._waiting[0], len(self._waiting)):
                    break
                taken.append(self._waiting.popleft())
            self._running += len(taken)
            self._room.notify(len(taken))
        return taken

    def put_back(self, closures):
        """What its worker could not finish, or has not begun, is the next one's."""
        with self._there:
            for closure in reversed(closures):
                if closure.cancellation.cancelled:
                    closure.cancel()
                else:
                    self._waiting.appendleft(closure)
                    self._there.notify()
            self._done(len(closures))

    def finished(self, count=1):
        """So many have run."""
        with self._there:
            self._done(count)

    def failed(self, closure, error):
        """One has failed: those that wait are cancelled, those that run are asked to
        end. Where one before has had it cancelled, nothing follows from its error."""
        with self._there:
            if not closure.cancellation.cancelled:
                self._error = error
                self._cancellation.cancel()
                self._cancellation = Cancellation()
                while self._waiting:
                    self._waiting.popleft().cancel()
                self._room.notify_all()
            self._done(1)

    def wait(self):
        """Until all have run."""
        with self._there:
            while self._waiting or self._running:
                self._ended.wait()
            self._raise()

    def done(self):
        """Whether all have run."""
        with self._there:
            self._raise()
            return not self._waiting and not self._running

    def stop(self):
        """Ends who waits for a closure."""
        with self._there:
            self.stopped = True
            self._cancellation.cancel()
            self._there.notify_all()

    def _done(self, count):
        self._running -= count
        if not self._waiting and not self._running:
            self._ended.notify_all()

    def _raise(self):
        error, self._error = self._error, None
        if error is not None:
            raise error
