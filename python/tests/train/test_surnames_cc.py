"""examples/train_names in C++: it learns, and goes on where it was killed."""

import pathlib
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).parents[3]
PROGRAM = ROOT / "build" / "examples" / "train_names"
DATA = ROOT / "examples" / "data" / "surnames.txt"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="no C++ build")


def test_goes_on_where_it_was_killed(tmp_path):
    command = [PROGRAM, "--folder", tmp_path, "--data", DATA, "--epochs", "2"]
    options = dict(stdout=subprocess.PIPE, text=True)
    killed = subprocess.Popen(command, **options)
    deadline = time.time() + 120
    while not list(tmp_path.glob("checkpoint")) and time.time() < deadline:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    out = subprocess.run(command, timeout=240, check=True, **options).stdout
    assert out.startswith("restored ")
    assert float(out.split("test accuracy: ")[1]) > 0.5


def test_refuses_arguments_that_it_has_not():
    assert subprocess.run([PROGRAM, "--epochs", "none"], timeout=60).returncode == 2
