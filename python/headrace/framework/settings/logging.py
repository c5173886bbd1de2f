"""Messages of the package, by Python's logging under upstream's logger name."""

import logging
import sys

from headrace.context import call_stacks
from headrace.framework.support import signatures

DEBUG, INFO, WARN = logging.DEBUG, logging.INFO, logging.WARNING
ERROR, FATAL = logging.ERROR, logging.FATAL

_logger = []
_counts = {}  # (message, level) -> how often log_every_n and log_first_n met it


class _Stream:
    """sys.stderr as it is when a message is written."""

    def write(self, text):
        sys.stderr.write(text)

    def flush(self):
        sys.stderr.flush()


def get_logger():
    """The logger of the package."""
    if not _logger:
        logger = logging.getLogger("headrace")
        # What a program has set up for all messages gets these too, and then alone.
        if not (logger.handlers or logging.getLogger().handlers):
            handler = logging.StreamHandler(_Stream())
            handler.setFormatter(
                logging.Formatter("%(levelname)s:tensorflow:%(message)s")
            )
            logger.addHandler(handler)
        if logger.level == logging.NOTSET:
            logger.setLevel(INFO)  # as the guides show
        _logger.append(logger)
    return _logger[0]


def _at(level, name, doc):
    def write(message, *args):
        get_logger().log(level, message, *args)

    return signatures.called(write, name, doc)


warn = warning = _at(WARN, "warn", "Logs a warning.")
info = _at(INFO, "info", "Logs a piece of information.")
debug = _at(DEBUG, "debug", "Logs a detail.")
error = _at(ERROR, "error", "Logs an error.")
fatal = _at(FATAL, "fatal", "Logs an error of the gravest kind.")


def task_level_status_message(msg):
    """Logs an error: what a whole task has come to."""
    get_logger().log(ERROR, msg)


def log(level, message, *args):
    """Logs at a level."""
    get_logger().log(level, message, *args)


vlog = log


def log_if(level, msg, condition, *args):
    """Logs where the condition holds."""
    if condition:
        log(level, msg, *args)


def _count(level, message):
    seen = _counts.get((message, level), -1) + 1
    _counts[message, level] = seen
    return seen


def log_every_n(level, msg, n, *args):
    """Logs one in `n` calls with this message."""
    log_if(level, msg, not _count(level, msg) % n, *args)


def log_first_n(level, msg, n, *args):
    """Logs the first `n` calls with this message."""
    log_if(level, msg, _count(level, msg) < n, *args)


def get_verbosity():
    """The level from which messages are shown."""
    return get_logger().getEffectiveLevel()


def set_verbosity(v):
    """Shows messages from level `v` on."""
    get_logger().setLevel(v)


def flush():
    """Nothing is held back."""
    for handler in get_logger().handlers:
        handler.flush()


class _Strict:
    on = False


def enable_strict_mode():
    """From now on what is deprecated raises RuntimeError instead of a warning."""
    _Strict.on = True


def warn_deprecated(name, instead, warned):
    """Warns of the function that calls this one, once each place that calls it.

    `warned` are the places so far, `instead` says what to do. RuntimeError in strict
    mode.
    """
    if _Strict.on:
        raise RuntimeError(
            "This behavior has been deprecated, which raises an error in strict mode."
        )
    caller = sys._getframe(2)
    while caller.f_back and call_stacks.is_internal(caller.f_code.co_filename):
        caller = caller.f_back
    place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    if place in warned:
        return
    warned.add(place)
    warning(
        f"From {place}: {name} (from headrace) is deprecated and will be removed in a "
        f"future version.\nInstructions for updating:\n{instead}"
    )
