"""No arguments, however hostile, end the process or give an unknown error.

tests/hostile.py calls every op of the registry with them in processes of their own;
`python hostile.py JOURNAL SEED COUNT OP...` repeats what a failure names. More cases:
HOSTILE_COUNT, others: HOSTILE_SEED.
"""

import os
import pathlib
import subprocess
import sys

import hostile
import pytest

pytest.importorskip("google.protobuf")
PARTS = 8
SEED = os.environ.get("HOSTILE_SEED", "0")
COUNT = os.environ.get("HOSTILE_COUNT", "10")
SECONDS = float(os.environ.get("HOSTILE_SECONDS", "300"))


@pytest.mark.parametrize("part", range(PARTS))
def test_every_input_may_be_wrong(part, tmp_path):
    check(part, "each", tmp_path)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_op_survives(part, tmp_path):
    check(part, COUNT, tmp_path)


def check(part, count, tmp_path):
    journal = tmp_path / "journal"
    command = [sys.executable, str(pathlib.Path(hostile.__file__)), str(journal)]
    ops = hostile.names()[part::PARTS]
    path = os.pathsep.join(p for p in sys.path if p)
    try:
        done = subprocess.run(
            [*command, SEED, count, *ops],
            capture_output=True,
            text=True,
            errors="replace",
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"no end: {last_line(journal)}")
    if done.returncode:
        pytest.fail(
            f"ended with {done.returncode}: {done.stdout[-3000:]}\n"
            f"last case: {last_line(journal)}\n{done.stderr[-3000:]}"
        )


def last_line(journal):
    lines = journal.read_text(errors="replace").splitlines() if journal.exists() else []
    return lines[-1] if lines else "none"
