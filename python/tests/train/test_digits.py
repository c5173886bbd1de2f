"""examples/train_digits: killed and started again, in either language, it ends with
the same bits."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import headrace as tf
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[3]
PROGRAMS = {
    "python": [sys.executable, str(ROOT / "examples" / "train_digits.py")],
    "cpp": [str(ROOT / "build" / "examples" / "train_digits")],
}
DATA = str(ROOT / "examples" / "data" / "digits.bin")


def start(language, folder, steps, **environ):
    program = PROGRAMS[language]
    if not os.path.exists(program[-1]):
        pytest.skip("no C++ build")
    arguments = ["--folder", str(folder), "--data", DATA, "--steps", str(steps)]
    paths = os.pathsep.join(p for p in sys.path if p)
    return subprocess.Popen(
        program + arguments,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, **environ},
    )


def finish(process):
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 0, out
    return float(out.strip().split("\n")[-1].removeprefix("test accuracy: "))


def values(folder):
    path = tf.train.latest_checkpoint(str(folder))
    reader = tf.train.load_checkpoint(path)
    return {
        k: np.asarray(reader.get_tensor(k)).tolist()
        for k, dtype in reader.get_variable_to_dtype_map().items()
        # The iterator's place is seen by what training goes on with.
        if dtype != tf.variant and not k.startswith(("_", "save_counter"))
    }


def assert_same(first, second):
    first, second = values(first), values(second)
    assert first.keys() == second.keys()
    for key, value in first.items():
        assert value == second[key], key


@pytest.mark.slow
@pytest.mark.parametrize(
    "killed_in,resumed_in",
    [("python", "python"), ("cpp", "cpp"), ("python", "cpp"), ("cpp", "python")],
)
def test_killed_and_resumed(tmp_path, killed_in, resumed_in):
    steps = 220
    accuracy = finish(start(resumed_in, tmp_path / "whole", steps))
    assert accuracy > 0.9
    killed = start(killed_in, tmp_path / "killed", steps)
    deadline = time.time() + 60
    while not list((tmp_path / "killed").glob("*.index")) and time.time() < deadline:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert finish(start(resumed_in, tmp_path / "killed", steps)) == accuracy
    assert_same(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.slow
@pytest.mark.parametrize("language", PROGRAMS)
def test_the_same_bits_by_threads(tmp_path, language):
    for threads in "124":
        folder = tmp_path / threads
        finish(start(language, folder, 60, HEADRACE_NUM_THREADS=threads))
        assert_same(tmp_path / "1", folder)


@pytest.mark.parametrize("language", PROGRAMS)
def test_object_graph(tmp_path, language):
    finish(start(language, tmp_path, 2))
    kept = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path)))
    names = {
        k.replace("/.ATTRIBUTES/VARIABLE_VALUE", "")
        for k in kept.get_variable_to_shape_map()
        if not k.startswith(("_", "save_counter"))
    }
    weights = [
        f"model/layer_with_weights-{layer}/{part}"
        for layer in range(4)
        for part in ("kernel", "bias")
    ]
    slots = [f"{w}/.OPTIMIZER_SLOT/optimizer/{m}" for w in weights for m in "mv"]
    numbers = [
        f"optimizer/{n}" for n in ("iter", "learning_rate", "beta_1", "beta_2", "decay")
    ]
    place = "batches/.ATTRIBUTES/ITERATOR_STATE"
    assert names == {place, *weights, *slots, *numbers}
