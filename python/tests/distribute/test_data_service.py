"""tf.data.experimental.service: dispatchers, workers and what clients read of them."""

import os
import signal
import subprocess
import sys
import threading
import time

import headrace as tf
import numpy as np
import pytest

service = tf.data.experimental.service
OFF = "parallel_epochs"
DYNAMIC = "distributed_epoch"


class Served:
    """A dispatcher and workers of this process."""

    def __init__(self, workers=1, **config):
        self.dispatcher = service.DispatchServer(service.DispatcherConfig(**config))
        self.target = self.dispatcher.target
        self.workers = [self.worker() for _ in range(workers)]

    def worker(self, **config):
        address = self.target.removeprefix("grpc://")
        return service.WorkerServer(service.WorkerConfig(address, **config))

    def apply(self, dataset, mode=OFF, **arguments):
        return dataset.apply(service.distribute(mode, self.target, **arguments))

    def read(self, dataset, mode=OFF, **arguments):
        read = self.apply(dataset, mode, **arguments)
        return [np.asarray(x).tolist() for x in read.as_numpy_iterator()]

    def stop(self):
        for server in [*self.workers, self.dispatcher]:
            server.stop()


@pytest.fixture
def one():
    served = Served()
    yield served
    served.stop()


@pytest.fixture
def two():
    served = Served(workers=2)
    yield served
    served.stop()


def numbers(n):
    return tf.data.Dataset.range(n)


# --- what is read ---


@pytest.mark.parametrize("mode", [OFF, DYNAMIC, service.ShardingPolicy.OFF])
def test_one_worker_gives_all_in_order(one, mode):
    assert one.read(numbers(10), mode) == list(range(10))
    assert one.read(numbers(10).map(lambda x: x * x).batch(4), mode) == [
        [0, 1, 4, 9],
        [16, 25, 36, 49],
        [64, 81],
    ]


def test_two_workers(two):
    assert sorted(two.read(numbers(4))) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert sorted(two.read(numbers(50), DYNAMIC)) == list(range(50))
    twice = numbers(4).repeat(2)
    assert sorted(two.read(twice, DYNAMIC)) == [0, 0, 1, 1, 2, 2, 3, 3]
    both = tf.data.Dataset.zip((numbers(3), numbers(4)))
    assert len(two.read(both, DYNAMIC)) <= 3
    assert sorted(two.read(numbers(3).concatenate(numbers(2)), DYNAMIC)) == [
        0,
        0,
        1,
        1,
        2,
    ]
    assert two.dispatcher._num_workers() == 2


def test_sources_of_unknown_length_are_divided(two, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a\nb\nc\n")
    lines = tf.data.TextLineDataset(str(path))
    assert sorted(two.read(lines, DYNAMIC)) == [b"a", b"b", b"c"]


def test_structures(one):
    structured = tf.data.Dataset.from_tensors({"a": 1, "b": (b"x", [1.5, 2.5])})
    read = one.apply(structured)
    assert read.element_spec == structured.element_spec
    (element,) = read
    assert element["a"] == 1 and element["b"][0] == b"x"
    ragged = tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]]))
    (element,) = one.apply(ragged)
    assert element.to_list() == [[1], [2, 3]]
    sparse = tf.data.Dataset.from_tensors(tf.sparse.from_dense([[0, 1], [2, 0]]))
    (element,) = one.apply(sparse)
    assert tf.sparse.to_dense(element).numpy().tolist() == [[0, 1], [2, 0]]


@pytest.mark.parametrize("compression", ["AUTO", None, "SNAPPY"])
def test_compression(one, compression):
    large = tf.data.Dataset.from_tensors(tf.zeros([1000, 100])).repeat(3)
    read = list(one.apply(large, compression=compression))
    assert [x.shape.as_list() for x in read] == [[1000, 100]] * 3


def test_what_a_function_captured_travels(one):
    variable = tf.Variable(3, dtype=tf.int64)
    assert one.read(numbers(3).map(lambda x: x + variable)) == [3, 4, 5]


def test_within_functions(one):
    read = one.apply(numbers(5))

    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for x in read:
            result += x
        return result

    assert total() == 10
    assert total() == 10


def test_repr_and_cardinality(one):
    read = one.apply(numbers(3))
    spec = "TensorSpec(shape=(), dtype=tf.int64, name=None)"
    assert repr(read) == f"<_DataServiceDatasetV2 element_spec={spec}>"
    assert read.cardinality() == tf.data.UNKNOWN_CARDINALITY
    endless = one.apply(numbers(3).repeat())
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY
    assert [int(x) for x in endless.take(5)] == [0, 1, 2, 0, 1]
    assert [int(x) for x in read.repeat(2)] == [0, 1, 2, 0, 1, 2]


