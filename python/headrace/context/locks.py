"""Locks that do not outlive their holders."""

import importlib
import logging  # noqa: F401  (its fork hooks come in pairs: before ours wait)
import os
import threading
import time
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


def _importing():
    """Whether another thread imports a module of this package, as happens when a name
    is used for the first time: it holds the module's lock from before the module is
    there until it is ready."""
    locks = getattr(importlib._bootstrap, "_module_locks", {})
    me = threading.get_ident()
    for name, reference in list(locks.items()):
        lock = reference() if name.partition(".")[0] == "headrace" else None
        if getattr(lock, "owner", None) not in (None, me):
            return True
    return False


def _before_fork():
    """Waits for the imports of other threads: in the child nobody would end them, and
    whoever needs the module would wait for ever."""
    end = time.monotonic() + 10
    while _importing() and time.monotonic() < end:
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
