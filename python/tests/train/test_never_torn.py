"""A kill, a full disk, a second writer: the last good checkpoint stays.

`python test_never_torn.py 200` kills that many times and tells what it found;
`python test_never_torn.py full 20` fills a small tmpfs that often (needs the right
to mount, as `unshare -rm` gives it).
"""

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import headrace as tf
import pytest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "saving_program.py")
sys.path.insert(0, os.path.dirname(PROGRAM))
import saving_program


def run(folder, steps, mode, kill_after=None):
    """The program's outcome: its last line, None where it was killed."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM, str(folder), str(steps), mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if kill_after is not None:
        # Begins to count when it saves.
        before = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        while process.poll() is None:
            if os.path.isdir(folder) and set(os.listdir(folder)) != before:
                break
            time.sleep(0.001)
        time.sleep(kill_after)
        process.kill()
    out, err = process.communicate()
    if process.returncode == -9:
        return None
    assert process.returncode == 0, err
    return float(out)


def kill_and_go_on(folder, mode, kills, steps):
    """Kills the program that often; then it must end as if nothing had been."""
    killed = 0
    run(folder, 1, mode)  # a slow machine may kill all others before they saved
    rng = random.Random(len(mode) + kills)
    for _ in range(kills):
        killed += run(folder, 10**6, mode, rng.uniform(0, 0.2)) is None
    if mode == "manager":
        state = tf.train.get_checkpoint_state(str(folder))
        # All but the newest two may be going (several, where kills kept them from
        # it): the state is written before and after that, and the index is what
        # goes first.
        paths = state.all_model_checkpoint_paths
        for path in paths[-2:]:
            read_whole(path)
        for path in paths[:-2]:
            if os.path.exists(path + ".index"):
                read_whole(path)
        step = int(
            tf.train.load_variable(str(folder), "step/.ATTRIBUTES/VARIABLE_VALUE")
        )
    else:
        reader = read_whole(os.path.join(folder, saving_program.SAME))
        step = int(reader.get_tensor("step/.ATTRIBUTES/VARIABLE_VALUE"))
    last = run(folder, step + steps, mode)
    assert last == saving_program.at(step + steps)
    debris = [n for n in os.listdir(folder) if ".tmp" in n]
    assert debris == []
    return killed, step


def read_whole(path):
    reader = tf.train.load_checkpoint(path)
    for name in reader.get_variable_to_shape_map():
        reader.get_tensor(name)
    return reader


@pytest.mark.parametrize("mode", ["manager", "same", "shards"])
def test_killed(tmp_path, mode):
    killed, _ = kill_and_go_on(tmp_path / "f", mode, 3, 2)
    assert killed == 3


FULL = """
import resource, signal, sys
sys.path.insert(0, sys.argv[3])
import headrace as tf
import saving_program
folder = sys.argv[1]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
c = saving_program.make()
manager = tf.train.CheckpointManager(c, folder, max_to_keep=2)
c.restore(manager.latest_checkpoint)
try:
    manager.save()
except tf.errors.OpError as e:
    print(type(e).__name__)
"""


@pytest.mark.parametrize("limit", [0, 100, 30000, 80000, 81000])
def test_full_disk(tmp_path, limit):
    """Files that may not grow stand for the full disk: where the limit hits the
    data, the index or the state, the save fails and leaves nothing."""
    folder = tmp_path / "f"
    run(folder, 3, "manager")
    before = {n: (folder / n).read_bytes() for n in os.listdir(folder)}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(folder), str(limit), os.path.dirname(PROGRAM)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip(), done.stderr
    assert {n: (folder / n).read_bytes() for n in os.listdir(folder)} == before


def fill_and_go_on(folder, times):
    """Fills the disk under a training program that often, each time but for a random
    number of bytes: a save fails and leaves the last good one, from which the next
    start goes on. Returns how many saves failed."""
    rng = random.Random(times)
    ballast = os.path.join(folder, "ballast")
    failed, step = 0, 3
    run(folder, step, "manager")
    for _ in range(times):
        free = os.statvfs(folder)
        room = rng.randrange(0, 100_000)
        with open(ballast, "wb") as f:
            f.write(b"x" * max(0, free.f_bavail * free.f_bsize - room))
        full = subprocess.run(
            [sys.executable, PROGRAM, folder, str(step + 20), "manager"],
            capture_output=True,
            text=True,
        )
        os.remove(ballast)
        if full.returncode:
            failed += 1
            assert "ResourceExhaustedError" in full.stderr, full.stderr
        for path in tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths:
            read_whole(path)
        debris = [n for n in os.listdir(folder) if ".tmp" in n]
        assert debris == []
        step = 2 + int(
            tf.train.load_variable(folder, "step/.ATTRIBUTES/VARIABLE_VALUE")
        )
        assert run(folder, step, "manager") == saving_program.at(step)
    return failed


MAY_MOUNT = (
    shutil.which("unshare")
    and not subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode
)


@pytest.mark.skipif(not MAY_MOUNT, reason="this user may not mount a tmpfs")
def test_full_tmpfs():
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, os.path.abspath(__file__), "full", "3"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "3 saves failed" in done.stdout


SECOND = """
import sys
import headrace as tf
c = tf.train.Checkpoint(v=tf.Variable(1.0))
try:
    if sys.argv[2] == "manager":
        tf.train.CheckpointManager(c, sys.argv[1], max_to_keep=1).save()
    else:
        c.save(sys.argv[1] + "/c")
    print("saved")
except tf.errors.FailedPreconditionError as e:
    print(e.message)
"""


def test_two_writers(tmp_path):
    """Two processes may not rotate one folder's checkpoints; both may save there."""

    def second(how="manager"):
        return subprocess.run(
            [sys.executable, "-c", SECOND, str(tmp_path), how],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(c, str(tmp_path), max_to_keep=2)
    assert "saved" in second()  # this one has not begun
    manager.save()
    assert "another process is saving checkpoints into" in second()
    assert "saved" in second("save")
    again = tf.train.CheckpointManager(c, str(tmp_path), max_to_keep=2)
    again.save()  # of one process
    c.save(str(tmp_path / "other"))
    del manager, again
    assert "saved" in second()


def main_full(times):
    """Full disks, on a tmpfs of its own."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], check=True
        )
        try:
            failed = fill_and_go_on(folder, times)
        finally:
            subprocess.run(["umount", folder], check=True)
    print(f"{failed} saves failed on {times} full disks; every one went on")


def main(kills):
    """Kills in all modes, and tells how many fell while files were written."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    total = 0
    for mode in ("manager", "same", "shards"):
        with tempfile.TemporaryDirectory() as folder:
            share = kills // 3 + (mode == "manager") * (kills % 3)
            killed, step = kill_and_go_on(os.path.join(folder, "f"), mode, share, 3)
            total += killed
            print(f"{mode}: {killed} kills over {step} steps, all intact", flush=True)
    print(f"killed {total} times; every restart went on from an intact checkpoint")


if __name__ == "__main__":
    if sys.argv[1] == "full":
        main_full(int(sys.argv[2]))
    else:
        main(int(sys.argv[1]))