def test_errors_of_pipelines_come_with_their_class_and_text(one):
    def inverse(x):
        return tf.debugging.check_numerics(1 / x, "boo")

    read = iter(one.apply(tf.data.Dataset.from_tensor_slices([0.0, 2.0]).map(inverse)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="boo : Tensor had Inf"):
        next(read)
    assert next(read) == 0.5
    missing = tf.data.TextLineDataset("/no/such/file")
    with pytest.raises(tf.errors.NotFoundError, match="/no/such/file"):
        one.read(missing)


def test_few_outstanding_requests_hold_workers_up(one, tmp_path):
    made = []
    counted = numbers(1000).map(
        lambda x: tf.py_function(lambda y: made.append(1) or y, [x], tf.int64)
    )
    read = iter(one.apply(counted, max_outstanding_requests=1))
    assert next(read) == 0
    time.sleep(0.3)
    assert len(made) < 60
    assert next(read) == 1


# --- sharding ---


def test_static_sharding(tmp_path):
    policy = service.ShardingPolicy
    served = Served(workers=0, worker_addresses=["localhost:%port%", "other:1"])
    try:
        served.workers.append(served.worker())
        assert served.read(numbers(6), policy.DATA) == [0, 2, 4]
        assert served.read(numbers(6), policy.FILE_OR_DATA) == [0, 2, 4]
        with pytest.raises(tf.errors.NotFoundError, match="unshardable source dataset"):
            served.read(numbers(6), policy.FILE)
        files = []
        for name in "ab":
            files.append(str(tmp_path / name))
            (tmp_path / name).write_text(f"{name}1\n{name}2\n")
        lines = tf.data.TextLineDataset(files)
        assert served.read(lines, policy.FILE) == [b"a1", b"a2"]
        hint = tf.data.experimental.SHARD_HINT
        hinted = numbers(6).shard(hint, hint).map(lambda x: x + 1)
        assert served.read(hinted, policy.HINT) == [1, 3, 5]
        with pytest.raises(tf.errors.FailedPreconditionError, match="SHARD_HINT"):
            list(hinted)
    finally:
        served.stop()


def test_static_sharding_knows_its_workers(one):
    address = one.workers[0]._address
    with pytest.raises(
        tf.errors.NotFoundError,
        match="Failed to get or create iteration for job with id .*: Failed to shard "
        f"dataset in tf.data service: Worker {address} is not in the workers list. Got "
        "workers list .",
    ):
        one.read(numbers(3), service.ShardingPolicy.DATA)


# --- jobs ---


def test_named_jobs_are_shared(one):
    dataset = numbers(40)
    a = iter(one.apply(dataset, job_name="j"))
    b = iter(one.apply(dataset, job_name="j"))
    first = [int(next(a)) for _ in range(3)]
    rest = [int(x) for x in b] + [int(x) for x in a]
    assert sorted(first + rest) == list(range(40))
    # It is over; the next walk of one dataset is the job's next epoch.
    read = one.apply(dataset, job_name="j")
    assert list(read) == []
    assert [int(x) for x in read] == list(range(40))
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="Tried to create job with name j, but found an existing job with different "
        "parameters",
    ):
        one.read(dataset, DYNAMIC, job_name="j")


def test_coordinated_reads(two):
    endless = numbers(1000).repeat()
    readers = [
        iter(one_of)
        for one_of in (
            two.apply(endless, job_name="c", num_consumers=2, consumer_index=i)
            for i in range(2)
        )
    ]
    for _ in range(20):
        x, y = (int(next(r)) for r in readers)
        assert y == x + 1 and x % 2 == 0
    with pytest.raises(tf.errors.FailedPreconditionError, match="infinite cardinality"):
        two.read(numbers(3), job_name="d", num_consumers=1, consumer_index=0)
    with pytest.raises(tf.errors.FailedPreconditionError, match="consumer index 2"):
        two.read(endless, job_name="e", num_consumers=1, consumer_index=2)


