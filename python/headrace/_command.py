"""The `headrace` program, as pip installs it: the C++ one within the module, the
upgrade of programs, which is Python, and the server of the wheel headrace-serving."""

import importlib.util
import os
import signal
import sys

import headrace._load as _load  # (asked as a name of the package it brings the engine)
from headrace import _names


def _server():
    """The server's program, where its wheel is installed; else None."""
    found = importlib.util.find_spec("headrace_serving")
    if found is None or found.origin is None:
        return None
    program = os.path.join(os.path.dirname(found.origin), "headrace-serving")
    return program if os.path.exists(program) else None


def run(words):
    """Does what a line of these words says; returns what the process ends with."""
    if words[:1] == ["upgrade"]:
        # Found only now: models need nothing of it.
        if _names.load("upgrade.command:is_for_programs")(words[1:]):
            return _names.load("upgrade.command:main")(words[1:])
    return _load._headrace.run_command([os.fsencode(word) for word in words])


def main():
    """Runs sys.argv as a program of its own: ended at once by Ctrl-C, quietly where
    nobody reads what it prints."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # What `run -n` starts Python programs with.
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)
    server = _server() if sys.argv[1:2] == ["serve"] else None
    if server is not None and sys.argv[2:] != ["--help"]:
        os.execv(server, ["headrace-serving", *sys.argv[2:]])
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
