"""examples/train_names.py and train_images.py."""

import os
import re
import runpy
import signal
import subprocess
import sys
import time

import headrace as tf
import pytest

EXAMPLES = os.path.join(os.path.dirname(__file__), "../../../examples")


@pytest.mark.parametrize(
    "program, classes", [("train_names", 10), ("train_images", 10)]
)
def test_learns(program, classes):
    program = runpy.run_path(os.path.join(EXAMPLES, program + ".py"))
    tf.keras.utils.set_random_seed(1)
    train, test = program["datasets"]()
    model = program["network"]()
    model.compile(
        tf.keras.optimizers.Adam(0.003),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    losses = []
    each = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda _, logs: losses.append(logs["loss"])
    )
    model.fit(train.take(20), verbose=0, callbacks=[each])
    assert len(losses) == 20 and losses[-1] < losses[0], losses  # means so far
    found, labels = model.predict(test.take(1), verbose=0), next(iter(test))[1]
    assert found.shape == (labels.shape[0], classes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "program, least", [("train_names", 0.4), ("train_images", 0.8)]
)
def test_goes_on_where_it_was_killed(program, least, tmp_path):
    paths = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, os.path.join(EXAMPLES, program + ".py")]
    command += ["--folder", str(tmp_path), "--epochs", "2"]
    options = dict(stdout=subprocess.PIPE, text=True)
    options["env"] = {**os.environ, "PYTHONPATH": paths}
    killed = subprocess.Popen(command, **options)
    deadline = time.time() + 120
    while not list(tmp_path.rglob("checkpoint")) and time.time() < deadline:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    out = subprocess.run(command, timeout=300, check=True, **options).stdout
    assert re.findall(r"Epoch (\d+)/2", out) == ["2"]
    assert float(out.split("test accuracy: ")[1]) > least
