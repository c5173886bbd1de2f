"""Contexts of the C interface on clusters, with TensorFlow at the other end.

HEADRACE_TENSORFLOW_PYTHON names a Python that has TensorFlow 2.21.
"""

import json
import os
import pathlib
import socket
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "tests" / "c" / "eager_clusters.c"
PROGRAM = ROOT / "build" / "tests" / "c_eager_clusters"
TENSORFLOW = os.environ.get("HEADRACE_TENSORFLOW_PYTHON", "")
QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}

SERVER = """
import json, sys
import tensorflow as tf
tasks = json.loads(sys.argv[1])
cluster = tf.train.ClusterSpec({"local": tasks})
server = tf.distribute.Server(cluster, job_name="local", task_index=int(sys.argv[2]))
print("ready", flush=True)
server.join()
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM.exists(), reason="no C++ build"),
    pytest.mark.skipif(not TENSORFLOW, reason="HEADRACE_TENSORFLOW_PYTHON is not set"),
]


def _free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def _passes(program, *addresses, **environment):
    ran = subprocess.run(
        [program, *addresses],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **QUIET, **environment},
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.endswith("eager_clusters: ok\n")


def test_our_contexts_on_tensorflows_servers():
    """All but functions whose nodes are on several tasks: those are refused."""
    addresses = _free_addresses(3)
    servers = {}
    try:
        for i in (1, 2):
            arguments = [TENSORFLOW, "-c", SERVER, json.dumps(addresses), str(i)]
            servers[i] = subprocess.Popen(
                arguments,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **QUIET, "PYTHONPATH": ""},
            )
        for server in servers.values():
            assert server.stdout.readline() == "ready\n"
        peers = {"HEADRACE_TENSORFLOW_PEERS": "1", "HEADRACE_OTHER_SERVERS": "1"}
        _passes(PROGRAM, *addresses[1:], **peers)
    finally:
        for server in servers.values():
            server.kill()
            server.wait()


def test_tensorflows_library_runs_the_same_program(tmp_path):
    """What the program expects is what TensorFlow's own C functions do."""
    where = subprocess.run(
        [TENSORFLOW, "-c", "import tensorflow as tf; print(tf.sysconfig.get_lib())"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **QUIET, "PYTHONPATH": ""},
    ).stdout.strip()
    program = tmp_path / "eager_clusters"
    libraries = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    subprocess.run(
        ["cc", "-std=c11", SOURCE, f"-I{ROOT / 'include'}", f"-L{where}", *libraries]
        + [f"-Wl,-rpath,{where}", "-o", program],
        check=True,
    )
    _passes(program, HEADRACE_KEEP_SERVERS="1")
