"""Classify, Regress and MultiInference of a model that TensorFlow wrote."""

import os
import shutil

import grpc
import pytest
import running
from headrace.framework.support import protos
from running import message

pytestmark = running.needs_server

MODEL = os.path.join(running.ROOT, "tests/golden/serving/examples")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(MODEL, folder / "examples" / "5")
    with running.server(
        folder, "--model_name=examples", f"--model_base_path={folder}/examples"
    ) as started:
        yield started


def example(**features):
    made = protos.message("tensorflow.Example")()
    for name, value in features.items():
        made.features.feature[name].float_list.value.append(value)
    return made


def ask(server, kind, signature, examples, context=None):
    request = message(kind + "Request")()
    request.model_spec.name = "examples"
    request.model_spec.signature_name = signature
    if context is not None:
        request.input.example_list_with_context.context.CopyFrom(context)
        request.input.example_list_with_context.examples.extend(examples)
    elif examples:
        request.input.example_list.examples.extend(examples)
    method = {"Classification": "Classify", "Regression": "Regress"}[kind]
    return server.ask("PredictionService", method, request, kind + "Response")


def error_of(server, *args, **options):
    with pytest.raises(grpc.RpcError) as error:
        ask(server, *args, **options)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    return error.value.details()


def values(response):
    return [r.value for r in response.result.regressions]


def test_regress(server):
    two = [example(x=4), example(x=-2, k=1)]
    response = ask(server, "Regression", "regress", two)
    assert values(response) == [4, 1]
    assert response.model_spec.signature_name == "regress"
    assert response.model_spec.version.value == 5
    assert values(ask(server, "Regression", "regress_matrix", two)) == [12, 0]


def test_context_stands_behind_each_example(server):
    response = ask(
        server,
        "Regression",
        "regress_matrix",
        [example(x=0), example(x=0, k=3)],
        context=example(k=7),
    )
    assert values(response) == [7, 3]


def test_classify(server):
    response = ask(server, "Classification", "classify", [example(x=4), example(x=0)])
    rows = [
        [(c.label, c.score) for c in row.classes]
        for row in response.result.classifications
    ]
    assert rows == [[("small", 4), ("large", 10)], [("small", 2), ("large", 10)]]
    response = ask(server, "Classification", "scores", [example(x=4)])
    classes = response.result.classifications[0].classes
    assert [(c.label, c.score) for c in classes] == [("", 4), ("", 10)]


def test_errors(server):
    one = [example(x=1)]
    for kind in ("Regression", "Classification"):
        signature = {"R": "regress", "C": "classify"}[kind[0]]
        assert error_of(server, kind, signature, []) == "Input is empty."
        assert (
            error_of(server, kind, "none", one)
            == "No signature was found with the name: none"
        )
    assert error_of(server, "Regression", "wide", one) == (
        "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] "
        "but got [1,2]"
    )
    assert error_of(server, "Regression", "classify", one) == (
        "Expected one output Tensor."
    )
    assert error_of(server, "Regression", "serving_default", one).startswith(
        "No regression inputs found in SignatureDef: "
    )
    assert error_of(server, "Classification", "serving_default", one).startswith(
        "No classification inputs found in SignatureDef: "
    )
    assert error_of(server, "Classification", "regress", one).startswith(
        "Expected classification signature outputs to contain at least one of "
    )


def multi_request(*tasks):
    request = message("MultiInferenceRequest")()
    request.input.example_list.examples.append(example(x=4))
    for signature, method in tasks:
        task = request.tasks.add()
        task.model_spec.name = "examples"
        task.model_spec.signature_name = signature
        task.method_name = "tensorflow/serving/" + method
    return request


def multi(server, request):
    return server.ask(
        "PredictionService", "MultiInference", request, "MultiInferenceResponse"
    )


def test_multi_inference(server):
    response = multi(
        server, multi_request(("regress", "regress"), ("classify", "classify"))
    )
    first, second = response.results
    assert first.regression_result.regressions[0].value == 4
    assert first.model_spec.signature_name == "regress"
    classes = second.classification_result.classifications[0].classes
    assert [c.score for c in classes] == [4, 10]


@pytest.mark.parametrize(
    ("tasks", "code", "text"),
    [
        (
            [("regress", "regress"), ("regress", "regress")],
            "INVALID_ARGUMENT",
            "Duplicate evaluation of signature: regress",
        ),
        (
            [("regress", "predict")],
            "UNIMPLEMENTED",
            "Unsupported signature method_name: tensorflow/serving/predict",
        ),
        (
            [("none", "regress")],
            "INVALID_ARGUMENT",
            "Requested signature not found in model graph: none",
        ),
    ],
)
def test_multi_inference_errors(server, tasks, code, text):
    with pytest.raises(grpc.RpcError) as error:
        multi(server, multi_request(*tasks))
    assert error.value.code().name == code
    assert error.value.details() == text


def test_multi_inference_of_two_models(server):
    request = multi_request(("regress", "regress"), ("classify", "classify"))
    request.tasks[1].model_spec.name = "other"
    with pytest.raises(grpc.RpcError) as error:
        multi(server, request)
    assert error.value.details() == (
        "All ModelSpecs in a MultiInferenceRequest must access the same model name."
    )
