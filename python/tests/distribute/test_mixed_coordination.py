"""What the coordination service of a leader says, Headrace's and TensorFlow's.

HEADRACE_TENSORFLOW_PYTHON names a Python that has TensorFlow 2.21; without it only
Headrace's is asked.
"""

import time

import grpc
import processes
import pytest
from headrace.framework.support import protos

# The leader of three tasks of TensorFlow's. It waits for the two others.
_LEADER = """
import json, sys, time
import tensorflow as tf
from tensorflow.core.protobuf import tensorflow_server_pb2
from tensorflow.python.eager import context
job, index, cluster = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
spec = tf.train.ClusterSpec(cluster)
server = tensorflow_server_pb2.ServerDef(
    cluster=spec.as_cluster_def(), job_name=job, task_index=index, protocol="grpc"
)
service = server.default_session_config.experimental.coordination_config
service.service_type = "standalone"
service.service_leader = "/job:w/replica:0/task:0"
service.heartbeat_timeout_in_ms = 60000
service.coordinated_job_list.add(name="w", num_tasks=3)
mine = context.context()
mine.configure_coordination_service("standalone", service.service_leader)
mine.enable_collective_ops(server)
tf.constant(1)
print("ready", flush=True)
time.sleep(600)
"""
_TIMES_OUT = (
    "This usually happens because a task triggered the barrier too early or too "
    "slowly. Please look at the task logs (both timed out and first task) to debug "
    "further.\n"
)
_CONFLICT = (
    "Conflicting tasks specified by different processes for the same barrier: {}. Check "
    "that the callers are invoking the barrier with the same arguments."
)
_COUNT = (
    "Barrier ({}) is invoked by the task, but the service thinks it is the {}-th "
    "instance. "
)
_RESTARTED = (
    "The service or task probably restarted, check the earlier logs to debug further. "
    "Usually, a restart on the stale tasks will resolve the issue."
)
_TOO_QUICK = (
    "One task is probably way too quick / slow in its execution. For example, one task "
    "started a barrier early, which timed out, and started a second barrier before the "
    "late task even joined once."
)
_BOOM = (
    "INTERNAL: boom [type.googleapis.com/tensorflow.CoordinationServiceError="
    "'\\x18\\x01\\\"\\x05\\n\\x01w\\x10\\x02']"
)


def _message(name):
    return protos.message("tensorflow." + name)


def _task(index):
    return _message("CoordinatedTask")(job_name="w", task_id=index)


def _name(index):
    return f"/job:w/replica:0/task:{index}"


class _Client:
    """Calls of the service."""

    def __init__(self, address):
        self._channel = grpc.insecure_channel(address)

    def start(self, method, **fields):
        call = self._channel.unary_unary(
            "/tensorflow.CoordinationService/" + method,
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=_message(method + "Response").FromString,
        )
        request = _message(method + "Request")(**fields)
        return call.future(request, timeout=30, wait_for_ready=True)

    def ask(self, method, **fields):
        return _end(self.start(method, **fields))

    def meet(self, index, barrier, counter=0, tasks=(1, 2), patience=20_000):
        call = self.start(
            "Barrier",
            barrier_id=barrier,
            counter=counter,
            barrier_timeout_in_ms=patience,
            tasks=[_task(i) for i in tasks],
            source_task=_task(index),
        )
        # The calls of several tasks come in the order in which they are made.
        time.sleep(0.2)
        return call

    def states(self):
        asked = [_task(1), _task(2)]
        told = self.start("GetTaskState", source_task=asked).result().task_state
        return [(t.state, t.incarnation, t.error_code, t.error_message) for t in told]

    def close(self):
        self._channel.close()


def _end(call):
    """("OK", the answer) or (code, text)."""
    try:
        return "OK", call.result()
    except grpc.RpcError as e:
        return e.code().name, e.details()


def _code(call):
    return _end(call)[0]


@pytest.fixture(params=["headrace", "tensorflow"])
def client(request, monkeypatch):
    """Of a service of three tasks, of which 1 and 2 are there."""
    python = processes.PYTHONS[request.param]
    if not python:
        pytest.skip("HEADRACE_TENSORFLOW_PYTHON is not set")
    monkeypatch.setenv("HEADRACE_TENSORFLOW_PEERS", "1")
    cluster = processes.Cluster(w=3)
    program = processes.TASK if request.param == "headrace" else _LEADER
    asks = _Client(cluster.spec["w"][0])
    try:
        cluster.begin("w", python=python, program=program)
        until = time.monotonic() + 120
        for i in (1, 2):
            # TensorFlow's server begins before its service.
            while (
                end := asks.ask(
                    "RegisterTask", source_task=_task(i), incarnation=10 + i
                )
            )[0] != "OK":
                assert time.monotonic() < until, end
                time.sleep(0.2)
        waits = [asks.start("WaitForAllTasks", source_task=_task(i)) for i in (1, 2)]
        cluster.await_ready("w")
        yield asks
        for w in waits:
            w.cancel()
    finally:
        asks.close()
        cluster.stop()


