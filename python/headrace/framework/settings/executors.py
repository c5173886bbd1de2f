"""tf.experimental: where operations and functions run."""

import contextlib

from headrace.context import errors


@contextlib.contextmanager
def async_scope():
    """Operations inside may run later; here they have run when they return."""
    yield


def async_clear_error():
    """Forgets errors of operations that run later: here errors are raised by them."""


_TYPES = ("DEFAULT", "", "SINGLE_THREADED_EXECUTOR")


@contextlib.contextmanager
def function_executor_type(executor_type):
    """Which executor runs functions that are called inside: "DEFAULT", "" or
    "SINGLE_THREADED_EXECUTOR".

    All give the same results; there is one executor, which runs small programs in one
    thread by itself. InvalidArgumentError for what is no string, NotFoundError for other
    names.
    """
    if executor_type is not None and not isinstance(executor_type, str):
        raise errors.InvalidArgumentError._of(
            "Expecting a string value for attr executor_type, got "
            f"{type(executor_type).__name__}"
        )
    if executor_type is not None and executor_type not in _TYPES:
        raise errors.NotFoundError._of(
            "No executor factory registered for the given executor type: "
            f"{executor_type} Registered factories are {{DEFAULT, , "
            "SINGLE_THREADED_EXECUTOR}."
        )
    yield
