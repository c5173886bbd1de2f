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

import headrace as tf

_PROGRAM = os.path.join(os.path.dirname(__file__), "eager_program.py")
_COORDINATOR = os.path.join(os.path.dirname(__file__), "coordinator_program.py")
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
            "Input to reshape is a tensor with 2 values, but the requested shape has 3",
        ],
    ],
    ["gradient", [48.0, 58.0]],
    ["queue", 7],
    ["outside", [[30.0, 36.0], "/job:localhost"]],
    [
        "device",
        [
            "InvalidArgumentError",
            "/job:nobody/replica:0/task:0/device:CPU:0 unknown device.",
        ],
    ],
    [
        "device",
        [
            "InvalidArgumentError",
            "/job:worker/replica:0/task:0/device:CPU:9 unknown device.",
        ],
    ],
    ["big", 599998.0],
]


def _run(client, address):
    return subprocess.run(
        [processes.PYTHONS[client], _PROGRAM, client, address],
        capture_output=True,
        text=True,
        timeout=300,
    )


def told_by(cluster, *program, python=sys.executable):
    """What a program prints that is given the cluster's addresses."""
    ran = subprocess.run(
        [python, *program, json.dumps(cluster.spec)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "client"),
    [("headrace", "headrace"), ("headrace", "tensorflow"), ("tensorflow", "headrace")],
)
def test_ops_run_on_the_task(server, client, monkeypatch):
    if "tensorflow" in (server, client) and not processes.PYTHONS["tensorflow"]:
        pytest.skip("HEADRACE_TENSORFLOW_PYTHON is not set")
    monkeypatch.setenv("HEADRACE_TENSORFLOW_PEERS", "1")
    cluster = processes.Cluster(worker=1)
    try:
        task = processes.TASK.replace("import headrace", f"import {server}")
        cluster.begin("worker", python=processes.PYTHONS[server], program=task)
        cluster.await_ready("worker")
        ran = _run(client, cluster.spec["worker"][0])
        assert ran.returncode == 0, ran.stderr[-3000:]
        lines = [line for line in ran.stdout.splitlines() if line.startswith("[")]
        assert [json.loads(line) for line in lines] == _WANTED
    finally:
        cluster.stop()


@pytest.mark.slow
@pytest.mark.parametrize("worker", ["headrace", "tensorflow"])
def test_tensorflows_coordinator(worker, monkeypatch):
    """Variables on two tasks of Headrace, functions on a worker of either kind."""
    if not processes.PYTHONS["tensorflow"]:
        pytest.skip("HEADRACE_TENSORFLOW_PYTHON is not set")
    monkeypatch.setenv("HEADRACE_TENSORFLOW_PEERS", "1")
    cluster = processes.Cluster(worker=1, ps=2)
    try:
        task = processes.TASK.replace("import headrace", f"import {worker}")
        cluster.begin("worker", python=processes.PYTHONS[worker], program=task)
        for index in range(2):
            cluster.begin("ps", index)
        for job, index in (("worker", 0), ("ps", 0), ("ps", 1)):
            cluster.await_ready(job, index)
        told = told_by(cluster, _COORDINATOR, python=processes.PYTHONS["tensorflow"])
        lines = [line for line in told.splitlines() if line.startswith("[")]
        assert [json.loads(line) for line in lines] == _COORDINATED
    finally:
        cluster.stop()


_CHIEF = "/job:chief/replica:0/task:0/device:CPU:0"
_COORDINATED = [
    ["where", [f"/job:ps/replica:0/task:{i}/device:CPU:0" for i in range(2)]],
    ["devices", [["/device:CPU:0"], [_CHIEF], [[_CHIEF]]]],
    ["loss", 19.0],
    [
        "variables",
        [
            [0.9900000095367432, 1.9900000095367432],
            [[0.9200000166893005], [2.9200000762939453]],
        ],
    ],
    ["values", [3.0, 3.0, 7.0, 7.0]],
    ["failed", True],
]


class _Api:
    filters = tf.config.experimental.ClusterDeviceFilters
    to_host = staticmethod(tf.config.experimental_connect_to_host)
    to_cluster = staticmethod(tf.config.experimental_connect_to_cluster)


