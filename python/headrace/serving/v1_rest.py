"""TensorFlow Serving's protocol over REST."""

import threading
from urllib.parse import quote

from headrace.context import errors
from headrace.serving import examples as examples_of
from headrace.serving import failures, http_wire, replies, tensors

_DEFAULT = "serving_default"


class V1Rest:
    """What Client asks of a protocol."""

    def __init__(self, wire):
        self._wire = wire
        self._lock = threading.Lock()
        # Types of outputs, which JSON does not tell, by the model's path. Guarded by
        # _lock.
        self._signatures = {}

    def _signature(self, target, deadline, again=False):
        path = _path(target)
        with self._lock:
            known = None if again else self._signatures.get(path)
        if known is None:
            known = self.metadata(target, deadline)
            with self._lock:
                self._signatures[path] = known
        name = target.signature or _DEFAULT
        if name not in known and not again:
            return self._signature(target, deadline, again=True)
        return known.get(name)

    def predict(self, target, inputs, outputs, deadline):
        asked = {"inputs": {n: tensors.to_json(a) for n, a in inputs.items()}}
        if target.signature is not None:
            asked["signature_name"] = target.signature
        answer = self._wire.json("POST", _path(target) + ":predict", deadline, asked)
        value = _field(answer, "outputs")
        infos = self._outputs(target, value, deadline)
        if len(infos) == 1:
            value = {next(iter(infos)): value}
        made = {
            name: tensors.from_json(name, value[name], info.dtype)
            for name, info in infos.items()
        }
        for name in outputs or ():
            if name not in made:
                raise failures.invalid(
                    f"output tensor alias not found in signature: {name} Outputs "
                    f"expected to be in the set {{{','.join(sorted(made))}}}."
                )
        if outputs:
            made = {name: made[name] for name in outputs}
        return replies.Prediction(made, target.model)

    def _outputs(self, target, value, deadline):
        """{name: TensorInfo} as the answer has them: another version may have come."""
        for again in (False, True):
            signature = self._signature(target, deadline, again)
            infos = signature.outputs if signature else {}
            if len(infos) == 1 and not _is_named(value):
                return infos
            if _is_named(value) and set(value) == set(infos):
                return infos
        raise failures.broken("the answer's outputs are not those of the signature")

    def _of_examples(self, method, target, rows, context, deadline):
        asked = {"examples": [examples_of.to_json(row) for row in rows]}
        if context is not None:
            asked["context"] = examples_of.to_json(context)
        if target.signature is not None:
            asked["signature_name"] = target.signature
        answer = self._wire.json("POST", f"{_path(target)}:{method}", deadline, asked)
        return _field(answer, "results")

    def classify(self, target, rows, context, deadline):
        results = self._of_examples("classify", target, rows, context, deadline)
        return [[(label, score) for label, score in row] for row in results]

    def regress(self, target, rows, context, deadline):
        return self._of_examples("regress", target, rows, context, deadline)

    def metadata(self, target, deadline):
        answer = self._wire.json("GET", _path(target) + "/metadata", deadline)
        try:
            found = answer["metadata"]["signature_def"]["signature_def"]
            return {
                name: replies.Signature(
                    _infos(signature["inputs"]),
                    _infos(signature["outputs"]),
                    signature.get("method_name", ""),
                )
                for name, signature in found.items()
            }
        except (KeyError, TypeError, ValueError, AttributeError):
            raise failures.broken("the server's metadata have no signatures") from None

    def status(self, target, deadline):
        answer = self._wire.json("GET", _path(target), deadline)
        try:
            return [
                replies.VersionStatus(
                    int(s["version"]),
                    s["state"],
                    failures.CODES.get(s["status"]["error_code"], errors.UNKNOWN),
                    s["status"]["error_message"],
                )
                for s in answer["model_version_status"]
            ]
        except (KeyError, TypeError, ValueError):
            raise failures.broken("the server's answer is no status") from None

    def server_ready(self, deadline):
        return is_ready(self._wire, "/v2/health/ready", deadline)

    def model_ready(self, target, deadline):
        try:
            found = self.status(target, deadline)
        except errors.NotFoundError:
            return False
        return any(s.state == "AVAILABLE" for s in found)


def is_ready(wire, path, deadline):
    """What a path of health says: 200, or (400, 503) not yet."""
    response = wire.ask("GET", path, deadline)
    if response.status in (400, 503):
        return False
    http_wire.check(response)
    return True


def _is_named(value):
    return isinstance(value, dict) and set(value) != {"b64"}


def _path(target):
    path = "/v1/models/" + quote(target.model, safe="")
    if target.version is not None:
        path += f"/versions/{target.version}"
    if target.label is not None:
        path += "/labels/" + quote(target.label, safe="")
    return path


def _field(answer, name):
    if not isinstance(answer, dict) or name not in answer:
        raise failures.broken(f"the server's answer has no '{name}'")
    return answer[name]


def _infos(by_name):
    def shape(value):
        if value.get("unknown_rank"):
            return None
        sizes = [int(d["size"]) for d in value.get("dim", ())]
        return tuple(n if n >= 0 else None for n in sizes)

    return {
        name: replies.TensorInfo(
            tensors.dtype_of(info["dtype"]), shape(info["tensor_shape"])
        )
        for name, info in by_name.items()
    }
