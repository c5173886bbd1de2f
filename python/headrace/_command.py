"""The `headrace` program, as pip installs it: the C++ one within the module, and
the upgrade of programs, which is Python."""

import os
import signal
import sys

from headrace import _load, _names


def main():
    """Runs sys.argv; returns what the process ends with."""
    # As a program of its own: ended at once by Ctrl-C, quietly where nobody
    # reads what it prints.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.argv[1:2] == ["upgrade"]:
        # Found only now: models need nothing of it.
        if _names.load("upgrade.command:is_for_programs")(sys.argv[2:]):
            return _names.load("upgrade.command:main")(sys.argv[2:])
    return _load._headrace.run_command([os.fsencode(arg) for arg in sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
