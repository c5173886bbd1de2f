"""What workers of parameter servers run in the tests of claims. Each builds its own graph, and
prints lines of JSON."""

import hashlib
import json
import sys
import time

import numpy as np

import headrace as tf

v1 = tf.compat.v1
RATE, ROWS, WIDTH = 0.1, 4, 6
WANTED = np.linspace(-1, 1, WIDTH, dtype=np.float32)


def batch(step, worker):
    """Other rows for each worker and step."""
    draw = np.random.RandomState(100 * step + worker)
    x = draw.rand(ROWS, WIDTH).astype(np.float32)
    return x, x @ WANTED


def tell(**what):
    print(json.dumps(what), flush=True)


class Worker:
    """A server, and a linear model whose weights lie on the parameter servers in parts."""

    def __init__(self, job, index, cluster):
        self.index, self.workers = index, len(cluster["worker"])
        self.server = tf.distribute.Server(cluster, job, index)
        if job == "ps":
            self.server.join()
        v1.disable_eager_execution()
        self.setter = v1.train.replica_device_setter(
            cluster=cluster, worker_device=f"/job:worker/task:{index}"
        )
        with v1.device(self.setter):
            self.step = v1.train.get_or_create_global_step()
            self.weights = v1.get_variable(
                "weights",
                [WIDTH],
                initializer=v1.zeros_initializer(),
                partitioner=v1.fixed_size_partitioner(len(cluster["ps"])),
            )
            self.value = tf.convert_to_tensor(self.weights)
            self.met = v1.get_variable("met", [], initializer=v1.zeros_initializer())
            self.meet_once = self.met.assign_add(1.0, use_locking=True)
            self.x = v1.placeholder(tf.float32, [None, WIDTH])
            self.y = v1.placeholder(tf.float32, [None])
            off = tf.linalg.matvec(self.x, self.value) - self.y
            self.loss = tf.reduce_mean(off * off)

    def update(self, is_sync, gradients=None, rate=RATE):
        """The operation that updates, by default by the loss's gradients, and its hooks."""
        optimizer, hooks = v1.train.GradientDescentOptimizer(rate), []
        with v1.device(self.setter):
            if is_sync:
                optimizer = v1.train.SyncReplicasOptimizer(optimizer, self.workers)
            gradients = gradients or optimizer.compute_gradients(self.loss)
            train = optimizer.apply_gradients(gradients, global_step=self.step)
            if is_sync:
                hooks = [optimizer.make_session_run_hook(self.index == 0, num_tokens=0)]
        return train, hooks

    def session(self, hooks):
        return v1.train.MonitoredTrainingSession(
            self.server.target,
            is_chief=self.index == 0,
            hooks=hooks,
            stop_grace_period_secs=0.2,
        )

    def feed(self, step):
        return dict(zip((self.x, self.y), batch(step, self.index)))

    def wait_for_all(self, session, times):
        """All workers have come here so many times."""
        session.run(self.meet_once)
        while session.run(self.met) < times * self.workers:
            time.sleep(0.001)


def in_step(worker):
    """Ten synchronous steps; after each, what this worker reads on the servers."""
    train, hooks = worker.update(is_sync=True)
    with worker.session(hooks) as session:
        for step in range(10):
            session.run(train, worker.feed(step))
            worker.wait_for_all(session, 2 * step + 1)
            read = session.run(worker.value)
            tell(
                step=int(session.run(worker.step)),
                read=hashlib.sha256(read).hexdigest(),
            )
            worker.wait_for_all(session, 2 * step + 2)
        tell(weights=read.tolist(), at=[w.device for w in worker.weights])


def each_for_itself(worker):
    """Steps until somebody closes the input; then how many there were."""
    train, hooks = worker.update(is_sync=False)
    with worker.session(hooks) as session:
        made = 0
        for line in sys.stdin:
            for _ in range(int(line)):
                session.run(train, worker.feed(made))
                made += 1
            tell(made=made)
        worker.wait_for_all(session, 1)
        tell(made=made, count=int(session.run(worker.step)))


def one_is_slow(worker, is_sync):
    """Updates by gradients of what was read before a computation. The last worker takes twenty
    times as long for that: 0.2 s, in which others that do not wait make twenty updates. The
    losses by the number of updates, and how many there were in a second."""
    read = v1.placeholder(tf.float32, [WIDTH])
    with v1.device("/job:ps/task:0"):
        w = v1.get_variable("w", [WIDTH], initializer=v1.zeros_initializer())
    train, hooks = worker.update(is_sync, [(read - WANTED, w)], rate=0.3)
    is_slow, last = worker.index + 1 == worker.workers, 20 if is_sync else 80
    with worker.session(hooks) as session:
        worker.wait_for_all(session, 1)
        losses, began = {}, time.monotonic()
        while (count := int(session.run(worker.step))) < last:
            value = session.run(w)
            losses[count] = float(np.sum((value - WANTED) ** 2))
            time.sleep(0.2 if is_slow else 0.01)
            if is_slow:
                while not is_sync and session.run(worker.step) < min(count + 20, last):
                    time.sleep(0.001)
            session.run(train, {read: value})
        tell(losses=losses, rate=count / (time.monotonic() - began))


def main(name, job, index, cluster):
    way, *options = name.split()
    globals()[way](Worker(job, int(index), json.loads(cluster)), *map(int, options))


if __name__ == "__main__":
    main(*sys.argv[1:])
