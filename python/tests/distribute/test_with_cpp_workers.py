"""Workers of C++ train with Python's: by parameter servers, and in a ring; and a
coordinator of C++ has Python's tasks train."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import headrace as tf
import numpy as np
import processes
import pytest

ROOT = pathlib.Path(__file__).parents[3]
DIGITS = ROOT / "build" / "examples" / "cluster_digits"
WORKER = ROOT / "build" / "tests" / "ring_worker"
ELASTIC = ROOT / "build" / "tests" / "elastic_worker"
EXAMPLE = ROOT / "build" / "examples" / "cluster_coordinator"
COORDINATOR = ROOT / "build" / "tests" / "coordinator"
SCRIPT = ROOT / "examples" / "cluster_digits.py"
DATA = ROOT / "examples" / "data" / "digits.bin"
_LONG = 120  # seconds: a busy machine takes long to import

pytestmark = pytest.mark.skipif(
    not all(p.exists() for p in (DIGITS, WORKER, EXAMPLE, COORDINATOR, ELASTIC)),
    reason="no C++ build",
)

# A Python worker: the way of training, and where to write what came of it.
TWIN = """
import json, sys
import numpy as np
import headrace as tf
way, path = sys.argv[1:]
if way.endswith("of_two"):
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy._from_local_devices(
        ["/cpu:0", "/cpu:1"]
    )
else:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank, size = strategy.extended._task_id, strategy.num_replicas_in_sync
x = (np.arange(8, dtype=np.float32) / 8 - rank / 4).reshape(4, 2)
y = (np.arange(4, dtype=np.float32) / 2 + rank).reshape(4, 1)
tf.keras.utils.set_random_seed(rank + 3)
told = []

def dense_model():
    return tf.keras.Sequential([
        tf.keras.layers.Dense(3, activation="tanh", input_shape=(2,)),
        tf.keras.layers.Dense(1),
    ])

if way == "slices":
    with strategy.scope():
        table = tf.Variable(tf.fill([4, 2], 9.0))
        sgd = tf.keras.optimizers.SGD(0.5)
    @tf.function
    def step(rows):
        def replica(rows):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.gather(table, rows) ** 2)
            sgd.apply_gradients([(tape.gradient(loss, table), table)])
        strategy.run(replica, args=(rows,))
    step(tf.fill([rank + 1], rank))
    weights = [table.numpy()]
elif way.startswith("fit"):
    with strategy.scope():
        model = dense_model()
        model.compile(tf.keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    batches = tf.data.Dataset.from_tensors((x, y)).repeat(6).with_options(options)
    history = model.fit(batches, epochs=2, verbose=0).history
    told = [history["loss"][-1], history["mae"][-1]]
    weights = model.get_weights()
else:
    with strategy.scope():
        model = dense_model()
        adam = tf.keras.optimizers.Adam(0.1)
    @tf.function
    def step(x, y):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2) / size
            variables = model.trainable_variables
            adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss
        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)
    own = size // 2  # replicas of this worker
    def rows_of_replica(context):
        replica = context.replica_id_in_sync_group % own
        return [tf.constant(np.split(v, own)[replica]) for v in (x, y)]
    parts = strategy.experimental_distribute_values_from_function(rows_of_replica)
    for _ in range(6):
        loss = step(*parts)
    told, weights = [float(loss)], model.get_weights()
