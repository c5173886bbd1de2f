"""What the stock server says, row by row, over the real ports."""

import json
import os
import shutil
import socket
import subprocess

import grpc
import pytest
import running
import small_models
from google.protobuf import text_format

pytestmark = running.needs_server

CODES = grpc.StatusCode


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for model, versions in [("m", (1, 2, 3)), ("other", (5,))]:
        (folder / model).mkdir()
        for version in versions:
            small_models.scale(folder / model / str(version), version)
    return folder


def model_text(folder, name, more=""):
    return (
        f"config {{ name: '{name}' base_path: '{folder / name}' "
        f"model_platform: 'tensorflow' {more} }} "
    )


ALL = "model_version_policy { all {} } "
LABELS = (
    "version_labels { key: 'stable' value: 1 } "
    "version_labels { key: 'canary' value: 2 } version_labels { key: 'c' value: 2 }"
)


@pytest.fixture(scope="module")
def server(folder):
    config = folder / "models.config"
    config.write_text(
        "model_config_list { %s %s }"
        % (model_text(folder, "m", ALL + LABELS), model_text(folder, "other"))
    )
    with running.server(
        folder,
        f"--model_config_file={config}",
        "--allow_version_labels_for_unavailable_models",
        "--max_num_load_retries=0",
    ) as started:
        yield started


def parsed(name, text):
    return text_format.Parse(text, running.message(name)())


def error_of(server, service, method, request, response):
    with pytest.raises(grpc.RpcError) as error:
        server.ask(service, method, request, response)
    return error.value.code(), error.value.details()


INPUT = (
    "inputs { key: 'x' value { dtype: DT_FLOAT tensor_shape { dim { size: 1 } } "
    "float_val: 1 } }"
)


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        ("name: 'm'", 3),
        ("name: 'm' version { value: 1 }", 1),
        ("name: 'm' version { value: 3 }", 3),
        ("name: 'm' version_label: 'stable'", 1),
        ("name: 'm' version_label: 'canary'", 2),
        ("name: 'm' version_label: 'c'", 2),
        ("name: 'other'", 5),
        ("name: 'm' signature_name: 'serving_default'", 3),
    ],
)
def test_which_version(server, spec, version):
    request = parsed("PredictRequest", f"model_spec {{ {spec} }} {INPUT}")
    response = server.ask("PredictionService", "Predict", request, "PredictResponse")
    assert response.model_spec == parsed(
        "ModelSpec",
        f"name: '{request.model_spec.name}' version {{ value: {version} }} "
        "signature_name: 'serving_default'",
    )
    assert list(response.outputs["y"].float_val) == [version]


@pytest.mark.parametrize(
    ("spec", "code", "text"),
    [
        ("", CODES.INVALID_ARGUMENT, "Missing ModelSpec"),
        (
            "model_spec {}",
            CODES.INVALID_ARGUMENT,
            "ModelSpec has no name specified.",
        ),
        (
            "model_spec { name: 'none' }",
            CODES.NOT_FOUND,
            "Servable not found for request: Latest(none)",
        ),
        (
            "model_spec { name: 'm' version { value: 9 } }",
            CODES.NOT_FOUND,
            "Servable not found for request: Specific(m, 9)",
        ),
        (
            "model_spec { name: 'm' version_label: 'no' }",
            CODES.INVALID_ARGUMENT,
            "Unrecognized servable version label: no",
        ),
        (
            "model_spec { name: 'other' version_label: 'stable' }",
            CODES.INVALID_ARGUMENT,
            "Unrecognized servable version label: stable",
        ),
    ],
)
@pytest.mark.parametrize(
    ("method", "request_type", "response_type"),
    [
        ("Predict", "PredictRequest", "PredictResponse"),
        ("Classify", "ClassificationRequest", "ClassificationResponse"),
        ("Regress", "RegressionRequest", "RegressionResponse"),
        ("MultiInference", "MultiInferenceRequest", "MultiInferenceResponse"),
        ("GetModelMetadata", "GetModelMetadataRequest", "GetModelMetadataResponse"),
    ],
)
def test_which_version_there_is_not(
    server, method, request_type, response_type, spec, code, text
):
    if method == "MultiInference":
        spec = f"tasks {{ {spec} method_name: 'tensorflow/serving/regress' }}"
    if method == "GetModelMetadata":
        spec += " metadata_field: 'signature_def'"
    request = parsed(request_type, spec)
    assert error_of(server, "PredictionService", method, request, response_type) == (
        code,
        text,
    )


