"""Checkpoints and Keras objects with variables of other tasks."""

import json
import subprocess
import sys

import headrace as tf
import numpy as np
import processes
from test_eager import told_by

_PROGRAM = """
import json, os, sys
import headrace as tf
spec = json.loads(sys.argv[1])
folder = spec.pop("folder")[0]
tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(spec))
there = "/job:ps/replica:0/task:0/device:CPU:0"

def told(*what):
    print(json.dumps(what))

with tf.device("/job:ps/task:0"):
    v = tf.Variable([1.0, 2.0], name="v")
with tf.device("/job:ps/task:1"):
    w = tf.Variable([[3, 4]], name="w")
own = tf.Variable(5.0, name="own")
checkpoint = tf.train.Checkpoint(v=v, deep=tf.train.Checkpoint(w=w), own=own)
path = checkpoint.save(os.path.join(folder, "plain"))
v.assign([0.0, 0.0])
w.assign([[0, 0]])
checkpoint.restore(path).assert_consumed()
told(v.numpy().tolist(), w.numpy().tolist(), v.device)

# Before the variable is there.
later = tf.train.Checkpoint()
status = later.restore(path)
with tf.device("/job:ps/task:0"):
    later.v = tf.Variable([9.0, 9.0])
status.assert_existing_objects_matched()
told(later.v.numpy().tolist(), later.v.device)
with tf.device("/job:ps/task:0"):
    wrong = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0, 3.0]))
try:
    wrong.restore(path)
except ValueError as e:
    told("incompatible" in str(e))

class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.rows = [v, own]

told([x.name for x in Module().trainable_variables])

with tf.device("/job:ps/task:0"):
    model = tf.keras.Sequential(
        [tf.keras.layers.Input((2,)), tf.keras.layers.Dense(2, name="dense")])
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
told(sorted({x.value.device if hasattr(x.value, "device") else x.device
             for x in model.trainable_variables}) == [there])
kernel = model.layers[-1].kernel
x = tf.constant([[1.0, 2.0]])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(model(x) ** 2)
optimizer.apply_gradients(
    zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
before = model(x).numpy().tolist()
saved = tf.train.Checkpoint(model=model, optimizer=optimizer)
path = saved.save(os.path.join(folder, "keras"))
model.save_weights(os.path.join(folder, "keras.weights.h5"))
kernel.assign(tf.zeros([2, 2]))
saved.restore(path).assert_consumed()
told(before == model(x).numpy().tolist())
kernel.assign(tf.zeros([2, 2]))
model.load_weights(os.path.join(folder, "keras.weights.h5"))
told(before == model(x).numpy().tolist())

class Scaled(tf.Module):
    def __init__(self):
        super().__init__()
        self.v = v
        with tf.device("/job:ps/task:1"):
            self.held = tf.constant([10.0, 20.0])

    @tf.function(input_signature=[tf.TensorSpec([2])])
    def scaled(self, x):
        return x * self.v + self.held

v.assign([3.0, 4.0])
tf.saved_model.save(Scaled(), os.path.join(folder, "saved"))
model.save(os.path.join(folder, "model"))
told(before)
"""


def test_variables_of_tasks_are_saved_and_restored(tmp_path):
    cluster = processes.Cluster(ps=2)
    try:
        cluster.start_all()
        cluster.spec["folder"] = [str(tmp_path)]
        out = told_by(cluster, "-c", _PROGRAM)
    finally:
        cluster.stop()
    lines = [json.loads(line) for line in out.splitlines()]
    there = "/job:ps/replica:0/task:0/device:CPU:0"
    assert lines[0] == [[1.0, 2.0], [[3, 4]], there]
    assert lines[1] == [[1.0, 2.0], there]
    assert lines[2] == [True]
    assert lines[3] == [["v:0", "own:0"]]
    assert lines[4:7] == [[True]] * 3
    # The layout is that of variables of one process.
    path = str(tmp_path / "plain-1")
    named = dict(tf.train.list_variables(path))
    assert named["v/.ATTRIBUTES/VARIABLE_VALUE"] == [2]
    assert named["deep/w/.ATTRIBUTES/VARIABLE_VALUE"] == [1, 2]
    plain = tf.Variable([0.0, 0.0])
    tf.train.Checkpoint(v=plain).restore(path)
    np.testing.assert_array_equal(plain.numpy(), [1.0, 2.0])
    # Models have no need of the tasks.
    model = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_array_equal(model.v.numpy(), [3.0, 4.0])
    np.testing.assert_array_equal(model.scaled(tf.constant([1.0, 2.0])), [13.0, 28.0])
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        tf.compat.v1.saved_model.load(session, ["serve"], str(tmp_path / "saved"))
        ops = session.graph.get_operations()
        (read,) = [op for op in ops if op.type == "ReadVariableOp"]
        np.testing.assert_array_equal(session.run(read.outputs[0]), [3.0, 4.0])
    loaded = tf.keras.models.load_model(str(tmp_path / "model"))
    np.testing.assert_allclose(loaded(tf.constant([[1.0, 2.0]])), *lines[7])


def test_a_task_that_is_gone_is_told(tmp_path):
    program = """
import json, os, sys
import headrace as tf
spec = json.loads(sys.argv[1])
folder = spec.pop("folder")[0]
tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(spec))
with tf.device("/job:ps/task:0"):
    v = tf.Variable([1.0, 2.0])
print("made", flush=True)
input()
try:
    tf.train.Checkpoint(v=v).save(os.path.join(folder, "gone"))
except tf.errors.UnavailableError as e:
    print("told", os.listdir(folder))
"""
    cluster = processes.Cluster(ps=1)
    try:
        cluster.start_all()
        spec = json.dumps({**cluster.spec, "folder": [str(tmp_path)]})
        client = subprocess.Popen(
            [sys.executable, "-c", program, spec],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert client.stdout.readline() == "made\n"
        cluster.kill("ps")
        said, _ = client.communicate("\n", timeout=120)
    finally:
        cluster.stop()
    assert said == "told []\n"
