"""Calls of functions on tensors with layouts, and the text of their results' layouts.

`python layout_cases.py`, run by a Python with TensorFlow 2.21, prints the rows that
layout_rows.txt keeps: what TensorFlow gives, but for calls that it fails on (many fail
its compiler where a size is not divided evenly; some end the process, so that each
case of shapes is a process of its own).
"""

import sys

ADDED = ("--", "x-", "-x", "xy", "y-", "-y", "yx")
BATCHED = ("---", "x--", "xy-", "-x-", "--x")
MOVED = ("x-", "-x", "xy", "-y")


class Cases:
    def __init__(self, tf, np):
        self.tf, self.np, self.d = tf, np, tf.experimental.dtensor
        devices = [f"CPU:{i}" for i in range(6)]
        self.mesh = self.d.create_mesh([("x", 2), ("y", 3)], devices=devices)

    def tensor(self, specs, shape, dtype="float32"):
        """A tensor whose layout a text says: "x-" is divided by x along the first."""
        count = int(self.np.prod(shape))
        data = self.np.arange(count).reshape(shape) % 7 + 1
        names = [self.d.UNSHARDED if s == "-" else s for s in specs]
        layout = self.d.Layout(names, self.mesh)
        return self.d.relayout(data.astype(dtype), layout)

    def text(self, value):
        if isinstance(value, (list, tuple)):
            return " ".join(map(self.text, value))
        if not self.d.is_dtensor(value):
            return "plain"
        specs = self.d.fetch_layout(value).sharding_specs
        return "".join("-" if s == self.d.UNSHARDED else s for s in specs) or "()"

    def result(self, function):
        try:
            return self.text(function())
        except self.tf.errors.OpError as error:
            return type(error).__name__

    def products(self):
        tf = self.tf
        square = {s: self.tensor(s, (6, 6)) for s in ADDED}
        row = {s: self.tensor(s, (6,)) for s in "-xy"}
        for a in ADDED:
            for b in ADDED:
                yield f"add {a} {b}", lambda: square[a] + square[b]
                yield f"matmul {a} {b}", lambda: tf.matmul(square[a], square[b])
            for b in "-xy":
                yield f"add_row {a} {b}", lambda: square[a] + row[b]
        column, line = self.tensor("x-", (6, 1)), self.tensor("-y", (1, 6))
        for a in ADDED:
            yield f"add_column {a} x-", lambda: square[a] + column
            yield f"add_line {a} -y", lambda: square[a] + line
        for a in ("x-", "-x", "xy"):
            for b in ("--", "-y", "y-"):
                one, two = square[a], square[b]
                yield f"matmul_a {a} {b}", lambda: tf.matmul(one, two, True)
                yield f"matmul_b {a} {b}", lambda: tf.matmul(one, two, False, True)
        cube = {s: self.tensor(s, (6, 6, 6)) for s in BATCHED}
        for a in BATCHED:
            for b in BATCHED:
                yield f"batches {a} {b}", lambda: tf.matmul(cube[a], cube[b])
            for equation, other in (
                ("abc,cd->abd", square["-y"]),
                ("abc,abd->acd", cube["x--"]),
            ):
                yield f"{equation} {a}", lambda: tf.einsum(equation, cube[a], other)
            for equation in ("abc->cab", "abc->b"):
                yield f"{equation} {a}", lambda: tf.einsum(equation, cube[a])

    def moves(self, a):
        tf, nn = self.tf, self.tf.nn
        x, whole = self.tensor(a, (6, 6)), self.tensor("--", (6, 6))
        rows = self.tensor("x", (6,), "int32") - 1
        ids = self.tensor("-", (6,), "int32")
        found = {
            "sum": lambda: tf.reduce_sum(x),
            "sum0": lambda: tf.reduce_sum(x, 0),
            "sum_kept": lambda: tf.reduce_sum(x, 1, keepdims=True),
            "mean": lambda: tf.reduce_mean(x, -1),
            "max": lambda: tf.reduce_max(x, 0),
            "argmax": lambda: tf.argmax(x, 1),
            "all": lambda: tf.reduce_all(x > 0, 0),
            "transpose": lambda: tf.transpose(x),
            "softmax": lambda: nn.softmax(x),
            "log_softmax": lambda: nn.log_softmax(x),
            "relu": lambda: nn.relu(x),
            "cast": lambda: tf.cast(x, tf.int32),
            "flat": lambda: tf.reshape(x, [36]),
            "reshape_623": lambda: tf.reshape(x, [6, 2, 3]),
            "reshape_632": lambda: tf.reshape(x, [6, 3, 2]),
            "reshape_236": lambda: tf.reshape(x, [2, 3, 6]),
            "reshape_661": lambda: tf.reshape(x, [6, 6, 1]),
            "reshape_166": lambda: tf.reshape(x, [1, 6, 6]),
            "reshape_12_3": lambda: tf.reshape(x, [12, 3]),
            "reshape_49": lambda: tf.reshape(x, [4, 9]),
            "expand": lambda: tf.expand_dims(x, 0),
            "expand_last": lambda: tf.expand_dims(x, -1),
            "squeeze": lambda: tf.squeeze(tf.expand_dims(x, 1), [1]),
            "concat0": lambda: tf.concat([x, x], 0),
            "concat1": lambda: tf.concat([x, x], 1),
            "concat_whole": lambda: tf.concat([x, whole], 0),
            "stack0": lambda: tf.stack([x, x], 0),
            "stack1": lambda: tf.stack([x, x], 1),
            "unstack0": lambda: tf.unstack(x, axis=0)[0],
            "unstack1": lambda: tf.unstack(x, axis=1)[0],
            "tile_once": lambda: tf.tile(x, [1, 1]),
            "part": lambda: x[:, :3],
            "part0": lambda: x[0:3],
            "all_of_it": lambda: x[:, :],
            "first": lambda: x[0],
            "first1": lambda: x[:, 0],
            "slice": lambda: tf.slice(x, [0, 0], [6, 2]),
            "slice_all": lambda: tf.slice(x, [0, 0], [6, 6]),
            "gather": lambda: tf.gather(x, [0, 1, 2]),
            "gather_x": lambda: tf.gather(x, rows),
            "gather1": lambda: tf.gather(x, [0, 1, 2], axis=1),
            "gather_nd": lambda: tf.gather_nd(x, [[0, 1]]),
            "embedding": lambda: nn.embedding_lookup(x, rows),
            "where": lambda: tf.where(x > 2, x, whole),
            "add_n": lambda: tf.add_n([x, x]),
            "zeros_like": lambda: tf.zeros_like(x),
            "ones_like": lambda: tf.ones_like(x),
            "shape": lambda: tf.shape(x),
            "rank": lambda: tf.rank(x),
            "size": lambda: tf.size(x),
            "broadcast": lambda: tf.broadcast_to(x, [2, 6, 6]),
            "identity": lambda: tf.identity(x),
            "one_hot": lambda: tf.one_hot(tf.cast(x, tf.int32), 6),
            "cumsum": lambda: tf.cumsum(x),
            "cumsum1": lambda: tf.cumsum(x, 1),
            "sort": lambda: tf.sort(x),
            "top_k": lambda: tuple(tf.math.top_k(x, 2)),
            "clip": lambda: tf.clip_by_value(x, 0, 1),
            "bias_add": lambda: nn.bias_add(x, self.tensor("-", (6,))),
            "l2_loss": lambda: nn.l2_loss(x),
            "sparse_entropy": lambda: nn.sparse_softmax_cross_entropy_with_logits(
                labels=ids % 6, logits=x
            ),
            "entropy": lambda: nn.softmax_cross_entropy_with_logits(x, x),
            "pow": lambda: x**2,
            "neg": lambda: -x,
            "greater": lambda: x > 1.0,
            "segments": lambda: tf.math.unsorted_segment_sum(x, ids % 3, 3),
            "norm": lambda: tf.norm(x),
            "variance": lambda: tf.math.reduce_variance(x, 0),
            "moments": lambda: nn.moments(x, [1]),
            "normalize": lambda: tf.math.l2_normalize(x, 1),
            "equal": lambda: tf.equal(x, x),
            "repeat": lambda: tf.repeat(x, 2, 0),
            "mask": lambda: tf.boolean_mask(x, [True] * 6),
        }
        for name, function in found.items():
            yield f"{name} {a}", function

    def images(self):
        tf = self.tf
        weights = self.tensor("----", (3, 3, 2, 6))
        for a in ("----", "x---"):
            x = self.tensor(a, (6, 6, 6, 2))
            yield f"conv {a}", lambda: tf.nn.conv2d(x, weights, 1, "SAME")
            yield f"max_pool {a}", lambda: tf.nn.max_pool2d(x, 2, 2, "SAME")
            yield f"resize {a}", lambda: tf.image.resize(x, [4, 4])

    def of(self, part):
        return (
            getattr(self, part)()
            if part in ("products", "images")
            else self.moves(part)
        )


PARTS = ("products", "images", *MOVED)


def main():
    import os
    import subprocess

    if len(sys.argv) == 1:
        for part in PARTS:
            sys.stdout.flush()
            subprocess.run([sys.executable, __file__, part], check=True)
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    six = [tf.config.LogicalDeviceConfiguration()] * 6
    tf.config.set_logical_device_configuration(cpu, six)
    cases = Cases(tf, np)
    for label, function in cases.of(sys.argv[1]):
        print(f"{label} => {cases.result(function)}", flush=True)


if __name__ == "__main__":
    main()
