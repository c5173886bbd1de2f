"""Clusters in which some tasks, or the client, are TensorFlow's.

HEADRACE_TENSORFLOW_PYTHON names a Python that has TensorFlow 2.21; without it only the
cluster of Headrace alone is tested.
"""

import json
import os
import subprocess

import processes
import pytest

_PROGRAM = os.path.join(os.path.dirname(__file__), "mixed_program.py")
_WANTED = [
    [
        "devices",
        [
            "/job:ps/replica:0/task:0/device:CPU:0",
            "/job:worker/replica:0/task:0/device:CPU:0",
        ],
    ],
    ["added", [2.0, 3.0]],
    ["rows", [3.0]],
    ["loss", 38.0],
    ["variables", [[1.6, 2.4], [[0.0], [0.0]]]],
    ["token", 5],
    ["sums", [1.0, 2.0]],
    ["branch", [-3.0, 1]],
    ["branch", [3.0, 0]],
    ["waited", True],
    ["unfed", True],
    ["called", [[[0.0]]]],
    ["part", [[3.2, 4.8]]],
    ["part", [[[0.0]]]],
    ["later", [-3.2, -4.8]],
]


def _numbers(value):
    """Rounded, as float32 has them."""
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return round(value, 5) if isinstance(value, float) else value


def _task(module):
    return processes.TASK.replace("import headrace as tf", f"import {module} as tf")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ps", "worker", "client"),
    [
        ("headrace", "headrace", "headrace"),
        ("headrace", "headrace", "tensorflow"),
        ("tensorflow", "headrace", "headrace"),
        ("tensorflow", "headrace", "tensorflow"),
        ("headrace", "tensorflow", "headrace"),
        ("tensorflow", "tensorflow", "headrace"),
    ],
)
def test_who_takes_part(ps, worker, client, monkeypatch):
    if "tensorflow" in (ps, worker, client) and not processes.PYTHONS["tensorflow"]:
        pytest.skip("HEADRACE_TENSORFLOW_PYTHON is not set")
    monkeypatch.setenv("HEADRACE_TENSORFLOW_PEERS", "1")
    cluster = processes.Cluster(ps=1, worker=1)
    try:
        for job, module in (("ps", ps), ("worker", worker)):
            cluster.begin(job, python=processes.PYTHONS[module], program=_task(module))
        for job in ("ps", "worker"):
            cluster.await_ready(job)
        target = cluster.target("worker")
        ran = subprocess.run(
            [processes.PYTHONS[client], _PROGRAM, client, target],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        lines = [line for line in ran.stdout.splitlines() if line.startswith("[")]
        assert [_numbers(json.loads(line)) for line in lines] == _WANTED
    finally:
        cluster.stop()


def test_tensorflow_is_refused_unless_asked_for(monkeypatch):
    if not processes.PYTHONS["tensorflow"]:
        pytest.skip("HEADRACE_TENSORFLOW_PYTHON is not set")
    monkeypatch.delenv("HEADRACE_TENSORFLOW_PEERS", raising=False)
    cluster = processes.Cluster(worker=1)
    try:
        cluster.start("worker")
        ran = subprocess.run(
            [
                processes.PYTHONS["tensorflow"],
                _PROGRAM,
                "tensorflow",
                cluster.target("worker"),
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert "FailedPreconditionError" in ran.stderr
    finally:
        cluster.stop()
