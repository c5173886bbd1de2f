"""tf.compat.v1.metrics: values, names and errors that TensorFlow 2.21 gave."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1
LABELS = np.array([[0, 1, 1], [1, 0, 0]], np.float32)
SCORES = np.array([[0.1, 0.8, 0.4], [0.7, 0.6, 0.2]], np.float32)
WEIGHTS = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 3.0]], np.float32)
PAIR = {"labels": LABELS, "predictions": SCORES, "weights": WEIGHTS}
YES_NO = dict(PAIR, predictions=SCORES > 0.5)
AT = dict(PAIR, thresholds=[0.25, 0.65])
ALL = dict(PAIR, num_thresholds=10)
CLASSES = {"labels": [0, 1, 2, 2], "predictions": [0, 2, 2, 1], "num_classes": 3}
OF_TOP = {
    "labels": np.array([[2, 0], [1, -1], [3, 4]], np.int64),
    "predictions": np.array(
        [
            [0.1, 0.2, 0.6, 0.1, 0.05],
            [0.3, 0.25, 0.2, 0.15, 0.1],
            [0.1, 0.1, 0.1, 0.3, 0.4],
        ],
        np.float32,
    ),
}
TOP_2 = dict(OF_TOP, k=2, weights=[1.0, 2.0, 0.5])
GIVEN = {
    "labels": OF_TOP["labels"],
    "predictions_idx": np.array([[2, 1], [0, 1], [4, 3]], np.int64),
}


def sparse_labels():
    values = tf.constant([2, 0, 1, 3], tf.int64)
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 1]], values, [3, 2])


def made(name, given):
    """The value, update and variables' names of a metric in a new graph."""
    given = {k: v() if callable(v) else v for k, v in given.items()}
    value, update = getattr(v1.metrics, name)(
        **given, metrics_collections=["values"], updates_collections=["updates"]
    )
    assert v1.get_collection("values") == [value]
    assert v1.get_collection("updates") == [update]
    variables = v1.get_collection(v1.GraphKeys.METRIC_VARIABLES)
    assert [v.name for v in variables] == [v.name for v in v1.local_variables()]
    assert not v1.global_variables()
    return value, update, [v.op.name for v in variables]


