"""All-reduce of 4 B, 64 KB, 4 MB and 64 MB by processes that mpirun starts: a strategy whose
tensors go by MPI, beside the tasks' own way over gRPC. Medians over all turns, of Open MPI
and of MPICH, where they are installed.

    mpi.py [--processes N] [--turns N]
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

PROGRAM = """
import json, os, time
import headrace as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
found = {}
for size, repeats in ((4, 60), (64 << 10, 60), (4 << 20, 20), (64 << 20, 6)):
    x = tf.ones([size // 4])
    strategy.reduce("SUM", x, axis=None)
    found[size] = []
    for _ in range(repeats):
        since = time.perf_counter()
        strategy.reduce("SUM", x, axis=None)
        found[size].append((time.perf_counter() - since) * 1e3)
if strategy.cluster_resolver.task_id == 0:
    os.write(1, (json.dumps(found) + "\\n").encode())
"""


def measured(mpi, processes, carrier):
    """{size: milliseconds} of one job."""
    options = ["--oversubscribe"] if mpi == "openmpi" else []
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        [
            f"mpirun.{mpi}",
            *options,
            "-n",
            str(processes),
            sys.executable,
            "-c",
            PROGRAM,
        ],
        env=os.environ | root | {"HEADRACE_COLLECTIVES": carrier},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {int(size): times for size, times in json.loads(done.stdout).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    ways = [
        (mpi, carrier)
        for mpi in ("openmpi", "mpich")
        if shutil.which(f"mpirun.{mpi}")
        for carrier in ("mpi", "grpc")
    ]
    times = {}
    for _ in range(given.turns):
        for way in ways:
            for size, found in measured(way[0], given.processes, way[1]).items():
                times.setdefault((way, size), []).extend(found)
    for (mpi, carrier), size in times:
        median = statistics.median(times[(mpi, carrier), size])
        print(f"{mpi:8} {carrier:5} {size:9} B {median:9.3f} ms")


if __name__ == "__main__":
    main()
