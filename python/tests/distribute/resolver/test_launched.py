"""Processes that launchers start, whose variables say numbers and no addresses."""

import json
import os
import re
import socket
import sys
import threading
import time

import headrace as tf
import launching
import processes
import pytest
from headrace.distribute.resolver import launched, meeting, places

Resolver = tf.distribute.experimental.LaunchedClusterResolver


@pytest.fixture
def environment(monkeypatch):
    """Sets variables, when none of a launcher's is set."""
    for name in list(os.environ):
        if launching.NAMES.fullmatch(name):
            monkeypatch.delenv(name)

    def given(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))

    return given


def torch(rank, size, **more):
    return dict(
        RANK=rank, WORLD_SIZE=size, MASTER_ADDR="127.0.0.1", MASTER_PORT=29500, **more
    )


def open_mpi(rank, size, local=None):
    return dict(
        OMPI_COMM_WORLD_RANK=rank,
        OMPI_COMM_WORLD_SIZE=size,
        OMPI_COMM_WORLD_LOCAL_SIZE=local or size,
        OMPI_MCA_ess_base_jobid=7,
        OMPI_MCA_orte_hnp_uri="77.0;tcp://10.0.0.1,10.1.0.1:4000",
    )


def slurm(rank, size):
    return dict(
        SLURM_PROCID=rank,
        SLURM_STEP_NUM_TASKS=size,
        SLURM_STEP_NODELIST="n1",
        SLURM_STEP_TASKS_PER_NODE=size,
    )


def test_places(environment):
    assert places.place() is None
    environment(PMI_RANK=1, PMI_SIZE=2, MPI_LOCALNRANKS=2)
    by_pmi = places.place()
    assert by_pmi[:3] == ("PMI_RANK and PMI_SIZE", 1, 2) and by_pmi.alone
    assert by_pmi.hosts == ("127.0.0.1",) and len(set(by_pmi.ports)) == 16
    environment(**open_mpi(1, 2, local=1))
    found = places.place()
    assert found.said_by == "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE"
    assert found.hosts == ("10.0.0.1", "10.1.0.1") and not found.alone
    environment(**torch(1, 2))
    found = places.place()
    assert found.said_by == "RANK and WORLD_SIZE" and found.hosts == ("127.0.0.1",)
    assert found.ports == tuple(range(29501, 29517)) and not found.alone
    environment(HEADRACE_MEETING="[::1]:80", LOCAL_WORLD_SIZE=2, MASTER_PORT=65535)
    assert places.place()[4:6] == (("::1",), (80,))


def test_slurm_holds_where_it_counts_the_same(environment):
    environment(**slurm(1, 3), PMI_RANK=1, PMI_SIZE=3)
    assert places.place() is None
    assert type(launched.default_resolver()).__name__ == "SlurmClusterResolver"
    # mpirun in a step: the step is that of its daemons.
    environment(PMI_RANK=4, PMI_SIZE=6, MPI_LOCALNRANKS=6)
    assert places.place().size == 6


def test_the_default(environment):
    resolvers = tf.distribute.cluster_resolver
    assert isinstance(launched.default_resolver(), resolvers.TFConfigClusterResolver)
    environment(**torch(0, 1))
    made = launched.default_resolver()
    assert isinstance(made, Resolver) and (made.task_type, made.task_id) == (
        "worker",
        0,
    )
    assert made.cluster_spec().num_tasks("worker") == 1
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 1
    environment(TF_CONFIG=json.dumps({"cluster": {"worker": ["a:1", "b:2"]}}))
    assert isinstance(launched.default_resolver(), resolvers.TFConfigClusterResolver)


@pytest.mark.parametrize(
    "given, error",
    [
        (dict(RANK=0), "WORLD_SIZE is not in the environment"),
        (dict(WORLD_SIZE=2), "^RANK is not in the environment"),
        (dict(RANK=2, WORLD_SIZE=2), "RANK is 2, and WORLD_SIZE is 2"),
        (dict(RANK="x", WORLD_SIZE=2), "RANK is 'x', no number from 0"),
        (dict(RANK=0, WORLD_SIZE=0), "WORLD_SIZE is '0', no number from 1"),
        (dict(RANK=0, WORLD_SIZE=2), "MASTER_ADDR, where the first one is, is not in"),
        (
            dict(RANK=0, WORLD_SIZE=2, MASTER_ADDR="a", MASTER_PORT="99999"),
            "MASTER_PORT is '99999', no number from 1 to 65535",
        ),
        (
            dict(PMI_RANK=0, PMI_SIZE=2, HEADRACE_MEETING="here"),
            "HEADRACE_MEETING is 'here', no HOST:PORT",
        ),
        (
            dict(PMI_RANK=1, PMI_SIZE=2),
            "nothing says where they meet: set HEADRACE_MEETING=HOST:PORT",
        ),
        (
            torch(1, 2) | open_mpi(0, 2),
            "RANK=1 and WORLD_SIZE=2 contradict OMPI_COMM_WORLD_RANK=0 and "
            "OMPI_COMM_WORLD_SIZE=2: unset",
        ),
        (
            open_mpi(0, 2) | dict(PMI_RANK=0, PMI_SIZE=3, MPI_LOCALNRANKS=3),
            "OMPI_COMM_WORLD_RANK=0 .* contradict PMI_RANK=0 and PMI_SIZE=3",
        ),
        (
            open_mpi(0, 4) | dict(TF_CONFIG='{"cluster": {"worker": ["a:1", "b:1"]}}'),
            "TF_CONFIG names 2 tasks, and OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE "
            "say that there are 4 processes",
        ),
    ],
)
def test_what_is_no_place(environment, given, error):
    environment(**given)
    with pytest.raises(RuntimeError, match=error):
        launched.default_resolver()


