"""Estimators as SavedModels: signatures, exporters, receivers."""

import glob
import os

import headrace as tf
import numpy as np
import pytest
from headrace import _protos as protos

E, v1, fc = tf.estimator, tf.compat.v1, tf.feature_column
X = np.linspace(-1, 1, 16).astype(np.float32)
WORDS = np.array(["a", "b", "c", "a"] * 4)
LABELS = (X > 0).astype(np.int32)
NUMBER = fc.numeric_column("x")
WORD = fc.categorical_column_with_vocabulary_list("c", ["a", "b", "c"])
SPEC = {
    "x": tf.io.FixedLenFeature([1], tf.float32),
    "c": tf.io.FixedLenFeature([], tf.string),
}


def rows(repeat=2):
    def input_fn():
        features = {"x": X[:, None], "c": WORDS}
        dataset = tf.data.Dataset.from_tensor_slices((features, LABELS))
        return dataset.batch(8).repeat(repeat)

    return input_fn


def examples():
    made = []
    for x, word in zip(X[:3], WORDS):
        example = tf.train.Example()
        example.features.feature["x"].float_list.value.append(x)
        example.features.feature["c"].bytes_list.value.append(word.encode())
        made.append(example.SerializeToString())
    return made


def raw():
    x = v1.placeholder(tf.float32, [None, 1], name="x")
    return E.export.build_raw_serving_input_receiver_fn({"x": x})()


def graphs(path):
    """The MetaGraphDefs of a model."""
    with open(os.path.join(os.fsdecode(path), "saved_model.pb"), "rb") as file:
        return protos.SavedModel.FromString(file.read()).meta_graphs


def methods(path):
    return {k: s.method_name for k, s in graphs(path)[0].signature_def.items()}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("trained"))
    config = E.RunConfig(tf_random_seed=1)
    made = E.LinearClassifier([NUMBER], model_dir=folder, config=config)
    return made.train(rows())


def test_examples_are_classified(tmp_path):
    config = E.RunConfig(tf_random_seed=1)
    columns = [NUMBER, fc.embedding_column(WORD, 2)]
    model = E.DNNClassifier([4], columns, str(tmp_path / "m"), config=config)
    model.train(rows())
    receiver_fn = E.export.build_parsing_serving_input_receiver_fn(SPEC)
    path = model.export_saved_model(str(tmp_path / "out"), receiver_fn)
    assert isinstance(path, bytes) and os.path.basename(path).isdigit()
    assert not glob.glob(str(tmp_path / "out" / "temp-*"))
    start = "tensorflow/serving/"
    assert methods(path) == {
        "serving_default": start + "classify",
        "classification": start + "classify",
        "regression": start + "regress",
        "predict": start + "predict",
    }
    (graph,) = graphs(path)
    inputs = graph.signature_def["classification"].inputs
    assert inputs["inputs"].name == "input_example_tensor:0"
    assert graph.signature_def["predict"].inputs["examples"].dtype == 7
    wanted = list(model.predict(rows(1)))[:3]
    loaded = tf.saved_model.load(path.decode()).signatures
    given = tf.constant(examples())
    found = loaded["classification"](inputs=given)
    assert found["classes"].numpy().tolist() == [[b"0", b"1"]] * 3
    for name, scores in (
        ("probabilities", found["scores"]),
        ("logistic", loaded["regression"](inputs=given)["outputs"]),
        ("classes", loaded["predict"](examples=given)["classes"]),
    ):
        one = [row[name] for row in wanted]
        if name == "classes":
            assert scores.numpy().tolist() == [x.tolist() for x in one]
        else:
            np.testing.assert_allclose(scores, one, rtol=1e-5)


def test_raw_tensors_are_predicted(trained, tmp_path):
    path = trained.export_saved_model(tmp_path, raw, assets_extra={"a/b.txt": __file__})
    assert methods(path) == {"predict": "tensorflow/serving/predict"}
    extra = os.path.join(path.decode(), "assets.extra", "a", "b.txt")
    assert open(extra).read() == open(__file__).read()
    loaded = tf.saved_model.load(path.decode()).signatures["predict"]
    found = loaded(x=tf.constant(X[:, None]))["logits"]
    wanted = [row["logits"] for row in trained.predict(rows(1))]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    text = trained.export_saved_model(tmp_path, raw, as_text=True)
    assert text != path
    assert os.path.exists(os.path.join(text.decode(), "saved_model.pbtxt"))


def supervised():
    x = v1.placeholder(tf.float32, [None, 1])
    y = v1.placeholder(tf.int32, [None])
    return E.experimental.build_raw_supervised_input_receiver_fn({"x": x}, y)()