# name, arguments, value's name, variables' names (behind the scope), the value before,
# the update's two results, the value after.
CASES = [
    ("mean", {"values": [1.0, 2, 4], "weights": [1.0, 0, 2]}, "mean/value", "total count", 0, 3, 3, 3),
    (
        "mean_tensor",
        {"values": [[1.0, 2], [3, 4]], "weights": [[1.0, 0], [2, 1]]},
        "mean/value",
        "total_tensor count_tensor",
        np.zeros((2, 2)),
        *[[[1, 0], [3, 4]]] * 3,
    ),
    ("accuracy", {"labels": [1, 2, 3], "predictions": [1, 2, 2], "weights": [1.0, 0.5, 2]}, "accuracy/value", "total count", 0, 0.428571, 0.428571, 0.428571),
    ("percentage_below", {"values": [0.1, 0.5, 0.9], "threshold": 0.5, "weights": [1.0, 2, 3]}, "percentage_below_threshold/value", "total count", 0, 1 / 6, 1 / 6, 1 / 6),
    ("mean_absolute_error", PAIR, "mean_absolute_error/value", "total count", 0, 0.266667, 0.266667, 0.266667),
    ("mean_squared_error", PAIR, "mean_squared_error/value", "total count", 0, 0.1, 0.1, 0.1),
    ("root_mean_squared_error", PAIR, "Sqrt", "total count", 0, 0.316228, 0.316228, 0.316228),
    ("mean_relative_error", dict(PAIR, normalizer=[[1.0, 0, 2], [3, 1, 1]]), "mean_relative_error/value", "total count", 0, 0.193333, 0.193333, 0.193333),
    ("mean_cosine_distance", dict(PAIR, dim=1, weights=[[1.0], [2.0]]), "Sub", "total count", 1, 0.133333, 0.133333, 0.133333),
    ("mean_iou", CLASSES, "mean_iou/Select_1", "total_confusion_matrix", 0, [[1, 0, 0], [0, 0, 1], [0, 1, 1]], [[2, 0, 0], [0, 0, 2], [0, 2, 2]], 0.444444),
    ("mean_per_class_accuracy", dict(CLASSES, weights=[1.0, 2, 1, 3]), "mean_accuracy/mean_accuracy", "total count", 0, [1, 0, 0.25], [1, 0, 0.25], 0.416667),
    ("precision_at_thresholds", AT, "precision_at_thresholds/precision_value", "true_positives false_positives", [0, 0], *[[0.714286, 1]] * 3),
    ("recall_at_thresholds", AT, "recall_at_thresholds/recall_value", "true_positives false_negatives", [0, 0], *[[1, 0.8]] * 3),
    ("true_positives_at_thresholds", AT, "true_positives/Identity", "true_positives", [0, 0], [2.5, 2], [5, 4], [5, 4]),
    ("false_positives_at_thresholds", AT, "false_positives/Identity", "false_positives", [0, 0], [1, 0], [2, 0], [2, 0]),
    ("true_negatives_at_thresholds", AT, "true_negatives/Identity", "true_negatives", [0, 0], [4, 5], [8, 10], [8, 10]),
    ("false_negatives_at_thresholds", AT, "false_negatives/Identity", "false_negatives", [0, 0], [0, 0.5], [0, 1], [0, 1]),
    ("sensitivity_at_specificity", dict(ALL, specificity=0.6), "sensitivity_at_specificity/value", "true_positives false_negatives true_negatives false_positives", 0, 1, 1, 1),
    ("specificity_at_sensitivity", {"labels": LABELS, "predictions": SCORES, "sensitivity": 0.5, "num_thresholds": 3}, "specificity_at_sensitivity/value", "true_positives false_negatives true_negatives false_positives", 0, 2 / 3, 2 / 3, 2 / 3),
    ("auc", ALL, "auc/value", "true_positives false_negatives true_negatives false_positives", 0, 0.96, 0.96, 0.96),
    ("precision", YES_NO, "precision/value", "true_positives/count false_positives/count", 0, 2 / 3, 2 / 3, 2 / 3),
    ("recall", YES_NO, "recall/value", "true_positives/count false_negatives/count", 0, 0.8, 0.8, 0.8),
    ("true_positives", YES_NO, "true_positives/Identity", "count", 0, 2, 4, 4),
    ("precision_at_k", TOP_2, "precision_at_2", "true_positive_at_2 false_positive_at_2", np.nan, *[0.571429] * 3),
    ("recall_at_k", TOP_2, "recall_at_2", "true_positive_at_2 false_negative_at_2", np.nan, *[0.571429] * 3),
    ("precision_at_k", dict(TOP_2, class_id=1), "precision_at_2_class1", "true_positive_at_2_class1 false_positive_at_2_class1", np.nan, *[2 / 3] * 3),
    ("recall_at_k", dict(TOP_2, class_id=2), "recall_at_2_class2", "true_positive_at_2_class2 false_negative_at_2_class2", np.nan, 1, 1, 1),
    ("sparse_precision_at_k", dict(OF_TOP, k=2), "precision_at_2", "true_positive_at_2 false_positive_at_2", np.nan, *[2 / 3] * 3),
    ("precision_at_top_k", dict(GIVEN, class_id=1), "precision_at_k_class1", "true_positive_at_k_class1 false_positive_at_k_class1", np.nan, 0.5, 0.5, 0.5),
    ("recall_at_top_k", dict(GIVEN, labels=sparse_labels), "recall_at_k", "true_positive_at_k false_negative_at_k", np.nan, 0.75, 0.75, 0.75),
    ("recall_at_top_k", dict(GIVEN, labels=sparse_labels, k=2, class_id=3, name="foo"), "foo", "true_positive_at_2_class3 false_negative_at_2_class3", np.nan, 1, 1, 1),
    ("average_precision_at_k", dict(TOP_2, k=3), "average_precision_at_3/mean", "max_1 total", 0, 2 / 3, 2 / 3, 2 / 3),
    ("average_precision_at_k", dict(OF_TOP, k=3), "average_precision_at_3/mean", "max_1 total", 0, 7 / 9, 7 / 9, 7 / 9),
    ("average_precision_at_k", dict(OF_TOP, k=2, labels=sparse_labels, weights=[1.0, 2, 3]), "average_precision_at_2/mean", "max_1 total", 0, 0.5, 0.5, 0.5),
    ("sparse_average_precision_at_k", dict(OF_TOP, k=2), "average_precision_at_2/mean", "max_1 total", 0, 2 / 3, 2 / 3, 2 / 3),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_values_and_names(case):
    name, given, value_name, variables, *wanted = case
    with tf.Graph().as_default(), v1.Session() as session:
        value, update, names = made(name, given)
        assert value.op.name == value_name
        # (What a function of a metric gives lies outside of its scope.)
        scope = value_name.rpartition("/")[0] or value_name
        scope = name if scope in ("Sqrt", "Sub") else scope
        assert names == [f"{scope}/{variable}" for variable in variables.split()]
        session.run(v1.local_variables_initializer())
        found = [session.run(part) for part in (value, update, update, value)]
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=2e-5)


