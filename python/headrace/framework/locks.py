"""Locks that do not outlive their holders."""

import os
import threading
import weakref

_all = weakref.WeakSet()


class ForkLock:
    """A lock, to be held by `with`, that one thread may take several times.

    A forked child has none of its parent's threads but the one that forked: it
    finds the locks of the others open.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self):
        self._lock = threading.RLock()
        _all.add(self)

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *exc):
        self._lock.release()

    def _after_fork(self):
        if not self._lock._is_owned():
            self._lock = threading.RLock()


def _after_fork():
    for lock in list(_all):
        lock._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
