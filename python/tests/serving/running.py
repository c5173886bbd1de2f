"""Servers for tests: the program, on free ports, with models in a folder."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import grpc
import numpy as np
import pytest
from headrace.framework.support import protos

ROOT = os.path.normpath(os.path.join(os.path.dirname(__file__), "../../.."))
PROGRAM = os.path.join(ROOT, "build/bin/headrace-serving")
GOLDEN = os.path.join(ROOT, "tests/golden/saved_models")
DEADLINE = 60  # seconds: for a machine that does much else

needs_server = pytest.mark.skipif(
    not os.path.exists(PROGRAM), reason="the server was not built (HR_SERVING)"
)


def message(name):
    return protos.message("tensorflow.serving." + name)


def predict_request(model, version=None, **inputs):
    request = message("PredictRequest")()
    request.model_spec.name = model
    if version is not None:
        request.model_spec.version.value = version
    for name, value in inputs.items():
        value = np.asarray(value, np.float32)
        tensor = request.inputs[name]
        tensor.dtype = 1
        for n in value.shape:
            tensor.tensor_shape.dim.add().size = n
        tensor.tensor_content = value.tobytes()
    return request


class Running:
    """A server's process and its ports."""

    def __init__(self, process, lines, port, rest_port):
        self.process, self.lines = process, lines
        self.port, self.rest_port = port, rest_port
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")

    def ask(self, service, method, request, response, timeout=DEADLINE):
        call = self.channel.unary_unary(
            f"/tensorflow.serving.{service}/{method}",
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=message(response).FromString,
        )
        return call(request, timeout=timeout)

    def predict(self, model, version=None, **inputs):
        request = predict_request(model, version, **inputs)
        return self.ask("PredictionService", "Predict", request, "PredictResponse")

    def states(self, model):
        request = message("GetModelStatusRequest")()
        request.model_spec.name = model
        response = self.ask(
            "ModelService", "GetModelStatus", request, "GetModelStatusResponse"
        )
        return {s.version: s.state for s in response.model_version_status}

    def stop(self, sign=signal.SIGTERM):
        """What the process ends with."""
        self.process.send_signal(sign)
        return self.process.wait(DEADLINE)


def add_version(base, version, model="plain"):
    """A version of a golden model, there at once."""
    made = os.path.join(base, f"{version}.tmp")
    shutil.copytree(os.path.join(GOLDEN, model), made)
    os.rename(made, os.path.join(base, str(version)))


def wait_until(holds):
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.02)


def free_port():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def server(tmp_path, *flags, rest=True, files=None):
    """Starts it, with so many files, and waits until it says that it runs."""
    port = free_port()
    rest_port = free_port() if rest else 0
    log = tmp_path / "server.log"
    with open(log, "w") as out:
        process = subprocess.Popen(
            [
                *(["prlimit", f"--nofile={files}:{files}"] if files else []),
                *(PROGRAM, f"--port={port}", f"--rest_api_port={rest_port}", *flags),
            ],
            stderr=out,
        )
    try:
        wait_until(
            lambda: (
                process.poll() is not None
                or re.search("Running gRPC ModelServer", log.read_text())
            )
        )
        assert process.poll() is None, log.read_text()
        yield Running(process, log.read_text, port, rest_port)
    finally:
        process.kill()
        process.wait()
