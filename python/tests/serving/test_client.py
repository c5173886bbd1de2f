"""headrace.serving.Client against the server, over gRPC and REST."""

import concurrent.futures
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import running

import headrace as tf
from headrace.serving import Client, Prediction, protos, tensors

served = running.needs_server
EXAMPLES = os.path.join(running.ROOT, "tests/golden/serving/examples")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    (folder / "plain").mkdir()
    running.add_version(folder / "plain", 3)
    shutil.copytree(EXAMPLES, folder / "examples" / "5")
    (folder / "config").write_text(
        "model_config_list { "
        + " ".join(
            f'config {{ name: "{name}" base_path: "{folder}/{name}" '
            f'model_platform: "tensorflow" {more} }}'
            for name, more in {
                "plain": 'version_labels { key: "stable" value: 3 }',
                "examples": "",
            }.items()
        )
        + " }"
    )
    with running.server(
        folder,
        f"--model_config_file={folder}/config",
        "--allow_version_labels_for_unavailable_models",
    ) as started:
        yield started


@pytest.fixture(params=["gRPC", "REST"])
def client(server, request):
    ports = {"gRPC": f"127.0.0.1:{server.port}", "REST": _rest(server)}
    with Client(ports[request.param], timeout=running.DEADLINE) as made:
        yield made


def _rest(server):
    return f"http://127.0.0.1:{server.rest_port}"


X = np.array([1, 2], np.float32)


@served
def test_predict(client):
    answer = client.predict("plain", {"x": X})
    assert isinstance(answer, Prediction) and answer.model == "plain"
    assert set(answer) == {"twice", "y"}
    np.testing.assert_array_equal(answer["twice"], [2, 4])
    assert answer["twice"].dtype == np.float32
    assert answer.version in (3, None) and answer.signature in ("serving_default", None)
    # One input needs no name; outputs can be chosen; versions and labels be named.
    for chosen in ({"version": 3}, {"label": "stable"}, {}):
        answer = client.predict("plain", X, outputs=["twice"], **chosen)
        assert list(answer) == ["twice"]
    looped = client.predict("plain", {"n": np.int32(3)}, signature="looped")
    assert looped["output_0"].shape == ()


@served
@pytest.mark.parametrize(
    "asked, error",
    [
        ({"model": "other"}, tf.errors.NotFoundError),
        ({"model": "plain", "version": 9}, tf.errors.NotFoundError),
        ({"model": "plain", "label": "old"}, tf.errors.InvalidArgumentError),
        ({"model": "plain", "outputs": ["z"]}, tf.errors.InvalidArgumentError),
        ({"model": "plain", "inputs": {"z": X}}, tf.errors.InvalidArgumentError),
        (
            {"model": "plain", "version": 3, "label": "a"},
            tf.errors.InvalidArgumentError,
        ),
        ({"model": ""}, tf.errors.InvalidArgumentError),
        ({"model": "plain", "inputs": {"x": [None]}}, tf.errors.InvalidArgumentError),
        ({"model": "plain", "timeout": 1e-9}, tf.errors.DeadlineExceededError),
    ],
)
def test_errors_are_those_of_tf(client, asked, error):
    with pytest.raises(error):
        client.predict(**{"inputs": {"x": X}, **asked})


@served
def test_examples(client):
    rows = [{"x": 4.0}, {"x": [-2.0], "k": 1.0}]
    values = client.regress("examples", rows, signature="regress")
    assert values.dtype == np.float32 and values.tolist() == [4, 1]
    values = client.regress(
        "examples", [{"x": 0.0}], context={"k": 7.0}, signature="regress_matrix"
    )
    assert values.tolist() == [7]
    (classes,) = client.classify("examples", rows[:1], signature="classify")
    assert classes == [("small", 4), ("large", 10)]
    with pytest.raises(tf.errors.InvalidArgumentError):
        client.classify("examples", [], signature="classify")


@served
def test_metadata_status_and_readiness(client):
    signature = client.metadata("plain")["serving_default"]
    assert signature.inputs["x"].dtype == np.float32
    assert signature.inputs["x"].shape == (None,)
    assert signature.method_name == "tensorflow/serving/predict"
    (status,) = client.status("plain")
    assert (status.version, status.state, status.code) == (3, "AVAILABLE", 0)
    assert client.ready() and client.ready("plain")
    assert not client.ready("other")
    with pytest.raises(tf.errors.NotFoundError):
        client.status("plain", version=8)


