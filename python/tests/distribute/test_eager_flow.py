"""Loops and branches of which parts are for several tasks."""

import json

import processes
import pytest
from test_eager import told_by

_PROGRAM = """
import json, sys
import headrace as tf
spec = tf.train.ClusterSpec(json.loads(sys.argv[1]))
tf.config.experimental_connect_to_cluster(spec)
own = tf.Variable(3.0)
with tf.device("/job:worker/task:0"):
    zero = tf.Variable([1.0, 2.0])
with tf.device("/job:worker/task:1"):
    one = tf.Variable([1.0, 1.0])

def told(*what):
    print(json.dumps(what))

def number():  # of the task that runs it: the fifth word of its command line
    line = tf.io.read_file("/proc/self/cmdline")
    return tf.strings.split(line, "\\0")[4]

x = tf.constant([1.0, 2.0])

@tf.function
def loop(x):
    names = tf.TensorArray(tf.string, 3)
    for i in tf.range(3):
        with tf.device("/job:worker/task:1"):
            x += 1.0
            names = names.write(i, number())
        x *= 2.0
    return x, names.stack()

y, names = loop(x)
told(y.numpy().tolist(), [n.decode() for n in names.numpy()])

# Variables of both tasks and of this process, in one loop, with its gradient.
@tf.function
def train(steps):
    total = 0.0
    for _ in tf.range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(zero * one * own)
        for v, g in zip([zero, one, own], tape.gradient(loss, [zero, one, own])):
            v.assign_sub(0.1 * g)
        total += loss
    return total

told(float(train(tf.constant(2))))
told(zero.numpy().tolist(), one.numpy().tolist(), float(own))

# An effect that nothing reads in the function.
@tf.function
def last():
    zero.assign_add(one)
    one.assign([own, own])

@tf.function
def lasts(n):
    for _ in tf.range(n):
        last()

before = zero.numpy() + one.numpy() + 2 * own.numpy()
last()
lasts(tf.constant(2))
told((before - zero.numpy() + own.numpy()).tolist(), (one - own).numpy().tolist())

# The same by this process alone.
a, b, c = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 1.0]), tf.Variable(3.0)
zero, one, own = a, b, c
again = tf.function(train.python_function)
told(float(again(tf.constant(2))))
told(zero.numpy().tolist(), one.numpy().tolist(), float(own))

@tf.function
def branch(which, x):
    if which:
        with tf.device("/job:worker/task:1"):
            x, who = x + 1.0, number()
    else:
        who = tf.constant("here")
        x -= 1.0
    return x, who

for which in (True, False):
    y, who = branch(tf.constant(which), x)
    told(y.numpy().tolist(), who.numpy().decode())

@tf.function
def case(i, x):
    def at(task):
        def run():
            with tf.device(f"/job:worker/task:{task}"):
                return x + 1.0, number()
        return run
    return tf.switch_case(i, [at(0), at(1)])

for i in (0, 1, 7):
    told(case(tf.constant(i), x)[1].numpy().decode())

with tf.GradientTape() as tape:
    tape.watch(x)
    value = tf.reduce_sum(loop(x)[0] ** 2)
told(tape.gradient(value, x).numpy().tolist())

@tf.function
def fails(x, shape):
    for _ in tf.range(2):
        with tf.device("/job:worker/task:1"):
            x += tf.reduce_sum(tf.reshape(x, shape))
    return x

try:
    fails(x, tf.constant([3]))
except tf.errors.InvalidArgumentError as e:
    told("a tensor with 2 values" in e.message)

def row(x):
    with tf.device("/job:worker/task:1"):
        return x + 1

@tf.function
def mapped(n):
    one.assign([7.0, 7.0])
    for i in tf.range(n):
        for _ in tf.data.Dataset.range(3).map(row):
            pass

try:
    mapped(tf.constant(1))
except tf.errors.UnimplementedError as e:
    told("functions of datasets" in e.message, one.numpy().tolist())
"""


def test_loops_and_branches_over_tasks(tmp_path):
    path = tmp_path / "program.py"  # AutoGraph reads its source
    path.write_text(_PROGRAM)
    cluster = processes.Cluster(worker=2)
    try:
        cluster.start_all()
        out = told_by(cluster, str(path))
    finally:
        cluster.stop()
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines[0] == [[22.0, 30.0], ["1"] * 3]
    assert lines[1] == pytest.approx(lines[4])
    for apart, together in zip(lines[2], lines[5]):
        assert apart == pytest.approx(together)
    own = lines[2][2]
    assert lines[3] == [pytest.approx([own, own], abs=1e-4), [0.0, 0.0]]
    assert lines[6:8] == [[[2.0, 3.0], "1"], [[0.0, 1.0], "here"]]
    assert lines[8:11] == [["0"], ["1"], ["1"]]
    assert lines[11] == [[2 * 22.0 * 8, 2 * 30.0 * 8]]
    assert lines[12] == [True]
    refused, kept = lines[13]
    assert refused and kept != [7.0, 7.0]
