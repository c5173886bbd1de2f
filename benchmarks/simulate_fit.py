"""The simulator (src/simulator) held against real processes: measures the sums of
workers in network namespaces with shaped links, fits the links' model on few of them, and
compares what it then says of more; of steps on parameter servers, and of rings of which a
member is killed and comes again. Needs root, iproute2 and this tree's benchmark
`simulate`; HEADRACE_GRPC_LIBRARY as ever.

    simulate_fit.py [--mbit 25] [--fit 2,3,4] [--check 8,16] [--rings 4,8] [--deaths 7]
                    [--parts sums,servers,rings] [--times FILE | --values NAME=V,...]
"""

import argparse
import itertools
import json
import math
import os
import random
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


# A member of a ring that sums until another one is gone, and says each generation: its
# number and size, and when it had it. Where links are to be idle, one member of each
# generation, the one that is killed of the whole, lets the others wait in their sum.
MEMBER = """
import json, os, sys, time
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": sys.argv[2].split(",")},
    "task": {"type": "worker", "index": int(sys.argv[1])}})
import headrace as tf
workers = tf.distribute.experimental.ElasticStrategy().extended._workers
x, idles = tf.ones([int(sys.argv[3]) // 4]), sys.argv[4] == "idle"
print("ready", flush=True)
sys.stdin.readline()
while True:
    workers.regroup(len(workers.tasks) // 2 + 1, 60.0, 60.0)
    print(workers.generation, workers.count, time.monotonic(), flush=True)
    try:
        while idles and workers.index == workers.count // 2 and workers.end() is None:
            time.sleep(0.01)
        while True:
            workers.sum(x)
    except tf.errors.OpError:
        pass
"""
# Of which a ring is made, and not a swap.
RING_BYTES = 512 << 10


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


class Ring:
    """Members that come and go, one a namespace."""

    def __init__(self, network, links):
        self.network, self.links = network, links
        self.addresses = ",".join(
            f"{network.host(i)}:{PORT}" for i in range(network.count)
        )
        self.processes = [None] * network.count
        for i in range(network.count):
            self.start(i)
        self.begin(range(network.count))

    def start(self, i):
        """A member that is there, and seeks when it is told."""
        command = f"ip netns exec hrsn{i} nice -n -10 {sys.executable} -c".split()
        self.processes[i] = subprocess.Popen(
            command + [MEMBER, str(i), self.addresses, str(RING_BYTES), self.links],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def begin(self, which):
        for i in which:
            assert self.processes[i].stdout.readline().strip() == "ready", i
        for i in which:
            self.processes[i].stdin.write("\n")
            self.processes[i].stdin.flush()

    def reach(self, which, size):
        """When the last of these had a generation of so many that all of them are in;
        those that they made on the way count as time."""
        found = {i: (0, 0, 0.0) for i in which}  # number, size, when
        while True:
            newest = max(number for number, _, _ in found.values())
            late = [i for i in which if found[i][0] < newest or found[i][1] != size]
            if not late:
                return max(at for _, _, at in found.values())
            for i in late:
                number, count, at = self.processes[i].stdout.readline().split()
                found[i] = int(number), int(count), float(at)

    def stop(self):
        for p in self.processes:
            p.kill()
            p.wait()


def measure_rings(counts, mbit, deaths):
    """{(members, "idle" or "full" links): ([seconds from a death until the others have the
    next generation], [seconds from a return until all have one], share of processors)}."""
    found = {}
    for count, links in itertools.product(counts, ("idle", "full")):
        with Network(count, mbit) as network:
            ring = Ring(network, links)
            agreed, joined = [], []
            try:
                everyone, dies = range(count), count // 2
                others = [i for i in everyone if i != dies]
                ring.reach(everyone, count)
                busy = _busy()
                for _ in range(deaths):
                    time.sleep(1 + 0.1 * random.random())
                    since = time.monotonic()
                    ring.processes[dies].kill()
                    agreed.append(ring.reach(others, count - 1) - since)
                    ring.processes[dies].wait()
                    ring.start(dies)
                    assert ring.processes[dies].stdout.readline().strip() == "ready"
                    since = time.monotonic()
                    ring.processes[dies].stdin.write("\n")
                    ring.processes[dies].stdin.flush()
                    joined.append(ring.reach(everyone, count) - since)
                now = _busy()
            finally:
                ring.stop()
        share = (now[0] - busy[0]) / (now[1] - busy[1])
        found[count, links] = agreed, joined, share
    return found


def compare_rings(values, counts, mbit, deaths):
    for (count, links), found in measure_rings(counts, mbit, deaths).items():
        said, (agreed, joined, busy) = simulate_ring(values, count, deaths), found
        for what, took, says in zip(("killed", "again"), (agreed, joined), said):
            middle = statistics.median(took)
            print(
                f"check  {count:3} in a ring, {links} links, {what:6}  "
                f"measured {middle * 1e3:6.0f} ms "
                f"({min(took) * 1e3:.0f} to {max(took) * 1e3:.0f} of {len(took)})  "
                f"simulated {says * 1e3:6.0f} ms  {says / middle - 1:+6.1%}  "
                f"processors {busy:.0%}",
                flush=True,
            )


def compare_training(values, counts, mbit):
    for count, (took, busy) in measure_training(counts, mbit).items():
        said = simulate_training(values, count)
        print(
            f"check  {count:3} workers, {SERVERS} servers  measured "
            f"{took * 1e3:9.2f} ms  simulated {said * 1e3:9.2f} ms  "
            f"{said / took - 1:+6.1%}  processors {busy:.0%}"
        )


# What is fitted: the name of simulate's option, and where it begins.
FITTED = {"link-mbit": 0.9, "delay-ms": 0.3, "message-us": 50.0, "byte-ns": 1.0}


def _run(values, column, what, **options):
    return _row(values, what, **options)[column] / 1e3


def _row(values, what, **options):
    command = [SIMULATE, what]
    for name, value in {**options, **values}.items():
        text = value if isinstance(value, str) else f"{value:.9g}"
        command += [f"--{name}", text]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(word.rstrip("%")) for word in out.splitlines()[1].split()]


