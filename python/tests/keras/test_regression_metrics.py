"""R2Score, MeanRelativeError, PyMetric and AUC of several labels. The values are
TensorFlow's."""

import headrace as tf
import numpy as np
import pytest

M = tf.keras.metrics
TRUE = np.array([[1, 2], [4, 1], [3, 5], [2, 2]], "float32")
FOUND = np.array([[2, 2], [4, 0], [4, 4], [1, 2.5]], "float32")
WEIGHT = np.array([1, 2, 0.5, 1], "float32")
LABELS = np.array([[0, 1], [1, 1], [1, 0], [0, 0]])
SCORES = np.array([[0.1, 0.4], [0.35, 0.8], [0.6, 0.3], [0.7, 0.2]], "float32")
LEVELS = "variance_weighted_average"


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("aggregation", "regressors", "plain", "weighted"),
    [
        ("uniform_average", 0, 0.6394736766815186, 0.5841870307922363),
        ("uniform_average", 1, 0.6034210324287415, 0.5426057577133179),
        (LEVELS, 0, 0.6434425711631775, 0.608921229839325),
        (LEVELS, 1, 0.6077868342399597, 0.5698133707046509),
        (None, 0, [0.578947365, 0.699999928], [0.692567586, 0.475806474]),
        (None, 1, [0.536842107, 0.669999957], [0.661824345, 0.423387169]),
    ],
)
def test_r2(aggregation, regressors, plain, weighted, traced):
    for weight, wanted in ((None, plain), (WEIGHT, weighted)):
        metric = M.R2Score(aggregation, regressors)
        update = tf.function(metric.update_state) if traced else metric.update_state
        update(TRUE, FOUND, weight)
        metric.update_state(TRUE[:2], FOUND[:2])
        np.testing.assert_allclose(metric.result().numpy(), wanted, rtol=1e-5)


def test_r2_at_its_edges(capsys):
    ones = np.ones((3, 1))
    assert np.isnan(M.R2Score()(ones, ones).numpy())
    assert float(M.R2Score()(ones, ones - 1)) == 0.0
    assert float(M.R2Score(num_regressors=9)(TRUE, FOUND)) == pytest.approx(0.575)
    assert float(M.R2Score(num_regressors=3)(TRUE, FOUND)) == pytest.approx(0.25625)
    metric = M.R2Score()
    metric.update_state(TRUE, FOUND)
    metric.reset_state()
    assert np.isnan(metric.result().numpy())
    assert [v.name for v in metric.variables] == [
        "num_samples:0",
        "squared_sum:0",
        "sum:0",
        "residual:0",
        "count:0",
    ]
    assert metric.get_config() == {
        "name": "r2_score",
        "dtype": "float32",
        "class_aggregation": "uniform_average",
        "num_regressors": 0,
    }
    for make, words in (
        (lambda: M.R2Score("x"), "Invalid value for argument `class_aggregation`"),
        (lambda: M.R2Score(num_regressors=-1), "Expected a value >= 0. Received"),
        (lambda: M.R2Score()(TRUE[:, 0], FOUND[:, 0]), "R2Score expects 2D inputs"),
        (lambda: M.R2Score().result(), "no result before"),
    ):
        with pytest.raises(ValueError, match=words):
            make()


def test_mean_relative_error():
    metric = M.MeanRelativeError([1, 3, 2, 3])
    metric.update_state([1, 3, 2, 3], [2, 4, 6, 8])
    assert float(metric.result()) == 1.25
    metric.update_state([1, 3, 2, 3], [2, 4, 6, 8], [1, 0, 0, 2.0])
    assert float(metric.result()) == pytest.approx(1.3333332538604736)
    assert float(M.MeanRelativeError([0, 1.0])([1.0, 2.0], [2.0, 3.0])) == 0.5
    config = metric.get_config()
    assert config["normalizer"].tolist() == [1, 3, 2, 3]
    assert M.MeanRelativeError.from_config(config).name == "mean_relative_error"


class Difference(M.experimental.PyMetric):
    def update_state(self, y_true, y_pred, sample_weight=None):
        assert isinstance(y_true.numpy(), np.ndarray)
        self.total += float(np.sum(y_true.numpy() - y_pred.numpy()))
        self.count += 1

    def reset_state(self):
        self.total, self.count = 0.0, 0

    def result(self):
        return self.total / max(self.count, 1)


def test_metrics_in_python():
    metric = Difference("p")
    assert float(metric.result()) == 0.0
    metric.update_state(TRUE, FOUND)
    assert float(metric.result()) == 0.5 and metric.result().dtype == tf.float32

    @tf.function
    def step(x, y):
        metric.update_state(x, y)
        return metric.result()

    assert float(step(TRUE, FOUND)) == 0.5 and metric.count == 2
    metric.reset_state()
    assert metric.count == 0 and metric.get_config() == {
        "name": "p",
        "dtype": "float32",
    }
    with pytest.raises(NotImplementedError, match="implement `reset_state`"):
        M.experimental.PyMetric()


