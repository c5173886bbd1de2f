"""tf.estimator's heads; the expected numbers and texts are TensorFlow 2.15's."""

import headrace as tf
import numpy as np
import pytest

E = tf.estimator
LOGITS = np.array([[45.0], [-41.0], [0.5]], np.float32)
LABELS = np.array([[1], [0], [1]], np.int32)
THREE = np.array([[1, 2, 3], [3, 1, 2], [0, 0, 1]], np.float32)
MANY = np.array([[-10, 10], [-15, 10], [1, 2]], np.float32)
INDICATORS = np.array([[1, 0], [1, 1], [0, 0]])
COUNTS = np.array([[1], [2], [3]])
RATES = np.array([[1], [0.5], [0]], np.float32)
FEATURES = {"w": np.array([[1.0], [2.0], [3.0]], np.float32)}
OF_TWO = {
    "accuracy": 1.0,
    "precision": 1.0,
    "recall": 1.0,
    "prediction/mean": 0.5408198237,
    "label/mean": 2 / 3,
    "accuracy_baseline": 2 / 3,
    "auc": 1.0,
    "auc_precision_recall": 1.0,
}


def absolute(labels, logits):
    return tf.abs(labels - logits)


# (head, labels, logits, loss, metrics)
CASES = {
    "two": (E.BinaryClassHead(), LABELS, LOGITS, 0.15802567, OF_TWO),
    "two by name, with thresholds": (
        E.BinaryClassHead(thresholds=[0.25, 0.5], name="h"),
        LABELS,
        LOGITS,
        0.15802567,
        {
            "accuracy/positive_threshold_0.25": 1.0,
            "precision/positive_threshold_0.25": 1.0,
            "recall/positive_threshold_0.5": 1.0,
            "average_loss": 0.15802567,
        },
    ),
    "words": (
        E.BinaryClassHead(label_vocabulary=["no", "yes"]),
        np.array([["yes"], ["no"], ["yes"]]),
        LOGITS,
        0.15802567,
        OF_TWO,
    ),
    "weights": (
        E.BinaryClassHead(weight_column="w"),
        LABELS,
        LOGITS,
        0.474077,
        {"average_loss": 0.2370384931, "prediction/mean": 0.4778963327},
    ),
    "three": (
        E.MultiClassHead(3),
        np.array([[1], [0], [2]]),
        THREE,
        0.78888553,
        {"average_loss": 0.78888553, "accuracy": 2 / 3},
    ),
    "three words": (
        E.MultiClassHead(3, label_vocabulary=["a", "b", "c"], name="z"),
        np.array([["b"], ["a"], ["c"]]),
        THREE,
        0.78888553,
        {"accuracy": 2 / 3},
    ),
    "labels of many": (
        E.MultiLabelHead(2, thresholds=[0.5], classes_for_class_based_metrics=[0, 1]),
        INDICATORS,
        MANY,
        6.406721,
        {
            "auc": 0.277777791,
            "auc_precision_recall": 0.427868247,
            "accuracy/positive_threshold_0.5": 1 / 6,
            "precision/positive_threshold_0.5": 0.25,
            "recall/positive_threshold_0.5": 1 / 3,
            "probability_mean/class0": 0.243701443,
            "auc/class0": 0.0,
            "auc_precision_recall/class0": 0.4506938457,
            "probability_mean/class1": 0.9602354168,
            "auc/class1": 0.75,
        },
    ),
    "words of many": (
        E.MultiLabelHead(
            2,
            label_vocabulary=["a", "b"],
            classes_for_class_based_metrics=["a"],
            name="q",
        ),
        tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["a", "b", "a"], [3, 2]),
        MANY,
        6.406721,
        {"auc": 0.277777791, "probability_mean/a": 0.243701443},
    ),
    "numbers": (
        E.RegressionHead(),
        np.float32(COUNTS),
        np.array([[1], [2.5], [2]], np.float32),
        0.41666666,
        {"average_loss": 0.41666666, "prediction/mean": 11 / 6, "label/mean": 2.0},
    ),
    "a loss and a link": (
        E.RegressionHead(2, inverse_link_fn=tf.exp, loss_fn=absolute, name="r"),
        np.array([[1, 1], [2, 2], [3, 3]], np.float32),
        np.array([[1, 0], [2.5, 2], [2, 2]], np.float32),
        0.5833333,
        {"prediction/mean": 6.344657897, "label/mean": 2.0},
    ),
    "sums": (
        E.RegressionHead(loss_reduction="sum", weight_column="w"),
        np.float32(COUNTS),
        np.zeros([3, 1], np.float32),
        36.0,
        {"average_loss": 6.0},
    ),
    "counts": (
        E.PoissonRegressionHead(),
        COUNTS,
        RATES,
        1.9276303,
        {"average_loss": 1.9276303, "prediction/mean": 1.789001},
    ),
    "counts, not in full": (
        E.PoissonRegressionHead(compute_full_loss=False),
        COUNTS,
        RATES,
        1.1223344,
        {},
    ),
    "shares": (
        E.LogisticRegressionHead(),
        np.array([[0.1], [0.9], [0.5]], np.float32),
        RATES,
        0.8101619,
        {"prediction/mean": 0.6178393, "label/mean": 0.5},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_losses_and_metrics(case):
    head, labels, logits, loss, wanted = CASES[case]
    found = head.loss(labels, logits, FEATURES)
    assert float(found) == pytest.approx(loss, rel=1e-5)
    more = [tf.constant(1.0), tf.constant(0.5)]
    regular = head.loss(labels, logits, FEATURES, regularization_losses=more)
    assert float(regular) == pytest.approx(loss + 1.5, rel=1e-5)
    metrics = head.metrics(regularization_losses=more)
    head.update_metrics(metrics, FEATURES, logits, labels, regularization_losses=more)
    values = {name: float(m.result()) for name, m in metrics.items()}
    end = f"/{head.name}" if head.name else ""
    assert values[f"regularization_loss{end}"] == 1.5
    for name, value in wanted.items():
        assert values[name + end] == pytest.approx(value, rel=1e-5), name


@pytest.mark.parametrize("case", CASES)
def test_specs_of_graphs(case):
    head, labels, logits, loss, _ = CASES[case]
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.train.create_global_step()
        if isinstance(labels, tf.SparseTensor):
            labels = tf.SparseTensor(
                labels.indices.numpy(), labels.values.numpy(), [3, 2]
            )
        features = {k: tf.constant(x) for k, x in FEATURES.items()}
        weight = v1.get_variable("weight", [], initializer=v1.ones_initializer())
        given = {"features": features, "logits": weight * logits, "labels": labels}
        predict = head.create_estimator_spec(mode="infer", **given)
        assert list(predict.export_outputs)[0] == "serving_default"
        evaluate = head.create_estimator_spec(mode="eval", **given)
        train = head.create_estimator_spec(
            mode="train",
            optimizer=tf.keras.optimizers.legacy.SGD(1e-3),
            trainable_variables=[weight],
            **given,
        )
        by_function = head.create_estimator_spec(
            mode="train", train_op_fn=lambda loss: weight.assign_add(1.0), **given
        )
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        assert session.run(evaluate.loss) == pytest.approx(loss, rel=1e-5)
        session.run(train.train_op)
        assert (session.run(weight) != 1.0) == bool(np.any(logits))
        session.run(by_function.train_op)
        assert session.run(weight) > 1.9


def test_predictions_of_two_classes():
    found = E.BinaryClassHead(label_vocabulary=["no", "yes"]).predictions(LOGITS)
    names = "logits logistic probabilities class_ids classes all_class_ids all_classes"
    assert list(found) == names.split()
    np.testing.assert_allclose(found["logistic"], [[1], [0], [0.62245935]], atol=1e-6)
    np.testing.assert_allclose(
        found["probabilities"][2], [0.37754065, 0.62245935], rtol=1e-6
    )
    assert found["class_ids"].numpy().tolist() == [[1], [0], [1]]
    assert found["class_ids"].dtype == tf.int64
    assert found["classes"].numpy().tolist() == [[b"yes"], [b"no"], [b"yes"]]
    assert found["all_class_ids"].dtype == tf.int32
    assert found["all_classes"].numpy().tolist() == [[b"no", b"yes"]] * 3
    head = E.BinaryClassHead()
    assert list(head.predictions(LOGITS, keys=["classes"])) == ["classes"]
    with pytest.raises(ValueError, match="must be in PredictionKeys, given: x.Valid"):
        head.predictions(LOGITS, keys=["x"])


def test_predictions_of_others():
    found = E.MultiClassHead(3).predictions(THREE)
    assert found["classes"].numpy().tolist() == [[b"2"], [b"0"], [b"2"]]
    assert "logistic" not in found
    found = E.MultiLabelHead(2).predictions(MANY)
    assert list(found) == ["logits", "probabilities", "classes"]
    found = E.PoissonRegressionHead().predictions(RATES)
    np.testing.assert_allclose(found["predictions"], np.exp(RATES), rtol=1e-6)
    assert list(E.RegressionHead().predictions(RATES)) == ["predictions"]


def test_the_baseline_of_accuracy_is_of_all_batches():
    head = E.BinaryClassHead()
    metrics = head.metrics()
    for count, label in ((2, 1), (4, 0)):
        logits, labels = np.zeros([count, 1], "f"), np.full([count, 1], label)
        head.update_metrics(metrics, {}, logits, labels)
    assert float(metrics["accuracy_baseline"].result()) == pytest.approx(2 / 3)


def test_several_heads():
    head = E.MultiHead(
        [E.BinaryClassHead(name="h1"), E.RegressionHead(2, name="h2")], [1, 0.5]
    )
    assert (head.name, head.logits_dimension) == ("h1_h2", 3)
    labels = {"h1": LABELS, "h2": np.ones([3, 2], "f")}
    more = [tf.constant(1.0)]
    apart = {"h1": LOGITS, "h2": np.zeros([3, 2], "f")}
    for logits, loss in ((apart, 1.6580257), (np.zeros([3, 3], "f"), 2.1931472)):
        found = head.loss(labels, logits, regularization_losses=more)
        assert float(found) == pytest.approx(loss, rel=1e-5)
    metrics = head.metrics(regularization_losses=more)
    head.update_metrics(metrics, {}, logits, labels, regularization_losses=more)
    values = {name: float(m.result()) for name, m in metrics.items()}
    assert values["loss/h1"] == pytest.approx(0.6931472) and values["loss/h2"] == 1.0
    assert values["regularization_loss/h1_h2"] == 1.0 and values["label/mean/h2"] == 1.0
    assert ("h2", "predictions") in head.predictions(logits)
    with tf.Graph().as_default():
        spec = head.create_estimator_spec({}, "infer", tf.zeros([3, 3]))
        wanted = {"serving_default", "h1", "h1/classification", "h1/regression"}
        wanted |= {"h1/predict", "h2", "h2/regression", "h2/predict", "predict"}
        assert set(spec.export_outputs) == wanted
        assert "h1/logits" in spec.export_outputs["predict"].outputs
    for given, text in (
        (({"h1": LABELS}, logits), "labels has missing values for head.s.: .'h2'"),
        ((LABELS, logits), "labels must be a dict"),
        ((labels, np.zeros([3, 4], "f")), r"Could not split logits of shape \[3, 4\]"),
        ((labels, {"h1": LOGITS}), "logits has missing values"),
    ):
        with pytest.raises(ValueError, match=text):
            head.loss(*given)


ONE = np.zeros([1, 1], np.float32)
WRONG_LABELS = [
    (E.BinaryClassHead(), [[2]], ONE, "Labels must be <= 2 - 1"),
    (E.BinaryClassHead(), None, ONE, "You must provide a labels Tensor. Given: None"),
    (E.BinaryClassHead(), [[1, 0]], ONE, "Mismatched label shape. Expected labels dim"),
    (E.BinaryClassHead(), [[1]], [[1.0, 2.0]], r"logits_dimension\], got \(1, 2\)"),
    (E.BinaryClassHead(), [[1], [1]], ONE, "expected_labels_shape: .1, 1.. labels_sh"),
    (E.MultiClassHead(3), [[3]], [[0.0] * 3], "Labels must be <= 3 - 1"),
    (E.MultiClassHead(3), [[-1]], [[0.0] * 3], "Labels must be >= 0"),
    (E.MultiClassHead(3), [[1.0]], [[0.0] * 3], "Labels dtype should be integer"),
    (E.MultiLabelHead(3), [[1, 0, 2]], [[0.0] * 3], "must be an integer indicator Ten"),
    (E.RegressionHead(2), [[1.0] * 3], [[0.0] * 2], "Expected labels dimension=2"),
    (
        E.BinaryClassHead(label_vocabulary=["a", "b"]),
        [["c"]],
        ONE,
        "Labels must be >= 0",
    ),
    (
        E.BinaryClassHead(loss_fn=lambda labels, logits: tf.zeros([2, 1])),
        LABELS,
        LOGITS,
        "loss_fn must return Tensor of shape",
    ),
    (E.BinaryClassHead(weight_column="v"), LABELS, LOGITS, "Feature v is not in featu"),
]


@pytest.mark.parametrize("head, labels, logits, text", WRONG_LABELS)
def test_wrong_labels(head, labels, logits, text):
    with pytest.raises(ValueError, match=text):
        head.loss(labels, np.asarray(logits, np.float32), FEATURES)


def test_sparse_labels_and_weights():
    with pytest.raises(ValueError, match="SparseTensor labels are not supported"):
        E.BinaryClassHead().loss(tf.SparseTensor([[0, 0]], [1], [1, 1]), ONE)
    with pytest.raises(
        ValueError, match=r"integer SparseTensor with values in \[0, 3\)"
    ):
        E.MultiLabelHead(3).loss(
            tf.SparseTensor([[0, 0]], [5], [1, 1]), np.zeros([1, 3], "f")
        )
    with pytest.raises(TypeError, match="must be either a string or NumericColumn"):
        E.BinaryClassHead(weight_column=3).loss(LABELS, LOGITS, {})
    wide = {"w": np.ones([3, 2], "f")}
    with pytest.raises(ValueError, match="shape"):
        E.BinaryClassHead(weight_column="w").loss(LABELS, LOGITS, wide)


WRONG_ARGUMENTS = [
    (lambda: E.MultiClassHead(2), "n_classes must be > 2: 2."),
    (
        lambda: E.MultiClassHead(3, label_vocabulary=["a"]),
        "does not have .n_classes. it",
    ),
    (
        lambda: E.MultiClassHead(3, label_vocabulary="abc"),
        "should be a list or a tuple",
    ),
    (lambda: E.BinaryClassHead(thresholds=[0.0]), r"thresholds not in \(0, 1\)"),
    (lambda: E.BinaryClassHead(loss_reduction="none"), "Invalid loss_reduction: none"),
    (
        lambda: E.BinaryClassHead(loss_fn=lambda a: a),
        "loss_fn must contain argument: l",
    ),
    (
        lambda: E.BinaryClassHead(loss_fn=lambda labels, logits, mode: 0),
        "loss_fn has unexpected args: .'mode'",
    ),
    (lambda: E.MultiLabelHead(1), "n_classes must be > 1 for multi-label"),
    (
        lambda: E.MultiLabelHead(2, label_vocabulary=["a"]),
        "must be n_classes .2.. Given",
    ),
    (lambda: E.MultiLabelHead(2, thresholds=[1.0]), r"thresholds must be in \(0, 1\)"),
    (
        lambda: E.MultiLabelHead(2, classes_for_class_based_metrics=[2]),
        r"must be in range \[0, 1\]. Given: 2",
    ),
    (
        lambda: E.MultiLabelHead(2, classes_for_class_based_metrics=["a"]),
        "label_vocabulary must be provided",
    ),
    (lambda: E.RegressionHead(0), "Invalid label_dimension 0."),
    (lambda: E.MultiHead([]), r"Must specify heads. Given: \[\]"),
    (lambda: E.MultiHead([E.RegressionHead()]), "All given heads must have name"),
    (
        lambda: E.MultiHead([E.RegressionHead(name="a")], head_weights=[1, 2]),
        "heads and head_weights must have the same size",
    ),
]


@pytest.mark.parametrize("make, text", WRONG_ARGUMENTS)
def test_wrong_arguments(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_wrong_ways_to_train():
    head = E.BinaryClassHead()
    with tf.Graph().as_default():
        given = {"features": {}, "mode": "train", "logits": LOGITS, "labels": LABELS}
        sgd = tf.keras.optimizers.legacy.SGD()
        for more, text in (
            ({}, "train_op_fn and optimizer cannot both be None"),
            ({"train_op_fn": len, "optimizer": sgd}, "cannot both be set"),
            ({"optimizer": 3}, "not a tf.keras.optimizers.Optimizer instance"),
            ({"optimizer": sgd}, "trainable_variables cannot be None. Given None"),
            ({"train_op_fn": lambda loss: None}, "Missing train_op"),
        ):
            with pytest.raises(ValueError, match=text):
                head.create_estimator_spec(**given, **more)
        with pytest.raises(ValueError, match="Mode not recognized: x"):
            head.create_estimator_spec({}, "x", LOGITS, LABELS)