# name, arguments, error, the begin of its text.
ERRORS = [
    ("mean", {"values": [1.0, 2], "weights": [1.0, 2, 3]}, ValueError, "weights can not be broadcast to values. Mismatch at dim 0. values.shape=[2], weights.shape=[3]. Received weights="),
    ("mean", {"values": [[[1.0, 2]]], "weights": [1.0]}, ValueError, "weights can not be broadcast to values. values.rank=3. weights.rank=1. values.shape=(1, 1, 2). weights.shape=(1,). Received"),
    ("accuracy", {"labels": [1.0, 2], "predictions": [1.0, 2, 3]}, ValueError, "Shapes (3,) and (2,) are incompatible"),
    ("mean_relative_error", dict(PAIR, normalizer=[1.0, 2]), ValueError, "Shapes (2, 3) and (2,) are incompatible"),
    ("mean_cosine_distance", dict(PAIR, dim=1), ValueError, "weights can not be broadcast to values. Mismatch at dim 1."),
    ("average_precision_at_k", dict(OF_TOP, k=0), ValueError, "Invalid k=0. `k` should be >= 1."),
    ("average_precision_at_k", dict(OF_TOP, predictions=[1.0, 2, 3], k=2), ValueError, "Unexpected labels shape (3, 2) for predictions shape (2,). Predictions rank should be"),
    ("precision_at_k", dict(OF_TOP, k=9), ValueError, "input must have last dimension >= k = 9 but is 5"),
    ("precision_at_k", dict(OF_TOP, labels=np.zeros((3, 2), np.int32), k=2), TypeError, "Types don't match, <dtype: 'int64'> vs <dtype: 'int32'>."),
    ("sensitivity_at_specificity", dict(PAIR, specificity=1.5), ValueError, "`specificity` must be in the range [0, 1]. Currently, `specificity` got 1.5."),
    ("specificity_at_sensitivity", dict(PAIR, sensitivity=-1), ValueError, "`sensitivity` must be in the range [0, 1]. Currently, `sensitivity` is -1."),
    ("auc", dict(PAIR, curve="x"), ValueError, "Curve must be either ROC or PR. Curve x is unknown."),
    ("auc", dict(PAIR, summation_method="x"), ValueError, "Invalid summation_method: x"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "error", "text"), ERRORS)
def test_wrong_arguments(name, given, error, text):
    with tf.Graph().as_default(), pytest.raises(error) as raised:
        getattr(v1.metrics, name)(**given)
    assert str(raised.value).startswith(text)


# What is wrong with values: name, arguments, a part of the text.
WHEN_RUN = [
    ("true_positives_at_thresholds", dict(AT, predictions=SCORES + 1), "predictions must be in [0, 1]"),
    ("mean_iou", dict(CLASSES, num_classes=2), "`labels` out of bound"),
    ("mean_per_class_accuracy", dict(CLASSES, labels=[0, 1, 5, 2]), "is not in [0, 3)"),
    ("precision_at_k", dict(TOP_2, weights=[1.0, 2]), "weights can not be broadcast to values."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "text"), WHEN_RUN)
def test_wrong_values(name, given, text):
    with tf.Graph().as_default(), v1.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            update = made(name, given)[1]
            session.run(v1.local_variables_initializer())
            session.run(update)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("weights", "wanted"), [([[3.0]], 1.5), (3.0, 1.5), ([[1.0, 3.0]], 1.75)]
)
def test_weights_of_unknown_rank(weights, wanted):
    with tf.Graph().as_default(), v1.Session() as session:
        values = v1.placeholder_with_default([[1.0, 2.0]], None)
        weights = v1.placeholder_with_default(weights, None)
        update = v1.metrics.mean(values, weights)[1]
        session.run(v1.local_variables_initializer())
        assert session.run(update) == wanted
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="can not be broadcast"
        ):
            session.run(update, {weights: [[1.0], [2.0]]})


def test_scopes_are_unique_and_eager_is_refused():
    with tf.Graph().as_default():
        v1.metrics.recall_at_k(**OF_TOP, k=1)
        v1.metrics.recall_at_k(**OF_TOP, k=1)
        v1.metrics.mean([1.0])
        v1.metrics.mean([1.0], name="other")
        names = [v.op.name for v in v1.local_variables()]
    assert names[2:] == [
        "recall_at_1_1/true_positive_at_1",
        "recall_at_1_1/false_negative_at_1",
        "mean/total",
        "mean/count",
        "other/total",
        "other/count",
    ]
    with pytest.raises(RuntimeError, match="tf.metrics.mean_iou is not supported when"):
        v1.metrics.mean_iou([0], [0], 2)
    with pytest.raises(RuntimeError, match="tf.metrics.sparse_precision_at_k is not"):
        v1.metrics.precision_at_k([[0]], [[0.0]], 1)