def test_graphs_of_all_modes(trained, tmp_path):
    path = trained.experimental_export_all_saved_models(
        tmp_path, {"train": supervised, "eval": supervised, "infer": raw}
    )
    found = {g.meta_info_def.tags[0]: g.signature_def for g in graphs(path)}
    assert list(found) == ["train", "eval", "serve"]
    train = found["train"]["train"]
    assert train.method_name == "tensorflow/supervised/training"
    assert set(train.inputs) == {"x", "label"}
    assert {"loss", "predictions/logits"} <= set(train.outputs)
    evaluate = found["eval"]["eval"].outputs
    assert {"metrics/auc/value", "metrics/auc/update_op", "loss"} <= set(evaluate)
    assert list(found["serve"]) == ["predict"]
    path = trained.export_saved_model(tmp_path, supervised, experimental_mode="eval")
    assert list(graphs(path)[0].signature_def) == ["eval"]
    for modes in ({}, {"x": raw}):
        with pytest.raises(ValueError, match="No valid modes for exporting found"):
            trained.experimental_export_all_saved_models(tmp_path, modes)


def test_alternatives(trained, tmp_path):
    def receiver_fn():
        text = v1.placeholder(tf.string, [None])
        other = v1.placeholder(tf.float32, [None, 1])
        x = tf.io.decode_raw(text, tf.float32)
        x = tf.where(tf.size(x) > 0, tf.reshape(x, [-1, 1]), other)
        return E.export.ServingInputReceiver(
            {"x": x}, {"bytes": text, "other": other}, {"alone": {"x": text}}
        )

    path = trained.export_saved_model(tmp_path, receiver_fn)
    assert "predict" in methods(path) and "alone:classification" in methods(path)


def model_fn(**more):
    def build(features, labels, mode):
        weight = v1.get_variable("weight", [], initializer=v1.ones_initializer())
        step = v1.train.get_global_step().assign_add(1)
        out = features["x"] * weight
        made = {key: make(out) for key, make in more.items()}
        return E.EstimatorSpec(mode, {"o": out}, loss=weight, train_op=step, **made)

    return build


def named(*names):
    return lambda out: {n: E.export.PredictOutput({"q": out}) for n in names}


def test_outputs_of_model_functions(tmp_path):
    def exported(name, **more):
        made = E.Estimator(model_fn(**more), model_dir=str(tmp_path / name))
        made.train(rows(), steps=1)
        return methods(made.export_saved_model(tmp_path / f"{name}_out", raw))

    predict = "tensorflow/serving/predict"
    assert exported("none") == {"serving_default": predict}
    assert exported("one", export_outputs=named("a")) == {
        "a": predict,
        "serving_default": predict,
    }
    with pytest.raises(ValueError, match="none of them are specified as the default"):
        exported("two", export_outputs=named("a", "b"))
    with pytest.raises(TypeError, match="`export_outputs` must be dict, received: 3."):
        exported("three", export_outputs=lambda out: 3)
    with pytest.raises(TypeError, match="must be ExportOutput objects, received"):
        exported("four", export_outputs=lambda out: {"a": 3})


def test_wrong_exports(trained, tmp_path):
    fresh = E.LinearClassifier([NUMBER], model_dir=str(tmp_path / "fresh"))
    with pytest.raises(ValueError, match="Couldn't find trained model at .*fresh"):
        fresh.export_saved_model(tmp_path, raw)
    with pytest.raises(ValueError, match="An input_receiver_fn must be defined"):
        trained.export_saved_model(tmp_path, None)