def test_in_fit():
    layer = tf.keras.layers.Dense(2, kernel_initializer="ones", input_shape=(2,))
    net = tf.keras.Sequential([layer])
    relative = M.MeanRelativeError([1.0, 2.0], name="relative")
    net.compile("sgd", "mse", metrics=[Difference("p"), M.R2Score(), relative])
    done = net.fit(TRUE, FOUND, batch_size=2, epochs=2, verbose=0, shuffle=False)
    for name, wanted in (
        ("p", [-9.71, -6.89875]),
        ("r2_score", [-3.28151, -1.48867]),
        ("relative", [1.76063, 1.24948]),
    ):
        np.testing.assert_allclose(done.history[name], wanted, atol=2e-5)


@pytest.mark.parametrize(
    ("arguments", "weight", "wanted"),
    [
        ({}, None, 0.75),
        ({"label_weights": [1.0, 3.0], "num_labels": 2}, [1.0, 2, 3, 4], 0.8),
        ({"curve": "PR"}, None, 0.7253469228744507),
        ({"from_logits": True}, None, 0.75),
        ({"summation_method": "minoring"}, None, 0.75),
        (
            {"curve": "PR", "summation_method": "majoring", "thresholds": [0.3, 0.5]},
            None,
            0.7916666865348816,
        ),
        ({}, [[1.0, 2], [3, 4], [5, 6], [7, 8]], 0.5625),
        ({"multi_label": False, "label_weights": [1.0, 3.0]}, None, 0.921875),
    ],
)
def test_auc_of_labels(arguments, weight, wanted):
    metric = M.AUC(**{"multi_label": True, **arguments})
    assert float(metric(LABELS, SCORES, weight)) == pytest.approx(wanted, rel=1e-6)


def test_auc_of_labels_over_batches():
    metric = M.AUC(multi_label=True, num_thresholds=4)
    metric.update_state(LABELS, SCORES)
    metric.update_state(1 - LABELS, SCORES, [2.0, 1, 1, 1])
    assert float(metric.result()) == pytest.approx(0.45)
    assert metric.true_positives.shape == [4, 2]
    config = M.AUC(thresholds=[0.5, 0.2], multi_label=True).get_config()
    assert config["thresholds"] == [0.2, 0.5] and config["multi_label"]
    for make, words in (
        (lambda: M.AUC(num_labels=2), "needed only when `multi_label` is True"),
        (
            lambda: M.AUC(multi_label=True)(LABELS[0], SCORES[0]),
            "must have rank 2 when",
        ),
        (
            lambda: M.AUC(multi_label=True, num_labels=3)(LABELS, SCORES),
            "not consistent",
        ),
        (lambda: M.AUC(label_weights=[1.0, 2, 3])(LABELS, SCORES), "not consistent"),
    ):
        with pytest.raises(ValueError, match=words):
            make()
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be non-negative"):
        M.AUC(label_weights=[-1.0, 1.0])
    assert repr(M.AUC(name="a", num_thresholds=9)) == (
        "AUC(name=a,dtype=float32,num_thresholds=9,curve=ROC,summation_method="
        "interpolation,multi_label=False,num_labels=None,label_weights=None,"
        "from_logits=False)"
    )


# As tf_keras 2.21 gives them.
@pytest.mark.parametrize(
    "labels, scores, areas",
    [
        ([1, 1, 0, 0], [0.95, 0.95, 0.1, 0.1], (1.0, 1.0, 1.0)),
        ([0, 0], [0.2, 0.9], (0.0, 0.0, 0.0)),
        ([1, 1, 0], [0.95, 0.95, 0.99], (0.5, 0.0, 1.0)),
        ([1, 1, 1], [0.2, 0.5, 0.95], (1.0, 1.0, 1.0)),
        ([1, 0, 0], [0.5, 0.3, 0.8], (0.75, 0.5, 1.0)),
        ([1, 1, 0, 0, 0, 0], [0.5, 0.9, 0.2, 0.3, 0.8, 0.95], (0.5, 0.25, 0.75)),
        ([1, 1, 0], [0.1, 0.9, 0.3], (-0.5, -1.0, 0.0)),
    ],
)
def test_area_under_precision_recall_gains(labels, scores, areas):
    for method, wanted in zip(("interpolation", "minoring", "majoring"), areas):
        metric = M.AUC(15, curve="prgain", summation_method=method)
        np.testing.assert_allclose(metric(labels, scores), wanted, atol=1e-6)
    assert metric.get_config()["curve"] == "PR_GAIN"
    assert (
        M.AUC(curve="roc", summation_method="Minoring").summation_method == "minoring"
    )


def test_curves_and_sums_that_are_not_known():
    with pytest.raises(ValueError, match=r'curve value: "x".*"PR", "ROC", "PR_GAIN"'):
        M.AUC(curve="x")
    with pytest.raises(ValueError, match='summation method value: "x"'):
        M.AUC(summation_method="x")
