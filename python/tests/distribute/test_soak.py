"""Training while tasks are killed at random, one a minute of each kind of cluster: what
stays alive takes no more memory, threads and sockets than before.

HEADRACE_SOAK_SECONDS says how long (`make soak-cluster`: an hour); with less than twenty
minutes kills come more often.
"""

import contextlib
import os
import random
import statistics
import time

import processes
import pytest
from launching import await_step, launched, process_of, steps_of

SECONDS = float(os.environ.get("HEADRACE_SOAK_SECONDS", "0"))
SEED = int(os.environ.get("HEADRACE_SEED", "1"))
EVERY = min(60, SECONDS / 20)
# Of so many kills a middle is taken.
MIDDLE = 5


def held_by(number):
    """What a process has: (bytes of its own memory, threads, sockets)."""
    with open(f"/proc/{number}/status", encoding="utf-8") as file:
        status = dict(line.split(":", 1) for line in file)
    sockets = 0
    for entry in os.scandir(f"/proc/{number}/fd"):
        with contextlib.suppress(FileNotFoundError):
            sockets += os.readlink(entry.path).startswith("socket:")
    memory = int(status["RssAnon"].split()[0]) << 10
    return memory, int(status["Threads"]), sockets


def elastic_ring(folder):
    path = os.path.join(os.path.dirname(__file__), "elastic_ring.py")
    program = f"import runpy; runpy.run_path({path!r}, run_name='__main__')"
    given = {"FOLDER": str(folder), "STEPS": str(10**9), "WAY": "summed"}
    os.environ.update(given)
    ring = processes.Cluster(worker=3)
    for i in range(3):
        ring.begin("worker", i, program=program)
    return ring, program


def ring_steps(folder):
    path = folder / "steps-0"
    return path.read_text().count("\n") if path.exists() else 0


def check(name, seen):
    """All that was seen of a process, a kill each: flat behind the first third, in which
    tables of what is remembered, such as the numbers of requests, fill."""
    warm = len(seen) // 3
    begin, end = seen[warm : warm + MIDDLE], seen[-MIDDLE:]
    first, last = (
        [statistics.median(values) for values in zip(*some)] for some in (begin, end)
    )
    print(
        f"{name}: {first[0] / 1e6:.1f} to {last[0] / 1e6:.1f} MB,"
        f" threads {first[1]:.0f} to {last[1]:.0f},"
        f" sockets {first[2]:.0f} to {last[2]:.0f}, {len(seen)} kills;"
        f" MB behind each: {' '.join(f'{m / 1e6:.1f}' for m, *_ in seen)}",
        flush=True,
    )
    # A call that is under way may have a thread or a socket of its own.
    return last[0] < 1.05 * first[0] and all(
        b <= a + 2 for a, b in zip(first[1:], last[1:])
    )


def there(launcher, job, index):
    """The number of a task's process, which may be about to begin again."""
    until = time.monotonic() + 90
    while (found := process_of(launcher, job, index)) is None:
        assert time.monotonic() < until, f"{job} {index} does not begin again"
        time.sleep(0.5)
    return found


@pytest.mark.slow
@pytest.mark.skipif(SECONDS == 0, reason="HEADRACE_SOAK_SECONDS says for how long")
def test_training_with_deaths_takes_no_more(tmp_path):
    servers, ring_folder = tmp_path / "servers", tmp_path / "ring"
    ring_folder.mkdir()
    options = ["-n2", "--ps", "1", "--restarts", "100000"]
    draw = random.Random(SEED)
    with launched("servers_that_die.py", servers, 10**9, *options) as launcher:
        ring, program = elastic_ring(ring_folder)
        try:
            await_step(servers, launcher, 0)
            kept = {
                "server": process_of(launcher, "ps", 0),
                "chief": process_of(launcher, "worker", 0),
                "first of the ring": ring.processes["worker", 0].pid,
            }
            seen = {name: [] for name in [*kept, "launcher"]}
            kept["launcher"] = launcher.pid
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                time.sleep(EVERY * (0.5 + draw.random() / 2))
                other = draw.choice([1, 2])
                ring.kill("worker", other)
                os.kill(there(launcher, "worker", 1), 9)
                time.sleep(EVERY / 4)
                ring.begin("worker", other, program=program)
                made = len(steps_of(servers)), ring_steps(ring_folder)
                # Both train on, and all are there again.
                await_step(servers, launcher, made[0])
                until = time.monotonic() + 90
                while ring_steps(ring_folder) < made[1] + 30:
                    assert time.monotonic() < until, "the ring makes no steps"
                    time.sleep(0.5)
                for name, number in kept.items():
                    seen[name].append(held_by(number))
        finally:
            ring.stop()
    flat = [check(name, all_seen) for name, all_seen in seen.items()]
    assert all(flat), seen
