"""--enable_session_service: SessionRun over gRPC, and all else as ever."""

import grpc
import numpy as np
import pytest
import running

pytestmark = running.needs_server


def session_request(feeds, fetches, **spec):
    request = running.message("SessionRunRequest")()
    request.model_spec.name = "plain"
    for name, values in feeds.items():
        feed = request.feed.add()
        feed.name = name
        feed.tensor.dtype = 1
        feed.tensor.tensor_shape.dim.add().size = len(values)
        feed.tensor.float_val.extend(values)
    request.fetch.extend(fetches)
    return request


def run(server, request):
    return server.ask("SessionService", "SessionRun", request, "SessionRunResponse")


def signature_of(server):
    request = running.message("GetModelMetadataRequest")()
    request.model_spec.name = "plain"
    request.metadata_field.append("signature_def")
    response = server.ask(
        "PredictionService",
        "GetModelMetadata",
        request,
        "GetModelMetadataResponse",
    )
    signatures = running.message("SignatureDefMap")()
    signatures.ParseFromString(response.metadata["signature_def"].value)
    return signatures.signature_def["serving_default"]


def serve(tmp_path, *flags):
    base = tmp_path / "plain"
    base.mkdir()
    running.add_version(base, 4)
    return running.server(
        tmp_path, "--model_name=plain", f"--model_base_path={base}", *flags
    )


def test_it_is_not_there_without_the_flag(tmp_path):
    with serve(tmp_path) as server:
        with pytest.raises(grpc.RpcError) as error:
            run(server, session_request({}, ["x"]))
        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_session_run(tmp_path):
    with serve(tmp_path, "--enable_session_service") as server:
        # A model of TensorFlow 2, whose graph calls functions.
        signature = signature_of(server)
        name = signature.outputs["y"].name
        request = session_request({signature.inputs["x"].name: [1, 2]}, [name])
        response = run(server, request)
        assert response.model_spec.name == "plain"
        assert response.model_spec.version.value == 4
        (tensor,) = response.tensor
        assert tensor.name == name
        values = np.frombuffer(tensor.tensor.tensor_content, np.float32)
        by_signature = server.predict("plain", x=[1.0, 2.0]).outputs
        assert sorted(by_signature) == ["twice", "y"]
        assert list(by_signature["y"].float_val) == [4, 7]
        assert list(values) == [4, 7]
        with pytest.raises(grpc.RpcError) as error:
            run(server, session_request({}, ["nowhere:0"]))
        assert error.value.code() == grpc.StatusCode.NOT_FOUND
        assert error.value.details() == "FetchOutputs node nowhere:0: not found"
