"""The `headrace` program, run within this process or as one of its own."""

import json
import os
import subprocess
import sys

from headrace import _load

GOLDEN = os.path.join(os.path.dirname(__file__), "../../../tests/golden")


def golden(*parts):
    return os.path.normpath(os.path.join(GOLDEN, *parts))


class Line:
    """Runs command lines and keeps what they print."""

    def __init__(self, capfd):
        self._capfd = capfd

    def __call__(self, *args, code=0):
        self._capfd.readouterr()
        ended = _load._headrace.run_command([os.fsencode(str(a)) for a in args])
        out, self.err = self._capfd.readouterr()
        assert ended == code, f"{args}: {ended}\n{out}{self.err}"
        return out

    def json(self, *args, code=0):
        return json.loads(self(*args, "--json", code=code))

    def fails(self, *args, code=1):
        """The error's text."""
        assert self(*args, code=code) == ""
        return self.err


def program(*args, **options):
    line = [sys.executable, "-m", "headrace._command", *map(str, args)]
    return subprocess.run(line, capture_output=True, timeout=120, **options)
