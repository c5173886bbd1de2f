"""A ring whose workers come and go, while those that stay train on."""

import contextlib
import os
import signal
import time

import headrace as tf
import numpy as np
import processes
import pytest

_PATH = os.path.join(os.path.dirname(__file__), "elastic_ring.py")
_PROGRAM = f"import runpy; runpy.run_path({_PATH!r}, run_name='__main__')"
SOON = 90  # seconds: for a machine that does much else


@contextlib.contextmanager
def ring(folder, workers, steps, way, monkeypatch):
    folder.mkdir()
    given = {"FOLDER": str(folder), "STEPS": str(steps), "WAY": way}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    cluster = processes.Cluster(worker=workers)
    try:
        for i in range(workers):
            cluster.begin("worker", i, program=_PROGRAM)
        yield cluster
    finally:
        cluster.stop()


def lines_of(folder, worker):
    """(step, when, how many took part) of a worker's steps so far."""
    path = folder / f"steps-{worker}"
    if not path.exists():
        return []
    found = [line.split() for line in path.read_text().split("\n")[:-1]]
    return [(int(a), float(b), int(c)) for a, b, c in found]


def await_line(folder, worker, where):
    """The first line of which where(line) holds."""
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        for line in lines_of(folder, worker):
            if where(line):
                return line
        time.sleep(0.02)
    raise AssertionError(f"worker {worker}: {lines_of(folder, worker)[-3:]}")


def results(folder, cluster):
    """What each worker ends with: weights and momenta, by worker."""
    for process in cluster.processes.values():
        assert process.wait(SOON) == 0
    return [np.load(folder / f"last-{i}.npy") for _, i in sorted(cluster.processes)]


def undisturbed(tmp_path, steps, way, monkeypatch):
    with ring(tmp_path / "calm", 2, steps, way, monkeypatch) as cluster:
        first, second = results(tmp_path / "calm", cluster)
    np.testing.assert_array_equal(first, second)
    return first


@pytest.mark.slow
@pytest.mark.parametrize(
    "dies, by, way",
    [
        (3, signal.SIGKILL, "ordered"),
        (0, signal.SIGKILL, "summed"),
        (1, signal.SIGTERM, "summed"),
    ],
)
def test_four_three_four(tmp_path, monkeypatch, dies, by, way):
    steps = 120
    folder, stays = tmp_path / "ring", 2
    with ring(folder, 4, steps, way, monkeypatch) as cluster:
        await_line(folder, stays, lambda line: line[0] >= 8)
        numbers = {i: cluster.processes["worker", i].pid for i in range(4)}
        killed = time.time()
        cluster.seconds_to_end("worker", dies, by)
        step, again, _ = await_line(folder, stays, lambda line: line[2] == 3)
        print(f"three go on after {again - killed:.1f} s, at step {step}")
        assert again - killed < 30  # 10 where the machine does nothing else
        cluster.begin("worker", dies, program=_PROGRAM)
        step, *_ = await_line(
            folder, stays, lambda line: line[0] > step and line[2] == 4
        )
        assert step < steps
        found = results(folder, cluster)
        # Those that stayed were never started again.
        for i in {0, 1, 2, 3} - {dies}:
            assert cluster.processes["worker", i].pid == numbers[i]
        for i in range(4):
            made = [step for step, *_ in lines_of(folder, i)]
            assert made == sorted(set(made)) and made[-1] == steps
            # A step that others had made when the ring ended is taken from them.
            assert i == dies or len(made) >= steps - 2
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    calm = undisturbed(tmp_path, steps, way, monkeypatch)
    if way == "ordered":
        np.testing.assert_array_equal(found[0], calm)
    else:
        np.testing.assert_allclose(found[0], calm, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_one_that_stops_for_a_while_comes_back(tmp_path, monkeypatch):
    folder, steps = tmp_path / "ring", 120
    with ring(folder, 3, steps, "ordered", monkeypatch) as cluster:
        await_line(folder, 1, lambda line: line[0] >= 3)
        stopped = cluster.processes["worker", 2]
        stopped.send_signal(signal.SIGSTOP)
        since = time.time()
        step, again, _ = await_line(folder, 1, lambda line: line[2] == 2)
        print(f"two go on after {again - since:.1f} s")
        stopped.send_signal(signal.SIGCONT)
        await_line(folder, 1, lambda line: line[0] > step and line[2] == 3)
        found = results(folder, cluster)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    calm = undisturbed(tmp_path, steps, "ordered", monkeypatch)
    np.testing.assert_array_equal(found[0], calm)


# --- one worker alone ---


@pytest.fixture
def strategy(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    return tf.distribute.experimental.ElasticStrategy()


def test_a_worker_alone(strategy):
    with strategy.scope():
        v = tf.Variable(1.0)
    state = tf.distribute.experimental.ElasticState(strategy, v=v)
    assert state.strategy is strategy and state.commits == 0

    def train():
        v.assign_add(1.0)
        state.commit()
        return list(state.share(3)), state.members

    assert state.run(train) == ([0, 1, 2], ["/job:worker/replica:0/task:0"])
    assert state.commits == 1 and v.numpy() == 2.0
    # Errors of the program are its own.
    with pytest.raises(tf.errors.UnavailableError, match="mine"):
        state.run(
            lambda: (_ for _ in ()).throw(
                tf.errors.UnavailableError(None, None, "mine")
            )
        )
    with pytest.raises(ValueError, match="share: -1 parts"):
        state.share(-1)


def test_what_cannot_be(strategy):
    with pytest.raises(TypeError, match="ElasticState needs an ElasticStrategy"):
        tf.distribute.experimental.ElasticState(tf.distribute.MirroredStrategy())
    with pytest.raises(ValueError, match="min_workers=2 of a cluster of 1 workers"):
        tf.distribute.experimental.ElasticStrategy(min_workers=2)
    with pytest.raises(ValueError, match="`Checkpoint` was expecting x"):
        tf.distribute.experimental.ElasticState(strategy, x=3)