np.savez(path, *weights)
print(json.dumps(told))
# Nobody leaves while another one still sums.
strategy.reduce("SUM", tf.constant(0), axis=None)
"""


@contextlib.contextmanager
def started(spec, tasks):
    """The processes of (job, number, command), which are told their task by TF_CONFIG."""
    running = []
    try:
        for job, index, command in tasks:
            config = {"cluster": spec, "task": {"type": job, "index": index}}
            running.append(
                subprocess.Popen(
                    [str(c) for c in command],
                    env={**os.environ, "TF_CONFIG": json.dumps(config)},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


def outputs(running):
    """What each process says on its standard output, when all have ended well."""
    said = [p.communicate(timeout=_LONG) for p in running]
    for process, (_, errors) in zip(running, said):
        assert process.returncode == 0, [e[-2000:] for _, e in said] or errors
    return [out for out, _ in said]


def weights_of(prefix, names):
    reader = tf.train.load_checkpoint(str(prefix))
    return [reader.get_tensor(f"{n}/.ATTRIBUTES/VARIABLE_VALUE") for n in names]


@pytest.mark.parametrize("cpp_rank", [0, 1])
@pytest.mark.parametrize("way", ["loop", "fit", "slices", "loop_of_two", "fit_of_two"])
def test_a_ring_of_both(way, cpp_rank, tmp_path):
    """Losses and weights are the same, bit by bit, whichever worker is the first."""
    spec = processes.Cluster(worker=2).spec
    commands = {
        cpp_rank: [WORKER, way, tmp_path / "cpp"],
        1 - cpp_rank: [sys.executable, "-c", TWIN, way, tmp_path / "python.npz"],
    }
    with started(spec, [("worker", i, c) for i, c in commands.items()]) as running:
        cpp, python = outputs(running)
    told = [float(t) for t in cpp.split()]
    np.testing.assert_allclose(told, json.loads(python.splitlines()[-1]), rtol=1e-6)
    kept = np.load(tmp_path / "python.npz")
    names = ["table"] if way == "slices" else [str(i) for i in range(4)]
    found = weights_of(tmp_path / "cpp", [f"module/{n}" for n in names])
    assert len(kept.files) == len(names)
    for got, name in zip(found, kept.files):
        np.testing.assert_array_equal(got, kept[name])
    if way == "slices":
        first = 1 if cpp_rank == 0 else 9
        # v -= 0.5 * 2 v for row 0, and twice that for row 1.
        want = first * np.float32([[0, 0], [-1, -1], [1, 1], [1, 1]])
        np.testing.assert_array_equal(found[0], want)


def test_digits_in_a_ring(tmp_path):
    spec = processes.Cluster(worker=2).spec
    options = ["--steps", 30, "--data", DATA, "--weights"]
    commands = [
        [sys.executable, SCRIPT, "ring", *options, tmp_path / "python.npz"],
        [DIGITS, "ring", *options, tmp_path / "cpp"],
    ]
    with started(spec, [("worker", i, c) for i, c in enumerate(commands)]) as running:
        python, cpp = outputs(running)
    assert "test accuracy: 0." in python and "trained 30 steps" in cpp
    kept = np.load(tmp_path / "python.npz")
    names = [f"weights/{n.replace('/', '_')}" for n in kept.files]
    for got, name in zip(weights_of(tmp_path / "cpp", names), kept.files):
        np.testing.assert_array_equal(got, kept[name])


def test_digits_by_replicas(tmp_path):
    """Two replicas of one worker end as one does, but for the last bits."""
    options = ["ring", "--steps", "30", "--data", DATA, "--weights"]
    for count in (1, 2):
        given = [*options, tmp_path / str(count), "--replicas", str(count)]
        with started({}, [("worker", 0, [DIGITS, *given])]) as running:
            assert "trained 30 steps" in outputs(running)[0]
    names = [f"weights/{n}" for n in ("hidden_w", "hidden_b", "out_w", "out_b")]
    one, two = (weights_of(tmp_path / str(count), names) for count in (1, 2))
    for got, want in zip(two, one):
        np.testing.assert_allclose(got, want, atol=1e-6)


def test_digits_in_an_elastic_ring(tmp_path):
    """As in one that does not change, where nobody goes."""
    spec = processes.Cluster(worker=2).spec
    found = []
    for way in ("ring", "elastic"):
        prefixes = [tmp_path / f"{way}-{i}" for i in range(2)]
        commands = [
            [DIGITS, way, "--steps", 30, "--data", DATA, "--weights", prefix]
            for prefix in prefixes
        ]
        tasks = [("worker", i, c) for i, c in enumerate(commands)]
        with started(spec, tasks) as running:
            assert all("trained 30 steps" in said for said in outputs(running))
        names = [f"weights/{n}" for n in ("hidden_w", "hidden_b", "out_w", "out_b")]
        found += [weights_of(prefix, names) for prefix in prefixes]
    for other in found[1:]:
        for got, want in zip(other, found[0]):
            np.testing.assert_array_equal(got, want)


def test_digits_by_parameter_servers(tmp_path):
    """The C++ worker makes the steps behind those of Python's, on the same variables."""
    spec = processes.Cluster(ps=2, worker=2).spec
    script = [sys.executable, SCRIPT]
    graph = tmp_path / "graph.pb"
    with started(spec, [("worker", 1, [*script, "graph", "--graph", graph])]) as one:
        outputs(one)
    servers = [("ps", i, [*script, "async"]) for i in range(2)]
    with started(spec, servers):
        python = [*script, "async", "--data", DATA, "--steps", 10]
        cpp = [DIGITS, "servers", "--graph", graph, "--data", DATA, "--steps", 120]
        workers = [("worker", 0, python), ("worker", 1, cpp)]
        with started(spec, workers) as running:
            first, second = outputs(running)
    # Both count in one variable: Python ends behind 20 steps of both together.
    assert "test accuracy: 0." in first
    assert "trained 12" in second


