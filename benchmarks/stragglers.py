"""Synchronous training on a parameter server by four workers whose step is mostly a wait
of 50 ms, one of which is slowed five times: it is stopped four fifths of the time. Steps
of SyncReplicasOptimizer that take the gradients of three of four, of four of four, and of
three workers that are all well; the loss after equal steps, and the gradients that came
too late.

    stragglers.py [--steps N] [--turns N]
"""

import argparse
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(f"{HERE}/../python/tests/distribute")
from straggling import train  # noqa: E402

WAYS = {
    "three, all well": (3, 3, False),
    "three of four, one slowed": (4, 3, True),
    "four of four, one slowed": (4, 4, True),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    found = {name: [] for name in WAYS}
    for _ in range(given.turns):
        for name, (workers, wanted, slowed) in WAYS.items():
            found[name].append(train(workers, wanted, given.steps, slowed))
    well = statistics.median(took for took, *_ in found["three, all well"])
    for name, runs in found.items():
        took, loss, dropped = (statistics.median(all) for all in zip(*runs))
        print(
            f"{name:26} {took * 1e3:6.1f} ms a step, {took / well:.2f} of three;"
            f" loss {loss:.2e} ({min(r[1] for r in runs):.2e} to"
            f" {max(r[1] for r in runs):.2e}), {dropped:.0f} gradients dropped",
            flush=True,
        )


if __name__ == "__main__":
    main()
