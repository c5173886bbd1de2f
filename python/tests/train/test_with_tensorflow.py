"""Checkpoints between this package and TensorFlow, where that is installed."""

import os
import shutil
import subprocess
import sys

import headrace as tf
import pytest

PYTHON = os.environ.get("HEADRACE_TENSORFLOW_PYTHON", "")
_OWN = os.path.realpath(sys.executable)
GOLDEN = os.path.join(os.path.dirname(__file__), "../../../tests/golden/checkpoints")

pytestmark = pytest.mark.skipif(
    shutil.which(PYTHON) is None, reason="no Python that has TensorFlow"
)

READ = """
import sys, tensorflow as tf
m = tf.Module()
m.layers = [{"w": tf.Variable(tf.zeros([2, 3])), "b": (tf.Variable(0), 1)}]
m.text = tf.Variable(["", ""])
g = tf.random.Generator.from_seed(1)
c = tf.train.Checkpoint(m=m, g=g, step=tf.Variable(0, dtype=tf.int64))
c.restore(sys.argv[1]).assert_consumed()
print(m.layers[0]["w"].numpy().tolist(), int(m.layers[0]["b"][0]),
      m.text.numpy().tolist(), int(c.step), g.state.numpy().tolist())
c.step.assign_add(1)
print(c.save(sys.argv[2]))
"""


def build(k):
    m = tf.Module()
    w = tf.cast(tf.reshape(tf.range(6), [2, 3]), tf.float32) * k
    m.layers = [{"w": tf.Variable(w), "b": (tf.Variable(int(5 * k)), 1)}]
    m.text = tf.Variable(["a" * int(k), "bc"])
    step = tf.Variable(int(9 * k), dtype=tf.int64)
    return tf.train.Checkpoint(m=m, g=tf.random.Generator.from_seed(7), step=step)


@pytest.mark.slow
def test_both_ways(tmp_path):
    ours = build(1.0)
    path = ours.save(str(tmp_path / "ours"))
    result = subprocess.run(
        [PYTHON, "-c", READ, path, str(tmp_path / "theirs")],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""},
    )
    assert result.returncode == 0, result.stderr[-2000:]
    values, theirs = result.stdout.strip().split("\n")
    state = ours.g.state.numpy().tolist()
    assert values == f"[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] 5 [b'a', b'bc'] 9 {state}"
    back = build(0.0)
    back.restore(theirs).assert_consumed()
    assert int(back.step) == 10
    assert float(back.m.layers[0]["w"][1, 2]) == 5.0
