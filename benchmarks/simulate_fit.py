"""The simulator (src/simulator) held against real processes: measures the sums of
workers in network namespaces with shaped links, fits the links' model on few of them, and
compares what it then says of more. Needs root, iproute2 and this tree's benchmark
`simulate`; HEADRACE_GRPC_LIBRARY as ever.

    simulate_fit.py [--mbit 25] [--fit 2,3,4] [--check 8,16] [--times FILE]
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SIMULATE = os.path.join(HERE, "..", "build", "benchmarks", "simulate")
# What waits for a link's turn leaves as it may; a long burst would carry small sums.
BURST = 16 << 10
PORT = 2222
SIZES = (4, 16 << 10, 256 << 10, 1 << 20, 4 << 20)
REPEATS = {4: 41, 16 << 10: 31, 256 << 10: 15, 1 << 20: 11, 4 << 20: 7}

# A worker that sums when it is told, and says when it began and was done, in the clock
# that all processes of the machine share.
WORKER = """
import json, os, sys, time
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": sys.argv[2].split(",")},
    "task": {"type": "worker", "index": int(sys.argv[1])}})
import headrace as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
reducers = {}
def reducer(size):
    x = tf.ones([size // 4])
    @tf.function(autograph=False)
    def reduced():
        def of_replica():
            context = tf.distribute.get_replica_context()
            return tf.reduce_max(context.all_reduce("SUM", x)[:1])
        return strategy.run(of_replica)
    return reduced
print("ready", flush=True)
for line in sys.stdin:
    size = int(line)
    if size not in reducers:
        reducers[size] = reducer(size)
        for _ in range(2):
            reducers[size]().numpy()
        print("warm", flush=True)
        continue
    since = time.monotonic()
    reducers[size]().numpy()
    print(since, time.monotonic(), flush=True)
os._exit(0)
"""


# A task of training in step: servers join, workers push gradients of one variable a server,
# and the chief says when steps were made.
TRAINER = """
import json, os, sys, time
import headrace as tf
v1 = tf.compat.v1
job, index, cluster = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
size, steps = int(sys.argv[4]), int(sys.argv[5])
server = tf.distribute.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
workers, servers = len(cluster["worker"]), len(cluster["ps"])
own = f"/job:worker/task:{index}"
with tf.Graph().as_default():
    with v1.device(v1.train.replica_device_setter(cluster=cluster, worker_device=own)):
        count = v1.train.get_or_create_global_step()
        weights = [
            v1.get_variable(f"w{i}", [size // 4 // servers],
                            initializer=v1.zeros_initializer())
            for i in range(servers)
        ]
        loss = tf.add_n([tf.reduce_sum(tf.square(w - 1.0)) for w in weights])
        optimizer = v1.train.SyncReplicasOptimizer(
            v1.train.GradientDescentOptimizer(1e-3), replicas_to_aggregate=workers,
            total_num_replicas=workers)
        train = optimizer.minimize(loss, global_step=count)
    hook = optimizer.make_session_run_hook(index == 0)
    with v1.train.MonitoredTrainingSession(
            master=server.target, is_chief=index == 0, hooks=[hook],
            log_step_count_steps=None, save_summaries_steps=None,
            save_checkpoint_secs=None) as session:
        for turn in range(steps):
            session.run(train)
            if index == 0:
                print(time.monotonic(), flush=True)
        time.sleep(30)
"""
SERVERS, TRAINED, TURNS = 2, 512 << 10, 12


def sh(text):
    subprocess.run(text, shell=True, check=True)


class Network:
    """So many namespaces with a link each to a switch, shaped in both directions."""

    def __init__(self, count, mbit):
        self.count, self.mbit = count, mbit

    def __enter__(self):
        self.remove()
        sh("ip netns add hrssw")
        inside = "ip netns exec hrssw"
        sh(f"{inside} ip link add br0 type bridge && {inside} ip link set br0 up")
        shape = f"root tbf rate {self.mbit}mbit burst {BURST} latency 50ms"
        for i in range(self.count):
            own = f"ip netns exec hrsn{i}"
            sh(f"ip netns add hrsn{i}")
            sh(
                f"ip link add hrsv{i} netns hrsn{i} type veth peer name p{i} netns hrssw"
            )
            sh(f"{inside} ip link set p{i} master br0 up")
            sh(f"{own} ip addr add {self.host(i)}/24 dev hrsv{i}")
            sh(f"{own} ip link set hrsv{i} up && {own} ip link set lo up")
            sh(f"{own} tc qdisc add dev hrsv{i} {shape}")
            sh(f"{inside} tc qdisc add dev p{i} {shape}")
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True)
        for line in names.stdout.splitlines():
            name = line.split()[0]
            if name == "hrssw" or name.startswith("hrsn"):
                sh(f"ip netns del {name}")

    def host(self, i):
        return f"10.98.0.{i + 1}"


def _busy():
    """(how long processors worked, how long in all) since the machine started. What runs
    with `nice` gives way to us, and does not count."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, idle, wait, irq, soft = map(
            int, file.readline().split()[1:8]
        )
    work = user + system + irq + soft
    return work, work + nice + idle + wait


class Workers:
    """Processes that sum, one a namespace."""

    def __init__(self, network):
        addresses = ",".join(f"{network.host(i)}:{PORT}" for i in range(network.count))
        python = [sys.executable, "-c", WORKER]
        self.processes = [
            subprocess.Popen(
                ["ip", "netns", "exec", f"hrsn{i}", "nice", "-n", "-10"]
                + python
                + [str(i), addresses],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for i in range(network.count)
        ]
        self._lines("ready")

    def _lines(self, expected=None):
        lines = [p.stdout.readline() for p in self.processes]
        for line in lines:
            assert line if expected is None else line.strip() == expected, lines
        return lines

    def ask(self, size):
        for p in self.processes:
            p.stdin.write(f"{size}\n")
            p.stdin.flush()

    def measure(self, size):
        """(median seconds from the last start to the last end, share of processors)."""
        self.ask(size)
        self._lines("warm")
        took, busy = [], _busy()
        for _ in range(REPEATS[size]):
            self.ask(size)
            times = [tuple(map(float, line.split())) for line in self._lines()]
            took.append(max(t[1] for t in times) - max(t[0] for t in times))
            time.sleep(0.02)
        now = _busy()
        return statistics.median(took), (now[0] - busy[0]) / (now[1] - busy[1])

    def stop(self):
        for p in self.processes:
            p.kill()
            p.wait()


def measure(counts, mbit):
    """{(workers, bytes): (seconds, share of processors)}."""
    found = {}
    for count in counts:
        with Network(count, mbit) as network:
            workers = Workers(network)
            try:
                for size in SIZES:
                    found[count, size] = workers.measure(size)
                    took, busy = found[count, size]
                    print(
                        f"measured {count:3} workers {size:>9} B "
                        f"{took * 1e3:9.2f} ms, processors {busy:.0%}",
                        flush=True,
                    )
            finally:
                workers.stop()
    return found


def measure_training(counts, mbit):
    """{workers: (median seconds a step, share of processors)}, of training in step."""
    found = {}
    for count in counts:
        with Network(SERVERS + count, mbit) as network:
            hosts = [f"{network.host(i)}:{PORT}" for i in range(SERVERS + count)]
            cluster = {"ps": hosts[:SERVERS], "worker": hosts[SERVERS:]}
            processes = []
            try:
                for i in range(SERVERS + count):
                    job, index = ("ps", i) if i < SERVERS else ("worker", i - SERVERS)
                    command = f"ip netns exec hrsn{i} nice -n -10 {sys.executable} -c"
                    words = [job, str(index), json.dumps(cluster), TRAINED, TURNS]
                    processes.append(
                        subprocess.Popen(
                            command.split() + [TRAINER] + list(map(str, words)),
                            stdout=subprocess.PIPE,
                            text=True,
                        )
                    )
                chief = processes[SERVERS].stdout
                # The first turns use up the tokens that training begins with.
                times = [float(chief.readline()) for _ in range(4)]
                busy = _busy()
                times += [float(chief.readline()) for _ in range(TURNS - 4)]
                now = _busy()
            finally:
                for p in processes:
                    p.kill()
                    p.wait()
        took = [b - a for a, b in zip(times[3:], times[4:])]
        share = (now[0] - busy[0]) / (now[1] - busy[1])
        found[count] = statistics.median(took), share
        print(
            f"measured {count:3} workers, {SERVERS} servers "
            f"{found[count][0] * 1e3:9.2f} ms a step, processors {share:.0%}",
            flush=True,
        )
    return found


# What is fitted: the name of simulate's option, and where it begins.
FITTED = {"link-mbit": 0.9, "delay-ms": 0.3, "message-us": 50.0, "byte-ns": 1.0}


def _run(values, column, what, **options):
    command = [SIMULATE, what]
    for name, value in {**options, **values}.items():
        text = value if isinstance(value, str) else f"{value:.9g}"
        command += [f"--{name}", text]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(out.splitlines()[1].split()[column]) / 1e3


def simulate(values, count, size):
    return _run(values, 1, "sums", workers=str(count), bytes=str(size))


def simulate_training(values, count):
    # Of little but what is sent.
    options = {"servers": str(SERVERS), "compute-ms": "1", "steps": str(TURNS)}
    return _run(values, 3, "servers", workers=str(count), bytes=str(TRAINED), **options)


def residuals(logs, fixed, measured):
    values = dict(fixed, **{n: math.exp(v) for n, v in zip(FITTED, logs)})
    return [
        math.log(simulate(values, count, size) / took)
        for (count, size), (took, _) in measured.items()
    ]


def fit(measured, mbit, fixed):
    """The options that bring the simulator nearest to what was measured, by the squares
    of the logarithms (Levenberg and Marquardt)."""
    import numpy as np

    start = dict(FITTED, **{"link-mbit": FITTED["link-mbit"] * mbit})
    logs = np.array([math.log(v) for v in start.values()])
    off = np.array(residuals(logs, fixed, measured))
    damping = 1e-2
    for _ in range(25):
        step = 1e-2
        slopes = np.array(
            [
                (np.array(residuals(logs + step * unit, fixed, measured)) - off) / step
                for unit in np.eye(len(logs))
            ]
        ).T
        squares = slopes.T @ slopes
        change = np.linalg.solve(
            squares + damping * np.diag(np.diag(squares) + 1e-9), -slopes.T @ off
        )
        change = np.clip(change, -1, 1)
        tried = np.array(residuals(logs + change, fixed, measured))
        if tried @ tried < off @ off:
            logs, off, damping = logs + change, tried, damping / 3
            if abs(change).max() < 1e-3:
                break
        else:
            damping *= 4
    return {n: math.exp(v) for n, v in zip(FITTED, logs)}


def compare(values, measured, what):
    worst = 0
    for (count, size), (took, busy) in measured.items():
        said = simulate(values, count, size)
        error = said / took - 1
        worst = max(worst, abs(error))
        print(
            f"{what:6} {count:3} workers {size:>9} B  measured {took * 1e3:9.2f} ms  "
            f"simulated {said * 1e3:9.2f} ms  {error:+6.1%}  processors {busy:.0%}"
        )
    print(f"{what}: at most {worst:.1%} off")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mbit", type=float, default=25)
    parser.add_argument("--fit", default="2,3,4")
    parser.add_argument("--check", default="8,16")
    parser.add_argument("--times", help="a file: what was measured, kept or read")
    given = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("ip") or not os.path.exists(SIMULATE):
        print("left out: it needs root, iproute2 and build/benchmarks/simulate")
        return
    counts = [[int(n) for n in text.split(",")] for text in (given.fit, given.check)]
    if given.times and os.path.exists(given.times):
        with open(given.times, encoding="utf-8") as file:
            kept = json.load(file)
        found = {tuple(map(int, k.split())): tuple(v) for k, v in kept.items()}
    else:
        found = measure(counts[0] + counts[1], given.mbit)
        if given.times:
            with open(given.times, "w", encoding="utf-8") as file:
                json.dump({f"{c} {s}": v for (c, s), v in found.items()}, file)
    parts = [{k: v for k, v in found.items() if k[0] in some} for some in counts]
    # Namespaces share the machine's processors.
    fixed = {"processors": os.cpu_count(), "burst-bytes": BURST}
    values = dict(fixed, **fit(parts[0], given.mbit, fixed))
    print(" ".join(f"--{name} {value:.4g}" for name, value in values.items()))
    compare(values, parts[0], "fitted")
    compare(values, parts[1], "check")
    for count, (took, busy) in measure_training(sum(counts, []), given.mbit).items():
        said = simulate_training(values, count)
        print(
            f"check  {count:3} workers, {SERVERS} servers  measured "
            f"{took * 1e3:9.2f} ms  simulated {said * 1e3:9.2f} ms  "
            f"{said / took - 1:+6.1%}  processors {busy:.0%}"
        )


if __name__ == "__main__":
    main()