def test_what_is_no_cluster_is_refused():
    with pytest.raises(ValueError, match="Must provide at least one remote_host"):
        _Api.to_host()
    with pytest.raises(ValueError, match="must be a `ClusterSpec` or"):
        _Api.to_cluster({"worker": ["localhost:1"]})
    spec = tf.train.ClusterSpec({"worker": ["localhost:1"]})
    with pytest.raises(ValueError, match="`cluster_device_filters` must be"):
        _Api.to_cluster(spec, cluster_device_filters=5)
    with pytest.raises(ValueError, match="protocol 'http'"):
        _Api.to_cluster(spec, protocol="http")


def test_filters_become_a_proto():
    filters = _Api.filters()
    filters.set_device_filters("worker", 1, ["/job:ps", "/job:worker/task:1"])
    filters.set_device_filters("worker", 0, ["/job:ps"])
    made = filters._as_cluster_device_filters()
    assert [(job.name, sorted(job.tasks)) for job in made.jobs] == [("worker", [0, 1])]
    assert list(made.jobs[0].tasks[0].device_filters) == ["/job:ps"]
    with pytest.raises(AssertionError):
        filters.set_device_filters("worker", 0, [4])


_DEATH = """
import sys
import headrace as tf
tf.config.experimental_connect_to_host(sys.argv[1])
with tf.device("/job:worker/task:0"):
    v = tf.Variable(1.0)
    print("made", float(v.numpy()), flush=True)
    sys.stdin.readline()
    try:
        v.assign_add(1.0)
    except tf.errors.UnavailableError:
        print("unavailable", flush=True)
"""


