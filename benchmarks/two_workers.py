"""Two workers that train a CNN in step, a processor each, beside the same two processes that
train each for itself: by turns, the share of the ideal that is left. A residual network as
that of the peers' `train.cnn` (32x32x3 images, 32 a worker; --width times the channels).

    two_workers.py [--turns N] [--width W] [--tensorflow PYTHON] [--timeline FOLDER]

--timeline: the first worker writes a profile of ten steps in step, for TensorBoard; prints how
much of the time of sums lies beside other work.
"""

import argparse
import glob
import json
import statistics
import subprocess
import sys

from collective import addresses_here

STEPS = 12

_PROGRAM = """
import json, os, sys, time
index, addresses, width, module = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[index]})
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": addresses.split(",")}, "task": {"type": "worker", "index": index}})
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
tf = __import__(module)
tf.get_logger().setLevel("ERROR")
tf.config.threading.set_intra_op_parallelism_threads(1)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
draw = np.random.default_rng(1)

def make():
    made = []
    def var(*shape):
        v = tf.Variable((draw.standard_normal(shape) * 0.1).astype(np.float32))
        made.append(v)
        return v
    def conv(cin, cout, k=3):
        return var(k, k, cin, cout), var(cout), var(cout)
    stem, blocks, cin = conv(3, 16 * width), [], 16 * width
    for c, stride in ((16, 1), (16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        cout = c * width
        short = conv(cin, cout, 1) if cin != cout else None
        blocks.append((conv(cin, cout), conv(cout, cout), short, stride))
        cin = cout
    head = var(cin, 10)
    def apply(c, x, stride=1):
        y = tf.nn.conv2d(x, c[0], stride, "SAME")
        mean, variance = tf.nn.moments(y, [0, 1, 2])
        return tf.nn.batch_normalization(y, mean, variance, c[1], c[2], 1e-3)
    def loss(x, y):
        x = tf.nn.relu(apply(stem, x))
        for a, b, short, stride in blocks:
            z = apply(b, tf.nn.relu(apply(a, x, stride)))
            x = tf.nn.relu(z + (apply(short, x, stride) if short else x))
        logits = tf.matmul(tf.reduce_mean(x, [1, 2]), head)
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return made, loss

x = tf.constant(draw.standard_normal((32, 32, 32, 3)).astype(np.float32))
y = tf.constant(draw.integers(0, 10, 32))

def gradients(weights, loss):
    with tf.GradientTape() as tape:
        value = loss(x, y)
    return value, tape.gradient(value, weights)

own, own_loss = make()
@tf.function
def alone():
    value, found = gradients(own, own_loss)
    for w, g in zip(own, found):
        w.assign_sub(0.01 * g)
    return value
with strategy.scope():
    shared, shared_loss = make()
@tf.function
def together():
    def replica():
        value, found = gradients(shared, shared_loss)
        context = tf.distribute.get_replica_context()
        for w, g in zip(shared, context.all_reduce("MEAN", found)):
            w.assign_sub(0.01 * g)
        return value
    return strategy.run(replica)

def run(step, count):
    since = time.perf_counter()
    for _ in range(count):
        value = step()
    float(value)
    return (time.perf_counter() - since) / count

print("ready", sum(int(np.prod(w.shape)) for w in own) * 4, flush=True)
for line in sys.stdin:
    way, count, folder = json.loads(line)
    if folder:
        tf.profiler.experimental.start(folder)
    print(run({"alone": alone, "together": together}[way], count), flush=True)
    if folder:
        tf.profiler.experimental.stop()
os._exit(0)
"""


class Pair:
    """Two workers that do steps when they are told."""

    def __init__(self, python, module, width):
        addresses = ",".join(addresses_here(2))
        self.processes = [
            subprocess.Popen(
                [python, "-c", _PROGRAM, str(i), addresses, str(width), module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for i in range(2)
        ]
        for p in self.processes:
            while not (line := p.stdout.readline()).startswith("ready"):
                assert line, "a process ended"
        self.bytes = int(line.split()[1])

    def run(self, way, count=STEPS, folder=None):
        """Seconds a step of the slower one."""
        for i, p in enumerate(self.processes):
            p.stdin.write(json.dumps([way, count, folder if i == 0 else None]) + "\n")
            p.stdin.flush()
        return max(float(p.stdout.readline()) for p in self.processes)

    def stop(self):
        for p in self.processes:
            p.kill()
            p.wait()


def overlap(folder):
    """(seconds of sums, the part of these in which other operations ran): of the threads of a
    profile."""
    from headrace.framework.support import protos

    (path,) = glob.glob(f"{folder}/plugins/profile/*/*.xplane.pb")
    with open(path, "rb") as file:
        space = protos.message("tensorflow.profiler.XSpace").FromString(file.read())
    sums, others = [], []
    for plane in space.planes:
        if plane.name != "/host:CPU":
            continue
        for line in plane.lines:
            for event in line.events:
                begin = line.timestamp_ns * 1000 + event.offset_ps
                name = plane.event_metadata[event.metadata_id].name
                span = (begin, begin + event.duration_ps)
                if "CollectiveReduce" in name:
                    sums.append(span)
                elif ":" in name and ": " not in name:  # an operation, no call or step
                    others.append(span)
    others = _joined(others)
    beside = 0
    for begin, end in _joined(sums):
        beside += sum(max(0, min(end, e) - max(begin, b)) for b, e in others)
    total = sum(end - begin for begin, end in _joined(sums))
    return total * 1e-12, beside * 1e-12


def _joined(spans):
    """Spans that do not overlap, in order."""
    found = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--width", type=int, default=1)
    parser.add_argument("--tensorflow")
    parser.add_argument("--timeline")
    given = parser.parse_args()
    pythons = {"headrace": sys.executable, "tensorflow": given.tensorflow}
    for module, python in pythons.items():
        if python is None:
            continue
        pair = Pair(python, module, given.width)
        try:
            for way in ("alone", "together"):
                pair.run(way)
            turns = [
                (pair.run("alone"), pair.run("together")) for _ in range(given.turns)
            ]
            if given.timeline and module == "headrace":
                pair.run("together", 10, given.timeline)
                total, beside = overlap(given.timeline)
                print(
                    f"ten steps: sums under way {total * 1e3:.1f} ms, of these beside other "
                    f"operations {beside * 1e3:.1f} ms"
                )
        finally:
            pair.stop()
        own, shared = (statistics.median(t) * 1e3 for t in zip(*turns))
        shares = sorted(a / b for a, b in turns)
        print(
            f"{module}: gradients {pair.bytes / 1e6:.1f} MB, alone {own:.1f} ms, in step "
            f"{shared:.1f} ms, share of the ideal {statistics.median(shares):.2f} "
            f"({shares[0]:.2f} to {shares[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
