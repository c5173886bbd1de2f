"""tf.CriticalSection."""

import contextlib
import threading

from headrace.context.errors import UnimplementedError
from headrace.context.properties import read_only
from headrace.framework import execution

_shared = {}  # shared name -> _Lock


class _Lock:
    """A lock that knows which thread has it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.owner = None


class CriticalSection:
    """Code that one thread at a time runs; others wait.

    `shared_name` makes sections of one name the same. For programs whose operations run
    at once: inside of graphs and traced functions execute() raises UnimplementedError.
    """

    def __init__(
        self, name=None, shared_name=None, critical_section_def=None, import_scope=None
    ):
        if critical_section_def is not None or import_scope is not None:
            raise NotImplementedError(
                "CriticalSection: critical_section_def and import_scope are not supported"
            )
        self._name = name or "critical_section"
        self._shared_name = shared_name
        if shared_name is None:
            self._lock = _Lock()
        else:
            self._lock = _shared.setdefault(shared_name, _Lock())

    name = read_only("_name", "The name given, or its default.")

    def execute(self, fn, exclusive_resource_access=True, name=None):
        """What fn() returns, run while no other thread is in this section.

        Args:
          fn: takes no arguments.
          exclusive_resource_access: accepted; what `fn` uses is not looked at.
          name: of the operations, of which there are none.

        Raises:
          ValueError: this thread is in the section already.
          UnimplementedError: in a graph or a traced function.
        """
        if not callable(fn):
            raise TypeError(f"'{type(fn).__name__}' object is not callable")
        text = "CriticalSection.execute inside a graph or a tf.function"
        execution.only_eagerly(UnimplementedError._of, text)
        with self._entered():
            return fn()

    @contextlib.contextmanager
    def _entered(self):
        me = threading.get_ident()
        if self._lock.owner == me:
            raise ValueError(
                f"Attempting to lock a CriticalSection ({self._name}) in which we are "
                "already running. This is illegal and may cause deadlocks."
            )
        with self._lock.lock:
            self._lock.owner = me
            try:
                yield
            finally:
                self._lock.owner = None
