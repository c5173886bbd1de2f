"""The Open Inference Protocol, asked with nothing but HTTP and gRPC."""

import http.client
import json
import struct

import grpc
import pytest
import running
from headrace.framework.support import protos

pytestmark = running.needs_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    base = folder / "plain"
    base.mkdir()
    running.add_version(base, 1)
    flags = ("--model_name=plain", f"--model_base_path={base}")
    with running.server(folder, *flags) as server:
        yield server


def ask(server, method, path, body=None, headers=None):
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port)
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    return response.status, response.headers, response.read()


def ask_json(server, method, path, body=None):
    status, _, text = ask(server, method, path, body and json.dumps(body))
    return status, json.loads(text) if text else None


def rpc(server, method, timeout=running.DEADLINE, **fields):
    request = protos.message(f"inference.{method}Request")(**fields)
    call = server.channel.unary_unary(
        f"/inference.GRPCInferenceService/{method}",
        request_serializer=lambda m: m.SerializeToString(),
        response_deserializer=protos.message(f"inference.{method}Response").FromString,
    )
    return call(request, timeout=timeout)


X = {"name": "x", "shape": [2], "datatype": "FP32", "data": [1.5, -2]}


def test_rest_says_what_there_is(server):
    status, told = ask_json(server, "GET", "/v2")
    assert status == 200
    assert told["name"] == "headrace-serving"
    assert ask(server, "GET", "/v2/health/live")[0] == 200
    assert ask(server, "GET", "/v2/health/ready")[0] == 200
    status, told = ask_json(server, "GET", "/v2/models/plain/versions/1")
    assert told == {
        "name": "plain",
        "versions": ["1"],
        "platform": "tensorflow_savedmodel",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1]}],
        "outputs": [
            {"name": "twice", "datatype": "FP32", "shape": [-1]},
            {"name": "y", "datatype": "FP32", "shape": [2]},
        ],
    }
    assert ask(server, "GET", "/v2/models/plain/ready")[0] == 200
    status, told = ask_json(server, "GET", "/v2/models/other/ready")
    assert (status, told) == (503, {"error": "the model 'other' is not ready"})


def test_rest_infers_from_json(server):
    body = {"id": "7", "inputs": [X], "outputs": [{"name": "twice"}]}
    assert ask_json(server, "POST", "/v2/models/plain/infer", body) == (
        200,
        {
            "model_name": "plain",
            "model_version": "1",
            "id": "7",
            "outputs": [
                {"name": "twice", "datatype": "FP32", "shape": [2], "data": [3, -4]}
            ],
        },
    )


def test_rest_infers_from_bytes(server):
    inputs = [{**X, "parameters": {"binary_data_size": 8}}]
    del inputs[0]["data"]
    outputs = [{"name": "twice", "parameters": {"binary_data": True}}, {"name": "y"}]
    head = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    status, headers, body = ask(
        server,
        "POST",
        "/v2/models/plain/versions/1/infer",
        head + struct.pack("<2f", 1.5, -2),
        {"Inference-Header-Content-Length": str(len(head))},
    )
    assert status == 200
    length = int(headers["Inference-Header-Content-Length"])
    assert struct.unpack("<2f", body[length:]) == (3, -4)
    told = json.loads(body[:length])
    assert told["outputs"][0]["parameters"] == {"binary_data_size": 8}
    assert "data" in told["outputs"][1]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        ("GET", "/v2/models/plain/infer", None, 405, "/v2/models/plain/infer is for"),
        ("GET", "/v2/nothing", None, 404, "there is no path /v2/nothing"),
        ("POST", "/v2/models/other/infer", {"inputs": [X]}, 404, "Servable not found"),
        ("POST", "/v2/models/plain/versions/7/infer", {"inputs": [X]}, 404, "plain, 7"),
        ("POST", "/v2/models/plain/versions/9a/infer", {"inputs": [X]}, 400, "9a"),
        (
            "POST",
            "/v2/models/plain/infer",
            {"id": "7"},
            400,
            "the request has no 'inputs'",
        ),
        ("POST", "/v2/models/plain/infer", {"inputs": []}, 400, "'plain' is missing"),
        ("GET", "/v2/models/plain?signature_name=no", None, 400, 'key "no" not found'),
        ("GET", "/v2/models/plain?a=b", None, 400, "the query 'a=b'"),
        ("POST", "/v2/repository/models/other/load", None, 404, "no such model"),
        ("POST", "/v2/repository/index", {"ready": 3}, 400, "'ready' is to be"),
    ],
)
def test_rest_errors(server, method, path, body, status, error):
    got, told = ask_json(server, method, path, body)
    assert got == status
    assert error in told["error"]


def infer_request(raw):
    x = {"name": "x", "datatype": "FP32", "shape": [2]}
    if raw:
        return {"inputs": [x], "raw_input_contents": [struct.pack("<2f", 1.5, -2)]}
    return {"inputs": [{**x, "contents": {"fp32_contents": [1.5, -2]}}]}


@pytest.mark.parametrize("raw", (False, True))
def test_grpc_answers_as_it_was_asked(server, raw):
    response = rpc(
        server, "ModelInfer", model_name="plain", id="7", **infer_request(raw)
    )
    assert (response.model_name, response.model_version) == ("plain", "1")
    assert response.id == "7"
    assert [output.name for output in response.outputs] == ["twice", "y"]
    if raw:
        assert struct.unpack("<2f", response.raw_output_contents[0]) == (3, -4)
    else:
        assert list(response.outputs[0].contents.fp32_contents) == [3, -4]
        assert not response.raw_output_contents


def test_grpc_says_what_there_is(server):
    assert rpc(server, "ServerLive").live
    assert rpc(server, "ServerReady").ready
    assert rpc(server, "ModelReady", name="plain").ready
    assert not rpc(server, "ModelReady", name="other").ready
    assert rpc(server, "ServerMetadata").name == "headrace-serving"
    model = rpc(server, "ModelMetadata", name="plain")
    assert list(model.versions) == ["1"]
    assert list(model.inputs[0].shape) == [-1]
    (entry,) = rpc(server, "RepositoryIndex").models
    assert (entry.name, entry.version, entry.state) == ("plain", "1", "READY")


def test_grpc_unloads_and_loads(server):
    rpc(server, "RepositoryModelUnload", model_name="plain")
    with pytest.raises(grpc.RpcError) as error:
        rpc(server, "ModelInfer", model_name="plain", **infer_request(True))
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    assert rpc(server, "ServerReady").ready
    rpc(server, "RepositoryModelLoad", model_name="plain")
    assert rpc(server, "ModelInfer", model_name="plain", **infer_request(True)).outputs


def test_methods_that_are_not_there_say_their_name(server):
    call = server.channel.unary_unary("/inference.GRPCInferenceService/ModelConfig")
    with pytest.raises(grpc.RpcError) as error:
        call(b"", timeout=running.DEADLINE)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "GRPCInferenceService/ModelConfig" in error.value.details()