# A worker of Python that does what elastic_worker.cc does.
COMES_AND_GOES = """
import sys, time
import headrace as tf
steps, file, prefix = int(sys.argv[1]), *sys.argv[2:]
strategy = tf.distribute.experimental.ElasticStrategy(timeout_seconds=60)
with strategy.scope():
    weights, speed = tf.Variable(tf.fill([50], 7.0)), tf.Variable(tf.zeros([50]))
state = tf.distribute.experimental.ElasticState(strategy, weights=weights, speed=speed)

@tf.function
def gradient(row):
    with tf.GradientTape() as tape:
        error = tf.sin(weights * row) - 0.5
        loss = tf.reduce_mean(error * error)
    return tape.gradient(loss, weights)

@tf.function
def update(parts):
    total = tf.reduce_sum(strategy.gather(parts, axis=0), 0)
    speed.assign(speed * 0.5 + total)
    weights.assign_sub(speed * 0.125)

def train():
    while (step := state.commits) < steps:
        rows = [float(step % 7 * 12 + i) for i in state.share(12)]
        update(tf.stack([gradient(tf.constant(row)) for row in rows]))
        state.commit()
        with open(file, "a") as lines:
            print(len(state.members), file=lines)
        time.sleep(0.02 if len(state.members) == 3 else 0.3)

state.run(train)
tf.train.Checkpoint(weights=weights).write(prefix)
"""


def await_members(path, wanted):
    """Waits for a step with so many workers behind all that were made so far."""
    before = len(path.read_text().split()) if path.exists() else 0
    end = time.monotonic() + _LONG
    while time.monotonic() < end:
        found = path.read_text().split()[before:] if path.exists() else []
        if str(wanted) in found:
            return
        time.sleep(0.02)
    raise AssertionError(path.read_text() if path.exists() else "no step")


@pytest.mark.parametrize("comes_and_goes", ["python", "cpp"])
def test_a_ring_of_both_that_changes(comes_and_goes, tmp_path):
    """A worker of either language is killed and comes back; all end with the same weights."""
    spec = processes.Cluster(worker=3).spec
    program = {"cpp": [ELASTIC], "python": [sys.executable, "-c", COMES_AND_GOES]}
    kinds = ["cpp", "python", comes_and_goes]

    def task(i):
        files = [tmp_path / f"steps-{i}", tmp_path / f"last-{i}"]
        return ("worker", i, [*program[kinds[i]], 60, *files])

    with started(spec, [task(0), task(1)]) as running:
        with started(spec, [task(2)]):
            await_members(tmp_path / "steps-0", 3)
        # It has been killed.
        await_members(tmp_path / "steps-0", 2)
        with started(spec, [task(2)]) as again:
            await_members(tmp_path / "steps-1", 3)
            outputs([*running, *again])
    one, *others = (
        weights_of(tmp_path / f"last-{i}", ["weights"])[0] for i in range(3)
    )
    assert np.isfinite(one).all() and not (one == 7).any()
    for other in others:
        np.testing.assert_array_equal(one, other)


# A task of Python that joins.
JOINS = """
import json, os
import headrace as tf
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
tf.distribute.Server(config["cluster"], task["type"], task["index"]).join()
"""


