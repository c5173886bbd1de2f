"""What is in force where summaries are written: the writer, the step, the condition."""

import contextlib
import threading

from headrace._load import _headrace, raw
from headrace.context import stack, strategies
from headrace.framework import conversion, dtypes
from headrace.framework.execution import get_static_value

# Collections of graphs, under upstream's names.
SUMMARIES, INITIALIZERS = "_SUMMARY_V2", "_SUMMARY_WRITER_V2"


class _State(threading.local):
    writer = None
    step = None
    recording = True


current = strategies.carry(_State())


def get_step():
    """The default step of this thread: what `set_step` was given, or None."""
    return current.step


def set_step(step):
    """Sets the default step of this thread: an int, an int64 tensor or variable, or
    None for none. A traced function keeps the number that it found; a variable is
    read at each call."""
    current.step = step


@contextlib.contextmanager
def record_if(condition):
    """Writes in a block only where the condition holds: a bool, a tensor or variable of
    one, or a function that gives one, called for each summary."""
    old = current.recording
    current.recording = condition
    try:
        yield
    finally:
        current.recording = old


def recording():
    """Whether summaries are to be written here: a bool, or a tensor of a graph whose
    value is not known yet."""
    if current.writer is None:
        return False
    condition = current.recording
    if not isinstance(condition, bool):
        condition = condition() if callable(condition) else condition
        condition = conversion.convert_to_tensor(condition, dtypes.bool)
        known = get_static_value(condition)
        return condition if known is None else bool(known)
    return condition


def should_record_summaries():
    """A bool tensor: whether there is a default writer and record_if's condition holds."""
    known = recording()
    return (
        conversion.constant(known) if isinstance(known, bool) else raw.Identity(known)
    )


def collect(key, value):
    """Puts a tensor or operation into a collection of the graph being built."""
    if not _headrace.is_eager():
        stack.current().add_to_collection(key, value)
    return value
