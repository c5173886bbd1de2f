"""Requests kept in files, which warm up the next version."""

import glob
import json
import os
import shutil
import struct
import urllib.request

import grpc
import pytest
import running
from headrace.framework.support import protos

pytestmark = running.needs_server

MODEL = os.path.join(running.ROOT, "tests/golden/serving/examples")


def config_of(folder, logging):
    return (
        "model_config_list { config { name: 'examples' base_path: '%s' "
        "model_platform: 'tensorflow' %s } }" % (folder / "examples", logging)
    )


def logging_to(prefix, more="", type="tfrecord"):
    return (
        "logging_config { log_collector_config { type: '%s' filename_prefix: '%s' }"
        " sampling_config { sampling_rate: 1 %s } }" % (type, prefix, more)
    )


def records_in(prefix):
    """The PredictionLogs of all files of a log, in their order."""
    found = []
    for path in sorted(glob.glob(f"{prefix}-*")):
        with open(path, "rb") as file:
            data = file.read()
        at = 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            record = data[at + 12 : at + 12 + length]
            found.append(running.message("PredictionLog").FromString(record))
            at += 16 + length
    return found


def reload(server, text):
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.rest_port}/v1/config",
        data=text.encode(),
        headers={"Content-Type": "text/plain"},
    )
    with urllib.request.urlopen(request, timeout=running.DEADLINE) as answer:
        return answer.read()


def ask_rest(server, verb, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.rest_port}/v1/models/examples:{verb}",
        data=json.dumps(body).encode(),
    )
    with urllib.request.urlopen(request, timeout=running.DEADLINE) as answer:
        return json.loads(answer.read())


def example_request(kind, signature):
    request = running.message(kind + "Request")()
    request.model_spec.name = "examples"
    request.model_spec.signature_name = signature
    example = protos.message("tensorflow.Example")()
    example.features.feature["x"].float_list.value.append(4)
    request.input.example_list.examples.append(example)
    return request


def ask_all(server):
    """One request of each kind over each transport, and one that fails."""
    server.predict("examples", x=[1.0])
    for kind, method, signature in [
        ("Classification", "Classify", "classify"),
        ("Regression", "Regress", "regress"),
    ]:
        request = example_request(kind, signature)
        server.ask("PredictionService", method, request, kind + "Response")
    both = running.message("MultiInferenceRequest")()
    both.input.CopyFrom(request.input)
    for name in ("classify", "regress"):
        task = both.tasks.add()
        task.model_spec.name, task.model_spec.signature_name = "examples", name
        task.method_name = "tensorflow/serving/" + name
    server.ask("PredictionService", "MultiInference", both, "MultiInferenceResponse")
    with pytest.raises(grpc.RpcError):
        server.predict("examples", wrong=[1.0])
    given = {"signature_name": "regress", "examples": [{"x": 4.0}]}
    assert ask_rest(server, "regress", given) == {"results": [4.0]}
    given["signature_name"] = "classify"
    ask_rest(server, "classify", given)
    assert ask_rest(server, "predict", {"instances": [2.0]}) == {"predictions": [3.0]}


@pytest.fixture
def models(tmp_path):
    (tmp_path / "examples").mkdir()
    shutil.copytree(MODEL, tmp_path / "examples" / "5")
    return tmp_path


def start(folder, logging):
    config = folder / "models.config"
    config.write_text(config_of(folder, logging))
    monitoring = folder / "monitoring.config"
    monitoring.write_text("prometheus_config { enable: true }")
    return running.server(
        folder,
        f"--model_config_file={config}",
        f"--monitoring_config_file={monitoring}",
    )


def metric(server, name):
    url = f"http://127.0.0.1:{server.rest_port}/monitoring/prometheus/metrics"
    with urllib.request.urlopen(url, timeout=running.DEADLINE) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(name):
                return float(line.split()[-1])
    return 0


def test_a_log_warms_up_the_next_version(models):
    prefix = models / "logs" / "examples"
    with start(models, logging_to(prefix)) as server:
        ask_all(server)
        running.wait_until(lambda: len(records_in(prefix)) == 7)
        logs = records_in(prefix)
        kinds = [log.WhichOneof("log_type") for log in logs]
        assert kinds == [
            "predict_log",
            "classify_log",
            "regress_log",
            "multi_inference_log",
            "regress_log",
            "classify_log",
            "predict_log",
        ]
        for log in logs:
            assert log.log_metadata.model_spec.name == "examples"
            assert log.log_metadata.model_spec.version.value == 5
            assert list(log.log_metadata.saved_model_tags) == ["serve"]
        over_rest = logs[-1].predict_log
        assert list(over_rest.request.inputs["x"].float_val) == [2]
        assert list(over_rest.response.outputs["y"].float_val) == [3]
        assert logs[-1].log_metadata.model_spec.signature_name == "serving_default"
        count = ":tensorflow:serving:request_log_count"
        counted = count + '{model_name="examples",status_code="OK"}'
        running.wait_until(lambda: metric(server, counted) == 7)

        # The file as it is warms up a version.
        next_version = models / "next"
        shutil.copytree(MODEL, next_version)
        (next_version / "assets.extra").mkdir()
        (written,) = glob.glob(f"{prefix}-*")
        shutil.copy(
            written, next_version / "assets.extra" / "tf_serving_warmup_requests"
        )
        os.rename(next_version, models / "examples" / "6")
        running.wait_until(lambda: server.states("examples").get(6) == 30)
        read = ":tensorflow:serving:model_warmup_records_read"
        assert metric(server, read) == 7
        assert len(records_in(prefix)) == 7  # what warms up is not logged


def test_a_reload_changes_the_logging_and_a_refused_one_does_not(models):
    first, second = models / "first", models / "second"
    with start(models, logging_to(first)) as server:
        server.predict("examples", x=[1.0])
        running.wait_until(lambda: len(records_in(first)) == 1)
        with pytest.raises(urllib.error.HTTPError) as error:
            reload(server, config_of(models, logging_to(second, type="kafka")))
        assert error.value.code == 400
        assert 'log_collector_config.type is \\"kafka\\"' in error.value.read().decode()
        server.predict("examples", x=[1.0])
        running.wait_until(lambda: len(records_in(first)) == 2)
        # A task that is not this server, then one that is all.
        tasks = (
            "per_task_sampling_configs { dc: 'elsewhere' sampling_rate: 0 }"
            "per_task_sampling_configs { sampling_rate: 1 }"
        )
        reload(server, config_of(models, logging_to(second, tasks)))
        server.predict("examples", x=[1.0])
        running.wait_until(lambda: len(records_in(second)) == 1)
        reload(server, config_of(models, ""))
        server.predict("examples", x=[1.0])
        assert server.stop() == 0
    assert len(records_in(first)) == 2
    assert len(records_in(second)) == 1


def test_logs_that_are_asked_for_wrongly_end_the_start(models):
    config = models / "models.config"
    config.write_text(config_of(models, logging_to("", type="tfrecord")))
    with pytest.raises(AssertionError, match="filename_prefix is empty"):
        with running.server(models, f"--model_config_file={config}"):
            pass