def test_a_shared_cache(one):
    endless = numbers(1000).repeat()

    def begin(trainer):
        cache = service.CrossTrainerCache(trainer)
        return iter(one.apply(endless, job_name="t", cross_trainer_cache=cache))

    a, b = begin("a"), begin("b")
    assert [int(next(a)) for _ in range(5)] == list(range(5))
    assert [int(next(b)) for _ in range(5)] == list(range(5))
    cache = service.CrossTrainerCache("a")
    for dataset, arguments, text in (
        (
            endless,
            {},
            "Cross-trainer caching requires named jobs. Got empty `job_name`.",
        ),
        (numbers(3), {"job_name": "u"}, "requires the input dataset to be infinite"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            one.read(dataset, cross_trainer_cache=cache, **arguments)


def test_workers_come_and_go():
    served = Served(workers=0, worker_timeout_ms=300)
    try:
        read = iter(served.apply(numbers(400), DYNAMIC))
        served.workers += [served.worker(), served.worker()]
        found = [int(next(read)) for _ in range(50)]
        served.workers.pop(0).stop()
        found += [int(x) for x in read]
        # At most once, and what the stopped one had taken is gone.
        assert len(set(found)) == len(found) > 300
    finally:
        served.stop()


def test_a_dispatcher_may_come_late():
    late = service.DispatchServer(start=False)  # calls are Unavailable until start()
    late.stop()
    port = int(late._address.partition(":")[2])
    servers = []

    def begin():
        servers.append(service.DispatchServer(service.DispatcherConfig(port=port)))
        servers.append(service.WorkerServer(service.WorkerConfig(late._address)))

    timer = threading.Timer(0.3, begin)
    timer.start()
    read = numbers(4).apply(service.distribute(OFF, late.target))
    assert [int(x) for x in read] == [0, 1, 2, 3]
    timer.join()
    for server in reversed(servers):
        server.stop()


@pytest.mark.parametrize("waits", ["to register", "for workers"])
def test_a_signal_ends_what_waits(waits):
    dispatcher = service.DispatchServer()
    target = dispatcher.target
    if waits == "to register":
        dispatcher.stop()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    # A shell that starts tests behind itself has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        begun = time.monotonic()
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            list(numbers(4).apply(service.distribute(OFF, target)))
        assert time.monotonic() - begun < 3
    finally:
        signal.signal(signal.SIGINT, before)
    dispatcher.stop()


# --- registered datasets ---


def test_registered_datasets(one):
    dataset_id = service.register_dataset(one.target, numbers(4))
    assert dataset_id.dtype == tf.string
    read = service.from_dataset_id(OFF, one.target, dataset_id)
    assert read.element_spec == tf.TensorSpec([], tf.int64)
    assert [int(x) for x in read] == [0, 1, 2, 3]
    assert service.register_dataset(one.target, numbers(4), dataset_id="m") == b"m"
    assert [int(x) for x in service.from_dataset_id(OFF, one.target, "m")] == [
        0,
        1,
        2,
        3,
    ]
    for other, text in (
        (numbers(5), "modified: cardinality: 4 -> 5"),
        (numbers(4).batch(2), "different element_spec"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            service.register_dataset(one.target, other, dataset_id="m")
    with pytest.raises(
        ValueError, match="Failed to fetch element spec for dataset id zz"
    ):
        service.from_dataset_id(OFF, one.target, "zz")
    spec = tf.TensorSpec([], tf.string)
    with pytest.raises(tf.errors.NotFoundError, match="Dataset id zz not found"):
        service.from_dataset_id(OFF, one.target, "zz", element_spec=spec)
    wrong = service.from_dataset_id(OFF, one.target, "m", element_spec=spec)
    with pytest.raises(
        tf.errors.FailedPreconditionError,
        match="Expected a tensor of type string but got a tensor of type int64",
    ):
        next(iter(wrong))


# --- arguments ---


def test_arguments(one, tmp_path):
    def refused(text, mode=OFF, target=one.target, error=ValueError, **arguments):
        with pytest.raises(error, match=text):
            list(numbers(2).apply(service.distribute(mode, target, **arguments)))

    refused("processing mode should be a .* Got 'x'", mode="x")
    refused("Got 3.", mode=3)
    refused("`service` must not be empty", target="")
    refused("`service` must be a string", target=3)
    refused(
        "No credentials factory has been registered for protocol http. The available "
        r"types are: \[ grpc \]",
        target="http://localhost:3",
        error=tf.errors.NotFoundError,
    )
    refused("`job_name` must be a string, but `job_name` was of type", job_name=3)
    refused("`job_name` must not be empty", job_name="")
    refused("`job_name` must be set when setting", num_consumers=2, consumer_index=0)
    refused("Must either set both `consumer_index` and", consumer_index=0)
    refused(r"Must be one of \['AUTO', None, 'SNAPPY'\]", compression="x")
    invalid = tf.errors.InvalidArgumentError
    positive = "max_outstanding_requests must be positive or -1"
    refused(positive, error=invalid, max_outstanding_requests=0)
    refused("Unrecognized target workers: x", error=invalid, target_workers="x")
    absent = tf.errors.NotFoundError
    refused("Protocol 'x' is not available", error=absent, data_transfer_protocol="x")
    assert one.read(numbers(2), target_workers="LOCAL") == [0, 1]
    with pytest.raises(ValueError, match="non-empty trainer ID"):
        service.CrossTrainerCache("")
    with pytest.raises(AttributeError, match="'int' object has no attribute 'options'"):
        service.register_dataset(one.target, 3)
    with pytest.raises(tf.errors.UnimplementedError, match="data service"):
        tf.train.Checkpoint(i=iter(one.apply(numbers(3)))).write(str(tmp_path / "x"))


def test_servers():
    dispatcher = service.DispatchServer(start=False)
    assert dispatcher.target.startswith("grpc://localhost:")
    dispatcher.start()
    dispatcher.start()
    port = int(dispatcher._address.partition(":")[2])
    with pytest.raises(RuntimeError, match="Could not start gRPC server"):
        service.DispatchServer(service.DispatcherConfig(port=port))
    joined = threading.Thread(target=dispatcher.join)
    joined.start()
    dispatcher.stop()
    joined.join(2)
    assert not joined.is_alive()
    with pytest.raises(
        RuntimeError, match="cannot be started after it has been stopped"
    ):
        dispatcher.start()
    service.DispatchServer(service.DispatcherConfig(port=port)).stop()  # it is free
    with pytest.raises(RuntimeError, match="protocol x"):
        service.DispatchServer(service.DispatcherConfig(protocol="x"))
    with pytest.raises(ValueError, match="Must specify a `dispatcher_address`"):
        service.WorkerConfig(dispatcher_address=None)
    with pytest.raises(
        ValueError, match="fault tolerant mode without configuring a work"
    ):
        service.DispatchServer(service.DispatcherConfig(fault_tolerant_mode=True))
    begun = time.monotonic()
    with pytest.raises(RuntimeError):
        service.WorkerServer(
            service.WorkerConfig(f"localhost:{port}", dispatcher_timeout_ms=300)
        )
    assert time.monotonic() - begun < 5


def test_configurations():
    assert service.DispatcherConfig() == (0, "grpc", None, False, None, 0, 0, None, 0)
    assert repr(service.WorkerConfig("a:1")) == (
        "WorkerConfig(dispatcher_address='a:1', worker_address='localhost:%port%', port=0, "
        "protocol='grpc', heartbeat_interval_ms=0, dispatcher_timeout_ms=0, "
        "data_transfer_protocol=None, data_transfer_address='localhost:%dts_port%')"
    )
    assert [p.name for p in service.ShardingPolicy] == [
        "OFF",
        "DYNAMIC",
        "FILE",
        "DATA",
        "FILE_OR_DATA",
        "HINT",
    ]


# --- real processes ---

_SERVER = """
import signal, sys
import headrace as tf
signal.signal(signal.SIGINT, signal.default_int_handler)
service = tf.data.experimental.service
kind, argument, folder = sys.argv[1:4]
if kind == "worker":
    server = service.WorkerServer(service.WorkerConfig(argument))
else:
    server = service.DispatchServer(service.DispatcherConfig(
        port=int(argument), work_dir=folder or None, fault_tolerant_mode=bool(folder),
        worker_timeout_ms=None if folder else 1000))
print(server._address, flush=True)
server.join()
"""


class Processes:
    def __init__(self):
        self.running = []

    def begin(self, kind, argument, folder=""):
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, kind, str(argument), folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.running.append(process)
        return process, process.stdout.readline().strip()

    def stop(self):
        for process in self.running:
            process.kill()
            process.wait()
            process.stdout.close()


@pytest.fixture
def processes():
    made = Processes()
    yield made
    made.stop()


def test_a_killed_worker_takes_only_what_it_had(processes):
    _, address = processes.begin("dispatcher", 0)
    victim, _ = processes.begin("worker", address)
    processes.begin("worker", address)
    read = numbers(600).apply(service.distribute(DYNAMIC, f"grpc://{address}"))
    found = []
    for x in read:
        found.append(int(x))
        if len(found) == 100:
            victim.kill()
    assert len(set(found)) == len(found) > 500


def test_a_dispatcher_that_is_killed_goes_on_from_its_journal(processes, tmp_path):
    folder = str(tmp_path / "journal")
    dispatcher, address = processes.begin("dispatcher", 0, folder)
    worker, _ = processes.begin("worker", address)
    read = iter(numbers(300).apply(service.distribute(DYNAMIC, f"grpc://{address}")))
    found = [int(next(read)) for _ in range(50)]
    os.kill(dispatcher.pid, signal.SIGKILL)
    dispatcher.wait()
    dispatcher, again = processes.begin("dispatcher", address.partition(":")[2], folder)
    assert again == address
    found += [int(x) for x in read]
    # A number that was given away in the moment of the kill is gone.
    assert len(set(found)) == len(found) >= 298
    for process in (worker, dispatcher):
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(20)
        assert time.monotonic() - begun < 10
