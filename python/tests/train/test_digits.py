"""examples/train_digits.py: killed and started again, it ends with the same bits."""

import os
import signal
import subprocess
import sys
import time

import headrace as tf
import numpy as np
import pytest

ROOT = os.path.join(os.path.dirname(__file__), "../../..")
PROGRAM = os.path.join(ROOT, "examples", "train_digits.py")


def start(folder, steps, **environ):
    paths = os.pathsep.join(p for p in sys.path if p)
    return subprocess.Popen(
        [sys.executable, PROGRAM, "--folder", str(folder), "--steps", str(steps)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, **environ},
    )


def finish(process):
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    return float(out.strip().split("\n")[-1].removeprefix("test accuracy: "))


def weights(folder):
    path = tf.train.latest_checkpoint(str(folder))
    reader = tf.train.load_checkpoint(path)
    return {
        k: reader.get_tensor(k)
        for k in reader.get_variable_to_shape_map()
        if not k.startswith(("_", "save_counter"))
    }


@pytest.mark.slow
def test_killed_and_resumed(tmp_path):
    steps = 220
    accuracy = finish(start(tmp_path / "whole", steps))
    assert accuracy > 0.9
    killed = start(tmp_path / "killed", steps)
    deadline = time.time() + 60
    while not list((tmp_path / "killed").glob("*.index")) and time.time() < deadline:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert finish(start(tmp_path / "killed", steps)) == accuracy
    whole, resumed = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert whole.keys() == resumed.keys() and len(whole) == 8 * 3 + 2
    for key, value in whole.items():
        assert np.asarray(value).tobytes() == np.asarray(resumed[key]).tobytes(), key


@pytest.mark.slow
def test_the_same_bits_by_threads(tmp_path):
    found = []
    for threads in "124":
        folder = tmp_path / threads
        finish(start(folder, 60, HEADRACE_NUM_THREADS=threads))
        found.append({k: np.asarray(v).tobytes() for k, v in weights(folder).items()})
    assert found[0] == found[1] == found[2]


def test_object_graph(tmp_path):
    finish(start(tmp_path, 2))
    names = {k.replace("/.ATTRIBUTES/VARIABLE_VALUE", "") for k in weights(tmp_path)}
    layers = [
        f"model/{layer}/{part}"
        for layer in ("conv1", "conv2", "hidden", "output")
        for part in ("kernel", "bias")
    ]
    moments = [f"optimizer/{m}/{i}" for m in "mv" for i in range(8)]
    assert names == {"step", "optimizer/step", *layers, *moments}