def simulate(values, count, size):
    return _run(values, 1, "sums", workers=str(count), bytes=str(size))


def simulate_training(values, count):
    # Of little but what is sent.
    options = {"servers": str(SERVERS), "compute-ms": "1", "steps": str(TURNS)}
    return _run(values, 3, "servers", workers=str(count), bytes=str(TRAINED), **options)


def simulate_ring(values, count, deaths):
    """(seconds from a death, seconds from a return), medians of as many seeds."""
    # Channels try again each second: they are somewhere in it when the member is back.
    rows = [
        _row(
            dict(values, seed=seed, **{"restarts-s": 5 + (seed - 0.5) / deaths}),
            "recovery",
            workers=str(count),
        )
        for seed in range(1, deaths + 1)
    ]
    return [statistics.median(row[of] for row in rows) for of in (3, 4)]


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
    parser.add_argument("--rings", default="4,8")
    parser.add_argument("--deaths", type=int, default=7)
    parser.add_argument(
        "--parts", default="sums,servers,rings", help="what is compared"
    )
    parser.add_argument("--times", help="a file: sums that were measured, kept or read")
    parser.add_argument("--values", help="what a fit has printed, in its place")
    given = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("ip") or not os.path.exists(SIMULATE):
        print("left out: it needs root, iproute2 and build/benchmarks/simulate")
        return
    counts = [[int(n) for n in text.split(",")] for text in (given.fit, given.check)]
    what = given.parts.split(",")
    # Namespaces share the machine's processors.
    fixed = {"processors": os.cpu_count(), "burst-bytes": BURST}
    if given.values:
        pairs = [pair.split("=") for pair in given.values.split(",")]
        values = dict(fixed, **{name: float(value) for name, value in pairs})
        what = [part for part in what if part != "sums"]
    else:
        values = fit_sums(given, counts, "sums" in what, fixed)
    print(" ".join(f"--{name} {value:.4g}" for name, value in values.items()))
    if "servers" in what:
        compare_training(values, sum(counts, []), given.mbit)
    if "rings" in what:
        rings = [int(n) for n in given.rings.split(",")]
        compare_rings(values, rings, given.mbit, given.deaths)


def fit_sums(given, counts, checks, fixed):
    """The options that were fitted; what they say is printed beside what is measured."""
    if given.times and os.path.exists(given.times):
        with open(given.times, encoding="utf-8") as file:
            kept = json.load(file)
        found = {tuple(map(int, k.split())): tuple(v) for k, v in kept.items()}
    else:
        wanted = counts[0] + (counts[1] if checks else [])
        found = measure(wanted, given.mbit)
        if given.times:
            with open(given.times, "w", encoding="utf-8") as file:
                json.dump({f"{c} {s}": v for (c, s), v in found.items()}, file)
    parts = [{k: v for k, v in found.items() if k[0] in some} for some in counts]
    values = dict(fixed, **fit(parts[0], given.mbit, fixed))
    compare(values, parts[0], "fitted")
    if checks:
        compare(values, parts[1], "check")
    return values


if __name__ == "__main__":
    main()
