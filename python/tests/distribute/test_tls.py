"""Clusters whose tasks show each other certificates."""

import os
import subprocess
import sys

import certificates
import processes
import pytest

_RING = """
import json, os, sys
job, index, cluster = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": cluster, "task": {"type": job, "index": index}})
import headrace as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    v = tf.Variable([1.0, 2.0])
    optimizer = tf.keras.optimizers.SGD(0.5)

@tf.function
def step(x):
    def replica(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * x)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        return loss
    return strategy.reduce("SUM", strategy.run(replica, args=(x,)), axis=None)

for i in range(3):
    step(tf.constant([1.0 + index, 2.0]))
print("value", v.numpy().tolist(), flush=True)
"""
_EAGER = """
import json, sys
import headrace as tf
tf.config.experimental_connect_to_host(sys.argv[1])
with tf.device("/job:worker/task:0"):
    v = tf.Variable([1.0, 2.0])
    v.assign_add([1.0, 1.0])
print("value", v.numpy().tolist())
"""
SOON = 1.5  # seconds; below one where the machine does nothing else


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Environments: of the cluster's own, of another CA's, of one whose certificate
    names another host."""
    folder = tmp_path_factory.mktemp("keys")
    own = certificates.make(folder / "own")
    other = certificates.make(folder / "other")
    elsewhere = certificates.make(folder / "elsewhere", "DNS:elsewhere")
    return {"own": own, "other": other, "elsewhere": elsewhere}


def set_keys(monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def run(program, *arguments, **environment):
    """What a program of these keys prints."""
    clean = {k: v for k, v in os.environ.items() if "HEADRACE_CLUSTER" not in k}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**clean, **environment},
        stdout=subprocess.PIPE,
        timeout=120,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def cluster(keys, monkeypatch):
    set_keys(monkeypatch, keys["own"])
    cluster = processes.Cluster(ps=1, worker=1)
    try:
        yield cluster.start_all()
    finally:
        cluster.stop()


def test_a_session_over_certificates_and_strangers(keys, monkeypatch, capfd):
    set_keys(monkeypatch, keys["own"])
    cluster = processes.Cluster(ps=1, worker=1)
    try:
        cluster.start_all()
        strangers_are_refused(cluster, keys)
    finally:
        cluster.stop()
    # The tasks say it, too.
    said = capfd.readouterr().err
    for says in ("peer did not return a certificate", "certificate verify failed"):
        assert says in said, said


def strangers_are_refused(cluster, keys):
    target = cluster.target("worker")
    assert run(certificates.CLIENT, target, **keys["own"]) == "value [2.0, 3.0]"
    for who, says in [
        ({}, "speaks TLS, and this process has no certificate"),
        (keys["other"], "shows a certificate that this process does not take"),
        (
            # It trusts the servers, and is of another CA itself.
            {
                **keys["other"],
                "HEADRACE_CLUSTER_ROOTS": keys["own"]["HEADRACE_CLUSTER_ROOTS"],
            },
            "does not take the certificate of this process",
        ),
    ]:
        name, seconds, text = run(certificates.CLIENT, target, **who).split(" ", 2)
        assert name == "UnauthenticatedError" and says in text, text
        assert cluster.spec["worker"][0] in text
        assert float(seconds) < SOON
    # The cluster's own go on.
    assert run(certificates.CLIENT, target, **keys["own"]) == "value [2.0, 3.0]"


def test_a_task_that_comes_back_with_another_certificate(keys, monkeypatch, cluster):
    target = cluster.target("worker")
    assert run(certificates.CLIENT, target, **keys["own"]) == "value [2.0, 3.0]"
    cluster.kill("ps")
    set_keys(monkeypatch, keys["other"])
    cluster.start("ps")
    name, seconds, text = run(certificates.CLIENT, target, **keys["own"]).split(" ", 2)
    assert name == "UnauthenticatedError" and cluster.spec["ps"][0] in text
    assert float(seconds) < SOON
    # Its own comes back.
    cluster.kill("ps")
    set_keys(monkeypatch, keys["own"])
    cluster.start("ps")
    assert run(certificates.CLIENT, target, **keys["own"]) == "value [2.0, 3.0]"


def test_eager_operations_over_certificates(cluster, keys):
    address = cluster.spec["worker"][0]
    assert run(_EAGER, address, **keys["own"]) == "value [2.0, 3.0]"


def test_a_ring_over_certificates(keys, monkeypatch):
    set_keys(monkeypatch, keys["own"])
    ring = processes.Cluster(worker=2)
    try:
        for i in range(2):
            ring.begin("worker", i, program=_RING)
        said = [ring.processes["worker", i].communicate(timeout=120)[0] for i in (0, 1)]
    finally:
        ring.stop()
    # Gradients are the sums of both: 1 + 2 and 2 + 2, three times half of them.
    assert said == ["value [-3.5, -4.0]\n"] * 2


def test_a_session_with_a_cluster_without_certificates(keys):
    cluster = processes.Cluster(ps=1, worker=1)
    try:
        cluster.start_all()
        name, seconds, text = run(
            certificates.CLIENT, cluster.target("worker"), **keys["own"]
        ).split(" ", 2)
    finally:
        cluster.stop()
    assert name == "UnauthenticatedError" and "speaks without TLS" in text
    assert float(seconds) < SOON


def test_a_certificate_of_another_host(keys, monkeypatch):
    set_keys(monkeypatch, keys["elsewhere"])
    cluster = processes.Cluster(ps=1, worker=1)
    try:
        cluster.start_all()
        said = run(certificates.CLIENT, cluster.target("worker"), **keys["elsewhere"])
    finally:
        cluster.stop()
    assert said.startswith("UnauthenticatedError") and "mismatch" in said


@pytest.mark.parametrize("left_out", ["CERTIFICATE", "KEY", "ROOTS"])
def test_variables_that_are_not_whole(keys, left_out):
    some = dict(keys["own"])
    del some[f"HEADRACE_CLUSTER_{left_out}"]
    said = run(certificates.CLIENT, "grpc://127.0.0.1:1", **some)
    assert said.startswith("InvalidArgumentError")
    assert f"HEADRACE_CLUSTER_{left_out} is not" in said
    some[f"HEADRACE_CLUSTER_{left_out}"] = __file__
    said = run(certificates.CLIENT, "grpc://127.0.0.1:1", **some)
    assert f"HEADRACE_CLUSTER_{left_out}: {__file__} has no" in said
    some[f"HEADRACE_CLUSTER_{left_out}"] = "/nowhere"
    assert run(certificates.CLIENT, "grpc://127.0.0.1:1", **some).startswith(
        "NotFoundError"
    )
