"""Eager operations on the tasks of a cluster.

HEADRACE_TENSORFLOW_PYTHON names a Python that has TensorFlow 2.21; without it tasks and
clients of Headrace alone are tested.
"""

import json
import os
import subprocess
import sys

import processes
import pytest

_PROGRAM = os.path.join(os.path.dirname(__file__), "eager_program.py")
_PYTHONS = {
    "headrace": sys.executable,
    "tensorflow": os.environ.get("HEADRACE_TENSORFLOW_PYTHON"),
}
_WANTED = [
    ["devices", ["/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"]],
    ["values", [[6.0, 7.0], [6.0, 7.0, 5.0, 6.0], "ab"]],
    ["variable", [7.0, 9.0]],
    ["called", [[38.0, 46.0], 13.0, [2]]],
    ["again", [[48.0, 58.0], 11.0, [2]]],
    [
        "reshape",
        [
            "InvalidArgumentError",
            "Input to reshape is a tensor with 2 values, but the requested shape has 3 "
            "[Op:Reshape]",
        ],
    ],
    ["gradient", [48.0, 58.0]],
    ["queue", 7],
    ["outside", [[30.0, 36.0], "/job:localhost"]],
    [
        "device",
        [
            "InvalidArgumentError",
            "/job:nobody/replica:0/task:0/device:CPU:0 unknown device. [Op:Identity] "
            "name: ",
        ],
    ],
    [
        "device",
        [
            "InvalidArgumentError",
            "/job:worker/replica:0/task:0/device:CPU:9 unknown device. [Op:Identity] "
            "name: ",
        ],
    ],
    ["big", 599998.0],
]


def _run(client, address):
    return subprocess.run(
        [_PYTHONS[client], _PROGRAM, client, address],
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "client"),
    [("headrace", "headrace"), ("headrace", "tensorflow"), ("tensorflow", "headrace")],
)
def test_ops_run_on_the_task(server, client, monkeypatch):
    if "tensorflow" in (server, client) and not _PYTHONS["tensorflow"]:
        pytest.skip("HEADRACE_TENSORFLOW_PYTHON is not set")
    monkeypatch.setenv("HEADRACE_TENSORFLOW_PEERS", "1")
    cluster = processes.Cluster(worker=1)
    try:
        task = processes.TASK.replace("import headrace", f"import {server}")
        cluster.begin("worker", python=_PYTHONS[server], program=task)
        cluster.await_ready("worker")
        ran = _run(client, cluster.spec["worker"][0])
        assert ran.returncode == 0, ran.stderr[-3000:]
        lines = [line for line in ran.stdout.splitlines() if line.startswith("[")]
        assert [json.loads(line) for line in lines] == _WANTED
    finally:
        cluster.stop()
