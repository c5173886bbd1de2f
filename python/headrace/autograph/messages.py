"""What AutoGraph says about itself."""

import os
import sys

from headrace.framework.settings import logging

_state = {"verbosity": None, "stdout": False}


def set_verbosity(level, alsologtostdout=False):
    """How much is said of conversions: 0 nothing, up to 10 everything.

    AUTOGRAPH_VERBOSITY in the environment is the level until this is called.
    `alsologtostdout` prints it, too.
    """
    _state.update(verbosity=level, stdout=alsologtostdout)


def verbosity():
    """The level in force."""
    level = _state["verbosity"]
    if level is None:
        level = int(os.environ.get("AUTOGRAPH_VERBOSITY", "0") or 0)
    return level


def log(level, text, *args):
    """Says something where the verbosity is `level` or more."""
    if verbosity() < level:
        return
    if _state["stdout"]:
        print(text % args)
    logging.info(text, *args)


def trace(*args):
    """Prints its arguments where it is called: while a function is traced."""
    print(*args)


def warn_of(function, error):
    """Says that a function runs as it is, and why."""
    logging.warn(
        "AutoGraph could not transform %s and will run it as-is.\nCause: %s\nTo silence "
        "this warning, decorate the function with "
        "@tf.autograph.experimental.do_not_convert",
        function,
        error,
    )
    log(1, "Error transforming entity %s: %s", function, sys.exc_info()[1])