@served
def test_threads_share_a_client(client):
    def ask(i):
        value = np.full(2, i, np.float32)
        return (client.predict("plain", {"x": value})["twice"] == 2 * value).all()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(200)))


@served
@pytest.mark.parametrize("kind", ["gRPC", "REST"])
def test_a_server_that_comes_late_and_comes_back(tmp_path, kind):
    base = tmp_path / "plain"
    base.mkdir()
    running.add_version(base, 1)
    flags = ["--model_name=plain", f"--model_base_path={base}"]
    with running.server(tmp_path, *flags) as server:
        ports = [server.port, server.rest_port]
        target = {"gRPC": f"127.0.0.1:{ports[0]}", "REST": _rest(server)}[kind]
        client = Client(target, timeout=running.DEADLINE, retries=200)
        assert client.predict("plain", X)["twice"].tolist() == [2, 4]
        server.stop()
    assert not client.ready()
    hasty = Client(target, retries=0)
    with pytest.raises(tf.errors.UnavailableError):
        hasty.predict("plain", {"x": X})
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(client.predict, "plain", {"x": X})
        program = [running.PROGRAM, f"--port={ports[0]}", f"--rest_api_port={ports[1]}"]
        process = subprocess.Popen([*program, *flags])
        try:
            assert waiting.result()["twice"].tolist() == [2, 4]
        finally:
            process.kill()
            process.wait()
    client.close()
    with pytest.raises(tf.errors.InvalidArgumentError):
        client.predict("plain", {"x": X})


def test_without_a_server_the_deadline_holds():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for target in (f"127.0.0.1:{port}", f"http://127.0.0.1:{port}"):
            with Client(target, timeout=0.2) as client:
                begin = time.monotonic()
                with pytest.raises(
                    (tf.errors.DeadlineExceededError, tf.errors.UnavailableError)
                ):
                    client.predict("plain", {"x": X})
                assert time.monotonic() - begin < running.DEADLINE


