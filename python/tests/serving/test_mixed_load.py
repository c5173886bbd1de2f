"""Memory stays where it was while everything comes at once: good requests over all
ways, wrong ones, ones that are given up, versions and configs that change, versions that
are broken. HEADRACE_SERVING_SOAK=1 does so for an hour; `make soak` does."""

import http.client
import json
import os
import shutil
import socket
import threading
import time

import grpc
import running
import small_models
from headrace.serving import Client
from test_lifecycle import AVAILABLE, END, SOAK, reload, resident_bytes

import headrace as tf

pytestmark = running.needs_server

SECONDS = float(os.environ.get("HEADRACE_MIXED_SECONDS", 3600 if SOAK else 8))
# Of each client, so that a long run leaves the machine to others, too.
PAUSE = 0.02 if SOAK else 0.002  # seconds


def good(url, protocol, done, counts):
    with Client(url, protocol=protocol) as client:
        while not done.is_set():
            answer = client.predict("m", {"x": [2.0]})
            assert answer["y"][0] % 2 == 0
            counts["good"] += 1
            time.sleep(PAUSE)


def wrong(server, done, counts):
    def post(path, body, headers=None):
        connection = http.client.HTTPConnection(
            "127.0.0.1", server.rest_port, timeout=running.DEADLINE
        )
        connection.request("POST", path, body, headers or {})
        status = connection.getresponse().status
        connection.close()
        return status

    rows = [
        ("/v1/models/m:predict", '{"instances": [[[1.0', 400),
        ("/v1/models/m:predict", '{"instances": ["a"]}', 400),
        ("/v1/models/none:predict", '{"instances": [1.0]}', 404),
        ("/v1/models/m:predict", '{"instances": [' + "[" * 5000, 400),
        ("/v2/models/m/infer", '{"inputs": [{"name": "x"}]}', 400),
        ("/v1/config", '{"model_config_list": {"config": [{"name": "m"}]}}', 400),
        ("/v3", "", 404),
    ]
    with Client(f"127.0.0.1:{server.port}") as client:
        while not done.is_set():
            for path, body, status in rows:
                assert post(path, body) == status, path
                counts["wrong"] += 1
                time.sleep(PAUSE)
            for inputs in ({"z": [1.0]}, {"x": ["text"]}):
                try:
                    client.predict("m", inputs)
                except tf.errors.InvalidArgumentError:
                    counts["wrong"] += 1


def given_up(server, done, counts):
    """Calls that are cancelled, deadlines that pass, connections cut at any byte."""
    call = server.channel.unary_unary(
        "/tensorflow.serving.PredictionService/Predict",
        request_serializer=lambda m: m.SerializeToString(),
    )
    request = running.predict_request("m", x=[1.0])
    body = json.dumps({"instances": [1.0] * 100})
    whole = f"POST /v1/models/m:predict HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
    whole = (whole + body).encode()
    turn = 0
    while not done.is_set():
        call.future(request).cancel()
        try:
            call(request, timeout=0.0002)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        with socket.create_connection(("127.0.0.1", server.rest_port)) as s:
            s.sendall(whole[: turn % (len(whole) + 1)])
        counts["given up"] += 3
        turn += 1
        time.sleep(PAUSE)


def change(server, tmp_path, done, counts):
    """Versions that come, go and are broken; configs with one model more and less."""
    base, version = tmp_path / "m", 1
    text = (
        "model_config_list { config { name: 'm' base_path: '%s' "
        "model_platform: 'tensorflow' } %s }"
    )
    more = (
        f"config {{ name: 'other' base_path: '{tmp_path / 'other'}' "
        "model_platform: 'tensorflow' }"
    )
    while not done.is_set():
        version += 2
        (base / str(version - 1)).mkdir()
        (base / str(version - 1) / "saved_model.pb").write_bytes(b"\x0anonsense")
        small_models.scale(base / str(version), version)
        shutil.rmtree(base / str(version - 2))
        running.wait_until(lambda v=version: server.states("m").get(v) == AVAILABLE)
        shutil.rmtree(base / str(version - 1))
        reload(server, text % (base, more))
        reload(server, text % (base, ""))
        running.wait_until(lambda: server.states("other") == {1: END})
        counts["changes"] += 3
        done.wait(0.5)


def guarded(work, failed):
    def run():
        try:
            work()
        except BaseException as error:  # told by the test's own thread
            failed.append(error)

    return run


def test_memory_stays_under_mixed_load(tmp_path):
    for name in ("m", "other"):
        (tmp_path / name).mkdir()
        small_models.scale(tmp_path / name / "1", 1)
    config = tmp_path / "models.config"
    config.write_text(
        f"model_config_list {{ config {{ name: 'm' base_path: '{tmp_path / 'm'}' "
        "model_platform: 'tensorflow' } }"
    )
    done, failed = threading.Event(), []
    counts = dict.fromkeys(["good", "wrong", "given up", "changes"], 0)
    with running.server(tmp_path, f"--model_config_file={config}") as server:
        ways = [f"127.0.0.1:{server.port}", f"http://127.0.0.1:{server.rest_port}"]
        work = [
            lambda u=url, p=protocol: good(u, p, done, counts)
            for url in ways
            for protocol in ("v1", "v2")
        ]
        work += [
            lambda: wrong(server, done, counts),
            lambda: given_up(server, done, counts),
            lambda: change(server, tmp_path, done, counts),
        ]
        threads = [threading.Thread(target=guarded(w, failed)) for w in work]
        for thread in threads:
            thread.start()
        sizes = []
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and not failed:
            time.sleep(min(SECONDS / 20, 60))
            sizes.append(resident_bytes(server))
            if SOAK:
                mb = sizes[-1] / 2**20
                print(f"{end - time.monotonic():.0f} s left: {mb:.1f} MB {counts}")
        done.set()
        for thread in threads:
            thread.join()
        assert not failed, failed
        assert all(counts.values()), counts
        # The first tenth brings what stays: threads' buffers, plans' kinds, metrics.
        early, late = sizes[len(sizes) // 10], sizes[-1]
        assert late <= max(1.05 * early, early + (8 << 20 if not SOAK else 0)), sizes
