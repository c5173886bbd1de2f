"""The Open Inference Protocol over REST, with binary tensors."""

import json
import struct
from urllib.parse import quote

from headrace.context import errors
from headrace.serving import failures, http_wire, replies, tensors
from headrace.serving.v1_rest import is_ready
from headrace.serving.v2_grpc import (
    info,
    no_examples,
    statuses,
    version_number,
    version_text,
)

# How many bytes of JSON stand before the tensors' bytes.
_LENGTH = "Inference-Header-Content-Length"


class V2Rest:
    """What Client asks of a protocol."""

    def __init__(self, wire):
        self._wire = wire

    def predict(self, target, inputs, outputs, deadline):
        asked, data = {"inputs": []}, []
        for name, array in inputs.items():
            data.append(tensors.to_bytes(array))
            asked["inputs"].append(
                {
                    "name": name,
                    "datatype": tensors.open_name(name, array),
                    "shape": list(array.shape),
                    "parameters": {"binary_data_size": len(data[-1])},
                }
            )
        asked["parameters"] = {"binary_data_output": True}
        if target.signature is not None:
            asked["parameters"]["signature_name"] = target.signature
        if outputs:
            asked["outputs"] = [
                {"name": name, "parameters": {"binary_data": True}} for name in outputs
            ]
        head = json.dumps(asked).encode()
        response = self._wire.ask(
            "POST",
            _path(target) + "/infer",
            deadline,
            b"".join([head, *data]),
            {"Content-Type": "application/octet-stream", _LENGTH: str(len(head))},
        )
        http_wire.check(response)
        try:
            return _prediction(response)
        except (KeyError, TypeError, ValueError, AttributeError, struct.error):
            raise failures.broken("the server's answer is no inference") from None

    def classify(self, target, rows, context, deadline):
        raise no_examples("classify")

    def regress(self, target, rows, context, deadline):
        raise no_examples("regress")

    def metadata(self, target, deadline):
        found = self._wire.json("GET", _path(target), deadline)

        def infos(listed):
            return {t["name"]: info(t["datatype"], t["shape"]) for t in listed}

        try:
            signature = replies.Signature(
                infos(found["inputs"]), infos(found["outputs"])
            )
        except (KeyError, TypeError, ValueError):
            raise failures.broken("the server's answer has no tensors") from None
        return {"serving_default": signature}

    def status(self, target, deadline):
        found = self._wire.json("POST", "/v2/repository/index", deadline, {})
        try:
            rows = [
                (m["name"], m.get("version", ""), m["state"], m.get("reason", ""))
                for m in found
            ]
        except (KeyError, TypeError, AttributeError):
            raise failures.broken("the server's answer is no index") from None
        return statuses(rows, target)

    def server_ready(self, deadline):
        return is_ready(self._wire, "/v2/health/ready", deadline)

    def model_ready(self, target, deadline):
        try:
            return is_ready(self._wire, _path(target) + "/ready", deadline)
        except errors.NotFoundError:
            return False


def _path(target):
    version = version_text(target)
    path = "/v2/models/" + quote(target.model, safe="")
    return f"{path}/versions/{version}" if version else path


def _prediction(response):
    length = response.headers.get(_LENGTH)
    at = len(response.body) if length is None else int(length)
    answer = http_wire.parsed(response.body[:at])
    made = {}
    for out in answer["outputs"]:
        name, shape = out["name"], out["shape"]
        size = out.get("parameters", {}).get("binary_data_size")
        if size is None:
            made[name] = _from_list(name, out)
            continue
        if not 0 <= size <= len(response.body) - at:
            raise failures.broken(f"output {name}: its bytes are cut short")
        data = response.body[at : at + size]
        made[name] = tensors.from_bytes(name, out["datatype"], shape, data)
        at += size
    version = version_number(str(answer.get("model_version", "")))
    return replies.Prediction(made, answer["model_name"], version)


def _from_list(name, out):
    """A tensor in JSON, flat or nested."""
    dtype = tensors.dtype_of(out["datatype"])
    return tensors.reshaped(
        name, tensors.from_json(name, out["data"], dtype), out["shape"]
    )
