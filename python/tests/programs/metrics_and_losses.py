"""Losses and metrics by themselves, and merged over batches."""

import numpy as np
import tensorflow as tf

K = tf.keras
y = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]], "float32")
p = np.array([[0.2, 0.7, 0.6], [0.9, 0.3, 0.4]], "float32")
for name in (
    "MeanSquaredError",
    "MeanAbsoluteError",
    "Huber",
    "LogCosh",
    "Poisson",
    "KLDivergence",
    "Hinge",
    "SquaredHinge",
    "CategoricalHinge",
    "CosineSimilarity",
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "MeanAbsolutePercentageError",
    "MeanSquaredLogarithmicError",
):
    cls = getattr(K.losses, name)
    parts = [
        cls()(y, p),
        cls(reduction="sum")(y, p),
        cls()(y, p, sample_weight=[0.2, 0.8]),
    ]
    print(
        name,
        [round(float(v), 4) for v in parts],
        np.round(cls(reduction="none")(y, p).numpy(), 4),
    )
labels = np.array([2, 1])
print(
    "sparse",
    "%.4f" % K.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, p),
)
print(
    "ignored",
    "%.4f"
    % K.losses.SparseCategoricalCrossentropy(ignore_class=1)(
        labels, p / p.sum(1, keepdims=True)
    ),
)
truth, score = np.array([0, 0, 1, 1, 1]), np.array([0.1, 0.6, 0.4, 0.8, 0.9], "float32")
for metric in (
    K.metrics.AUC(),
    K.metrics.AUC(curve="PR"),
    K.metrics.Precision(),
    K.metrics.Recall(0.3),
    K.metrics.BinaryAccuracy(),
    K.metrics.TruePositives(),
    K.metrics.FalseNegatives(),
    K.metrics.PrecisionAtRecall(0.5),
    K.metrics.SensitivityAtSpecificity(0.5),
):
    metric.update_state(truth[:3], score[:3])
    metric.update_state(truth[3:], score[3:], sample_weight=[1.0, 0.5])
    print(metric.name, np.round(metric.result().numpy(), 4))
for metric in (
    K.metrics.MeanSquaredError(),
    K.metrics.RootMeanSquaredError(),
    K.metrics.BinaryCrossentropy(),
    K.metrics.Hinge(),
):
    metric.update_state(y, p)
    metric.update_state(y, p[::-1], sample_weight=[1.0, 0.5])
    print(metric.name, np.round(metric.result().numpy(), 4))
iou = K.metrics.MeanIoU(3)
iou.update_state([0, 1, 2, 1], [0, 1, 1, 1])
print(
    "iou",
    round(float(iou.result()), 4),
    K.metrics.TopKCategoricalAccuracy(2)([[0, 0, 1]], [[0.1, 0.5, 0.4]]).numpy(),
)
mean = K.metrics.Mean()
for value, weight in ((1.0, None), ([2.0, 4.0], [1.0, 3.0]), ([[1.0, 3.0]], [2.0])):
    mean.update_state(value, sample_weight=weight)
    print(round(float(mean.result()), 4), end=" ")
other = K.metrics.Mean()
other.update_state(10.0)
mean.merge_state([other])
print(round(float(mean.result()), 4))
print(
    tf.math.confusion_matrix([0, 1, 1], [1, 1, 0]).numpy().tolist(),
    K.metrics.get("mse")(y, p).numpy().round(4),
)
