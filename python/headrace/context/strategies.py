"""Which strategy of tf.distribute is in force on this thread, and on whose behalf."""

import contextlib
import itertools
import threading

from headrace._load import _headrace


class Mode:
    """What holds while a strategy's scope, replica or update is entered.

    Attributes:
      strategy: the strategy.
      replica: the ReplicaContext of a replica's code, else None.
      copy: which copies of variables are meant: a replica's number, or None.
      is_default: whether the strategy is the default one.
      number: of traces that are made in it.
    """

    __slots__ = ("strategy", "replica", "copy", "is_default")

    def __init__(self, strategy, replica=None, copy=None, is_default=False):
        self.strategy, self.replica, self.copy = strategy, replica, copy
        self.is_default = is_default

    @property
    def number(self):
        if self.is_default:
            return _number()
        return _number(id(self.strategy), self.replica is not None, self.copy)


# Traces belong to what they were made under: each has a number of its own.
_numbers = {(0,): 0}
_next_number = itertools.count(1)
_age = [0]  # how often all traces became old
_oldest = [0]  # number of traces that may still be called


def _number(*of):
    key = (_age[0], *of)
    found = _numbers.get(key)
    if found is None:
        found = _numbers[key] = next(_next_number)
    return found


class _State(threading.local):
    def __init__(self):
        self.modes = []  # innermost last


_state = _State()
_everywhere = [None]  # the Mode of tf.distribute.experimental_set_strategy


def mode():
    """The Mode in force on this thread, or None."""
    return _state.modes[-1] if _state.modes else _everywhere[0]


def strategy():
    """The strategy in force on this thread; None where that is the default one."""
    found = mode()
    return None if found is None or found.is_default else found.strategy


def replica():
    """The ReplicaContext of a strategy's replica that this thread runs, or None."""
    found = mode()
    return None if found is None else found.replica


# The copy that is meant while a function is traced for a SavedModel, which has one of each
# variable.
SAVED = -1


def copy_of(its_strategy):
    """Which copy of a strategy's variables is meant here, or None for all of them."""
    found = mode()
    return found.copy if found is not None and found.strategy is its_strategy else None


def is_saving(its_strategy):
    """Whether a function that uses a strategy's variables is traced for a SavedModel."""
    return its_strategy is not None and copy_of(its_strategy) == SAVED


def in_ring(of=None):
    """Whether workers of a strategy, by default the one in force, meet in TensorFlow's
    order, as some of them may be TensorFlow's."""
    found = strategy() if of is None else of
    return found is not None and getattr(found.extended, "_rings", False)


_turns_are_told = [False]


def turns_are_told():
    """Whether collectives say in which turn of a loop they are."""
    return _turns_are_told[0]


def tell_turns():
    """Has loops that are traced from now on count their turns for collectives."""
    _turns_are_told[0] = True


class _Telling(threading.local):
    by_first = True


_telling = _Telling()


def told_by_first():
    """Whether the first worker tells others the first values of variables."""
    return _telling.by_first


@contextlib.contextmanager
def as_each_has_it():
    """A context in which variables begin with what this worker gives them, which all
    workers know alike."""
    before, _telling.by_first = _telling.by_first, False
    try:
        yield
    finally:
        _telling.by_first = before


class _Worker(threading.local):
    index = None


_worker = _Worker()


def worker_index():
    """The number of the worker that this thread makes something for, or None."""
    return _worker.index


@contextlib.contextmanager
def for_worker(index):
    """A context in which this thread makes something for a worker."""
    before, _worker.index = _worker.index, index
    try:
        yield
    finally:
        _worker.index = before


def call_number():
    """What traces of this thread's calls belong to."""
    found = mode()
    return _number() if found is None else found.number


def make_traces_anew():
    """Has functions be traced anew when they are next called, as what traces found no
    longer holds."""
    _age[0] += 1
    _numbers.clear()
    _oldest[0] = _number()
    _headrace.set_call_context(call_number())


def oldest_number():
    """Traces of lower numbers serve no call any more."""
    return _oldest[0]


@contextlib.contextmanager
def entering(new):
    """A context in which a Mode is in force."""
    _state.modes.append(new)
    _headrace.set_call_context(new.number)
    try:
        yield
    finally:
        _state.modes.pop()
        _headrace.set_call_context(call_number())


def set_everywhere(new):
    """Puts a Mode in force where no scope is entered; None takes it away."""
    _everywhere[0] = new
    _headrace.set_call_context(call_number())


def entered_here():
    """Whether a scope or a replica is entered on this thread."""
    return bool(_state.modes)


# --- what threads of replicas take along ---

_carried = []  # threading.local objects


def carry(local):
    """Has threads that run replicas begin with what `local`, a threading.local, holds on
    the thread that starts them."""
    _carried.append(local)
    return local


def luggage():
    """What this thread has in the objects that are carried."""
    return [
        {
            name: list(value) if isinstance(value, list) else value
            for name, value in vars(local).items()
        }
        for local in _carried
    ]


def unpack(taken):
    """Gives this thread what luggage() took on another."""
    for local, values in zip(_carried, taken):
        vars(local).update(values)
    _headrace.set_call_context(call_number())


carry(_state)
