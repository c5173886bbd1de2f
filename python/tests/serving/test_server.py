"""The server as a process: its answers, its models as they change, its end."""

import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import threading
import urllib.error
import urllib.request

import grpc
import pytest
import running

pytestmark = running.needs_server


def serve_plain(tmp_path, *flags, **options):
    base = tmp_path / "plain"
    base.mkdir()
    running.add_version(base, 1)
    return running.server(
        tmp_path,
        "--model_name=plain",
        f"--model_base_path={base}",
        *flags,
        **options,
    )


def test_predict_over_grpc(tmp_path):
    with serve_plain(tmp_path) as server:
        response = server.predict("plain", x=[1.0, 2.0])
        assert list(response.outputs["twice"].float_val) == [2, 4]
        assert response.model_spec.version.value == 1
        with pytest.raises(grpc.RpcError) as error:
            server.predict("other", x=[1.0])
        assert error.value.code() == grpc.StatusCode.NOT_FOUND
        assert error.value.details() == "Servable not found for request: Latest(other)"
        with pytest.raises(grpc.RpcError) as error:
            server.predict("plain", 7, x=[1.0])
        assert (
            error.value.details()
            == "Servable not found for request: Specific(plain, 7)"
        )


def test_a_new_version_takes_over_and_a_broken_one_does_not(tmp_path):
    with serve_plain(tmp_path, "--max_num_load_retries=0") as server:
        base = tmp_path / "plain"
        running.add_version(base, 2)
        running.wait_until(
            lambda: server.predict("plain", x=[0.0]).model_spec.version.value == 2
        )
        (base / "3.tmp").mkdir()
        (base / "3.tmp" / "saved_model.pb").write_bytes(b"\x0anonsense")
        os.rename(base / "3.tmp", base / "3")
        running.wait_until(lambda: server.states("plain").get(3) == 50)
        assert server.predict("plain", x=[0.0]).model_spec.version.value == 2


def test_versions_change_under_load_and_no_request_is_lost(tmp_path):
    with serve_plain(tmp_path, "--file_system_poll_wait_seconds=1") as server:
        done = threading.Event()

        def ask():
            asked = 0
            while not done.is_set():
                assert (
                    server.predict("plain", x=[1.5]).outputs["twice"].float_val[0] == 3
                )
                asked += 1
            return asked

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            clients = [pool.submit(ask) for _ in range(3)]
            try:
                for version in range(2, 6):
                    running.add_version(tmp_path / "plain", version)
                    shutil.rmtree(tmp_path / "plain" / str(version - 1))
                    running.wait_until(
                        lambda v=version: server.states("plain").get(v) == 30
                    )
            finally:
                done.set()
            assert all(c.result() > 0 for c in clients)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_it(tmp_path, sign):
    with serve_plain(tmp_path) as server:
        server.predict("plain", x=[1.0])
        assert server.stop(sign) == 0


def test_a_signal_under_load_cuts_nothing_off(tmp_path):
    with serve_plain(tmp_path) as server:
        asked = threading.Semaphore(0)

        def ask():
            while True:
                try:
                    server.predict("plain", x=[1.0])
                    asked.release()
                except grpc.RpcError as e:
                    assert e.code() == grpc.StatusCode.UNAVAILABLE, e
                    return

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            clients = [pool.submit(ask) for _ in range(4)]
            for _ in range(50):
                asked.acquire()
            assert server.stop() == 0
            for c in clients:
                c.result()


def test_it_does_not_start_without_a_model(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"\x0anonsense")
    broken = [f"--model_base_path={tmp_path}", "--max_num_load_retries=0"]
    for flags, text in [
        (broken, "1 model(s) did not become available: {{name: default version: 1}"),
        ([], "model_config_file are empty"),
        (["--model_config_file=/nowhere/config"], "/nowhere/config"),
        (["--port=0", "--model_base_path=/nowhere"], "must be set"),
    ]:
        ended = subprocess.run(
            [running.PROGRAM, "--port=18599", *flags],
            stderr=subprocess.PIPE,
            text=True,
            timeout=running.DEADLINE,
        )
        assert ended.returncode == 255, ended.stderr
        assert "Failed to start server. Error: " in ended.stderr
        assert text in ended.stderr


def test_flags_that_do_not_parse(tmp_path):
    ended = subprocess.run(
        [running.PROGRAM, "--port=many"], stderr=subprocess.PIPE, text=True
    )
    assert ended.returncode == 255
    assert "usage: headrace serve" in ended.stderr
    version = subprocess.run(
        [running.PROGRAM, "--version"], stdout=subprocess.PIPE, text=True
    )
    assert version.returncode == 0
    assert len(version.stdout.splitlines()) == 2