def status_of(server, text):
    request = parsed("GetModelStatusRequest", text)
    return server.ask(
        "ModelService", "GetModelStatus", request, "GetModelStatusResponse"
    )


def test_model_status(server):
    for spec, versions in [
        ("name: 'm'", [3, 2, 1]),
        ("name: 'm' version { value: 2 }", [2]),
        ("name: 'm' version_label: 'canary'", [3, 2, 1]),  # not looked at
        ("name: 'm' version_label: 'no'", [3, 2, 1]),
    ]:
        response = status_of(server, f"model_spec {{ {spec} }}")
        found = response.model_version_status
        assert [v.version for v in found] == versions
        assert all(v.state == 30 and v.status.error_code == 0 for v in found)
    for text, code, said in [
        ("", CODES.INVALID_ARGUMENT, "Missing ModelSpec"),
        (
            "model_spec { name: 'm' version { value: 9 } }",
            CODES.NOT_FOUND,
            "Could not find version 9 of model m",
        ),
        (
            "model_spec { name: 'none' }",
            CODES.NOT_FOUND,
            "Could not find any versions of model none",
        ),
    ]:
        request = parsed("GetModelStatusRequest", text)
        assert error_of(
            server,
            "ModelService",
            "GetModelStatus",
            request,
            "GetModelStatusResponse",
        ) == (code, said)


def reload_error(server, text):
    request = parsed("ReloadConfigRequest", text)
    return error_of(
        server,
        "ModelService",
        "HandleReloadConfigRequest",
        request,
        "ReloadConfigResponse",
    )


def test_configs_that_are_refused_change_nothing(server, folder):
    m, other = model_text(folder, "m", ALL + LABELS), model_text(folder, "other")

    def models(*texts):
        return "config { model_config_list { %s } }" % " ".join(texts)

    bad = "config { name: 'x' base_path: '%s' %s }"
    for text, code, said in [
        (
            "",
            CODES.INVALID_ARGUMENT,
            "ServerModelConfig type not supported by HandleReloadConfigRequest. Only "
            "ModelConfigList is currently supported",
        ),
        (
            models(other, other),
            CODES.INVALID_ARGUMENT,
            "Illegal to list model other multiple times in config list",
        ),
        (
            models(bad % ("here/x", "model_platform: 'tensorflow'")),
            CODES.INVALID_ARGUMENT,
            "Expected model x to have an absolute path or URI; got base_path()=here/x",
        ),
        (
            models(bad % ("/x", "")),
            CODES.INVALID_ARGUMENT,
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
            "ModelServerConfig::model_platform, model name is x",
        ),
        (
            models(bad % ("/x", "model_platform: 'caffe'")),
            CODES.INVALID_ARGUMENT,
            "Model x requests unsupported platform caffe",
        ),
        (
            models(other.replace("'tensorflow'", "'jax'"), m),
            CODES.INVALID_ARGUMENT,
            "Illegal to change a model's platform. For model other platform was "
            "tensorflow and new platform requested is jax",
        ),
        (
            models(
                model_text(folder, "m", ALL + LABELS.replace("value: 1", "value: 7"))
            ),
            CODES.FAILED_PRECONDITION,
            "Request to assign label to version 7 of model m, which is not currently "
            "available for inference",
        ),
    ]:
        assert reload_error(server, text) == (code, said)
        assert [
            v.version
            for v in status_of(server, "model_spec { name: 'm' }").model_version_status
        ] == [3, 2, 1]
        assert server.predict("other", x=[1.0]).model_spec.version.value == 5


def test_a_model_that_fails_is_told_at_the_reload(server, folder):
    broken = folder / "broken"
    (broken / "1").mkdir(parents=True)
    (broken / "1" / "saved_model.pb").write_bytes(b"\x0anonsense")
    text = "config { model_config_list { %s %s %s } }" % (
        model_text(folder, "m", ALL + LABELS),
        model_text(folder, "other"),
        model_text(folder, "broken"),
    )
    code, said = reload_error(server, text)
    assert code == CODES.UNKNOWN
    assert said.startswith(
        "1 model(s) did not become available: {{name: broken version: 1} due to error: "
    )
    assert server.predict("other", x=[1.0]).model_spec.version.value == 5
    assert server.predict("m", x=[1.0]).model_spec.version.value == 3


# --- What the program says where it does not start.


