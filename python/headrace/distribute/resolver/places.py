"""What the variables of launchers say: which of so many processes this one is, and where
they can meet.

One place decides whose variables hold, the first of these that are set:

1. TF_CONFIG with a cluster (not here: all is told in it),
2. torchrun's RANK and WORLD_SIZE (PyTorchJob operators set the same),
3. Open MPI's OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE,
4. Slurm's, where a step's are as many processes as PMI says, or PMI says nothing,
5. PMI_RANK and PMI_SIZE of MPICH and Intel MPI.

So the inner one of two launchers holds: torchrun and mpirun may run in a Slurm step.
"""

import os
import re
import typing
import zlib

_MEETING = "HEADRACE_MEETING"
_PORTS = 16  # that are tried, as somebody else may listen at some
# Ports of jobs that name none: below those that Linux gives to connections.
_FIRST_PORT, _PORT_RANGE = 20000, 12000


class Place(typing.NamedTuple):
    """One of several processes that were started together.

    Attributes:
      said_by: the names of the variables that say it.
      rank: its number.
      size: how many there are.
      job: what tells this job's processes from another's.
      hosts: where the first one may be, in turn.
      ports: at which it may listen, in turn.
      alone: whether all run on one machine.
    """

    said_by: str
    rank: int
    size: int
    job: str
    hosts: tuple
    ports: tuple
    alone: bool


def _number(name, least, below=1 << 20):
    """A variable's number. RuntimeError where it is not there or is none of these."""
    text = os.environ.get(name)
    if text is None:
        raise RuntimeError(f"{name} is not in the environment")
    if not re.fullmatch(r"\d{1,9}", text) or not least <= int(text) < below:
        raise RuntimeError(f"{name} is {text!r}, no number from {least} to {below - 1}")
    return int(text)


def _rank_and_size(rank, size):
    count = _number(size, 1)
    number = _number(rank, 0)
    if number >= count:
        raise RuntimeError(f"{rank} is {number}, and {size} is {count}")
    return number, count


def _after(port):
    """Ports behind one that is taken, or before it where there are none."""
    step = 1 if port + _PORTS < 1 << 16 else -1
    return tuple(port + step * i for i in range(1, _PORTS + 1))


def _told_meeting():
    """(host, port) of HEADRACE_MEETING, None where it is not set."""
    text = os.environ.get(_MEETING)
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not host or not re.fullmatch(r"\d{1,5}", port) or int(port) > 65535:
        raise RuntimeError(f"{_MEETING} is {text!r}, no HOST:PORT")
    return host.strip("[]"), int(port)


def _meeting(names, rank, size, job, alone, hosts=()):
    """A Place of a job whose launcher says no port of ours."""
    job = f"{job}, {size} processes"
    told = _told_meeting()
    if told is not None:
        return Place(names, rank, size, job, told[:1], told[1:], False)
    first = _FIRST_PORT + zlib.crc32(job.encode()) % _PORT_RANGE
    if os.environ.get("MASTER_ADDR"):
        hosts = (os.environ["MASTER_ADDR"],)
        if os.environ.get("MASTER_PORT"):
            first = _number("MASTER_PORT", 1, 1 << 16)
    elif alone:
        hosts = ("127.0.0.1",)
    if not hosts and size > 1:
        raise RuntimeError(
            f"{names} say that this is process {rank} of {size} on several machines, and "
            f"nothing says where they meet: set {_MEETING}=HOST:PORT of the first one, or "
            "MASTER_ADDR and MASTER_PORT"
        )
    return Place(names, rank, size, job, tuple(hosts), _after(first), alone)


