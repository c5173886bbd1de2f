"""tf.profiler.experimental.server and client: profiles of other processes."""

import glob
import socket
import threading

import headrace as tf
import pytest
from headrace.framework.support import protos

grpc = pytest.importorskip("grpc")
profiler = tf.profiler.experimental


def _free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def address():
    port = _free_port()
    profiler.server.start(port)
    return f"localhost:{port}"


class _Busy:
    """A thread that multiplies as long as the `with` block runs."""

    def __enter__(self):
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self):
        x = tf.eye(8)
        while not self._done.wait(0.001):
            tf.matmul(x, x)

    def __exit__(self, *error):
        self._done.set()
        self._thread.join()


def _space(folder):
    (path,) = glob.glob(f"{folder}/plugins/profile/*/*.xplane.pb")
    with open(path, "rb") as f:
        return path, protos.message("tensorflow.profiler.XSpace").FromString(f.read())


def test_trace_writes_what_the_server_did(tmp_path, address, capsys):
    with _Busy():
        profiler.client.trace(f"grpc://{address}", str(tmp_path), 100)
    path, space = _space(tmp_path)
    assert path.endswith(f"/{address.replace(':', '_')}.xplane.pb")
    names = {m.name for p in space.planes for m in p.event_metadata.values()}
    assert "EagerLocalExecute: MatMul" in names
    assert capsys.readouterr().out == (
        "Starting to trace for 100 ms. Remaining attempt(s): 2\n"
    )


def test_options_reach_the_server(tmp_path, address):
    options = profiler.ProfilerOptions(host_tracer_level=1)
    with _Busy(), pytest.raises(RuntimeError, match="UNAVAILABLE: No trace event was"):
        profiler.client.trace(
            address, str(tmp_path), 50, num_tracing_attempts=1, options=options
        )
    options = profiler.ProfilerOptions(python_tracer_level=1)
    with pytest.raises(RuntimeError, match="python_tracer_level"):
        profiler.client.trace(
            address, str(tmp_path), 50, num_tracing_attempts=1, options=options
        )
    with pytest.raises(TypeError, match="ProfilerOptions"):
        profiler.client.trace(address, str(tmp_path), 50, options={"delay_ms": 1})


def test_attempts_of_a_server_that_is_not_there(tmp_path, capsys):
    with pytest.raises(RuntimeError, match="^UNAVAILABLE: failed to connect"):
        profiler.client.trace(
            f"localhost:{_free_port()}", str(tmp_path), 50, num_tracing_attempts=2
        )
    assert capsys.readouterr().out == (
        "Starting to trace for 50 ms. Remaining attempt(s): 1\n"
        "No trace event is collected. Automatically retrying.\n\n"
        "Starting to trace for 50 ms. Remaining attempt(s): 0\n"
        "No trace event is collected after 2 attempt(s). Perhaps, you want to try again "
        "(with more attempts?).\n"
    )


def test_workers_are_asked_in_the_place_of_the_address(tmp_path, address):
    with _Busy():
        profiler.client.trace("localhost:1", str(tmp_path), 50, worker_list=address)
    assert _space(tmp_path)[0].endswith(f"{address.replace(':', '_')}.xplane.pb")


def test_a_profile_under_way_is_not_disturbed(tmp_path, address):
    profiler.start(str(tmp_path))
    with pytest.raises(RuntimeError, match="^ALREADY_EXISTS: "):
        profiler.client.trace(address, str(tmp_path), 50, num_tracing_attempts=1)
    profiler.stop()
    _space(tmp_path)


@pytest.mark.parametrize("hosts", ["", "localhost", "localhost:x", "a:1,", ":8"])
def test_addresses_that_are_none(tmp_path, hosts):
    with pytest.raises(RuntimeError, match="INVALID_ARGUMENT: Could not interpret"):
        profiler.client.trace(hosts, str(tmp_path), 50)
    with pytest.raises(RuntimeError, match="INVALID_ARGUMENT: Could not interpret"):
        profiler.client.monitor(hosts, 50)


@pytest.mark.parametrize("duration", [0, -10])
def test_durations_that_are_none(tmp_path, address, duration):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="duration_ms must be greater than zero"
    ):
        profiler.client.trace(address, str(tmp_path), duration)


def test_monitor_has_nothing_to_measure(address):
    with pytest.raises(RuntimeError, match=r"^UNIMPLEMENTED: unimplemented\."):
        profiler.client.monitor(address, 50, level=2)


def _call(address, method, request):
    with grpc.insecure_channel(address) as channel:
        ask = channel.unary_unary("/tensorflow.ProfilerService/" + method)
        return ask(request.SerializeToString(), timeout=20)


def _request(folder, **changed):
    fields = {
        "duration_ms": 50,
        "repository_root": str(folder),
        "session_id": "a",
        "host_name": "h:1",
    }
    return protos.ProfileRequest(**{**fields, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"duration_ms": 0},
        {"duration_ms": 2**64 - 1},
        {"repository_root": ""},
        {"session_id": ""},
        {"session_id": ".."},
        {"host_name": "../../x"},
        {"host_name": "a\0b"},
    ],
)
def test_requests_without_sense_are_refused(tmp_path, address, changed):
    with pytest.raises(grpc.RpcError) as e:
        _call(address, "Profile", _request(tmp_path, **changed))
    assert e.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert not list(tmp_path.iterdir())


def test_terminate_ends_a_session(tmp_path, address):
    out = []
    long = _request(tmp_path, duration_ms=3_600_000)

    def ask():
        with grpc.insecure_channel(address) as channel:
            method = channel.unary_unary("/tensorflow.ProfilerService/Profile")
            out.append(method(long.SerializeToString(), timeout=60))

    thread = threading.Thread(target=ask)
    thread.start()
    while thread.is_alive():  # until the session has begun, nothing is to end
        _call(address, "Terminate", protos.TerminateRequest(session_id="a"))
        thread.join(0.05)
    assert len(out) == 1
    assert (tmp_path / "a" / "h_1.xplane.pb").exists()


def test_ports_that_are_none(address):
    for port in 0, -1, 65536:
        with pytest.raises(ValueError, match="`port` must lie between 1 and 65535"):
            profiler.server.start(port)
    with pytest.raises(TypeError, match="`port` must be an integer"):
        profiler.server.start("8000")
    with pytest.raises(tf.errors.UnavailableError, match="cannot listen at port"):
        profiler.server.start(int(address.rpartition(":")[2]))