def test_launchers_within_others(environment):
    environment(**open_mpi(1, 2), **torch(3, 4, TORCHELASTIC_RUN_ID="x"))
    assert places.place().rank == 3
    environment(TF_CONFIG=json.dumps({"cluster": {"worker": ["a:1"] * 3}}))
    launched.default_resolver()  # the fourth may be an evaluator


def test_jobs(environment):
    environment(**torch(2, 3))
    made = Resolver(jobs={"ps": 1, "worker": 2})
    assert (made.task_type, made.task_id) == ("worker", 1)
    with pytest.raises(
        RuntimeError, match="Requested 2 tasks but RANK and WORLD_SIZE say"
    ):
        Resolver(jobs={"ps": 2})
    for name in torch(0, 1):
        os.environ.pop(name)
    with pytest.raises(RuntimeError, match="RANK and WORLD_SIZE.*not found in env"):
        Resolver()


def place(rank, size, port, job="j", **changed):
    ports = tuple(range(port, port + 3))
    made = places.Place("RANK", rank, size, job, ("127.0.0.1",), ports, True)
    return made._replace(**changed)


def meet(*given, seconds=20.0):
    """What each of the places finds, or its error, by threads."""
    found = {}

    def go(i, at):
        try:
            found[i] = meeting.addresses(at, seconds)
        except Exception as e:  # noqa: BLE001
            found[i] = e

    threads = [threading.Thread(target=go, args=g) for g in enumerate(given)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    return [found[i] for i in range(len(given))]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_they_meet_in_any_order(order):
    (port,) = processes.free_ports(1)
    found = meet(*(place(rank, 3, port) for rank in order))
    assert found[0] == found[1] == found[2] and len(set(found[0])) == 3
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", a) for a in found[0])


def test_ports_of_others_are_passed_over():
    # A server that says nothing, and another job's meeting.
    (port,) = processes.free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        found = meet(
            place(0, 2, port + 1, "other"), place(0, 2, port), place(1, 2, port),
            place(1, 2, port, "other"),
        )  # fmt: skip
    assert found[1] == found[2] and found[0] == found[3] and found[0] != found[1]


def test_who_is_missing_is_told():
    (port,) = processes.free_ports(1)
    first, second = meet(place(0, 3, port), place(1, 3, port), seconds=1.0)
    for e in first, second:
        assert isinstance(e, tf.errors.DeadlineExceededError)
    assert re.search(
        r"process 0 of 3 \(RANK\) waited 1\.\d s [^:]*: (1, )?2 did not", str(first)
    )
    assert re.search(rf"process 1 of 3 .*127\.0\.0\.1, port {port} and", str(second))
    (alone,) = meet(place(2, 3, port), seconds=0.3)
    assert "nobody was there" in str(alone)


def test_two_of_one_number_are_refused():
    (port,) = processes.free_ports(1)
    found = meet(*(place(rank, 3, port) for rank in (0, 1, 1, 2)))
    refused = [f for f in found if isinstance(f, Exception)]
    assert len(refused) == 1 and "there is a process 1 already" in str(refused[0])
    assert isinstance(refused[0], tf.errors.FailedPreconditionError)


def test_strangers_do_no_harm():
    (port,) = processes.free_ports(1)
    texts = [b"GET / HTTP/1.0\r\n\r\n", b"[]\n", b'{"rank": -1, "port": 1}\n', b"x" * 9999,
             b'{"rank": true, "port": "a", "headrace": 3}\n', b""]  # fmt: skip

    def disturb():
        for text in texts:
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(text)

    def late():
        time.sleep(0.3)
        disturb()
        return meeting.addresses(place(1, 2, port), 20.0)

    result = []
    thread = threading.Thread(target=lambda: result.append(late()))
    thread.start()
    assert meeting.addresses(place(0, 2, port), 20.0) == (thread.join() or result[0])


# --- real launchers ---

_SUM = """
import os
import headrace as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
total = strategy.reduce("SUM", 1.0 + strategy.cluster_resolver.task_id, axis=None)
# In one piece, as launchers mix what processes print.
os.write(1, f"sum {strategy.num_replicas_in_sync} {float(total)}\\n".encode())
"""


def sums(done):
    assert done.returncode == 0, done.stderr
    return re.findall(r"sum \d+ \d+\.0", done.stdout)  # lines may run together


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "sum.py"
    path.write_text(_SUM)
    return str(path)


def test_open_mpi(program):
    found = sums(launching.mpirun("openmpi", 3, sys.executable, program))
    assert found == ["sum 3 6.0"] * 3


def test_mpich(program):
    found = sums(launching.mpirun("mpich", 3, sys.executable, program))
    assert found == ["sum 3 6.0"] * 3


def test_torchrun(program):
    """HEADRACE_TORCHRUN: a torchrun, of another Python than ours."""
    torchrun = os.environ.get("HEADRACE_TORCHRUN", "torchrun")
    done = launching.launch(
        torchrun, "--nproc-per-node", "3", "--master-port",
        str(processes.free_ports(1)[0]), "--no-python", sys.executable, program,
    )  # fmt: skip
    found = sums(done)
    assert found == ["sum 3 6.0"] * 3


def test_slurm(program):
    """Two nodes (tools/slurm.sh)."""
    if "SLURM_CONF" not in os.environ:
        pytest.skip("SLURM_CONF names no Slurm: tools/slurm.sh starts one")
    command = ["srun", "-N", "2", "-n", "4", sys.executable, program]
    found = sums(launching.launch(*command))
    assert found == ["sum 4 10.0"] * 4