def _torchrun(rank, size):
    """torchrun's place: the port behind MASTER_PORT, where torchrun itself listens."""
    given = os.environ.get
    if size > 1 and not _told_meeting() and not given("MASTER_ADDR"):
        raise RuntimeError(
            f"RANK and WORLD_SIZE say that this is process {rank} of {size}, and "
            "MASTER_ADDR, where the first one is, is not in the environment"
        )
    if size > 1 and not _told_meeting():
        _number("MASTER_PORT", 1, 1 << 16)
    life = given("TORCHELASTIC_RESTART_COUNT", "0")
    job = (
        f"torchrun {given('TORCHELASTIC_RUN_ID')}, {given('MASTER_PORT')}, life {life}"
    )
    alone = given("LOCAL_WORLD_SIZE") == str(size)
    return _meeting("RANK and WORLD_SIZE", rank, size, job, alone)


def _open_mpi(rank, size):
    given = os.environ.get
    # Where mpirun is, and by default the first process: "JOB;tcp://HOST,HOST:PORT".
    uri = given("OMPI_MCA_orte_hnp_uri") or given("PMIX_SERVER_URI") or ""
    found = re.search(r"tcp://([0-9.,]+):", uri)
    job = given("PMIX_NAMESPACE") or given("OMPI_MCA_ess_base_jobid") or uri
    return _meeting(
        "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE",
        rank,
        size,
        f"Open MPI {job}",
        given("OMPI_COMM_WORLD_LOCAL_SIZE") == str(size),
        found[1].split(",") if found else (),
    )


def _starter():
    """The number of the process of the launcher that began this one: all that tells two
    of its jobs on a machine apart. Else that of the session."""
    process = os.getppid()
    while process > 1:
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                name, rest = file.read().rsplit(")", 1)
        except OSError:
            break
        if re.search("hydra|mpiexec|pmi_proxy", name):
            return process
        process = int(rest.split()[1])
    return os.getsid(0)


def _pmi(rank, size):
    job = f"PMI {os.environ.get('PMI_JOBID') or _starter()}"
    alone = os.environ.get("MPI_LOCALNRANKS") == str(size)
    return _meeting("PMI_RANK and PMI_SIZE", rank, size, job, alone)


_LAUNCHERS = {  # variables of the size and the number, and what reads the rest
    "WORLD_SIZE": ("RANK", _torchrun),
    "OMPI_COMM_WORLD_SIZE": ("OMPI_COMM_WORLD_RANK", _open_mpi),
    "PMI_SIZE": ("PMI_RANK", _pmi),
}


def _require_agreement(found):
    """RuntimeError where launchers' variables cannot all be meant: torchrun alone starts
    processes of its own within another's."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        found = [f for f in found if f[0] != "WORLD_SIZE"]
    for (size, *a), (other, *b) in zip(found, found[1:]):
        if a != b and a[1] > 1 and b[1] > 1:
            raise RuntimeError(
                f"{_LAUNCHERS[size][0]}={a[0]} and {size}={a[1]} contradict "
                f"{_LAUNCHERS[other][0]}={b[0]} and {other}={b[1]}: unset those that are "
                "not meant"
            )


def in_slurm_step():
    """Whether Slurm started this process as one of several tasks, or as the only one."""
    names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST")
    return all(os.environ.get(name) for name in names)


def place():
    """The Place that launchers' variables give this process, None where there is none, or
    where Slurm's hold.

    RuntimeError for variables that say no place, or contradict each other; it names them.
    """
    found = [
        (size, *_rank_and_size(rank, size))
        for size, (rank, _) in _LAUNCHERS.items()
        if rank in os.environ or size in os.environ
    ]
    _require_agreement(found)
    if not found:
        return None
    name, rank, size = found[0]
    if name == "PMI_SIZE" and in_slurm_step():
        if os.environ["SLURM_STEP_NUM_TASKS"] == str(size):
            return None
    return _LAUNCHERS[name][1](rank, size)


def require_as_many(tasks):
    """RuntimeError where a launcher started several processes, and not as many as
    TF_CONFIG names `tasks`, which may leave out an evaluator: some would take themselves
    for the same one."""
    found = place()
    if found is None or 1 in (found.size, tasks):
        return
    if found.size not in (tasks, tasks + 1):
        raise RuntimeError(
            f"TF_CONFIG names {tasks} tasks, and {found.said_by} say that there are "
            f"{found.size} processes: unset those that are not meant"
        )
