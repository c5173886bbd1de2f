"""Workers whose sums go by MPI: under mpirun of Open MPI and of MPICH, of which each is
skipped where it is not installed."""

import json
import os
import shutil
import subprocess
import sys

import headrace as tf
import launching
import pytest
import worker_programs

# A program of worker_programs.py; what it found, and the libraries of MPI in the process.
_PROGRAM = """
import json, os, sys
sys.path.insert(0, {tests!r})
import worker_programs
name, folder = sys.argv[1:]
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
try:
    found = getattr(worker_programs, name)(rank)
finally:
    with open("/proc/self/maps") as maps:
        libraries = {{line.rsplit("/")[-1].strip() for line in maps if "/libmpi" in line}}
with open(f"{{folder}}/{{rank}}.json", "w") as file:
    json.dump([found, sorted(libraries)], file)
"""

both = pytest.mark.parametrize("mpi", ["openmpi", "mpich"])


def mpirun(mpi, count, name, folder, **more):
    """(exit status, what it wrote to stderr, what each worker found); HEADRACE_COLLECTIVES
    is "mpi" unless `more` says otherwise."""
    program = _PROGRAM.format(tests=os.path.dirname(__file__))
    command = [sys.executable, "-c", program, name, str(folder)]
    given = {"HEADRACE_COLLECTIVES": "mpi"} | more
    done = launching.mpirun(mpi, count, *command, **given)
    found = []
    for rank in range(count):
        path = folder / f"{rank}.json"
        found.append(json.loads(path.read_text()) if path.exists() else None)
    return done.returncode, done.stderr, found


def found_by(mpi, count, name, folder, **more):
    status, errors, found = mpirun(mpi, count, name, folder, **more)
    assert status == 0, errors
    assert "not ended in order" not in errors
    library = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[mpi]
    for _, libraries in found:
        assert any(name.startswith(library) for name in libraries), libraries
    return [got for got, _ in found]


@both
def test_values_are_those_of_the_tasks_own_way(mpi, tmp_path):
    found = found_by(mpi, 3, "values", tmp_path)
    assert found == worker_programs.run("values", 3)


@both
def test_training_has_the_same_bits(mpi, tmp_path):
    """A small model: all workers' weights and losses, of each run and each way."""
    found = found_by(mpi, 2, "train", tmp_path)
    assert found[0] == found[1]
    assert found == worker_programs.run("train", 2)


@both
def test_keras_fits(mpi, tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("found", "mpi", "tasks")]
    for folder in folders:
        folder.mkdir()
    found = found_by(mpi, 2, "fit", folders[0], FILES=str(folders[1]))
    monkeypatch.setenv("FILES", str(folders[2]))
    assert found[0] == found[1]
    assert found == worker_programs.run("fit", 2)


@both
def test_workers_that_do_not_agree(mpi, tmp_path):
    for got in found_by(mpi, 2, "disagree", tmp_path):
        assert got["class"] == "InvalidArgumentError", got
        for part in ("Shape mismatch", "task:0", "task:1", "[2]", "[3]"):
            assert part in got["text"], got


@both
def test_a_worker_that_does_not_come(mpi, tmp_path):
    first, second = found_by(mpi, 2, "stall", tmp_path)
    assert first["class"] == "DeadlineExceededError", first
    assert "rank 0 (/job:worker/replica:0/task:0" in first["text"], first
    assert " s for rank 1 (/job:worker/replica:0/task:1" in first["text"], first
    assert "float[2], group 1, instance" in first["text"], first
    assert second["class"] == "DeadlineExceededError", second


def test_members_that_change_do_not_go_by_mpi(tmp_path):
    for got in found_by("mpich", 2, "changing", tmp_path):
        assert got["class"] == "FailedPreconditionError", got
        assert "unset HEADRACE_COLLECTIVES" in got["text"], got


@both
def test_a_worker_that_ends_early(mpi, tmp_path):
    """The other one's sum is an error, and the job ends."""
    status, errors, found = mpirun(mpi, 2, "early", tmp_path)
    assert status != 0, errors
    assert found[1] is None and "this one ends early" in errors
    assert found[0][0]["class"] == "UnavailableError", found
    assert "rank 1 (/job:worker/replica:0/task:1" in found[0][0]["text"], found


# A program that begins MPI itself, with a level of support for threads, and ends it.
_OWN = """
import ctypes, os, sys
import headrace as tf
mpi = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
assert mpi.MPI_Init_thread(None, None, int(sys.argv[2]), ctypes.byref(ctypes.c_int())) == 0
try:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    said = f"sum {float(strategy.reduce('SUM', 1.0, axis=None))}"
except tf.errors.FailedPreconditionError as e:
    said = str(e)
os.write(1, f"{said}; ended {mpi.MPI_Finalize()}\\n".encode())
"""


@both
@pytest.mark.parametrize("level, said", [(3, "sum 2.0; "), (0, "with thread level 0")])
def test_a_program_with_mpi_of_its_own(mpi, level, said):
    library = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[mpi]
    command = [sys.executable, "-c", _OWN, library, str(level)]
    done = launching.mpirun(mpi, 2, *command, HEADRACE_COLLECTIVES="mpi")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(said) == done.stdout.count("ended 0") == 2, done.stdout


def server(environment):
    """What a process writes that begins a task of a cluster of two."""
    program = (
        "import headrace as tf\n"
        "try:\n"
        "  tf.distribute.Server({'worker': ['localhost:0', 'localhost:1']}, 'worker', 0)\n"
        "except tf.errors.OpError as e:\n"
        "  print(type(e).__name__, e)"
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI", "PM"))}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout


def test_without_a_library():
    said = server(
        {"HEADRACE_COLLECTIVES": "mpi", "HEADRACE_MPI_LIBRARY": "/no/libmpi.so"}
    )
    assert said.startswith("FailedPreconditionError")
    assert "no MPI library can be loaded (/no/libmpi.so:" in said, said


def test_without_a_launcher():
    if not any(map(shutil.which, ("mpirun.openmpi", "mpirun.mpich"))):
        pytest.skip("no MPI is installed")
    said = server({"HEADRACE_COLLECTIVES": "mpi"})
    assert said.startswith("FailedPreconditionError"), said
    for part in ("at /job:worker/replica:0/task:0", "mpirun", "OMPI_COMM_WORLD_SIZE"):
        assert part in said, said


def test_what_is_no_engine():
    said = server({"HEADRACE_COLLECTIVES": "gloo"})
    assert 'HEADRACE_COLLECTIVES is "gloo"' in said and '"mpi"' in said, said


def test_a_task_that_is_alone_needs_no_mpi(monkeypatch):
    monkeypatch.setenv("HEADRACE_COLLECTIVES", "mpi")
    assert tf.distribute.Server.create_local_server().target.startswith("grpc://")