@pytest.mark.slow
def test_barriers(client):
    first = client.meet(1, "a")
    assert not first.done()
    assert _code(client.meet(2, "a", tasks=(2, 1))) == "OK" == _code(first)
    assert _code(client.meet(1, "a")) == "OK"
    first = client.meet(1, "a", 1)
    assert not first.done()
    assert _code(client.meet(2, "a", 1)) == "OK"
    assert first.result().counter == 1
    assert _end(client.meet(1, "a")) == (
        "INTERNAL",
        _COUNT.format("a::0", 1) + _RESTARTED,
    )
    assert _end(client.meet(1, "a", 5)) == (
        "INTERNAL",
        _COUNT.format("a::5", 1) + _TOO_QUICK,
    )
    everyone = [client.meet(i, "all", tasks=()) for i in (1, 2)]
    assert not any(call.done() for call in everyone)
    everyone.append(client.meet(0, "all", tasks=()))
    assert [_code(call) for call in everyone] == ["OK"] * 3
    gone = client.meet(1, "gone")
    gone.cancel()
    time.sleep(0.2)
    assert _code(client.meet(2, "gone")) == "OK"
    old, young = client.meet(1, "twice"), client.meet(1, "twice")
    assert _end(old) == (
        "CANCELLED",
        "Cancelled because there's a more recent barrier call for twice::0 from the same "
        "task.",
    )
    assert _code(client.meet(2, "twice")) == "OK" == _code(young)


@pytest.mark.slow
def test_barriers_that_fail(client):
    late = (
        "DEADLINE_EXCEEDED",
        f"Barrier timed out. Id: late::0. {_TIMES_OUT}# of tasks that reached the "
        f"barrier: 1/2.\nThe first task at the barrier: {_name(1)}. Some timed out task "
        f"names:\n{_name(2)}\n",
    )
    assert _end(client.meet(1, "late", patience=300)) == late
    assert _end(client.meet(2, "late")) == late
    assert _code(client.meet(1, "none", patience=0)) == "DEADLINE_EXCEEDED"
    assert _code(client.meet(1, "less", patience=-5)) == "DEADLINE_EXCEEDED"
    first = client.meet(1, "sets")
    conflict = "INVALID_ARGUMENT", _CONFLICT.format("sets::0")
    assert _end(client.meet(2, "sets", tasks=(0, 1, 2))) == conflict == _end(first)
    assert _end(client.meet(1, "double", tasks=(1, 1))) == (
        "INVALID_ARGUMENT",
        _CONFLICT.format("double::0"),
    )
    outside = (
        "INVALID_ARGUMENT",
        f"A non-participating task ({_name(0)}) called the barrier: out::0",
    )
    first = client.meet(1, "out")
    assert _end(client.meet(0, "out")) == outside == _end(first)
    first = client.meet(1, "count")
    other = "INTERNAL", _COUNT.format("count::1", 0) + _RESTARTED
    assert _end(client.meet(2, "count", 1)) == other == _end(first)
    for barrier, source, tasks in (("far", 9, (9,)), ("near", 1, (1, 9))):
        assert _end(client.meet(source, barrier, tasks=tasks)) == (
            "INVALID_ARGUMENT",
            f"Unexpected task ({_name(9)}) that is not in the cluster called the "
            f"barrier. Barrier Id: {barrier}::0",
        )


@pytest.mark.slow
def test_barriers_that_are_cancelled(client):
    def cancel(index, counter=0):
        return client.ask(
            "CancelBarrier", barrier_id="c", counter=counter, source_task=_task(index)
        )

    first = client.meet(1, "c")
    assert cancel(2, 4) == (
        "FAILED_PRECONDITION",
        "Barrier (c::4) is cancelled by task, but the service thinks it is the 0-th "
        "instance. This is likely due to a restart in the task or service.",
    )
    assert cancel(2)[0] == "OK"
    cancelled = "CANCELLED", f"Barrier (c::0) is cancelled by task: {_name(2)}"
    assert _end(first) == cancelled == _end(client.meet(2, "c"))
    assert cancel(2) == (
        "FAILED_PRECONDITION",
        "Barrier (c::0) has already been passed with status code: 1",
    )


