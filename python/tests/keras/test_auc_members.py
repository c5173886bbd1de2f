"""What tf.keras.metrics.AUC tells beside its area; values are those of tf_keras 2.21
(TF_USE_LEGACY_KERAS=1)."""

import numpy as np

import headrace as tf

AUC = tf.keras.metrics.AUC


def test_thresholds():
    assert list(AUC(num_thresholds=3).thresholds) == [-1e-07, 0.5, 1.0000001]
    given = AUC(thresholds=[0.6, 0.3])
    assert list(given.thresholds) == [-1e-07, 0.3, 0.6, 1.0000001]
    assert given.num_thresholds == 4
    assert given.get_config()["thresholds"] == [0.3, 0.6]
    assert "thresholds" not in AUC(num_thresholds=3).get_config()
    again = AUC.from_config(given.get_config())
    assert list(again.thresholds) == list(given.thresholds)


def test_interpolated_area():
    for options in ({"num_thresholds": 4, "curve": "PR"}, {"num_thresholds": 5}):
        metric = AUC(**options)
        metric.update_state([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.5])
        found = metric.interpolate_pr_auc()
        np.testing.assert_allclose(found, 0.88732654, rtol=1e-6)
    metric = AUC(4, "PR", multi_label=True, num_labels=2, label_weights=[1.0, 3.0])
    metric.update_state([[0, 1], [1, 0], [1, 1]], [[0.1, 0.9], [0.4, 0.5], [0.8, 0.2]])
    np.testing.assert_allclose(metric.interpolate_pr_auc(), 0.8479506, rtol=1e-6)
    np.testing.assert_allclose(metric.result(), 0.8479506, rtol=1e-6)