def said_by(command, spec):
    """What a coordinator's program printed."""
    made = subprocess.run(
        command,
        env={**os.environ, "TF_CONFIG": json.dumps({"cluster": spec})},
        capture_output=True,
        text=True,
        timeout=_LONG,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def coordinated(spec, prefix):
    """The last loss, and weights, of a coordinator of C++ on tasks that are there; without a
    cluster, of one process."""
    way = "servers" if spec else "alone"
    said = said_by([COORDINATOR, way, prefix], spec)
    reader = tf.train.load_checkpoint(str(prefix))
    keys = sorted(k for k in reader.get_variable_to_shape_map() if "module" in k)
    assert len(keys) == 4
    return float(said), [reader.get_tensor(k) for k in keys]


def check_as_one_process(spec, tmp_path):
    loss, weights = coordinated(spec, tmp_path / "servers")
    loss_alone, alone = coordinated({}, tmp_path / "alone")
    assert loss == loss_alone
    for got, want in zip(weights, alone):
        np.testing.assert_array_equal(got, want)


def test_a_coordinator_of_python_tasks(tmp_path):
    """Weights and loss are those of one process, bit by bit."""
    spec = processes.Cluster(ps=2, worker=2).spec
    tasks = [(job, i, [sys.executable, "-c", JOINS]) for job in spec for i in range(2)]
    with started(spec, tasks):
        check_as_one_process(spec, tmp_path)


def test_a_coordinator_of_launched_tasks(tmp_path):
    """The same where `headrace run` started the tasks."""
    script = tmp_path / "joins.py"
    # This version, where another one is installed.
    here = pathlib.Path(tf.__file__).parents[1]
    script.write_text(f"import sys\nsys.path.insert(0, {str(here)!r})\n{JOINS}")
    spec, port = None, 0
    while spec is None:  # until ports that follow each other are free
        (port,) = processes.free_ports(1)
        ports = range(port, port + 3)
        if all(map(is_free, ports)):
            addresses = [f"127.0.0.1:{p}" for p in ports]
            spec = {"worker": addresses[:2], "ps": addresses[2:]}
    command = [sys.executable, "-m", "headrace._command", "run", "-n", "2", "--ps", "1"]
    command += ["--port_base", str(port), str(script)]
    launcher = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        check_as_one_process(spec, tmp_path)
    finally:
        launcher.terminate()
        launcher.wait(_LONG)


# Writes, or reads and prints, a variable as a whole and in two parts.
TABLES = """
import sys
library, act, *prefixes = sys.argv[1:]
if library == "tensorflow":
    import tensorflow as tf
    from tensorflow.python.distribute.sharded_variable import ShardedVariable
else:
    import headrace as tf
    from headrace.distribute.remote.sharded import ShardedVariable
value = tf.reshape(tf.range(10.0), [5, 2]) if act == "write" else tf.zeros([5, 2])
tables = [
    tf.Variable(value),
    ShardedVariable([tf.Variable(value[:1]), tf.Variable(value[1:])]),
]
for prefix, table in zip(prefixes, tables):
    checkpoint = tf.train.Checkpoint(table=table)
    if act == "write":
        checkpoint.write(prefix)
    else:
        checkpoint.restore(prefix).assert_consumed()
        print(tf.convert_to_tensor(table).numpy().tolist())
"""


@pytest.mark.parametrize("library", ["headrace", "tensorflow"])
def test_variables_in_parts_in_checkpoints(library, tmp_path):
    """What others wrote as a whole and in parts is read in other parts, and back again."""
    python = processes.PYTHONS[library]
    if python is None:
        pytest.skip("no Python that has TensorFlow")
    prefixes = [str(tmp_path / name) for name in ("whole", "parts")]

    def run(act, *prefixes):
        command = [python, "-c", TABLES, library, act, *prefixes]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=_LONG
        ).stdout.split("\n")

    run("write", *prefixes)
    spec = processes.Cluster(ps=2, worker=1).spec
    servers = [("ps", i, [sys.executable, "-c", JOINS]) for i in range(2)]
    with started(spec, servers):
        for prefix in prefixes:
            said_by([COORDINATOR, "table", prefix], spec)
    # Each reads what the other one was made of.
    doubled = [f"{prefix}-doubled" for prefix in reversed(prefixes)]
    want = np.float32(2 * np.arange(10)).reshape(5, 2).tolist()
    assert run("read", *doubled)[:2] == [str(want)] * 2


@pytest.mark.parametrize("given", [[], ["--epochs", "4"]], ids=["steps", "fit"])
def test_the_example_of_a_coordinator(given):
    """Its own tasks and Python's train together."""
    spec = processes.Cluster(ps=2, worker=2).spec
    kinds = [[EXAMPLE], [sys.executable, "-c", JOINS]]
    tasks = [(job, i, kinds[i]) for job in spec for i in range(2)]
    with started(spec, tasks):
        said = said_by([EXAMPLE, "--data", DATA, *given], spec)
    assert float(said.split("test accuracy: ")[1]) > 0.9


def is_free(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) != 0
