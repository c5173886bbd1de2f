"""The life of a server under load: no request is lost while versions change, fail and
go, and while servers stop, die and start.

HEADRACE_SERVING_SOAK=1 takes the full counts; `make soak` does.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import shutil
import socket
import threading
import time

import grpc
import pytest
import running
import small_models

pytestmark = running.needs_server

SOAK = bool(os.environ.get("HEADRACE_SERVING_SOAK"))
AVAILABLE, END = 30, 50


def count(quick, full):
    return full if SOAK else quick


def say(text):
    """A line of the record of a long run."""
    if SOAK:
        print(text, flush=True)


def serve(tmp_path, *flags, **options):
    return running.server(
        tmp_path,
        "--model_name=m",
        f"--model_base_path={tmp_path / 'm'}",
        *flags,
        **options,
    )


@pytest.fixture
def base(tmp_path):
    (tmp_path / "m").mkdir()
    return tmp_path / "m"


class Load:
    """Clients that ask again and again; what they got by others than OK."""

    def __init__(self, server, clients=3):
        self.server, self.asked, self.lost = server, 0, []
        self.versions = set()
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._pool = concurrent.futures.ThreadPoolExecutor(clients)
        half = clients // 2
        self._clients = [
            self._pool.submit(self._ask_rest if i < half else self._ask_grpc)
            for i in range(clients)
        ]

    def _count(self, version=None, error=None):
        with self._lock:
            if error is None:
                self.asked += 1
                self.versions.add(version)
            else:
                self.lost.append(error)

    def _ask_grpc(self):
        while not self._done.is_set():
            try:
                response = self.server.predict("m", x=[2.0])
            except grpc.RpcError as error:
                self._count(error=str(error))
                return
            version = response.model_spec.version.value
            # Version N multiplies by N.
            right = list(response.outputs["y"].float_val) == [2.0 * version]
            self._count(version, None if right else str(response))

    def _ask_rest(self):
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.server.rest_port, timeout=running.DEADLINE
        )
        while not self._done.is_set():
            try:
                connection.request(
                    "POST", "/v1/models/m:predict", json.dumps({"instances": [2.0]})
                )
                answer = connection.getresponse()
                body = json.loads(answer.read())
            except (OSError, http.client.HTTPException) as error:
                self._count(error=repr(error))
                return
            if answer.status == 200:
                self._count(body["predictions"][0] / 2)
            else:
                self._count(error=str(body))

    def wait_for(self, more):
        wanted = self.asked + more
        running.wait_until(lambda: self.asked >= wanted or self.lost)

    def wait_for_newer(self):
        """Until one has an answer to what it asked from now on: each may have asked before."""
        self.wait_for(len(self._clients) + 1)

    def end(self):
        self._done.set()
        for client in self._clients:
            client.result()
        self._pool.shutdown()


@contextlib.contextmanager
def load(server, **options):
    made = Load(server, **options)
    try:
        yield made
    finally:
        made.end()


def test_versions_change_under_load(base, tmp_path):
    changes = count(12, 200)
    small_models.scale(base / "1", 1)
    with serve(tmp_path) as server, load(server) as clients:
        for version in range(2, changes + 2):
            small_models.scale(base / str(version), version)
            shutil.rmtree(base / str(version - 1))
            running.wait_until(lambda v=version: server.states("m").get(v) == AVAILABLE)
            clients.wait_for_newer()
        clients.end()
        assert clients.lost == []
        assert max(clients.versions) == changes + 1
        say(f"version changes: {changes}  asked: {clients.asked}  lost: 0")


def broken_versions(base):
    """(version, what its status says), of versions that cannot be served."""
    (base / "2.tmp").mkdir()
    (base / "2.tmp" / "saved_model.pb").write_bytes(b"\x0anonsense")
    os.rename(base / "2.tmp", base / "2")
    yield 2, "saved_model.pb"
    whole = (base / "1" / "saved_model.pb").read_bytes()
    (base / "3.tmp").mkdir()
    (base / "3.tmp" / "saved_model.pb").write_bytes(whole[: len(whole) // 2])
    os.rename(base / "3.tmp", base / "3")
    yield 3, "saved_model.pb"
    nodes = [
        small_models.placeholder("x"),
        small_models.node("y", "NoSuchOp", "x"),
    ]
    small_models.write(base / "4", nodes, {"x": "x:0"}, {"y": "y:0"})
    yield 4, "NoSuchOp"
    (base / "5").mkdir()
    yield 5, "/5"
    # A checkpoint that was cut.
    shutil.copytree(os.path.join(running.GOLDEN, "plain"), base / "6.tmp")
    data = base / "6.tmp" / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-5])
    os.rename(base / "6.tmp", base / "6")
    yield 6, "variables"
    nodes = [small_models.placeholder("x")]
    small_models.write(base / "7", nodes, {"x": "x:0"}, {"y": "nowhere:0"})
    yield 7, "nowhere"


def test_a_broken_version_never_unseats_the_good_one(base, tmp_path):
    small_models.scale(base / "1", 1)
    with (
        serve(tmp_path, "--max_num_load_retries=0") as server,
        load(server) as clients,
    ):
        for version, text in broken_versions(base):
            running.wait_until(lambda v=version: server.states("m").get(v) == END)
            clients.wait_for(2)
            request = running.message("GetModelStatusRequest")()
            request.model_spec.name = "m"
            request.model_spec.version.value = version
            (status,) = server.ask(
                "ModelService", "GetModelStatus", request, "GetModelStatusResponse"
            ).model_version_status
            assert status.status.error_code != 0
            said = status.status.error_message
            assert text in said, said
            # The log says the same.
            running.wait_until(lambda s=said: s.splitlines()[0] in server.lines())
            say(f"version {version}: {said.splitlines()[0][:120]}")
        clients.end()
        assert clients.lost == []
        assert clients.versions == {1}


def test_sigterm_under_load(base, tmp_path):
    """What was sent before the end is answered, whatever else is refused."""
    rounds = count(4, 50)
    small_models.scale(base / "1", 1)
    asked = dropped = 0
    slowest = 0.0
    for _ in range(rounds):
        with serve(tmp_path) as server, load(server, clients=4) as clients:
            clients.wait_for(20)
            begin = time.monotonic()
            code = server.stop()
            slowest = max(slowest, time.monotonic() - begin)
            assert code == 0
            clients.end()
            asked += clients.asked
            for error in clients.lost:
                refused = (
                    "UNAVAILABLE" in error
                    or "shutting down" in error
                    or "ConnectionRefused" in error
                )
                # A kept connection is closed behind an answer, never before one: a
                # request that finds it closed was not begun.
                refused |= "RemoteDisconnected" in error or "Reset" in error
                refused |= "BrokenPipe" in error
                dropped += not refused
                assert refused, error
    say(
        f"SIGTERM: {rounds}  asked: {asked}  dropped: {dropped}  exit: 0"
        f"  slowest end: {slowest:.2f} s"
    )


def test_kill_and_restart(base, tmp_path):
    rounds = count(2, 10)
    small_models.scale(base / "1", 1)
    for _ in range(rounds):
        with serve(tmp_path) as server, load(server) as clients:
            clients.wait_for(5)
            server.process.kill()
            assert server.process.wait(running.DEADLINE) == -9
        with serve(tmp_path) as server:
            assert list(server.predict("m", x=[3.0]).outputs["y"].float_val) == [3]
    say(f"kill -9 and restart: {rounds}, ready again each time")


def test_a_second_signal_ends_it_at_once(base, tmp_path):
    small_models.slow(base / "1", 3000)
    with serve(tmp_path, "--drain_timeout_seconds=600") as server:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(server.predict, "m", x=[1.0])
            running.wait_until(lambda: processor_seconds(server) > 0.3)
            server.process.terminate()
            with pytest.raises(Exception):
                server.process.wait(0.3)
            begin = time.monotonic()
            server.process.terminate()
            assert server.process.wait(running.DEADLINE) == 1
            assert time.monotonic() - begin < 10
            with pytest.raises(grpc.RpcError):
                answer.result()


def test_what_is_left_at_the_end_of_a_drain_is_told_why(base, tmp_path):
    small_models.slow(base / "1", 3000)
    parameters = tmp_path / "batching.config"
    parameters.write_text(
        "max_batch_size { value: 1 } num_batch_threads { value: 1 }"
        " max_enqueued_batches { value: 100 }"
    )
    batching = ["--enable_batching", f"--batching_parameters_file={parameters}"]
    with serve(tmp_path, "--drain_timeout_seconds=1", *batching) as server:
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            answers = [pool.submit(server.predict, "m", x=[1.0]) for _ in range(4)]
            over_rest = pool.submit(ask_rest, server, json.dumps({"instances": [1.0]}))
            running.wait_until(lambda: processor_seconds(server) > 0.5)
            assert server.stop() == 0
            for answer in answers:
                with pytest.raises(grpc.RpcError) as error:
                    answer.result()
                assert error.value.code() == grpc.StatusCode.UNAVAILABLE
                assert error.value.details() == "server is shutting down"
            status, body = over_rest.result()
            assert status == 503
            assert "server is shutting down" in body


# --- Stops: what nobody waits for any more takes no processor.


def processor_seconds(server):
    with open(f"/proc/{server.process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask_rest(server, body):
    connection = http.client.HTTPConnection(
        "127.0.0.1", server.rest_port, timeout=running.DEADLINE
    )
    connection.request("POST", "/v1/models/m:predict", body)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def start_call(server, **options):
    call = server.channel.unary_unary(
        "/tensorflow.serving.PredictionService/Predict",
        request_serializer=lambda m: m.SerializeToString(),
    )
    return call.future(running.predict_request("m", x=[1.0]), **options)


def expire(server):
    future = start_call(server, timeout=2)
    assert future.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def cancel(server):
    used = processor_seconds(server)
    future = start_call(server)
    running.wait_until(lambda: processor_seconds(server) > used + 0.3)
    future.cancel()


def close(server):
    used = processor_seconds(server)
    body = json.dumps({"instances": [1.0]})
    with socket.create_connection(("127.0.0.1", server.rest_port)) as s:
        s.sendall(
            b"POST /v1/models/m:predict HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s"
            % (len(body), body.encode())
        )
        running.wait_until(lambda: processor_seconds(server) > used + 0.3)


def expire_over_rest(server):
    status, body = ask_rest(server, json.dumps({"instances": [1.0]}))
    assert status == 504, body


@pytest.mark.parametrize("stop", [expire, cancel, close, expire_over_rest])
@pytest.mark.parametrize("batching", [False, True])
def test_stops_end_the_use_of_processors(base, tmp_path, stop, batching):
    small_models.slow(base / "1", 3000)  # a minute of work
    flags = ["--enable_batching"] if batching else []
    if stop is expire_over_rest:
        flags.append("--rest_api_timeout_in_ms=2000")
    with serve(tmp_path, *flags) as server:
        used = processor_seconds(server)
        stop(server)
        assert processor_seconds(server) > used + 0.1, "it had begun to run"
        time.sleep(0.1)  # 50 ms, and what a busy machine adds
        used = processor_seconds(server)
        time.sleep(1)
        after = processor_seconds(server) - used
        say(f"{stop.__name__}, batching {batching}: {after:.2f} s of 1 s used after")
        assert after < 0.15


# --- Memory.


def resident_bytes(server):
    with open(f"/proc/{server.process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def write_big(folder, megabytes):
    """A model of so many megabytes of weights."""
    import headrace as tf

    class Big(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.ones([megabytes, 1 << 18]) * 3)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def f(self, x):
            return {"y": x * tf.reduce_max(self.w)}

    model = Big()
    tf.saved_model.save(model, str(folder), signatures=model.f)


def config_of(tmp_path, *names):
    row = "config { name: '%s' base_path: '%s' model_platform: 'tensorflow' } "
    return "model_config_list { %s }" % "".join(
        row % (name, tmp_path / name) for name in names
    )


def reload(server, text):
    connection = http.client.HTTPConnection(
        "127.0.0.1", server.rest_port, timeout=running.DEADLINE
    )
    connection.request("POST", "/v1/config", text, {"Content-Type": "text/plain"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()


def test_memory_comes_back_after_an_unload(base, tmp_path):
    megabytes, rounds = count(64, 500), count(4, 20)
    small_models.scale(base / "1", 1)
    write_big(tmp_path / "big" / "1", megabytes)
    config = tmp_path / "models.config"
    config.write_text(config_of(tmp_path, "m"))
    with running.server(tmp_path, f"--model_config_file={config}") as server:
        server.predict("m", x=[1.0])
        # The first load brings what stays: plans' kinds, threads, allocators.
        sizes = []
        for _ in range(rounds + 1):
            sizes.append(resident_bytes(server))
            reload(server, config_of(tmp_path, "m", "big"))
            assert list(server.predict("big", x=[2.0]).outputs["y"].float_val) == [6]
            loaded = resident_bytes(server)
            assert loaded > sizes[-1] + (megabytes << 19)
            reload(server, config_of(tmp_path, "m"))
            running.wait_until(lambda: server.states("big") == {1: END})
            running.wait_until(lambda: resident_bytes(server) < loaded - (1 << 20))
            server.predict("m", x=[1.0])
        time.sleep(0.5)
        sizes.append(resident_bytes(server))
        megabytes_of = [round(size / 2**20, 1) for size in sizes]
        say(f"resident MB around {rounds} loads of {megabytes} MB: {megabytes_of}")
        assert sizes[-1] <= max(1.05 * sizes[0], sizes[0] + (8 << 20)), megabytes_of
