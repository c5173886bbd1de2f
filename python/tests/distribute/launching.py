"""Programs of several tasks that `headrace run` starts, and what becomes of them."""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

SOON = 90  # seconds: for a machine that does much else


@contextlib.contextmanager
def launched(program, folder, steps, *options):
    command = [sys.executable, "-m", "headrace._command", "run", *options]
    path = os.path.join(os.path.dirname(__file__), program)
    launcher = subprocess.Popen(
        [*command, "--logs", f"{folder}/logs", path, str(folder), str(steps)],
        start_new_session=True,
    )
    try:
        yield launcher
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()


# Variables of launchers, under one of which a test may run itself.
NAMES = re.compile(
    "TF_CONFIG|RANK|WORLD_SIZE|LOCAL_.*|MASTER_.*|TORCHELASTIC_.*|OMPI_.*|PMIX_.*|PMI_.*|"
    "MPI_.*|SLURM_(?!CONF).*|HEADRACE_MEETING"
)


def launch(*command, **more):
    """What comes of another launcher, without such variables but those in `more`; the test
    is skipped where the launcher is not installed."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    kept = {k: v for k, v in os.environ.items() if not NAMES.fullmatch(k)}
    return subprocess.run(
        command, env=kept | more, capture_output=True, text=True, timeout=240
    )


def mpirun(mpi, count, *command, **more):
    """What comes of mpirun of "openmpi" or "mpich"."""
    options = []
    if mpi == "openmpi":
        options = ["--oversubscribe"]
        more |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return launch(f"mpirun.{mpi}", *options, "-n", str(count), *command, **more)


def children_of(process):
    numbers = []
    for path in glob.glob(f"/proc/{process}/task/*/children"):
        with open(path, encoding="utf-8") as file:
            numbers += map(int, file.read().split())
    return numbers


def process_of(launcher, *task):
    """The number of a task's process now, None where it is being started."""
    for number in children_of(launcher.pid):
        with contextlib.suppress(OSError):
            with open(f"/proc/{number}/environ", encoding="utf-8") as file:
                environment = dict(
                    entry.split("=", 1)
                    for entry in file.read().split("\0")
                    if "=" in entry
                )
            found = json.loads(environment.get("TF_CONFIG", "{}")).get("task", {})
            if (found.get("type"), found.get("index")) == task:
                return number
    return None


def steps_of(folder):
    """(step, when it was saved) of all steps so far."""
    path = f"{folder}/steps"
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")[:-1]
    return [(int(a), float(b)) for a, b in map(str.split, lines)]


def await_step(folder, launcher, after):
    """When the first step behind `after` lines was saved."""
    end = time.monotonic() + SOON
    while len(lines := steps_of(folder)) <= after:
        assert launcher.poll() is None, "the launcher ended"
        assert time.monotonic() < end, "no step is made"
        time.sleep(0.01)
    return lines[after][1]
