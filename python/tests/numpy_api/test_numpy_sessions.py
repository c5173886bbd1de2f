"""What TensorFlow answers about tf.experimental.numpy: tests/golden/sessions.

Each file's first statements choose a mode, in which a process stays: a file has one of
its own.
"""

import pathlib
import subprocess
import sys

import pytest
import sessions

FILES = ("numpy_functions", "numpy_behavior", "numpy_weak", "numpy_safe")
_CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
import sessions
import headrace as tf
for title in sessions.titles(sys.argv[2]):
    sessions.check(sys.argv[2], title, tf)
    print(title)
"""


@pytest.mark.parametrize("name", FILES)
def test_as_recorded(name):
    folder = str(pathlib.Path(sessions.__file__).parent)
    command = [sys.executable, "-c", _CHECK, folder, name]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split("\n")[:-1] == sessions.titles(name)
