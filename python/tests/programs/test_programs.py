"""Whole programs say what TensorFlow says: texts as they are, numbers nearly.

Each program of this folder imports tensorflow, as its users' would; here headrace takes
that name. What TensorFlow and tf_keras print is in tests/golden/programs (record.py).
"""

import os
import pathlib
import re
import subprocess
import sys

import printed
import pytest

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parents[2] / "tests" / "golden" / "programs"
NAMES = sorted(p.stem for p in HERE.glob("*.py") if not p.stem.startswith("test_"))
NAMES.remove("record")
_RUN = (
    "import sys, runpy, headrace, headrace.compat.v1 as v1;"
    "names = {'': headrace, '.compat': headrace.compat, '.compat.v1': v1};"
    "sys.modules.update({'tensorflow' + n: m for n, m in names.items()});"
    "runpy.run_path(sys.argv[1], run_name='__main__')"
)
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")


def run(name):
    """What the program prints."""
    result = subprocess.run(
        [sys.executable, "-c", _RUN, str(HERE / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def assert_alike(found, expected):
    """The same words, in lines of the same numbers to some digits."""
    lines = found.splitlines(), expected.splitlines()
    for line, other in zip(*lines):
        pairs = printed.differing(line, other, _NUMBER)
        assert pairs is not None, f"{line}\nis not\n{other}"
        near = [abs(a - b) <= 2e-3 + 5e-3 * abs(b) for a, b in pairs]
        assert all(near), f"{line}\nis not\n{other}"
    assert len(lines[0]) == len(lines[1])


@pytest.mark.parametrize("name", NAMES)
def test_program(name):
    assert_alike(run(name), (GOLDEN / f"{name}.txt").read_text())


def test_every_golden_file_has_its_program():
    assert sorted(p.stem for p in GOLDEN.glob("*.txt")) == NAMES
    assert len(NAMES) >= 60
    assert sum(n.startswith("tf1_") for n in NAMES) >= 30