class Scripted:
    """A server on a port that reads a request and sends the next of its answers."""

    def __init__(self, *answers):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests = []
        self._thread = threading.Thread(target=self._serve, args=(answers,))
        self._thread.start()

    def _serve(self, answers):
        for answer in answers:
            connection, _ = self._listener.accept()
            with connection:
                self.requests.append(connection.recv(1 << 16))
                connection.sendall(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._thread.join(running.DEADLINE)
        self._listener.close()


def http(status, body, head=""):
    return (
        f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{head}"
        f"Connection: close\r\n\r\n{body}"
    ).encode()


STATUS = '{"model_version_status": []}'


def test_unavailable_is_tried_again_with_the_token():
    unready = http(503, '{"error": "server is shutting down"}')
    with Scripted(unready, b"", http(200, STATUS)) as server:
        with Client(server.target, token="secret") as client:
            assert client.status("m") == []
    assert len(server.requests) == 3
    assert all(b"\r\nauthorization: Bearer secret\r\n" in r for r in server.requests)


@pytest.mark.parametrize(
    "answer, error",
    [
        (http(200, "nonsense"), tf.errors.DataLossError),
        (http(200, "[]"), tf.errors.DataLossError),
        (http(200, '{"model_version_status": [{}]}'), tf.errors.DataLossError),
        (http(418, "<html>"), tf.errors.UnknownError),
        (http(401, '{"error": "no token"}'), tf.errors.UnauthenticatedError),
        (http(404, '{"error": 7}'), tf.errors.NotFoundError),
        (b"nonsense", tf.errors.UnavailableError),
        (http(200, STATUS)[:-3], tf.errors.UnavailableError),
    ],
)
def test_answers_that_are_none(answer, error):
    with Scripted(answer) as server, Client(server.target, retries=0) as client:
        with pytest.raises(error):
            client.status("m")


def test_what_clients_are_made_of_is_checked():
    for target in ("ftp://a:1", "http://", "http://a/path"):
        with pytest.raises(ValueError):
            Client(target)
    for wrong in (
        {"protocol": "v3"},
        {"certificate_file": "c"},
        {"ca_file": "c"},
    ):
        with pytest.raises(ValueError):
            Client("http://localhost:1", **wrong)


ARRAYS = [
    np.arange(6, dtype=name).reshape(2, 3)
    for name in "float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float16 complex64 complex128".split()
] + [
    np.array([True, False]),
    np.zeros((0, 3), np.float32),
    np.array(b"bytes\0", object),
    np.array([["a", b""]], object),
    np.arange(3, dtype=">i4"),
    np.arange(6, dtype=np.float32)[::2],
    np.array([1, 2.5], tf.bfloat16.as_numpy_dtype),
]


@pytest.mark.parametrize("given", range(len(ARRAYS)))
def test_tensors_go_and_come_back(given):
    array = tensors.array_of("x", ARRAYS[given])
    wanted = ARRAYS[given]
    if wanted.dtype.kind == "O":
        wanted = np.vectorize(tensors._bytes_of, otypes=[object])(wanted)
    proto = protos.message("tensorflow.TensorProto")()
    tensors.to_proto(array, proto)
    made = [tensors.from_proto("x", proto)]
    if array.dtype.kind != "c":
        name = tensors.open_name("x", array)
        data = tensors.to_bytes(array)
        made.append(tensors.from_bytes("x", name, array.shape, data))
        for cut in range(len(data)):
            with pytest.raises(tf.errors.DataLossError):
                tensors.from_bytes("x", name, array.shape, data[:cut])
    for result in made:
        assert result.shape == wanted.shape
        assert result.dtype == wanted.dtype.newbyteorder("<")
        assert (result == wanted).all()


def _proto(dtype, shape, **fields):
    proto = protos.message("tensorflow.TensorProto")(dtype=dtype, **fields)
    for size in shape:
        proto.tensor_shape.dim.add().size = size
    return proto


def test_tensors_of_typed_fields():
    made = tensors.from_proto("x", _proto(1, [2, 2], float_val=[1, 5]))
    assert made.tolist() == [[1, 5], [5, 5]]
    assert tensors.from_proto("x", _proto(3, [2])).tolist() == [0, 0]
    made = tensors.from_proto("x", _proto(7, [3], string_val=[b"a"]))
    assert made.tolist() == [b"a"] * 3
    assert tensors.from_proto("x", _proto(19, [1], half_val=[0x3C00])).tolist() == [1]
    made = tensors.from_proto("x", _proto(8, [], scomplex_val=[1, 2]))
    assert made == 1 + 2j


@pytest.mark.parametrize(
    "proto",
    [
        _proto(99, [1]),
        _proto(1, [-1], float_val=[1]),
        _proto(1, [1], float_val=[1, 2]),
        _proto(1, [2], tensor_content=b"1234567"),
        _proto(1, [3], tensor_content=b"12345678"),
        _proto(1, [1 << 40, 1 << 40]),
        _proto(7, [1], tensor_content=b"1234"),
    ],
)
def test_tensors_that_are_none(proto):
    with pytest.raises(tf.errors.DataLossError):
        tensors.from_proto("x", proto)


def test_descriptors_are_for_generators_of_other_languages():
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet.FromString(protos.descriptors())
    assert "tensorflow_serving/apis/predict.proto" in {f.name for f in files.file}
    assert protos.PredictRequest.DESCRIPTOR.full_name.endswith("serving.PredictRequest")


def test_without_grpcio_the_error_names_it():
    program = (
        "import sys; sys.modules['grpc'] = None\n"
        "from headrace.serving import Client\n"
        "Client('http://localhost:1')\n"
        "try: Client('localhost:1')\n"
        "except ImportError as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install grpcio" in done.stdout


LIGHT = """
import sys, threading
from headrace.serving import Client, protos
protos.PredictRequest()
Client("http://localhost:1")
assert "headrace._headrace" not in sys.modules
from headrace.framework import errors
import headrace as tf
assert tf.errors.NotFoundError is errors.NotFoundError
threads = [threading.Thread(target=lambda: tf.constant(1)) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert "headrace._headrace" in sys.modules and tf.serving.Client is Client
print("light")
"""


def test_the_client_loads_no_engine():
    done = subprocess.run(
        [sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False
    )
    assert done.stdout == "light\n", done.stderr


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.0, "float32"),
        ([1.0, 2], "float32"),
        ([[1, 2.5]], "float32"),
        ([], "float32"),
        (3, "int32"),
        ([1, -(2**31)], "int32"),
        ([1, 2**31], "int64"),
        (True, "bool"),
        ([np.float64(1)], "float64"),
        (np.array([1.0]), "float64"),
        (np.int64(1), "int64"),
        (1j, "complex128"),
        ("text", "object"),
    ],
)
def test_dtypes_of_python_values(value, dtype):
    assert tensors.array_of("x", value).dtype == dtype
