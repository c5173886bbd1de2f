"""Processes of a cluster are killed at random moments, and training goes on.
HEADRACE_KILLS says how often (`make soak-cluster`: 20)."""

import os
import random
import signal
import time

import numpy as np
import pytest
from launching import SOON, await_step, launched, process_of, steps_of

KILLS = int(os.environ.get("HEADRACE_KILLS", "2"))
SEED = int(os.environ.get("HEADRACE_SEED", "1"))


def kill_in_turn(folder, launcher, tasks, by):
    """Kills one task after the other, each when some steps were made since the last;
    the seconds from each kill to the next step."""
    draw = random.Random(SEED)
    away = []
    for kill in range(KILLS):
        await_step(folder, launcher, len(steps_of(folder)) + draw.randrange(9))
        time.sleep(draw.random() * 0.05)
        while (number := process_of(launcher, *tasks[kill % len(tasks)])) is None:
            time.sleep(0.01)
        os.kill(number, by)
        killed = time.time()
        # A step that was under way may still be made.
        time.sleep(0.2)
        again = await_step(folder, launcher, len(steps_of(folder)))
        away.append(again - killed)
    print(f"seconds without a step: {sorted(round(s, 1) for s in away)}")


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_a_ring_goes_on_where_it_was(tmp_path, by):
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    steps = 20 * KILLS + 20
    with launched("ring_that_dies.py", undisturbed, steps, "-n3") as launcher:
        assert launcher.wait(SOON) == 0
    options = ["-n3", "--restarts", "1000"]
    with launched("ring_that_dies.py", disturbed, steps, *options) as launcher:
        # The first one, which saves, among them.
        kill_in_turn(disturbed, launcher, [("worker", i) for i in range(3)], by)
        assert launcher.wait(SOON) == 0
    made = [step for step, _ in steps_of(disturbed)]
    # One that was saved and not yet told may be missing; none is made twice.
    assert made == sorted(set(made)) and made[-1] == steps
    assert len(made) >= steps - KILLS
    a, b = (np.load(f / "last.npy") for f in (undisturbed, disturbed))
    np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_workers_of_servers_go_on(tmp_path, by):
    steps = 40 * KILLS + 200
    options = ["-n2", "--ps", "1", "--restarts", "1000"]
    with launched("servers_that_die.py", tmp_path, steps, *options) as launcher:
        await_step(tmp_path, launcher, 0)
        tasks = [("ps", 0), ("worker", 1), ("worker", 0)]
        kill_in_turn(tmp_path, launcher, tasks, by)
        assert launcher.wait(SOON) == 0
    found = np.load(tmp_path / "last.npy")
    np.testing.assert_allclose(found, np.linspace(-1, 1, 50), atol=1e-3)
