"""TensorFlow Serving's protocol over gRPC."""

from headrace.context import errors
from headrace.serving import examples as examples_of
from headrace.serving import failures, protos, replies, tensors

_PREDICTION = "/tensorflow.serving.PredictionService/"
_MODEL = "/tensorflow.serving.ModelService/"
_HEALTH = "/grpc.health.v1.Health/Check"
_SERVING = 1  # of HealthCheckResponse.ServingStatus


class V1Grpc:
    """What Client asks of a protocol."""

    def __init__(self, wire):
        self._wire = wire

    def predict(self, target, inputs, outputs, deadline):
        request = protos.PredictRequest()
        _fill_spec(request.model_spec, target)
        for name, array in inputs.items():
            tensors.to_proto(array, request.inputs[name])
        request.output_filter.extend(outputs or ())
        response = self._wire.ask(
            _PREDICTION + "Predict", request, protos.PredictResponse, deadline
        )
        made = {n: tensors.from_proto(n, t) for n, t in response.outputs.items()}
        spec = response.model_spec
        return replies.Prediction(
            made, spec.name, spec.version.value, spec.signature_name
        )

    def _of_examples(self, kind, target, rows, context, deadline):
        request = getattr(protos, kind + "Request")()
        _fill_spec(request.model_spec, target)
        if context is None:
            filled = request.input.example_list
        else:
            filled = request.input.example_list_with_context
            examples_of.to_proto(context, filled.context)
        for row in rows:
            examples_of.to_proto(row, filled.examples.add())
        method = {"Classification": "Classify", "Regression": "Regress"}[kind]
        return self._wire.ask(
            _PREDICTION + method, request, getattr(protos, kind + "Response"), deadline
        )

    def classify(self, target, rows, context, deadline):
        response = self._of_examples("Classification", target, rows, context, deadline)
        return [
            [(c.label, c.score) for c in row.classes]
            for row in response.result.classifications
        ]

    def regress(self, target, rows, context, deadline):
        response = self._of_examples("Regression", target, rows, context, deadline)
        return [row.value for row in response.result.regressions]

    def metadata(self, target, deadline):
        request = protos.GetModelMetadataRequest()
        _fill_spec(request.model_spec, target)
        request.metadata_field.append("signature_def")
        response = self._wire.ask(
            _PREDICTION + "GetModelMetadata",
            request,
            protos.GetModelMetadataResponse,
            deadline,
        )
        found = protos.SignatureDefMap()
        found.ParseFromString(response.metadata["signature_def"].value)
        return {
            name: replies.Signature(
                _infos(signature.inputs),
                _infos(signature.outputs),
                signature.method_name,
            )
            for name, signature in found.signature_def.items()
        }

    def status(self, target, deadline):
        request = protos.GetModelStatusRequest()
        _fill_spec(request.model_spec, target)
        response = self._wire.ask(
            _MODEL + "GetModelStatus", request, protos.GetModelStatusResponse, deadline
        )
        return [
            replies.VersionStatus(
                s.version,
                _state_name(s),
                s.status.error_code,
                s.status.error_message,
            )
            for s in response.model_version_status
        ]

    def server_ready(self, deadline):
        request = protos.message("grpc.health.v1.HealthCheckRequest")()
        response = protos.message("grpc.health.v1.HealthCheckResponse")
        answer = self._wire.ask(_HEALTH, request, response, deadline)
        return answer.status == _SERVING

    def model_ready(self, target, deadline):
        return _one_available(self, target, deadline)


def _one_available(protocol, target, deadline):
    try:
        found = protocol.status(target, deadline)
    except errors.NotFoundError:
        return False
    return any(s.state == "AVAILABLE" for s in found)


def _fill_spec(spec, target):
    spec.name = target.model
    if target.version is not None:
        spec.version.value = target.version
    if target.label is not None:
        spec.version_label = target.label
    if target.signature is not None:
        spec.signature_name = target.signature


def _infos(protos_by_name):
    def shape(proto):
        if proto.unknown_rank:
            return None
        return tuple(d.size if d.size >= 0 else None for d in proto.dim)

    return {
        name: replies.TensorInfo(tensors.dtype_of(info.dtype), shape(info.tensor_shape))
        for name, info in protos_by_name.items()
    }


def _state_name(status):
    values = type(status).DESCRIPTOR.fields_by_name["state"].enum_type.values_by_number
    found = values.get(status.state)
    return found.name if found else failures.broken(f"state {status.state}").message
