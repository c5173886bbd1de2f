"""tf.compat.v1.train.Coordinator: threads that stop together."""

import contextlib
import sys
import threading
import time

from headrace.context import errors
from headrace.context.properties import read_only
from headrace.framework.settings import logging


class Coordinator:
    """Asks threads to stop, waits for them, and raises what one of them raised."""

    def __init__(self, clean_stop_exception_types=None):
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (errors.OutOfRangeError,)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._stop_event.set()
        self._exc_info_to_raise = None
        self._joined = False
        self._registered_threads = set()
        self.clear_stop()

    def _is_clean(self, ex):
        return isinstance(ex, self._clean_stop_exception_types)

    def request_stop(self, ex=None):
        """Asks the threads to stop; join() raises `ex`, an error or exc_info()."""
        with self._lock:
            if self._joined:
                self._registered_threads = set()
                if isinstance(ex, tuple):
                    raise ex[1].with_traceback(ex[2])
                if ex is not None:
                    raise ex
                return
            if self._stop_event.is_set():
                return
            if ex is not None and self._exc_info_to_raise is None:
                self._note(ex)
            self._stop_event.set()

    def _note(self, ex):
        info = ex if isinstance(ex, tuple) else (type(ex), ex, ex.__traceback__)
        if len(info) != 3 or not isinstance(info[1], BaseException):
            info = (
                ValueError,
                ValueError("ex must be an exception or (type, value, traceback)"),
                None,
            )
        if self._is_clean(info[1]):
            return
        logging.info("Error reported to Coordinator: %s, %s", info[0], info[1])
        self._exc_info_to_raise = info

    def clear_stop(self):
        """Nobody is asked to stop any more."""
        with self._lock:
            self._joined = False
            self._exc_info_to_raise = None
            if self._stop_event.is_set():
                self._stop_event.clear()

    def should_stop(self):
        """Whether a thread has asked all of them to stop."""
        return self._stop_event.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self):
        """What is raised inside asks all to stop, and goes no further."""
        try:
            yield
        except Exception:
            self.request_stop(ex=sys.exc_info())

    def wait_for_stop(self, timeout=None):
        """Waits until somebody asks to stop; whether somebody did."""
        return self._stop_event.wait(timeout)

    def register_thread(self, thread):
        """A thread that join() waits for."""
        with self._lock:
            self._registered_threads.add(thread)

    def join(self, threads=None, stop_grace_period_secs=120, ignore_live_threads=False):
        """Waits for all threads; raises what one of them raised."""
        with self._lock:
            threads = list(self._registered_threads.union(threads or ()))
        while any(t.is_alive() for t in threads) and not self.wait_for_stop(1.0):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        while any(t.is_alive() for t in threads) and time.monotonic() < deadline:
            for t in threads:
                t.join(0.1)
        alive = [t.name for t in threads if t.is_alive()]
        with self._lock:
            self._joined = True
            self._registered_threads = set()
            if self._exc_info_to_raise is not None:
                _, error, trace = self._exc_info_to_raise
                raise error.with_traceback(trace)
        if alive and ignore_live_threads:
            logging.info(
                "Coordinator stopped with threads still running: %s", " ".join(alive)
            )
        elif alive:
            raise RuntimeError(
                f"Coordinator stopped with threads still running: {' '.join(alive)}"
            )

    joined = read_only("_joined", "Whether join() has ended.")

    def raise_requested_exception(self):
        """Raises what a thread raised, if one did."""
        with self._lock:
            if self._exc_info_to_raise is not None:
                _, error, trace = self._exc_info_to_raise
                raise error.with_traceback(trace)


class LooperThread(threading.Thread):
    """Runs something until its coordinator asks to stop."""

    def __init__(self, coord, timer_interval_secs, target=None, args=None, kwargs=None):
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        super().__init__(daemon=True)
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        self._target_function = target
        self._arguments = tuple(args or ()), dict(kwargs or {})
        if target is None and (args or kwargs):
            raise ValueError(
                "'args' and 'kwargs' argument require that you also pass 'target'"
            )
        coord.register_thread(self)

    @staticmethod
    def loop(coord, timer_interval_secs, target, args=None, kwargs=None):
        """Starts a thread that calls `target(*args, **kwargs)` until `coord` asks to
        stop.

        `timer_interval_secs` seconds lie between calls; with None they follow one
        another. Returns the thread.
        """
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def run(self):
        """What the thread does: calls run_loop() until the coordinator asks to stop."""
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.time()
                while not self._coord.wait_for_stop(max(0.0, due - time.time())):
                    due += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self):
        """Before the first turn."""

    def stop_loop(self):
        """After the last turn."""

    def run_loop(self):
        """One turn."""
        if self._target_function is not None:
            args, kwargs = self._arguments
            self._target_function(*args, **kwargs)