def test_a_task_that_dies_is_told():
    cluster = processes.Cluster(worker=1)
    client = None
    try:
        cluster.start("worker")
        client = subprocess.Popen(
            [sys.executable, "-c", _DEATH, cluster.spec["worker"][0]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert client.stdout.readline() == "made 1.0\n"
        cluster.kill("worker")
        client.stdin.write("\n")
        client.stdin.flush()
        assert client.stdout.readline() == "unavailable\n"
        assert client.wait(60) == 0
    finally:
        cluster.stop()
        if client is not None:
            client.kill()


_TWO = """
import sys, json
import headrace as tf
spec = tf.train.ClusterSpec(json.loads(sys.argv[1]))
tf.config.experimental_connect_to_cluster(spec)
with tf.device("/job:ps/task:0"):
    v = tf.Variable([1.0, 2.0])
with tf.device("/job:ps/task:1"):
    w = tf.Variable([[1.0], [3.0]])
    elements = [int(x) for x in tf.data.Dataset.range(3)]
here = tf.Variable(1.0)

@tf.function
def loss_of(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(x, w) ** 2) + tf.reduce_sum(v)
    for variable, gradient in zip([v, w], tape.gradient(loss, [v, w])):
        variable.assign_sub(0.01 * gradient)
    return loss

losses = [float(loss_of(tf.constant([[1.0, 1.0]]))) for _ in range(2)]
print(json.dumps([losses, v.numpy().tolist(), elements]))

@tf.function
def mixed():
    return here + v

print(json.dumps(mixed().numpy().tolist()))
"""


def test_a_function_of_variables_on_two_tasks():
    cluster = processes.Cluster(ps=2)
    try:
        cluster.start_all()
        out = told_by(cluster, "-c", _TWO)
        told, mixed = out.splitlines()
        losses, v, elements = json.loads(told)
        assert losses == pytest.approx([19.0, 17.7256], abs=1e-4)
        assert v == pytest.approx([0.98, 1.98], abs=1e-6)
        assert elements == [0, 1, 2]
        assert json.loads(mixed) == pytest.approx([1.98, 2.98], abs=1e-6)
    finally:
        cluster.stop()


_WITHIN = """
import json, sys
import headrace as tf
spec = tf.train.ClusterSpec(json.loads(sys.argv[1]))
tf.config.experimental_connect_to_cluster(spec)
own = tf.Variable(3.0)
with tf.device("/job:worker/task:0"):
    v = tf.Variable([1.0, 2.0])

def told(*what):
    print(json.dumps(what))

def where():
    return tf.io.read_file("/proc/self/cmdline")

@tf.function
def inner():
    return where()

@tf.function
def places():
    with tf.device("/job:worker/task:1"):
        one, called = where(), inner()
    with tf.device("/job:worker/replica:0/task:0/device:CPU:0"):
        zero = where()
    return where(), zero, one, called

# The fifth word of a task's command line is its number.
def numbers():
    return ["".join(t.numpy().decode().split("\\0")[4:5]) for t in places()]

told(numbers())
with tf.device("/job:worker/task:0"):
    told(numbers())

@tf.function
def step(x):
    with tf.device("/job:worker/task:1"):
        y = x * own  # which stays here, and is read here
    v.assign_add(y)
    own.assign_add(1.0)
    return tf.reduce_sum(y) + tf.reduce_sum(v)

x = tf.constant([1.0, 2.0])
told(float(step(x)), float(step(x)), float(own), v.numpy().tolist())
with tf.GradientTape() as tape:
    tape.watch(x)
    loss = step(x)
gradients = tape.gradient(loss, [x, own])
told(float(loss), gradients[0].numpy().tolist(), float(gradients[1]))

class Away(tf.keras.layers.Layer):
    def call(self, x):
        with tf.device("/job:worker/task:1"):
            return x + tf.cast(tf.strings.length(where()) > 0, x.dtype)

model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones"), Away()])
model.compile("sgd", "mse")
history = model.fit(tf.ones([4, 2]), tf.zeros([4, 1]), batch_size=4, verbose=0)
told(history.history["loss"], model.predict(tf.ones([1, 2]), verbose=0).tolist())

def refused(call):
    try:
        call()
    except tf.errors.OpError as e:
        told(type(e).__name__, e.message)

@tf.function
def turns(x):
    def body(i, x):
        with tf.device("/job:worker/task:1"):
            return i + 1, x + 1.0
    return tf.while_loop(lambda i, x: i < 3, body, [0, x])[1]

@tf.function
def nobody(x):
    with tf.device("/job:nobody/task:3"):
        return x + 1.0

def row(x):
    with tf.device("/job:worker/task:1"):
        return x + 1

told(turns(x).numpy().tolist())
refused(lambda: nobody(x))
refused(lambda: list(tf.data.Dataset.range(3).map(row)))
with tf.device("/job:worker/task:1"):
    told(turns(x).numpy().tolist(), tf.reduce_sum(turns(x)).device)
"""


def test_functions_that_name_tasks_within():
    cluster = processes.Cluster(worker=2)
    try:
        cluster.start_all()
        out = told_by(cluster, "-c", _WITHIN)
        lines = [json.loads(line) for line in out.splitlines()]
        assert lines[:4] == [
            [["", "0", "1", "1"]],
            [["0", "0", "1", "1"]],
            [21.0, 36.0, 5.0, [8.0, 16.0]],
            [54.0, [5.0, 5.0], 3.0],
        ]
        losses, predicted = lines[4]
        assert losses == pytest.approx([9.0])  # 1 + 1 + 1 against 0
        assert predicted[0][0] == pytest.approx(3.0 - 0.01 * 6.0 * 3, abs=1e-5)
        (turned,), (unknown, device), (data, mapped) = lines[5:8]
        assert turned == [4.0, 5.0] and data == "UnimplementedError"
        assert "/job:worker/task:1" in mapped and "as a whole" in mapped
        assert unknown == "InvalidArgumentError" and "/job:nobody" in device
        task = "/job:worker/replica:0/task:1/device:CPU:0"
        assert lines[8] == [[4.0, 5.0], task]
    finally:
        cluster.stop()


_OTHERWISE = """
import json, socket, sys
import headrace as tf
address = json.loads(sys.argv[1])["trainer"][0]
own = tf.Variable(2.0)

@tf.function
def scaled(x):
    with tf.device("/job:worker/task:0"):
        return x * own

tf.config.experimental_connect_to_host(address)  # as a worker, which it is not called
print(scaled(tf.constant([1.0, 2.0])).numpy().tolist())
taken = socket.socket()
taken.bind(("localhost", 0))
taken.listen()
chief = f"localhost:{taken.getsockname()[1]}"
spec = tf.train.ClusterSpec({"chief": [chief], "worker": [address]})
tf.config.experimental_connect_to_cluster(spec, job_name="chief")
try:
    scaled(tf.constant([1.0, 2.0]))
except tf.errors.FailedPreconditionError as e:
    print("to run on /job:worker/task:0" in e.message, "does not listen" in e.message)
with tf.device("/job:worker/task:0"):
    print((tf.constant([1.0]) + 1.0).numpy().tolist())
"""


def test_functions_that_name_tasks_that_are_called_otherwise():
    cluster = processes.Cluster(trainer=1)
    try:
        cluster.start_all()
        out = told_by(cluster, "-c", _OTHERWISE)
        assert out == "[2.0, 4.0]\nTrue True\n[2.0]\n"
    finally:
        cluster.stop()
