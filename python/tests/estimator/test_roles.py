"""Estimators of several processes, as TF_CONFIG says."""

import json
import os
import socket
import subprocess
import sys
import textwrap

import headrace as tf
import pytest

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]}


def config_of(monkeypatch, cluster, task, **given):
    told = {"cluster": cluster, "task": task, "environment": "cloud"}
    monkeypatch.setenv("TF_CONFIG", json.dumps(told))
    return tf.estimator.RunConfig(**given)


@pytest.mark.parametrize(
    "kind, index, want",
    [
        ("chief", 0, ("grpc://a:1", True, 2, 3, 0)),
        ("worker", 1, ("grpc://c:1", False, 2, 3, 2)),
        ("ps", 0, ("grpc://d:1", False, 2, 3, 3)),
        ("evaluator", 0, ("", False, 0, 0, None)),
    ],
)
def test_tasks(monkeypatch, kind, index, want):
    made = config_of(monkeypatch, CLUSTER, {"type": kind, "index": index})
    found = (
        made.master,
        made.is_chief,
        made.num_ps_replicas,
        made.num_worker_replicas,
        made.global_id_in_cluster,
    )
    assert found == want
    assert (made.task_type, made.task_id) == (kind, index)
    assert made.evaluation_master == "" and bool(made.cluster_spec) == bool(want[0])
    filters = {
        "chief": ["/job:ps", "/job:chief"],
        "worker": ["/job:ps", "/job:worker/task:1"],
        "ps": ["/job:ps", "/job:worker", "/job:chief", "/job:master"],
        "evaluator": [],
    }
    assert list(made.session_config.device_filters) == filters[kind]
    own = config_of(
        monkeypatch,
        CLUSTER,
        {"type": kind, "index": index},
        session_config=tf.compat.v1.ConfigProto(),
    )
    assert not own.session_config.device_filters


@pytest.mark.parametrize(
    "cluster, task, text",
    [
        ({"worker": ["a:1"]}, {"type": "worker", "index": 0}, 'one "chief" node'),
        ({"chief": ["a:1", "b:1"]}, {"type": "chief", "index": 0}, "only one"),
        (CLUSTER, {"index": 0}, "task type must be set"),
        (CLUSTER, {"type": "ps"}, "task index must be set"),
        (CLUSTER, {"type": "ps", "index": -1}, "non-negative"),
        (CLUSTER, {"type": "boss", "index": 0}, "not a valid task_type"),
        (CLUSTER, {"type": "ps", "index": 2}, "not a valid task_id"),
    ],
)
def test_tasks_that_are_refused(monkeypatch, cluster, task, text):
    with pytest.raises(ValueError, match=text):
        config_of(monkeypatch, cluster, task)


PROGRAM = """
import sys
import headrace as tf
v1 = tf.compat.v1
print("ready", flush=True)

def model_fn(features, labels, mode):
    w = v1.get_variable("w", [2, 1], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean((tf.matmul(features["x"], w) - labels) ** 2)
    step = None
    if mode == "train":
        assert w.device == "/job:ps/task:0", w.device
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        step = optimizer.minimize(loss, v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

def data():
    pair = {"x": tf.ones([4, 2])}, tf.ones([4, 1])
    return tf.data.Dataset.from_tensors(pair).repeat()

config = tf.estimator.RunConfig(sys.argv[1], save_checkpoints_steps=20)
found, _ = tf.estimator.train_and_evaluate(
    tf.estimator.Estimator(model_fn, config=config),
    tf.estimator.TrainSpec(data, max_steps=60),
    tf.estimator.EvalSpec(data, steps=2, start_delay_secs=0, throttle_secs=0),
)
print(found and {name: float(value) for name, value in found.items()})
"""


def test_chief_worker_server_and_evaluator(tmp_path):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    cluster = {job: [a] for job, a in zip(("chief", "worker", "ps"), addresses)}
    processes = {}
    for kind in ("evaluator", "ps", "worker", "chief"):
        told = {"cluster": cluster, "task": {"type": kind, "index": 0}}
        processes[kind] = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path)],
            env=dict(os.environ, TF_CONFIG=json.dumps(told)),
            stdout=subprocess.PIPE,
            text=True,
        )
        if kind == "evaluator":  # one that comes when all is trained does nothing
            assert processes[kind].stdout.readline() == "ready\n"
    try:
        out = {
            kind: processes[kind].communicate(timeout=120)[0]
            for kind in ("chief", "worker", "evaluator")
        }
        assert all(processes[kind].returncode == 0 for kind in out), out
        assert out["chief"] == out["worker"] == "ready\nNone\n"
        # A step of the other one may have been under way.
        assert "'global_step': 6" in out["evaluator"], out
        assert processes["ps"].poll() is None
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
