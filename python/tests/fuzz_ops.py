"""Calls raw ops with hostile arguments for a time: python fuzz_ops.py SECONDS [OP...]

Rounds of hostile.py with rising seeds (from HOSTILE_SEED, else the clock), in as many
processes as there are processors. A case that ends its process is named, and the
round goes on behind its op. The status says whether anything was found.
"""

import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import hostile

PER_ROUND = 7  # cases an op: each way once
CHUNK = 12  # ops a process
SECONDS_AN_OP = 20.0  # with sanitizers, on a loaded machine


def last_case(journal):
    text = journal.read_text(errors="replace") if journal.exists() else ""
    return text.splitlines()[-1] if text else ""


def round_of(ops, seed, folder):
    """What was found in one round over `ops`; restarts behind an op that crashed."""
    found = []
    journal = pathlib.Path(folder) / f"{seed}-{ops[0]}"
    while ops:
        program = os.path.abspath(hostile.__file__)
        command = [sys.executable, program, str(journal), str(seed)]
        try:
            done = subprocess.run(
                [*command, str(PER_ROUND), *ops],
                capture_output=True,
                text=True,
                errors="replace",
                cwd=folder,  # where ops write that take a folder's name
                timeout=SECONDS_AN_OP * len(ops),
            )
            how, told = done.returncode, done.stdout
            errors = done.stderr
        except subprocess.TimeoutExpired:
            how, told, errors = "no end", "", ""
        case = last_case(journal)
        if how == 0:
            break
        if how == 1 and told:
            found.append(told.strip())
            break
        found.append(f"{how}: {case}\n{errors[-4000:]}")
        name = case.split(" ", 1)[0]
        ops = ops[ops.index(name) + 1 :] if name in ops else []
    journal.unlink(missing_ok=True)
    return found


def fuzz(seconds, ops, workers):
    """(rounds, what was found)."""
    end = time.monotonic() + seconds
    seed = int(os.environ.get("HOSTILE_SEED", time.time_ns() % 2**31))
    found, rounds = [], 0

    def jobs():
        nonlocal rounds
        at = seed
        while True:
            order = random.Random(at).sample(ops, len(ops))
            for i in range(0, len(order), CHUNK):
                if time.monotonic() >= end:
                    return
                rounds += 1
                yield order[i : i + CHUNK], at
            at += 1

    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(workers) as pool,
    ):
        waiting = set()
        for chunk, at in jobs():
            waiting.add(pool.submit(round_of, chunk, at, folder))
            if len(waiting) >= 2 * workers:
                done, waiting = concurrent.futures.wait(
                    waiting, return_when=concurrent.futures.FIRST_COMPLETED
                )
                found += [text for job in done for text in job.result()]
        for job in waiting:
            found += job.result()
    return rounds, found


def main(seconds, *ops):
    workers = int(os.environ.get("HOSTILE_WORKERS", len(os.sched_getaffinity(0))))
    rounds, found = fuzz(float(seconds), list(ops) or hostile.names(), workers)
    for text in found:
        print(text)
    print(f"fuzz_ops: {rounds} rounds of {CHUNK} ops, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
