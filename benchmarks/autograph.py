"""What AutoGraph costs while functions are traced. Rows are measured in turns; the
least of many counts.

    python benchmarks/autograph.py

"1,000 ops" are operators and calls in a Python loop, traced with AutoGraph and without:
milliseconds, and how much more the first takes. "model" is a file of 1,000 lines, its
functions converted and traced by a new process, after everything is imported: from its
source (at most 0.3 s) and from the converted code that the process before kept (0.1 s).
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

import headrace as tf

REPEATS, PROCESSES = 15, 5

_BLOCK = """

class Block{n}(tf.Module):
    def __init__(self, width, scale, deep):
        super().__init__()
        self.width = width
        self.scale = scale
        self.deep = deep
        self.kernel = tf.Variable(tf.ones([width, width]) * 0.01)
        self.bias = tf.Variable(tf.zeros([width]))

    def gated(self, x, training):
        if training and self.scale > 0.5:
            x = x * self.scale
        elif not self.deep:
            x = x - 0.5
        return tf.nn.relu(x)

    def __call__(self, x, training=False):
        y = tf.matmul(x, self.kernel) + self.bias
        for k in range(2):
            y = self.gated(y, training) + k * 0.125
            if k > 0 and self.width > 100:
                break
        if self.deep:
            total = tf.reduce_sum(y, axis=-1, keepdims=True)
            if tf.reduce_mean(total) > 0.0:
                y = y / (tf.abs(total) + 1.0)
            else:
                y = y * 0.5
        parts = [tf.reduce_max(y, axis=a, keepdims=True) for a in (0, 1)]
        for part in parts:
            y = y + part
        return x + y if training else x - y
"""
_MODEL = """

@tf.function
def model(x, training=True):
    for block in BLOCKS:
        x = block(x, training)
    return x
"""
_RUN = '''"""Imports all that is needed, then measures."""

import time

import headrace as tf
import model_file


@tf.function
def first(x):
    for _ in tf.range(2):
        if x > 0.0:
            x = tf.nn.relu(tf.abs(x))
    return x


first(tf.ones([]))
start = time.process_time()
model_file.model.get_concrete_function(tf.TensorSpec([None, 8]))
print(time.process_time() - start)
'''


def text_of_model():
    """A file of 1,000 lines."""
    text = '"""A model."""\n\nimport headrace as tf\n'
    n = 0
    while text.count("\n") + _BLOCK.count("\n") < 990:
        text += _BLOCK.replace("{n}", str(n))
        n += 1
    text += "\n\nBLOCKS = [\n"
    blocks = (f"    Block{i}(8, {i % 3} / 2, {i % 2 == 0}),\n" for i in range(n))
    return text + "".join(blocks) + "]\n" + _MODEL


def seconds_to_trace(folder):
    """Of the model, by a process of its own."""
    done = subprocess.run(
        [sys.executable, "run.py"],
        cwd=folder,
        env=environment(folder),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(done.stdout)


def environment(folder):
    """This process's, with a home for the key of converted code."""
    here = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    paths = [str(folder), *filter(None, sys.path)]
    return {**here, "XDG_CACHE_HOME": str(folder), "PYTHONPATH": ":".join(paths)}


def model_rows():
    text = text_of_model()
    fresh, kept = [], []
    for _ in range(PROCESSES):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "model_file.py").write_text(text)
            pathlib.Path(folder, "run.py").write_text(_RUN)
            fresh.append(seconds_to_trace(folder))
            kept.append(seconds_to_trace(folder))
    lines = text.count("\n")
    print(f"model of {lines} lines, from its source   {min(fresh) * 1e3:8.1f} ms")
    print(f"model of {lines} lines, converted before  {min(kept) * 1e3:8.1f} ms")


def operators(x):
    for i in range(200):
        y = x * 2.0
        if i % 2 == 0:
            y = y - 1.0
        else:
            y = y + 1.0
        y = tf.tanh(y)
        if not i < 0 and i >= 0:
            y = tf.add(y, x)
        x = tf.reshape(y, [4])
    return x


def ops_rows():
    spec = tf.TensorSpec([4])
    ways = {"without AutoGraph": False, "with AutoGraph": True}
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(REPEATS):
        for name, autograph in ways.items():
            f = tf.function(operators, autograph=autograph)
            start = time.process_time()
            f.get_concrete_function(spec)
            least[name] = min(least[name], time.process_time() - start)
    plain = least["without AutoGraph"]
    for name, seconds in least.items():
        share = f"{seconds / plain:6.3f}"
        print(f"1,000 ops, {name:18} {seconds * 1e3:8.2f} ms  {share}")


if __name__ == "__main__":
    ops_rows()
    model_rows()