def start_error(*flags):
    ended = subprocess.run(
        [running.PROGRAM, "--port=18598", *flags],
        stderr=subprocess.PIPE,
        text=True,
        timeout=running.DEADLINE,
    )
    assert ended.returncode == 255
    assert "Failed to start server. Error: " in ended.stderr
    return ended.stderr


def test_files_that_end_the_start(tmp_path, folder):
    config = tmp_path / "some.config"
    base = f"--model_base_path={folder / 'm'}"
    file = f"--model_config_file={config}"
    batching = [base, "--enable_batching", f"--batching_parameters_file={config}"]
    for content, flags, text in [
        ("nonsense {", [file], f"Invalid protobuf file: '{config}'"),
        ("model_config_list { unknown: 1 }", [file], "Invalid protobuf file: '"),
        ("custom_model_config {}", [file], "custom_model_config"),
        ("max_batch_size: 3", batching, "Invalid protobuf file: '"),
        (
            "max_batch_size { value: 4 } allowed_batch_sizes: 2",
            batching,
            "Last entry in allowed_batch_sizes must match max_batch_size; last entry "
            "was 2, expected 4",
        ),
        (
            "max_batch_size { value: 4 } allowed_batch_sizes: 3 "
            "allowed_batch_sizes: 2 allowed_batch_sizes: 4",
            batching,
            "allowed_batch_sizes entries must be monotonically increasing",
        ),
        (
            "",
            [base, f"--batching_parameters_file={config}"],
            "server_options.batching_parameters_file is set without setting "
            "server_options.enable_batching to true.",
        ),
        (
            "",
            [base, f"--monitoring_config_file={tmp_path / 'none'}"],
            str(tmp_path / "none"),
        ),
        (
            "",
            [
                base,
                "--tensorflow_session_parallelism=1",
                "--tensorflow_intra_op_parallelism=1",
                "--tensorflow_inter_op_parallelism=1",
            ],
            "not all three",
        ),
    ]:
        config.write_text(content)
        assert text in start_error(*flags)


def warmed_up(tmp_path, folder, content):
    """The error of a version with such a warm-up file."""
    base = tmp_path / "warm"
    shutil.copytree(folder / "m" / "1", base / "1")
    os.mkdir(base / "1" / "assets.extra")
    (base / "1" / "assets.extra" / "tf_serving_warmup_requests").write_bytes(content)
    return start_error(f"--model_base_path={base}", "--max_num_load_retries=0")


def test_warm_up_that_fails(tmp_path, folder):
    said = warmed_up(tmp_path, folder, b"these are no records, and long enough")
    assert "DATA_LOSS" in said
    assert "Please verify your warmup data is in TFRecord format." in said


# --- Bytes that are no requests: others are unharmed.


def raw(server, data):
    with socket.create_connection(("127.0.0.1", server.rest_port)) as s:
        s.settimeout(running.DEADLINE)
        s.sendall(data)
        answer = b""
        while part := s.recv(65536):
            answer += part
    return answer


def post(body, *headers, length=True):
    lines = ["POST /v1/models/m:predict HTTP/1.1", "Host: x", "Connection: close"]
    lines += headers
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.parametrize(
    ("what", "data", "statuses"),
    [
        ("deep", post(b'{"inputs": ' + b"[" * 300_000 + b"]" * 300_000 + b"}"), [400]),
        ("deep and cut", post(b'{"inputs": ' + b"[" * 1_000_000), [400]),
        ("long", post(b'{"inputs": [' + b"1," * 1_000_000 + b"1]}"), [200]),
        ("NUL bytes", post(b'{"inputs": [\0\0]}'), [400]),
        ("a cut", post(b'{"inputs": [1, 2'), [400]),
        ("negative", post(b"", "Content-Length: -5", length=False), [400]),
        ("too large", post(b"", f"Content-Length: {1 << 50}", length=False), [413]),
        ("no length", post(b'{"inputs": 1}', length=False), [411]),
        ("garbage", b"\x16\x03\x01 what is this\r\n\r\n", [400]),
        ("a header", post(b"", "X: " + "x" * (1 << 20)), [431]),
    ],
)
def test_requests_that_are_none(server, what, data, statuses):
    answer = raw(server, data)
    assert answer.startswith(b"HTTP/1.1 "), answer[:100]
    assert int(answer.split()[1]) in statuses, answer[:500]
    body = json.dumps({"inputs": [2.0]}).encode()
    assert b'"outputs"' in raw(server, post(body))
