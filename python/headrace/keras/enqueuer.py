"""Batches that threads prepare ahead, and threads that run every so often."""

import queue
import random
import threading
from concurrent import futures

_POLL = 0.1  # seconds after which a waiting thread looks whether it is to stop


class SequenceEnqueuer:
    """What fills a queue from a sequence of batches: start(), get() for an iterator over
    the batches, stop()."""

    def __init__(self, sequence, use_multiprocessing=False):
        if use_multiprocessing:
            raise NotImplementedError(
                f"{type(self).__name__}: use_multiprocessing is not supported; batches are "
                "prepared by threads"
            )
        self.sequence = sequence
        self.queue = self._filler = self._pool = None
        self._stopped = threading.Event()

    def is_running(self):
        """Whether start() was called, and stop() not since."""
        return self._filler is not None and not self._stopped.is_set()

    def start(self, workers=1, max_queue_size=10):
        """Begins to fill the queue of so many batches, by `workers` threads."""
        self.queue = queue.Queue(max_queue_size)
        self._stopped.clear()
        self._pool = futures.ThreadPoolExecutor(max(1, workers))
        self._filler = threading.Thread(target=self._fill, daemon=True)
        self._filler.start()

    def stop(self, timeout=None):
        """Ends the threads, and waits for them: `timeout` seconds at most."""
        self._stopped.set()
        if self._filler is not None:
            self._filler.join(timeout)
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _put(self, item):
        """Puts an item into the queue when there is room; False where all is to stop."""
        while not self._stopped.is_set():
            try:
                self.queue.put(item, timeout=_POLL)
                return True
            except queue.Full:
                continue
        return False

    def _fill(self):
        """Puts futures of batches into the queue; None is the end."""
        raise NotImplementedError(f"{type(self).__name__} fills no queue")

    def get(self):
        """An iterator over the batches. What a thread raised is raised here, and all
        stops."""
        while self.is_running():
            try:
                item = self.queue.get(timeout=_POLL)
            except queue.Empty:
                continue
            if item is None:
                return
            try:
                batch = item.result()
            except futures.CancelledError:
                return
            except BaseException:
                self.stop()
                raise
            if batch is not None:
                yield batch


class OrderedEnqueuer(SequenceEnqueuer):
    """Fills a queue from a keras.utils.Sequence, epoch after epoch, in order, or with
    `shuffle` in a new one each epoch."""

    def __init__(self, sequence, use_multiprocessing=False, shuffle=False):
        super().__init__(sequence, use_multiprocessing)
        self.shuffle = shuffle

    def _fill(self):
        order = list(range(len(self.sequence)))
        while True:
            if self.shuffle:
                random.shuffle(order)
            made = []
            for i in order:
                if self._stopped.is_set():
                    return
                made.append(self._pool.submit(self.sequence.__getitem__, i))
                if not self._put(made[-1]):
                    return
            while futures.wait(made, timeout=_POLL).not_done:
                if self._stopped.is_set():
                    return
            self.sequence.on_epoch_end()
            order = list(range(len(self.sequence)))
            if not order:
                self._put(None)
                return


class GeneratorEnqueuer(SequenceEnqueuer):
    """Fills a queue from a generator, to its end. What is None is left out."""

    def __init__(self, generator, use_multiprocessing=False, random_seed=None):
        super().__init__(generator, use_multiprocessing)
        self.random_seed = random_seed  # of processes, as upstream

    def _fill(self):
        while True:
            made = futures.Future()
            try:
                made.set_result(next(self.sequence))
            except StopIteration:
                self._put(None)
                return
            except BaseException as e:  # for the thread that takes it
                made.set_exception(e)
            if not self._put(made) or made.exception() is not None:
                return


class TimedThread:
    """Runs on_interval(), which subclasses define, every `interval` seconds in a thread
    (of the arguments in `kwargs`), from start() to stop() or in a `with` block."""

    def __init__(self, interval, **kwargs):
        self.interval = interval
        self.daemon = kwargs.pop("daemon", True)
        self.thread_kwargs = kwargs
        self.thread = self.thread_stop_event = None

    def _call_on_interval(self):
        while not self.thread_stop_event.is_set():
            self.on_interval()
            self.thread_stop_event.wait(self.interval)

    def start(self):
        """Begins, unless the thread runs already."""
        if self.is_alive():
            return
        self.thread_stop_event = threading.Event()
        self.thread = threading.Thread(
            target=self._call_on_interval, daemon=self.daemon, **self.thread_kwargs
        )
        self.thread.start()

    def stop(self):
        """Ends the thread after the call that runs."""
        if self.thread_stop_event is not None:
            self.thread_stop_event.set()

    def is_alive(self):
        """Whether the thread runs."""
        return self.thread is not None and self.thread.is_alive()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def on_interval(self):
        """What is run. Subclasses define it."""
        raise NotImplementedError(
            "Runs every x interval seconds. Needs to be implemented in subclasses of "
            "`TimedThread`"
        )
