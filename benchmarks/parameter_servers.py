"""Parameter servers beside TensorFlow's, by turns, medians: a step that does nothing on a
server, values pulled from it and pushed to it, a thousand small variables, synchronous steps
of two workers with a model of a thousand floats, and small functions that a coordinator
schedules on two workers.

    parameter_servers.py [--tensorflow PYTHON] [--turns N] [--only WORDS]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import children
import collective

# Bytes, and how often in a turn.
SIZES = {4: 200, 64 << 10: 100, 4 << 20: 20, 64 << 20: 5}

_TASK = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
tf = __import__(sys.argv[1])
tf.distribute.Server(json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4])).join()
"""
# The second worker of synchronous steps: until it is killed, as the first may have to wait for
# gradients beyond as many as its own (those that are late are dropped).
_SECOND = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
tf = __import__(sys.argv[1])
sys.path.insert(0, os.path.dirname(sys.argv[5]))
import parameter_servers
steps = parameter_servers.Synchronous(tf, json.loads(sys.argv[2]), int(sys.argv[4]))
while True:
    steps.run(1)
"""
_FIRST = (
    _SECOND[: _SECOND.index("while")]
    + """
steps.run(5)
print(json.dumps(steps.run(int(sys.argv[6]))), flush=True)
os._exit(0)
"""
)


def _cluster(**jobs):
    addresses = iter(collective.addresses_here(sum(jobs.values())))
    return {job: [next(addresses) for _ in range(n)] for job, n in jobs.items()}


def _start(program, tf, cluster, job, index):
    return subprocess.Popen(
        [sys.executable, "-c", program, tf.__name__, json.dumps(cluster), job]
        + [str(index), os.path.abspath(__file__)]
    )


class Synchronous:
    """A worker of SyncReplicasOptimizer, whose model is a vector of a thousand floats."""

    def __init__(self, tf, cluster, index):
        v1 = tf.compat.v1
        self._server = tf.distribute.Server(cluster, "worker", index)
        setter = v1.train.replica_device_setter(
            cluster=cluster, worker_device=f"/job:worker/task:{index}"
        )
        with tf.Graph().as_default(), v1.device(setter):
            step = v1.train.get_or_create_global_step()
            w = v1.get_variable("w", [1000], use_resource=True)
            loss = tf.reduce_sum((w - 1.0) ** 2)
            optimizer = v1.train.SyncReplicasOptimizer(
                v1.train.GradientDescentOptimizer(0.01), 2
            )
            self._train = optimizer.minimize(loss, global_step=step)
            hook = optimizer.make_session_run_hook(index == 0)
            self._session = v1.train.MonitoredTrainingSession(
                self._server.target, is_chief=index == 0, hooks=[hook]
            )

    def run(self, count):
        took = []
        for _ in range(count):
            since = time.perf_counter()
            self._session.run(self._train)
            took.append(time.perf_counter() - since)
        return took


class _Steps:
    """Steps of one session over a worker and a server."""

    def __init__(self, tf):
        self._tf, self._v1 = tf, tf.compat.v1
        cluster = _cluster(ps=1, worker=1)
        _start(_TASK, tf, cluster, "ps", 0)
        self._server = tf.distribute.Server(cluster, "worker", 0)
        self._made = {}

    def _make(self, way, size):
        tf, v1 = self._tf, self._v1
        graph, count = tf.Graph(), max(1, size // 4)
        with graph.as_default():

            def variable(name, count):
                return v1.get_variable(
                    name, [count], initializer=v1.ones_initializer(), use_resource=True
                )

            with v1.device("/job:ps/task:0"):
                if way == "small":
                    all_small = [variable(f"v{i}", 4) for i in range(1000)]
                else:
                    # Variables of one name are one, whichever graph has them.
                    v = variable(f"{way}{count}", count)
                nothing = tf.no_op()
            with v1.device("/job:worker/task:0"):
                own = variable(f"own_{way}{count}", count)
                if way == "pull":
                    run = tf.reduce_max(tf.identity(v.read_value())[:1]).op
                elif way == "small":
                    run = tf.add_n([tf.identity(v.read_value()) for v in all_small]).op
                read = own.read_value()
            with v1.device("/job:ps/task:0"):
                if way == "push":
                    run = v.assign_add(read, read_value=False)
                    run = getattr(run, "op", run)
                elif way == "nothing":
                    run = nothing
            session = v1.Session(self._server.target, graph=graph)
            session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(run)
        return lambda: session.run(run)

    def time(self, way, size, count):
        if (way, size) not in self._made:
            self._made[way, size] = self._make(way, size)
        return _times(self._made[way, size], count)


class _Coordinator:
    def __init__(self, tf):
        cluster = _cluster(ps=1, worker=2, chief=1)
        for job, index in (("ps", 0), ("worker", 0), ("worker", 1)):
            _start(_TASK, tf, cluster, job, index)
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(cluster),
            task_type="chief",
            task_id=0,
            rpc_layer="grpc",
        )
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            v = tf.Variable(1.0)
        self._function = tf.function(lambda: v + 1.0)

    def time(self, way, count):
        """Of a function that is waited for, or a share of many that are not."""

        def one():
            self._coordinator.schedule(self._function).fetch()

        def many():
            for _ in range(20):
                self._coordinator.schedule(self._function)
            self._coordinator.join()

        for _ in range(3):
            one()
        if way == "wait":
            return _times(one, count)
        return [t / 20 for t in _times(many, count // 20)]


def _times(run, count):
    took = []
    for _ in range(count):
        since = time.perf_counter()
        run()
        took.append(time.perf_counter() - since)
    return took


def begin(tf, np):
    del np
    made = {}

    def answer(request):
        way, count = request["way"], request["count"]
        if way in ("wait", "many"):
            if "coordinator" not in made:
                made["coordinator"] = _Coordinator(tf)
            return {"took": made["coordinator"].time(way, count)}
        if way == "sync":
            return {"took": _synchronous_steps(tf, count)}
        if "steps" not in made:
            made["steps"] = _Steps(tf)
        return {"took": made["steps"].time(way, request["bytes"], count)}

    return answer


def _synchronous_steps(tf, count):
    """In a process of its own, whose session ends with it."""
    cluster = _cluster(ps=1, worker=2)
    others = [
        _start(_TASK, tf, cluster, "ps", 0),
        _start(_SECOND, tf, cluster, "worker", 1),
    ]
    first = subprocess.run(
        [sys.executable, "-c", _FIRST, tf.__name__, json.dumps(cluster), "worker", "0"]
        + [os.path.abspath(__file__), str(count)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    for process in others:
        process.kill()
        process.wait()
    return json.loads(first.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", help="a row's name has this in it", default="")
    given = parser.parse_args()
    rows = {"nothing": dict(way="nothing", bytes=4, count=300)}
    for size, count in SIZES.items():
        for way in ("pull", "push"):
            rows[f"{way} {size} B"] = dict(way=way, bytes=size, count=count)
    rows["1000 variables"] = dict(way="small", bytes=16, count=20)
    rows["synchronous step"] = dict(way="sync", count=50)
    rows["schedule and fetch"] = dict(way="wait", count=100)
    rows["schedule many"] = dict(way="many", count=200)
    rows = {name: row for name, row in rows.items() if given.only in name}
    with children.of_libraries(__file__, given.tensorflow, 1) as libraries:
        took = {name: [[] for _ in libraries] for name in rows}
        for _ in range(given.turns):
            for name, row in rows.items():
                for i, library in enumerate(libraries):
                    answer = library.ask(**row)
                    took[name][i] += answer.get("took", [])
                    if "error" in answer:
                        print(f"{name}: {answer['error']}")
    for name, of_libraries in took.items():
        medians = [statistics.median(t) * 1e3 for t in of_libraries if t]
        text = f"{name:20} {medians[0]:9.3f} ms"
        if len(medians) > 1:
            text += f"   of TensorFlow's {medians[1]:9.3f} ms: {medians[0] / medians[1]:.2f}"
        print(text)


if __name__ == "__main__":
    if "--serve" in sys.argv:
        os.setpgid(0, 0)  # so that what it starts ends with it
        children.serve(sys.argv[-2], int(sys.argv[-1]), begin)
        os.killpg(0, 9)
    main()
