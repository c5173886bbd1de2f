"""Triton's published client, unmodified, over both transports."""

import importlib
import queue

import numpy as np
import pytest
import running

try:
    CLIENTS = {
        name: importlib.import_module(f"tritonclient.{name}")
        for name in ("http", "grpc")
    }
except (ImportError, RuntimeError):  # it says RuntimeError of what it lacks itself
    CLIENTS = {}

pytestmark = [
    running.needs_server,
    pytest.mark.skipif(not CLIENTS, reason="tritonclient is not installed"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    base = folder / "plain"
    base.mkdir()
    running.add_version(base, 1)
    flags = ("--model_name=plain", f"--model_base_path={base}")
    with running.server(folder, *flags) as server:
        yield server


@pytest.fixture(params=("http", "grpc"))
def kind(request):
    return request.param


@pytest.fixture
def client(server, kind):
    port = server.rest_port if kind == "http" else server.port
    with CLIENTS[kind].InferenceServerClient(f"127.0.0.1:{port}") as client:
        yield client


def told(message, kind):
    """A reply as the HTTP client gives it."""
    if kind == "http":
        return message
    from google.protobuf import json_format

    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def test_it_lives_and_is_ready(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("plain")
    assert client.is_model_ready("plain", "1")
    assert not client.is_model_ready("plain", "2")
    assert not client.is_model_ready("other")


def test_metadata(client, kind):
    server = told(client.get_server_metadata(), kind)
    assert server["name"] == "headrace-serving"
    assert "binary_tensor_data" in server["extensions"]
    model = told(client.get_model_metadata("plain"), kind)
    assert model["name"] == "plain"
    assert model["versions"] == ["1"]
    assert model["inputs"][0]["name"] == "x"
    assert model["inputs"][0]["datatype"] == "FP32"
    assert [int(n) for n in model["inputs"][0]["shape"]] == [-1]
    assert [output["name"] for output in model["outputs"]] == ["twice", "y"]


def plain_input(kind, values, **options):
    values = np.asarray(values, np.float32)
    x = CLIENTS[kind].InferInput("x", list(values.shape), "FP32")
    x.set_data_from_numpy(values, **options)
    return x


def test_infer(client, kind):
    x = plain_input(kind, [1.5, -2.0])
    result = client.infer("plain", [x], request_id="7")
    np.testing.assert_array_equal(result.as_numpy("twice"), [3, -4])
    response = told(result.get_response(), kind)
    assert response["id"] == "7"
    assert response["model_version"] == "1"
    outputs = [CLIENTS[kind].InferRequestedOutput("twice")]
    result = client.infer("plain", [x], model_version="1", outputs=outputs)
    np.testing.assert_array_equal(result.as_numpy("twice"), [3, -4])
    assert result.as_numpy("y") is None


@pytest.mark.parametrize("binary_in", (False, True))
@pytest.mark.parametrize("binary_out", (False, True))
def test_infer_over_http_with_and_without_binary_data(server, binary_in, binary_out):
    http = CLIENTS["http"]
    with http.InferenceServerClient(f"127.0.0.1:{server.rest_port}") as client:
        x = plain_input("http", [1.5, -2.0], binary_data=binary_in)
        outputs = [http.InferRequestedOutput("twice", binary_data=binary_out)]
        result = client.infer("plain", [x], outputs=outputs)
        np.testing.assert_array_equal(result.as_numpy("twice"), [3, -4])


def test_infer_at_once_and_later(client, kind):
    values = np.arange(100_000, dtype=np.float32)
    x = plain_input(kind, values)
    outputs = [CLIENTS[kind].InferRequestedOutput("twice")]
    result = client.infer("plain", [x], outputs=outputs)
    np.testing.assert_array_equal(result.as_numpy("twice"), 2 * values)
    if kind == "http":
        answer = client.async_infer("plain", [x], outputs=outputs).get_result()
    else:
        answers = queue.Queue()
        client.async_infer(
            "plain", [x], lambda result, error: answers.put(result), outputs=outputs
        )
        answer = answers.get(timeout=running.DEADLINE)
    np.testing.assert_array_equal(answer.as_numpy("twice"), 2 * values)


def test_errors_are_the_servers(client, kind):
    error = importlib.import_module("tritonclient.utils").InferenceServerException
    with pytest.raises(error, match="Servable not found for request: Latest"):
        client.infer("other", [plain_input(kind, [1.0])])
    with pytest.raises(error, match="'signature_name' is not|key \"s\" not found"):
        client.infer(
            "plain", [plain_input(kind, [1.0])], parameters={"signature_name": "s"}
        )
    with pytest.raises(error, match="'priority' is not supported"):
        client.infer("plain", [plain_input(kind, [1.0])], priority=3)


def test_repository(client, kind):
    def states():
        index = told(client.get_model_repository_index(), kind)
        models = index if kind == "http" else index["models"]
        return {m["name"]: m["state"] for m in models}

    assert states() == {"plain": "READY"}
    client.unload_model("plain")
    assert not client.is_model_ready("plain")
    assert client.is_server_ready()
    running.wait_until(lambda: states() == {"plain": "UNAVAILABLE"})
    client.load_model("plain")
    assert client.is_model_ready("plain")
    assert states() == {"plain": "READY"}
    error = importlib.import_module("tritonclient.utils").InferenceServerException
    with pytest.raises(error, match="the config has no such model"):
        client.load_model("other")
    with pytest.raises(error, match="'config' is not supported"):
        client.load_model("plain", config="{}")


def test_statistics(client, kind):
    client.infer("plain", [plain_input(kind, [1.0])])
    statistics = told(client.get_inference_statistics("plain"), kind)
    (model,) = statistics["model_stats"]
    assert model["name"] == "plain"
    assert int(model["inference_count"]) >= 1
    assert int(model["inference_stats"]["success"]["ns"]) > 0