@pytest.mark.slow
def test_tasks_that_fail_leave_and_return(client):
    told = client.start("WatchJobState", job_name="w").result()
    states = {t.task.task_id: t.state for t in told.task_state}
    assert states[1] == states[2] == 3
    watch = client.start(
        "WatchJobState", job_name="w", version_number=told.version_number
    )
    alive = client.start(
        "GetAliveTasks", requesting_task=_task(1), tasks=[_task(1), _task(2)]
    )
    first = client.meet(1, "d")
    assert not (watch.done() or alive.done() or first.done())
    assert (
        client.ask(
            "ReportErrorToService",
            error_code=13,
            error_message="boom",
            error_origin=_task(2),
        )[0]
        == "OK"
    )
    assert _end(first) == (
        "INTERNAL",
        f"Barrier failed because: task is set to ERROR: {_BOOM}. Barrier Id: d::0, "
        f"Task: {_name(2)}",
    )
    assert _end(client.meet(1, "e")) == (
        "INTERNAL",
        f"Task ({_name(2)}) is already in error before the barrier was called. Barrier "
        f"Id: e::0 Task error: {_BOOM}",
    )
    result = alive.result()
    assert [t.task_id for t in result.alive_tasks] == [1]
    assert list(result.incarnations) == [11]
    states = {t.task.task_id: t.state for t in watch.result().task_state}
    assert (states[1], states[2]) == (3, 4)
    assert watch.result().version_number > told.version_number
    assert client.states() == [(3, 11, 0, ""), (4, 12, 13, "boom")]

    assert client.ask("Heartbeat", source_task=_task(2), incarnation=12) == (
        "ABORTED",
        f"Unexpected heartbeat request from an already-in-error task: {_name(2)} with "
        f"existing error: {_BOOM}",
    )
    assert client.ask("RegisterTask", source_task=_task(2), incarnation=12) == (
        "ABORTED",
        f"{_name(2)} unexpectedly tried to connect while it is already in error. "
        "ResetTask() should be called before a subsequent connect attempt. Existing "
        f"error: {_BOOM}",
    )
    report = {"error_code": 13, "error_message": "again"}
    assert client.ask("ReportErrorToService", error_origin=_task(2), **report) == (
        "FAILED_PRECONDITION",
        "The task is not connected or already has an error.",
    )
    assert client.ask("ReportErrorToService", error_origin=_task(9), **report) == (
        "INVALID_ARGUMENT",
        f"Unexpected request from task {_name(9)}",
    )
    assert client.ask("ResetTask", source_task=_task(2))[0] == "OK"
    assert client.states() == [(3, 11, 0, ""), (2, 12, 0, "")]
    assert client.ask("Heartbeat", source_task=_task(2), incarnation=12)[0] == "OK"
    for method in ("ResetTask", "ShutdownTask"):
        assert client.ask(method, source_task=_task(2)) == (
            "FAILED_PRECONDITION",
            f"The task is already disconnected: {_name(2)}",
        )
        assert client.ask(method, source_task=_task(9)) == (
            "INVALID_ARGUMENT",
            f"Unexpected disconnect request with task_name={_name(9)}",
        )
    assert client.ask("RegisterTask", source_task=_task(2), incarnation=32)[0] == "OK"
    assert client.states() == [(3, 11, 0, ""), (3, 32, 0, "")]

    first = client.meet(1, "f")
    assert client.ask("ShutdownTask", source_task=_task(2))[0] == "OK"
    assert _end(first) == (
        "INTERNAL",
        f"Barrier failed because: task disconnected. Barrier Id: f::0, Task: {_name(2)}",
    )
    mismatch = (
        f"{_name(1)} Heartbeat: Incarnation ID mismatch: expecting 11 but got 13. The "
        "task has restarted and likely crashed earlier - check for any earlier errors or "
        "any scheduler events (e.g. preemption, eviction) to debug further."
    )
    assert client.ask("Heartbeat", source_task=_task(1), incarnation=13) == (
        "ABORTED",
        mismatch,
    )
    assert client.states()[0] == (4, 11, 10, mismatch)


@pytest.mark.slow
def test_who_asks_for_the_living(client):
    def alive(index, *tasks):
        return client.start(
            "GetAliveTasks",
            requesting_task=_task(index),
            tasks=[_task(i) for i in tasks],
        )

    assert (
        _end(alive(1))
        == _end(alive(1, 2))
        == (
            "INVALID_ARGUMENT",
            f"Requesting task {_name(1)} is not one of the tasks specified in a "
            "GetAliveTasks request.",
        )
    )
    assert [t.task_id for t in alive(1, 1, 7).result().alive_tasks] == [1]
    assert [t.task_id for t in alive(2, 2, 2).result().alive_tasks] == [2]
    assert not alive(7, 7).result().alive_tasks
    first = alive(1, 1, 2)
    time.sleep(0.2)
    assert not first.done()
    # (TensorFlow's order is that of a hash table.)
    assert sorted(alive(2, 2, 1).result().incarnations) == [11, 12]
    assert sorted(first.result().incarnations) == [11, 12]
