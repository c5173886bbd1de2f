"""headrace.serving.Client with the Open Inference Protocol, against servers that answer
as the protocol says: what a real one makes of it, the demonstration shows."""

import concurrent.futures
import http.server
import json
import threading

import grpc
import numpy as np
import pytest

import headrace as tf
from headrace.serving import Client, protos, tensors

pytestmark = pytest.mark.skipif(
    not hasattr(protos, "ModelInferRequest"),
    reason="the protos of the Open Inference Protocol are not in this build",
)

LENGTH = "Inference-Header-Content-Length"
STATES = [
    ("m", "2", "READY", ""),
    ("m", "1", "UNAVAILABLE", "broken"),
    ("n", "1", "", ""),
]


class RestServer(http.server.BaseHTTPRequestHandler):
    """Model m gives back its inputs, in binary; b64 and others are errors."""

    protocol_version = "HTTP/1.1"

    def _send(self, head, data=b"", status=200):
        head = json.dumps(head).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(head) + len(data)))
        if data:
            self.send_header(LENGTH, str(len(head)))
        self.end_headers()
        self.wfile.write(head + data)

    def do_GET(self):
        if self.path == "/v2/models/m":
            info = {"name": "x", "datatype": "FP32", "shape": [-1, 2]}
            self._send({"name": "m", "inputs": [info], "outputs": [info]})
        elif self.path in ("/v2/health/ready", "/v2/models/m/versions/2/ready"):
            self._send({})
        else:
            self._send({"error": "not found"}, status=404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v2/repository/index":
            keys = ("name", "version", "state", "reason")
            return self._send([dict(zip(keys, row)) for row in STATES])
        length = int(self.headers[LENGTH])
        asked, data = json.loads(body[:length]), body[length:]
        assert asked["parameters"]["binary_data_output"]
        wanted = [o["name"] for o in asked.get("outputs", asked["inputs"])]
        outputs, parts, at = [], [], 0
        for tensor in asked["inputs"]:
            size = tensor["parameters"]["binary_data_size"]
            if tensor["name"] in wanted:
                outputs.append(tensor)
                parts.append(data[at : at + size])
            at += size
        version = self.path.partition("/versions/")[2].removesuffix("/infer") or "9"
        reply = {"model_name": "m", "model_version": version, "outputs": outputs}
        self._send(reply, b"".join(parts))

    def log_message(self, *_):
        pass


class GrpcServer(grpc.GenericRpcHandler):
    """The same over gRPC."""

    def service(self, details):
        method = details.method.rpartition("/")[2]
        if not hasattr(self, method):
            return None
        return grpc.unary_unary_rpc_method_handler(
            getattr(self, method),
            request_deserializer=getattr(protos, method + "Request").FromString,
            response_serializer=lambda m: m.SerializeToString(),
        )

    def ModelInfer(self, request, context):
        wanted = {o.name for o in request.outputs} or {i.name for i in request.inputs}
        version = request.model_version or "9"
        reply = protos.ModelInferResponse(model_name="m", model_version=version)
        for given, data in zip(request.inputs, request.raw_input_contents):
            if given.name in wanted:
                reply.outputs.add(
                    name=given.name, datatype=given.datatype, shape=given.shape
                )
                reply.raw_output_contents.append(data)
        return reply

    def ModelMetadata(self, request, context):
        if request.name != "m":
            context.abort(grpc.StatusCode.NOT_FOUND, "not found")
        info = {"name": "x", "datatype": "FP32", "shape": [-1, 2]}
        return protos.ModelMetadataResponse(name="m", inputs=[info], outputs=[info])

    def RepositoryIndex(self, request, context):
        keys = ("name", "version", "state", "reason")
        models = [dict(zip(keys, row)) for row in STATES]
        return protos.RepositoryIndexResponse(models=models)

    def ServerReady(self, request, context):
        return protos.ServerReadyResponse(ready=True)

    def ModelReady(self, request, context):
        if request.name != "m":
            context.abort(grpc.StatusCode.NOT_FOUND, "not found")
        return protos.ModelReadyResponse(ready=request.version == "2")


@pytest.fixture(params=["gRPC", "REST"])
def client(request):
    if request.param == "gRPC":
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers((GrpcServer(),))
        target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        with Client(target, protocol="v2", retries=0) as made:
            yield made
        server.stop(None).wait()
        return
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), RestServer)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    target = f"http://127.0.0.1:{server.server_port}"
    with Client(target, protocol="v2", retries=0) as made:
        yield made
    server.shutdown()
    thread.join()
    server.server_close()


GIVEN = {
    "x": np.arange(4, dtype=np.float32).reshape(2, 2),
    "names": np.array([b"a", b"", b"\xff"], object),
    "half": np.array([1.5], np.float16),
    "none": np.zeros((0, 3), np.int64),
    "yes": np.array(True),
}


def test_infer(client):
    answer = client.predict("m", GIVEN)
    assert (answer.model, answer.version) == ("m", 9)
    assert set(answer) == set(GIVEN)
    for name, array in GIVEN.items():
        assert answer[name].dtype == array.dtype
        np.testing.assert_array_equal(answer[name], array)
    answer = client.predict("m", GIVEN, version=2, outputs=["x"], signature="s")
    assert list(answer) == ["x"] and answer.version == 2
    assert list(client.predict("m", GIVEN["x"])) == ["x"]


def test_what_a_model_is(client):
    info = client.metadata("m")["serving_default"].inputs["x"]
    assert info.dtype == np.float32 and info.shape == (None, 2)
    found = {s.version: (s.state, bool(s.code)) for s in client.status("m")}
    assert found == {2: ("READY", False), 1: ("UNAVAILABLE", True)}
    (one,) = client.status("m", version=1)
    assert one.message == "broken"
    assert client.ready() and client.ready("m", version=2)
    assert not client.ready("other", version=2)
    with pytest.raises(tf.errors.NotFoundError):
        client.metadata("other")


def test_what_the_protocol_has_not_is_named(client):
    for ask in (
        lambda: client.classify("m", []),
        lambda: client.regress("m", []),
        lambda: client.predict("m", GIVEN, label="canary"),
        lambda: client.predict("m", {"x": np.zeros(1, np.complex64)}),
    ):
        with pytest.raises(tf.errors.UnimplementedError):
            ask()


@pytest.mark.parametrize(
    "datatype, shape, data",
    [
        ("FP32", [2], b"1234567"),
        ("FP32", [3], b"12345678"),
        ("FP32", [-1], b"1234"),
        ("FP99", [1], b"1234"),
        ("BYTES", [1], b"\x04\0\0\0abc"),
        ("BYTES", [2], b"\x01\0\0\0a"),
        ("BYTES", [1], b"\xff\xff\xff\xffabc"),
    ],
)
def test_bytes_that_are_no_tensor(datatype, shape, data):
    with pytest.raises(tf.errors.DataLossError):
        tensors.from_bytes("x", datatype, shape, data)