def test_a_config_file_of_models_and_reload(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        running.add_version(tmp_path / name, 4)
    config = tmp_path / "models.config"
    row = "config {{ name: '{0}' base_path: '{1}/{0}' model_platform: 'tensorflow' }}"
    config.write_text("model_config_list { %s }" % row.format("a", tmp_path))
    with running.server(tmp_path, f"--model_config_file={config}") as server:
        assert server.states("a") == {4: 30}
        request = running.message("ReloadConfigRequest")()
        one = request.config.model_config_list.config.add()
        one.name, one.base_path, one.model_platform = (
            "b",
            str(tmp_path / "b"),
            "tensorflow",
        )
        server.ask(
            "ModelService",
            "HandleReloadConfigRequest",
            request,
            "ReloadConfigResponse",
        )
        assert server.predict("b", x=[1.0]).model_spec.version.value == 4
        running.wait_until(lambda: server.states("a") == {4: 50})
        one.base_path = "relative"
        with pytest.raises(grpc.RpcError) as error:
            server.ask(
                "ModelService",
                "HandleReloadConfigRequest",
                request,
                "ReloadConfigResponse",
            )
        assert "absolute path" in error.value.details()
        assert server.predict("b", x=[1.0]).model_spec.version.value == 4


def rest(server, path, body=None, headers=None):
    """The status and the body of a request; POST where there is a body."""
    url = f"http://127.0.0.1:{server.rest_port}{path}"
    data = (
        body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    )
    request = urllib.request.Request(url, data=data, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=running.DEADLINE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def test_rest_answers_as_grpc_does(tmp_path):
    monitoring = tmp_path / "monitoring.config"
    monitoring.write_text("prometheus_config { enable: true }")
    with serve_plain(tmp_path, f"--monitoring_config_file={monitoring}") as server:
        predict = "/v1/models/plain:predict"
        status, body = rest(server, predict, {"inputs": {"x": [1.5, 2]}})
        assert status == 200
        assert json.loads(body) == {"outputs": {"twice": [3.0, 4.0], "y": [4.5, 7.0]}}
        status, body = rest(server, predict, {"instances": [1.5, 2]})
        assert json.loads(body)["predictions"][0] == {"twice": 3.0, "y": 4.5}
        status, body = rest(
            server, "/v1/models/plain/versions/9:predict", {"inputs": 1}
        )
        assert status == 404
        text = "Servable not found for request: Specific(plain, 9)"
        assert json.loads(body) == {"error": text}
        status, body = rest(server, "/v1/models/plain")
        assert json.loads(body)["model_version_status"][0]["state"] == "AVAILABLE"
        status, body = rest(server, "/v1/models/plain/metadata")
        signatures = json.loads(body)["metadata"]["signature_def"]["signature_def"]
        assert signatures["serving_default"]["inputs"]["x"]["dtype"] == "DT_FLOAT"
        server.predict("plain", x=[1.0])
        status, body = rest(server, "/monitoring/prometheus/metrics")
        assert status == 200
        count = ":tensorflow:serving:request_count"
        assert f"# TYPE {count} counter" in body
        assert f'{count}{{model_name="plain",status="OK"}} 5' in body
        assert f'{count}{{model_name="plain",status="NOT_FOUND"}} 1' in body


def test_health_and_config_over_rest(tmp_path):
    with serve_plain(tmp_path) as server:
        assert rest(server, "/v2/health/live")[0] == 200
        assert rest(server, "/v2/health/ready")[0] == 200
        status, body = rest(server, "/v1/config")
        config = json.loads(body)
        models = config["model_config_list"]["config"]
        assert [m["name"] for m in models] == ["plain"]
        models[0]["name"] = "renamed"
        status, body = rest(server, "/v1/config", config)
        assert status == 200, body
        assert server.predict("renamed", x=[1.0]).model_spec.name == "renamed"
        models[0]["base_path"] = "here"
        status, body = rest(server, "/v1/config", config)
        assert status == 400
        assert "absolute path" in json.loads(body)["error"]
        text = {"Content-Type": "text/plain"}
        assert rest(server, "/v1/config", b"nonsense {", text)[0] == 400
        assert server.predict("renamed", x=[1.0]).model_spec.name == "renamed"


def test_requests_in_batches(tmp_path):
    parameters = tmp_path / "batching.config"
    parameters.write_text(
        "max_batch_size { value: 8 } batch_timeout_micros { value: 100 }"
    )
    with serve_plain(
        tmp_path, "--enable_batching", f"--batching_parameters_file={parameters}"
    ) as server:
        request = running.predict_request("plain", x=[2.0, 3.0])
        request.output_filter.append("twice")

        def ask(_):
            response = server.ask(
                "PredictionService", "Predict", request, "PredictResponse"
            )
            return list(response.outputs["twice"].float_val)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert set(map(tuple, pool.map(ask, range(200)))) == {(4, 6)}
        with pytest.raises(grpc.RpcError) as error:
            server.predict("plain", x=[0.0] * 9)
        assert error.value.details() == (
            "Task size 9 is larger than maximum input batch size 8"
        )


def test_lazy_models_load_with_their_first_request(tmp_path):
    with serve_plain(tmp_path, "--lazy_load_models") as server:
        assert server.states("plain") == {1: 10}
        assert list(server.predict("plain", x=[1.0]).outputs["twice"].float_val) == [2]
        assert server.states("plain") == {1: 30}
