"""Writes of one Checkpoint that go on while the program does."""

import threading


class AsyncWrites:
    """At most one write at a time, on a thread of its own. The interpreter waits
    for it at its end. What it raises comes out of the next call here."""

    def __init__(self):
        self._thread = None
        self._error = None

    def start(self, write):
        """Runs write() on a thread, behind the write before; at once where the
        system gives no thread."""
        self.wait()

        def run():
            try:
                write()
            except BaseException as error:  # noqa: BLE001
                self._error = error

        thread = threading.Thread(target=run, name="async_checkpoint")
        self._thread = thread
        try:
            thread.start()
        except RuntimeError:
            self._thread = None
            run()

    def wait(self):
        """Returns when nothing is being written; raises what the write raised."""
        thread, self._thread = self._thread, None
        if thread is not None:
            if thread is threading.current_thread():  # a callback asks
                self._thread = thread
                return
            thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    # Copies of a checkpoint have writes of their own.
    def __copy__(self):
        return AsyncWrites()

    def __deepcopy__(self, memo):
        return AsyncWrites()

    def __reduce__(self):
        return AsyncWrites, ()
