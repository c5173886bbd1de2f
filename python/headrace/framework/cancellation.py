"""Ending work early: on request, or after some time."""

import contextvars
import numbers

from headrace._load import _headrace

_entered = contextvars.ContextVar("headrace.entered_cancellations", default=())
_headrace.watch_entered_requests(_entered.get)


def checked_timeout(timeout):
    """Seconds as a float, or None for no limit; TypeError and ValueError else."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, numbers.Real):
        raise TypeError(f"`timeout` is a number of seconds or None, got {timeout!r}")
    if not timeout >= 0:
        raise ValueError(f"`timeout` must not be negative, got {timeout!r}")
    return float(timeout)


class Cancellation:
    """A request to stop, which any number of `with` blocks listen to.

        with tf.experimental.Cancellation(timeout=0.5):
            y = f(x)

    Calls made in the block end with `tf.errors.DeadlineExceededError` once `timeout`
    seconds have passed since the Cancellation was made, and with
    `tf.errors.CancelledError` once somebody, on any thread, has called `cancel()`:
    eager operations, traced and concrete functions, gradients, sessions, elements of
    datasets, checkpoints being written. A call that runs ends within milliseconds, or
    with the library call under way; variables are changed whole or not at all. A block
    in a block listens to both, so the earlier deadline wins.

    Blocks follow Python's contexts: coroutines have their own, and a thread that is
    started in a block enters the Cancellation itself if it is to listen. An error of
    an element leaves the iterator as it is: the next call goes on.

    `timeout`: seconds, or None. Without any block calls cost what they always do. A
    request cannot be taken back.
    """

    def __init__(self, timeout=None):
        self._request = _headrace.StopRequest(checked_timeout(timeout))
        self._open = []  # entered and not left, in all contexts

    def cancel(self):
        """Asks for the end; returns at once."""
        self._request.cancel()

    @property
    def cancelled(self):
        """Whether the end was asked for or the time is over."""
        return self._request.cancelled

    def __enter__(self):
        enter(self, _headrace.EnteredRequest(self._request))
        return self

    def __exit__(self, *error):
        leave(self)


def enter(block, entered):
    """Begins a `with` block of `block`, whose `_open` lists those that are not left."""
    block._open.append(entered)
    _entered.set((*(e for e in _entered.get() if e.active), entered))


def leave(block):
    """Ends the block's last one in this context."""
    here = _entered.get()
    # A generator's block may be left in another context than it was entered in.
    open_ = block._open
    mine = next((e for e in reversed(here) if e in open_), open_[-1])
    open_.remove(mine)
    mine.leave()
    _entered.set(tuple(e for e in here if e.active))