def test_exporters(tmp_path):
    model = E.LinearClassifier(
        [NUMBER],
        model_dir=str(tmp_path),
        config=E.RunConfig(save_checkpoints_steps=10, tf_random_seed=1),
    )
    exporters = [
        E.BestExporter(serving_input_receiver_fn=raw, exports_to_keep=2),
        E.LatestExporter("latest", raw, exports_to_keep=1),
        E.FinalExporter("final", raw),
    ]
    found, written = E.train_and_evaluate(
        model,
        E.TrainSpec(rows(None), max_steps=30),
        E.EvalSpec(rows(1), exporters=exporters, throttle_secs=0),
    )
    assert found["global_step"] == 30 and len(written) == 3
    kept = {n: os.listdir(tmp_path / "export" / n) for n in ("latest", "final")}
    assert [len(x) for x in kept.values()] == [1, 1]
    assert len(os.listdir(tmp_path / "export" / "best_exporter")) == 2
    assert all(os.path.isdir(path) for path in written)
    # One that comes later knows the best by the events, and exports what is better.
    again = E.BestExporter(serving_input_receiver_fn=raw)
    out = str(tmp_path / "again")
    worse = {"loss": 10.0, "global_step": 40}
    assert again.export(model, out, None, worse, False) is None
    better = {"loss": 0.0, "global_step": 40}
    assert os.path.isdir(again.export(model, out, None, better, False))


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: E.BestExporter(exports_to_keep=0), ValueError, "must be positive"),
        (lambda: E.BestExporter(compare_fn=None), ValueError, "must not be None"),
        (
            lambda: E.BestExporter(compare_fn=lambda a, b: 1),
            ValueError,
            "must include best_eval_result argument",
        ),
        (
            lambda: E.LatestExporter("x", raw, exports_to_keep=-1),
            ValueError,
            "positive",
        ),
        (lambda: E.EvalSpec(rows(), exporters=3), TypeError, "an iterable of Exporter"),
        (
            lambda: E.EvalSpec(rows(), exporters=[E.FinalExporter("a", raw)] * 2),
            ValueError,
            "`exporters` must have unique names",
        ),
        (
            lambda: E.EvalSpec(rows(), exporters=E.FinalExporter(None, raw)),
            ValueError,
            "name that is `None` or empty",
        ),
    ],
)
def test_wrong_exporters(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_receivers():
    with tf.Graph().as_default():
        one, text = tf.constant(1.0), tf.constant("a")
        receiver = E.export.ServingInputReceiver(one, text)
        assert receiver.features == {"feature": one}
        assert receiver.receiver_tensors == {"input": text}
        receiver = E.export.TensorServingInputReceiver(one, text, {"z": one})
        assert receiver.features is one
        assert receiver.receiver_tensors_alternatives == {"z": {"input": one}}
        fixed = E.export.build_raw_serving_input_receiver_fn(
            {"a": tf.zeros([3, 2]), "b": tf.constant(2)}, 5
        )()
        shapes = {k: x.shape.as_list() for k, x in fixed.features.items()}
        assert shapes == {"a": [5, 2], "b": [5]}
        parsed = E.export.build_parsing_serving_input_receiver_fn(SPEC, 3)()
        assert parsed.receiver_tensors["examples"].shape.as_list() == [3]
        make = E.experimental.build_raw_supervised_input_receiver_fn
        both = make(tf.zeros([3, 2]), {"y": tf.zeros([3])})()
        assert set(both.receiver_tensors) == {"input", "y"}
        assert set(both.labels) == {"y"} and both.features.shape.as_list() == [None, 2]
        with pytest.raises(ValueError, match="Found overlapping keys: {'x'}"):
            make({"x": one}, {"x": one})
        receiver = E.export.ServingInputReceiver
        for given, wanted in (
            ((None, text), "features must be defined"),
            ((one, None), "receiver_tensors must be defined"),
            (({"a": 3}, text), "feature a must be a Tensor, SparseTensor, or RaggedT"),
            ((one, {"a": 3}), "receiver_tensor a must be a Tensor"),
            ((one, {3: text}), "receiver_tensor keys must be strings: 3"),
            ((one, text, 3), "receiver_tensors_alternatives must be a dict: 3"),
            ((one, text, {"z": 3}), "receiver_tensors_alternative input must be a T"),
        ):
            with pytest.raises(ValueError, match=wanted):
                receiver(*given)
        with pytest.raises(ValueError, match="feature must be a Tensor"):
            E.export.TensorServingInputReceiver({"a": one}, text)


def test_outputs():
    out = E.export
    assert out.PredictOutput(tf.constant([1.0])).outputs.keys() == {"output"}
    assert out.PredictOutput({("a", "b"): tf.constant(1)}).outputs.keys() == {"a/b"}
    for make, text in (
        (lambda: out.ClassificationOutput(), "with empty arguments"),
        (lambda: out.ClassificationOutput(3), "scores must be a float32 Tensor; got 3"),
        (
            lambda: out.ClassificationOutput(None, tf.constant(1)),
            "classes must be a string Tensor",
        ),
        (
            lambda: out.RegressionOutput(tf.constant("a")),
            "must be a float32 Tensor; got",
        ),
        (lambda: out.PredictOutput(3), "output value must be a Tensor; got 3"),
        (lambda: out.PredictOutput({1: tf.constant(1)}), "key must be a string; got 1"),
    ):
        with pytest.raises(ValueError, match=text):
            make()


def test_specs_for_parsing():
    columns = [NUMBER, WORD]
    found = E.classifier_parse_example_spec(columns, "y", tf.string, "a", "w")
    assert found["y"] == tf.io.FixedLenFeature((1,), tf.string, "a")
    assert found["w"] == tf.io.FixedLenFeature((1,), tf.float32)
    assert found["c"] == tf.io.VarLenFeature(tf.string)
    found = E.regressor_parse_example_spec(columns, "y", label_dimension=3)
    assert found["y"] == tf.io.FixedLenFeature((3,), tf.float32)
    for label, weight, text in (
        ("x", None, "label should not be used as feature. label_key: x"),
        ("y", "x", "weight_column should not be used as feature. weight_column: x"),
        ("y", 3, "should be an instance of tf.feature_column.numeric_column"),
    ):
        with pytest.raises(ValueError, match=text):
            E.classifier_parse_example_spec(columns, label, weight_column=weight)
