"""Which frames the tracebacks of errors show that are raised while tracing."""

import functools
import types

from headrace.context import call_stacks

_filtering = [True]


def enable_traceback_filtering():
    """Leaves frames of this package out of errors of traced functions, as is done
    unless this is switched off."""
    _filtering[0] = True


def disable_traceback_filtering():
    """Shows frames of this package in errors of traced functions, too: in their
    tracebacks and in what is said of user code."""
    _filtering[0] = False


def is_traceback_filtering_enabled():
    """Whether frames of this package are left out of errors of traced functions."""
    return _filtering[0]


def hides(code):
    """True for code whose frames are left out."""
    return _filtering[0] and call_stacks.is_internal(code.co_filename)


def filtered(function):
    """The function, whose errors show no frames of what is left out below it."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as e:
            e.__traceback__ = _without_hidden(e.__traceback__)
            raise

    return call


def _without_hidden(traceback):
    kept = []
    while traceback is not None:
        if not hides(traceback.tb_frame.f_code):
            kept.append(traceback)
        traceback = traceback.tb_next
    made = None
    for t in reversed(kept):
        made = types.TracebackType(made, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return made
