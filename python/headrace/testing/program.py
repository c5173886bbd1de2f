"""What programs of tests call: tf.test.main, and their folders."""

import os
import sys
import tempfile
import unittest
import unittest.mock as mock  # tf.compat.v1.test.mock

from headrace.testing import benchmark

_state = {}
_BENCHMARKS = "--benchmarks"


def main(argv=None):
    """Runs the tests of the program; with --benchmarks=REGEX instead the benchmarks whose
    full names match, with "all" all of them."""
    argv = list(sys.argv if argv is None else argv)
    for i, argument in enumerate(argv):
        name, equal, regex = argument.partition("=")
        if name == _BENCHMARKS and (equal or i + 1 < len(argv)):
            benchmark.run_matching(regex if equal else argv[i + 1])
            return
    unittest.main(argv=argv)


def get_temp_dir():
    """A folder for files of the tests of this process, emptied when it ends."""
    if "folder" not in _state:
        _state["folder"] = tempfile.TemporaryDirectory(prefix="headrace_test_")
    return _state["folder"].name


def test_src_dir_path(relative_path):
    """The path of a file of the tests, from the environment's TEST_SRCDIR on.

    KeyError if that is not set.
    """
    return os.path.join(os.environ["TEST_SRCDIR"], relative_path)


test_src_dir_path.__test__ = False  # pytest, this is no test
