"""The Open Inference Protocol over gRPC."""

from headrace.context import errors
from headrace.serving import failures, protos, replies, tensors

_SERVICE = "/inference.GRPCInferenceService/"


class V2Grpc:
    """What Client asks of a protocol."""

    def __init__(self, wire):
        self._wire = wire

    def _ask(self, method, deadline, **fields):
        request = protos.message(f"inference.{method}Request")(**fields)
        return self._send(method, request, deadline)

    def _send(self, method, request, deadline):
        response = protos.message(f"inference.{method}Response")
        return self._wire.ask(_SERVICE + method, request, response, deadline)

    def predict(self, target, inputs, outputs, deadline):
        request = protos.ModelInferRequest(
            model_name=target.model, model_version=version_text(target)
        )
        if target.signature is not None:
            request.parameters["signature_name"].string_param = target.signature
        for name, array in inputs.items():
            datatype = tensors.open_name(name, array)
            request.inputs.add(name=name, datatype=datatype, shape=array.shape)
            request.raw_input_contents.append(tensors.to_bytes(array))
        for name in outputs or ():
            request.outputs.add(name=name)
        response = self._send("ModelInfer", request, deadline)
        raw = response.raw_output_contents
        if len(raw) != len(response.outputs):
            raise failures.broken(
                f"the answer has {len(response.outputs)} outputs and {len(raw)} contents"
            )
        made = {
            out.name: tensors.from_bytes(out.name, out.datatype, out.shape, data)
            for out, data in zip(response.outputs, raw)
        }
        return replies.Prediction(
            made, response.model_name, version_number(response.model_version)
        )

    def classify(self, target, rows, context, deadline):
        raise no_examples("classify")

    def regress(self, target, rows, context, deadline):
        raise no_examples("regress")

    def metadata(self, target, deadline):
        found = self._ask(
            "ModelMetadata",
            deadline,
            name=target.model,
            version=version_text(target),
        )

        def infos(listed):
            return {t.name: info(t.datatype, t.shape) for t in listed}

        return {
            "serving_default": replies.Signature(
                infos(found.inputs), infos(found.outputs)
            )
        }

    def status(self, target, deadline):
        found = self._ask("RepositoryIndex", deadline)
        rows = ((m.name, m.version, m.state, m.reason) for m in found.models)
        return statuses(rows, target)

    def server_ready(self, deadline):
        return self._ask("ServerReady", deadline).ready

    def model_ready(self, target, deadline):
        try:
            return self._ask(
                "ModelReady",
                deadline,
                name=target.model,
                version=version_text(target),
            ).ready
        except errors.NotFoundError:
            return False


def version_text(target):
    """A version as this protocol writes it; "" for the newest."""
    if target.label is not None:
        raise failures.unimplemented("the Open Inference Protocol has no labels")
    return "" if target.version is None else str(target.version)


def version_number(text):
    """The number, or None where a server counts otherwise."""
    return int(text) if text.isdecimal() else None


def no_examples(method):
    """What is said of calls that take examples."""
    return failures.unimplemented(
        f'the Open Inference Protocol has no {method}: use "v1"'
    )


def info(datatype, shape):
    """A TensorInfo."""
    sizes = (int(size) for size in shape)
    sizes = tuple(size if size >= 0 else None for size in sizes)
    return replies.TensorInfo(tensors.dtype_of(datatype), sizes)


def statuses(rows, target):
    """[VersionStatus] of one model, of rows (name, version, state, reason)."""
    found = [
        replies.VersionStatus(
            version_number(version), state, errors.UNKNOWN if reason else 0, reason
        )
        for name, version, state, reason in rows
        if name == target.model
        and (target.version is None or version == str(target.version))
    ]
    if not found:
        raise errors.NotFoundError(
            None, None, f"Could not find any versions of model {target.model}"
        )
    return found
