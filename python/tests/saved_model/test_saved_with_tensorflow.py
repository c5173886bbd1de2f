"""Models written here and read by TensorFlow, where that is installed."""

import json
import os
import shutil
import subprocess

import headrace as tf
import models
import pytest

PYTHON = os.environ.get("HEADRACE_TENSORFLOW_PYTHON", "")

pytestmark = pytest.mark.skipif(
    shutil.which(PYTHON) is None, reason="no Python that has TensorFlow"
)

READ = """
import json, sys
import tensorflow as tf
v1 = tf.compat.v1
plain, tables, gradients = map(tf.saved_model.load, sys.argv[1:])
found = {}
x = tf.constant([1.0, 2.0])
with tf.GradientTape() as tape:
    y = plain.scaled(x)["y"]
found["y"] = y.numpy().tolist()
found["gradient"] = tape.gradient(y, plain.v).numpy().tolist()
found["chosen"] = float(plain.chosen(tf.constant(1.0), True))
found["looped"] = float(plain.looped(4))
found["counted"] = [int(plain.count(2)), int(plain.count(2))]
found["signature"] = plain.signatures["serving_default"](x=x)["twice"].numpy().tolist()
found["lookup"] = tables.lookup(tf.constant(["cat", "dog"])).numpy().tolist()
found["seen"] = [tables.see(tf.constant(["cat"])).numpy().tolist() for _ in range(2)]
with tf.GradientTape() as tape:
    tape.watch(x)
    y = gradients.called(x)
found["own"] = [g.numpy().tolist() for g in tape.gradient(y, [x, gradients.v])]
with tf.Graph().as_default(), v1.Session() as session:
    d = v1.saved_model.loader.load(session, ["serve"], sys.argv[1])
    d = d.signature_def["serving_default"]
    found["session"] = session.run(
        d.outputs["y"].name, {d.inputs["x"].name: [1.0, 2.0]}
    ).tolist()
print(json.dumps(found))
"""


def test_tensorflow_runs_what_is_written_here(tmp_path):
    folders = []
    for write in (models.plain, models.tables, models.gradients):
        folders.append(str(tmp_path / write.__name__))
        write(tf, folders[-1])
    run = subprocess.run(
        [PYTHON, "-c", READ, *folders],
        capture_output=True,
        text=True,
        timeout=300,
        env={"PATH": os.environ["PATH"], "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert json.loads(run.stdout.splitlines()[-1]) == {
        "y": [4.0, 7.0],
        "gradient": [1.0, 2.0],
        "chosen": 2.0,
        "looped": 12.0,
        "counted": [6, 8],
        "signature": [2.0, 4.0],
        "lookup": [1, -1],
        "seen": [[1], [2]],
        "own": [[1224.0, 2412.0], 450.0],
        "session": [4.0, 7.0],
    }
