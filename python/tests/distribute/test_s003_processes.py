"""The claims of the introduction about clusters that only several processes can show, one
test each."""

import json
import os
import signal
import subprocess
import threading
import time

import headrace as tf
import numpy as np
import processes
import pytest
import server_programs
import worker_programs

v1, errors = tf.compat.v1, tf.errors
_FOLDER = os.path.dirname(__file__)
_PROGRAM = (
    "import sys; sys.path.insert(0, {!r}); import server_programs as p; "
    "p.main({!r}, *sys.argv[1:])"
)


class Running:
    """Workers and servers that run a way of server_programs."""

    def __init__(self, way, ps, workers):
        self.cluster = processes.Cluster(ps=ps, worker=workers)
        program = _PROGRAM.format(_FOLDER, way)
        for task in self.cluster.tasks():
            self.cluster.begin(*task, program=program, stdin=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.cluster.stop()

    def worker(self, number):
        return self.cluster.processes["worker", number]

    def told(self, worker):
        return json.loads(self.worker(worker).stdout.readline())

    def told_in_all(self, worker):
        """What it tells until it has ended by itself."""
        process = self.worker(worker)
        lines = [json.loads(line) for line in process.stdout]
        assert process.wait(60) == 0
        return lines

    def ask(self, worker, line):
        process = self.worker(worker)
        process.stdin.write(line + "\n")
        process.stdin.flush()


@pytest.fixture(scope="module")
def in_step():
    """What each of two workers told of ten synchronous steps on two servers."""
    with Running("in_step", ps=2, workers=2) as run:
        return [run.told_in_all(i) for i in range(2)]


def test_c34_servers_in_the_middle_or_all_alike():
    with Running("in_step", ps=1, workers=2) as run:  # three processes
        by_servers = [run.told_in_all(i)[-1]["weights"] for i in range(2)]
    assert by_servers[0] == by_servers[1]
    ring = worker_programs.run("train", 3)
    # No worker is special: all have the same bits, those of the sums of their gradients.
    assert ring[0] == ring[1] == ring[2]
    x, y = worker_programs.data()
    off = x @ np.array(ring[0]["weights"][0]) + ring[0]["weights"][1] - y
    assert np.mean(off**2) < ring[0]["losses"][-1] < ring[0]["losses"][0]


def test_c36_tasks_start_in_any_order_without_a_manager():
    cluster = processes.Cluster(ps=1, worker=1)
    with tf.Graph().as_default() as graph, v1.device("/job:ps/task:0"):
        x = tf.constant(2.0) * 3.0
    try:
        cluster.start("worker")
        # Nobody is at the server's address: the error names the task.
        soon = v1.ConfigProto(operation_timeout_in_ms=500)
        with v1.Session(cluster.target("worker"), graph, soon) as session:
            with pytest.raises(
                errors.DeadlineExceededError,
                match="waited in vain for response from worker: /job:ps/.*task:0",
            ):
                session.run(x)
        got = []
        with v1.Session(cluster.target("worker"), graph) as session:
            waits = threading.Thread(target=lambda: got.append(session.run(x)))
            waits.start()
            time.sleep(0.2)
            assert not got
            cluster.start("ps")
            waits.join()
        assert got == [6.0]
        # What takes too long is told with who has not answered.
        with graph.as_default(), v1.device("/job:ps/task:0"):
            never = v1.FIFOQueue(1, [tf.int64]).dequeue()
        with v1.Session(cluster.target("worker"), graph) as session:
            with pytest.raises(
                errors.DeadlineExceededError, match="no answer yet of /job:ps/.*task:0"
            ):
                session.run(never, options=v1.RunOptions(timeout_in_ms=200))
    finally:
        cluster.stop()


def test_c38_large_parameters_stay_consistent(in_step):
    first, second = in_step
    assert first[:-1] == second[:-1]  # after each step, the same bits
    assert [line["step"] for line in first[:-1]] == list(range(1, 11))
    assert len({line["read"] for line in first[:-1]}) == 10
    assert sorted(first[-1]["at"]) == ["/job:ps/task:0", "/job:ps/task:1"]


def test_c43_a_step_is_that_of_the_mean_gradient(in_step):
    weights = np.zeros(server_programs.WIDTH, np.float32)
    for step in range(10):
        gradients = []
        for worker in range(2):
            x, y = server_programs.batch(step, worker)
            gradients.append(2 * x.T @ (x @ weights - y) / len(y))
        weights -= server_programs.RATE * (gradients[0] + gradients[1]) / 2
    for told in in_step:
        np.testing.assert_allclose(told[-1]["weights"], weights, rtol=0, atol=1e-6)


def test_c46_processes_share_variables_by_name():
    # Each process builds a graph of its own; what one wrote another one reads.
    with Running("each_for_itself", ps=1, workers=2) as run:
        run.ask(0, "3")
        assert run.told(0) == {"made": 3}
        run.ask(1, "2")
        assert run.told(1) == {"made": 2}
        for worker in range(2):
            run.worker(worker).stdin.close()
        assert run.told_in_all(0) == [{"made": 3, "count": 5}]
        assert run.told_in_all(1) == [{"made": 2, "count": 5}]


def test_c47_asynchronous_workers_do_not_wait():
    with Running("each_for_itself", ps=1, workers=2) as run:
        for worker in range(2):
            run.ask(worker, "5")
            assert run.told(worker) == {"made": 5}
        stopped = run.worker(1)
        stopped.send_signal(signal.SIGSTOP)
        since = time.monotonic()
        run.ask(1, "5")
        run.ask(0, "20")
        assert run.told(0) == {"made": 25}  # while the other one stands still
        time.sleep(max(0, 2 - (time.monotonic() - since)))
        stopped.send_signal(signal.SIGCONT)
        assert run.told(1) == {"made": 10}
        for worker in range(2):
            run.worker(worker).stdin.close()
        assert run.told_in_all(0) == [{"made": 25, "count": 35}]
        assert run.told_in_all(1) == [{"made": 10, "count": 35}]


def test_c49_synchronous_needs_fewer_steps_asynchronous_has_faster_ones():
    def last_large(losses):
        return max(int(step) for step, loss in losses.items() if loss > 1e-3)

    steps, rates = [], []
    for is_sync in (1, 0):
        with Running(f"one_is_slow {is_sync}", ps=1, workers=2) as run:
            (told,) = run.told_in_all(0)
        steps.append(last_large(told["losses"]))
        rates.append(told["rate"])
    assert steps[0] < steps[1]  # an old gradient leads past the minimum
    assert rates[0] < rates[1]
