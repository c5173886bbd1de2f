"""ResNet-50's layers, each kind beside ONNX Runtime's, for one image and for eight.

    python benchmarks/resnet_layers.py [--peer PYTHON] [--batch N ...] [--turns N]

--peer names a Python that has onnx and onnxruntime; without it only ours are shown.
Both processes stay alive and run by turns, so that a machine whose speed changes meets
both alike. Ours are a session's step times, the peer's those of its profile. A kind's
row: how many layers, the milliseconds of all of them together in a run (best and
median), and the ratio of ours to the peer's.
"""

import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import time

import headrace as tf
import numpy as np

v1 = tf.compat.v1
PEER = pathlib.Path(__file__).parent / "peers" / "resnet_layers_onnx.py"
BETWEEN, CONVOLUTIONS, ALL = "between layers", "all convolutions", "all"
# Seconds behind each turn: both have threads that wait for work spinning a while.
REST = 0.02
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))


class Network:
    """The layers as both build them: dictionaries, in order, each with its kind."""

    def __init__(self):
        self.layers = []
        x, self.size = self.conv("x", 7, 3, 64, 112, stride=2), 56
        x = self.add("pool", x, kind="max pool")
        channels = 64
        for stage, (width, count) in enumerate(STAGES):
            for block in range(count):
                x = self.block(x, channels, width, 2 if stage and not block else 1)
                channels = 4 * width
        x = self.add("mean", x, kind="mean")
        self.add("dense", x, kind="dense", channels=channels, filters=1000)

    def add(self, op, x, **more):
        name = f"layer{len(self.layers):02d}"
        self.layers.append({"op": op, "name": name, "x": x, **more})
        return name

    def conv(
        self, x, window, channels, filters, size, stride=1, residue=None, relu=True
    ):
        kind = f"{window}x{window} {channels}->{filters} @{size}"
        kind += " stride 2" * (stride == 2) + " residue" * (residue is not None)
        how = {"window": window, "channels": channels, "filters": filters}
        return self.add(
            "conv", x, kind=kind, residue=residue, relu=relu, stride=stride, **how
        )

    def block(self, x, channels, width, stride):
        y = self.conv(x, 1, channels, width, self.size)
        self.size //= stride
        y = self.conv(y, 3, width, width, self.size, stride)
        residue = x
        if channels != 4 * width:
            residue = self.conv(
                x, 1, channels, 4 * width, self.size, stride, relu=False
            )
        return self.conv(y, 1, width, 4 * width, self.size, residue=residue)


class Ours:
    """A session whose steps are named after their layers."""

    def __init__(self, layers, batch):
        self.rng = np.random.default_rng(0)
        graph = tf.Graph()
        with graph.as_default():
            self.x = v1.placeholder(tf.float32, [batch, 224, 224, 3])
            values = {"x": self.x}
            for layer in layers:
                with tf.name_scope(layer["name"]):
                    values[layer["name"]] = self.layer(layer, values)
            self.y = values[layers[-1]["name"]]
        self.session = v1.Session(graph=graph)
        self.image = self.rng.standard_normal([batch, 224, 224, 3], dtype=np.float32)
        self.options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)

    def weights(self, *shape):
        scale = np.float32(np.prod(shape[:-1]) ** -0.5)
        return tf.constant(self.rng.standard_normal(shape, dtype=np.float32) * scale)

    def layer(self, layer, values):
        x = values[layer["x"]]
        if layer["op"] == "pool":
            return tf.nn.max_pool2d(x, 3, 2, "SAME")
        if layer["op"] == "mean":
            return tf.reduce_mean(x, [1, 2])
        filters = layer["filters"]
        if layer["op"] == "dense":
            return tf.matmul(x, self.weights(layer["channels"], filters))
        window = layer["window"]
        w = self.weights(window, window, layer["channels"], filters)
        y = tf.nn.conv2d(x, w, layer["stride"], "SAME")
        statistics_of = [tf.zeros([filters]), tf.ones([filters])]
        shift, scale = self.weights(filters), 0.9 * tf.ones([filters])
        y = tf.nn.batch_normalization(y, *statistics_of, shift, scale, 1e-3)
        if layer["residue"]:
            y = y + values[layer["residue"]]
        return tf.nn.relu(y) if layer["relu"] else y

    def run(self):
        """Nanoseconds of each layer, and of what belongs to none."""
        metadata = v1.RunMetadata()
        self.session.run(self.y, {self.x: self.image}, self.options, metadata)
        times = collections.Counter()
        for node in metadata.step_stats.dev_stats[0].node_stats:
            times[node.node_name.split("/")[0]] += node.all_end_rel_nanos
        return times


class Theirs:
    """The peer's process, which answers a line with the times of a run."""

    def __init__(self, python, layers, batch):
        self.process = subprocess.Popen(
            [python, PEER, str(batch), json.dumps(layers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        if not self.process.stdout.readline():
            raise SystemExit("the peer has ended")

    def times(self):
        """Of each run so far, as Ours.run has them."""
        self.process.stdin.close()
        return [collections.Counter(t) for t in json.load(self.process.stdout)]


def by_kind(layers, runs):
    """Milliseconds of each kind, a list of all runs; then of all together."""
    kind_of = {layer["name"]: layer["kind"] for layer in layers}
    kinds = collections.defaultdict(list)
    for times in runs:
        sums = collections.Counter()
        for name, ns in times.items():
            kind = kind_of.get(name, BETWEEN)
            for row in (kind, CONVOLUTIONS if "->" in kind else None, ALL):
                sums[row] += ns / 1e6
        for row, ms in sums.items():
            kinds[row].append(ms)
    return kinds


def show(layers, ours, theirs):
    counts = collections.Counter(layer["kind"] for layer in layers)
    rows = [*counts, BETWEEN, CONVOLUTIONS, ALL]
    print(f"{'':32s}{'ours, ms':>16s}{'peer, ms':>16s}{'ratio':>14s}")
    for row in rows:
        cells, both = [], []
        for times in (ours, theirs):
            both.append(
                (min(times[row]), statistics.median(times[row]))
                if row in times
                else None
            )
            cells.append("{:8.2f}{:8.2f}".format(*both[-1]) if both[-1] else " " * 16)
        if all(both):
            cells.append("{:7.2f}{:7.2f}".format(*(a / b for a, b in zip(*both))))
        print(f"{counts[row] or '':>3} {row:28s}{''.join(cells)}")


def measure(batch, options):
    layers = Network().layers
    ours = Ours(layers, batch)
    theirs = Theirs(options.peer, layers, batch) if options.peer else None
    runs, count = [], max(1, options.runs // batch)
    for turn in range(options.turns + 1):
        made = [ours.run() for _ in range(count)]
        if turn:  # the first plans, and prepares the weights
            runs += made
        time.sleep(REST)
        if theirs:
            theirs.run(count)
            time.sleep(REST)
    print(f"batch {batch}, {len(runs)} runs in {options.turns} turns")
    their_runs = theirs.times()[count:] if theirs else []
    show(layers, by_kind(layers, runs), by_kind(layers, their_runs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--runs", type=int, default=16, help="images a turn")
    options = parser.parse_args()
    for batch in options.batch:
        measure(batch, options)


if __name__ == "__main__":
    main()
