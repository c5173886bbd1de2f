"""Synchronous training on a parameter server by workers whose step is mostly a wait of
50 ms, of which one may be slowed."""

import json
import signal
import threading

import processes

SLOWER = 5  # times: it is stopped four fifths of the time
RUNS = 0.02  # seconds at a time

# A worker: JOB INDEX CLUSTER WANTED STEPS. The chief prints seconds a step, the loss and
# how many gradients were dropped.
WORKER = """
import json, os, sys, time
import numpy as np
import headrace as tf
v1 = tf.compat.v1
v1.disable_eager_execution()
index, cluster, wanted, steps = int(sys.argv[2]), *map(json.loads, sys.argv[3:6])
server = tf.distribute.Server(cluster, "worker", index)
draw = np.random.RandomState(index)
with v1.device(v1.train.replica_device_setter(
        cluster=cluster, worker_device=f"/job:worker/task:{index}")):
    step = v1.train.get_or_create_global_step()
    weights = v1.get_variable("weights", initializer=np.zeros(20, np.float32))
    rows = v1.placeholder(tf.float32, [64, 20])
    noise = v1.placeholder(tf.float32, [64])
    wants = tf.linspace(-1.0, 1.0, 20)
    errors = tf.linalg.matvec(rows, weights - wants) + noise
    optimizer = v1.train.SyncReplicasOptimizer(
        v1.train.GradientDescentOptimizer(0.05), wanted, len(cluster["worker"]))
    train = optimizer.minimize(tf.reduce_mean(errors ** 2), global_step=step)
    dropped = optimizer.num_dropped_gradients()
    loss = tf.reduce_sum((weights - wants) ** 2)
filters = ["/job:ps", f"/job:worker/task:{index}"]
with v1.train.MonitoredTrainingSession(
        server.target, is_chief=index == 0, stop_grace_period_secs=0.2,
        config=v1.ConfigProto(device_filters=filters),
        hooks=[optimizer.make_session_run_hook(index == 0)]) as session:
    print("ready", flush=True)
    begun = None
    while True:
        if begun is None and session.run(step) >= 10:
            begun = time.perf_counter()
        # Waits count only while the process runs.
        for _ in range(10):
            time.sleep(0.005)
        fed = {rows: draw.randn(64, 20), noise: 0.1 * draw.randn(64)}
        _, made = session.run([train, step], fed)
        if index == 0 and made >= steps + 10:
            took = (time.perf_counter() - begun) / (made - 10)
            print(json.dumps([took, *map(float, session.run([loss, dropped]))]))
            sys.stdout.flush()
            os._exit(0)
"""


class Slowed:
    """A process that is stopped most of the time."""

    def __init__(self, process):
        self._process, self._over = process, threading.Event()
        self._thread = threading.Thread(target=self._stop_and_go)

    def _stop_and_go(self):
        while not self._over.is_set():
            self._process.send_signal(signal.SIGSTOP)
            self._over.wait(RUNS * (SLOWER - 1))
            self._process.send_signal(signal.SIGCONT)
            self._over.wait(RUNS)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *unused):
        self._over.set()
        self._thread.join()


def train(workers, wanted, steps, slowed):
    """(seconds a step, loss, gradients dropped) of a cluster."""
    cluster = processes.Cluster(ps=1, worker=workers)
    cluster.begin("ps")
    for i in range(workers):
        cluster.begin("worker", i, program=WORKER, given=(wanted, steps))
    first, last = (cluster.processes["worker", i] for i in (0, workers - 1))
    try:
        for i in range(workers):
            cluster.await_ready("worker", i)
        if not slowed:
            return json.loads(first.stdout.readline())
        with Slowed(last):
            return json.loads(first.stdout.readline())
    finally:
        cluster.stop()
