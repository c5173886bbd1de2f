"""Cases of test_scores.py. recorded.py writes their values; it
wants TF_USE_LEGACY_KERAS=1."""

import numpy as np

_RNG = np.random.RandomState(4)
CLASSES = _RNG.randint(0, 3, 20)
GUESSES = _RNG.randint(0, 3, 20)
ROWS = _RNG.rand(20, 3).astype("float32")
LABELS = (_RNG.rand(20, 3) > 0.5).astype("int32")
WEIGHTS = _RNG.rand(20).astype("float32")


def _results(metrics, y_true, y_pred):
    found = []
    for metric in metrics:
        metric.update_state(y_true, y_pred)
        found.append(metric.result())
        metric.update_state(y_true, y_pred, sample_weight=WEIGHTS)
        found += [metric.result(), *metric.weights]
    return found


def case_overlap(tf):
    m = tf.keras.metrics
    of_classes = [m.MeanIoU(3), m.IoU(3, [0, 2]), m.MeanIoU(3, ignore_class=1)]
    of_rows = [m.OneHotIoU(3, [1]), m.OneHotMeanIoU(3)]
    binary = [m.BinaryIoU(threshold=0.4), m.BinaryIoU([1])]
    one_hot = np.eye(3)[CLASSES]
    mixed = [m.MeanIoU(3, sparse_y_pred=False)]
    return [
        *_results(of_classes, CLASSES, GUESSES),
        *_results(of_rows, one_hot, ROWS),
        *_results(binary, LABELS[:, 0], ROWS[:, 0]),
        *_results(mixed, CLASSES, ROWS),
    ]


def case_f_scores(tf):
    m = tf.keras.metrics
    return _results(
        [
            m.F1Score(threshold=0.5),
            m.F1Score("micro", 0.5),
            m.F1Score("macro"),
            m.FBetaScore("weighted", 2.0, 0.3),
            m.FBetaScore(beta=0.5),
        ],
        LABELS,
        ROWS,
    )


def case_rates(tf):
    m = tf.keras.metrics
    kinds = (
        m.SensitivityAtSpecificity,
        m.SpecificityAtSensitivity,
        m.PrecisionAtRecall,
        m.RecallAtPrecision,
    )
    metrics = [k(v) for k in kinds for v in (0.0, 0.5, 0.9)]
    metrics += [k(0.4, num_thresholds=n) for k in kinds for n in (1, 5)]
    return _results(metrics, LABELS[:, 0], ROWS[:, 0])


def case_focal(tf):
    loss = tf.keras.losses
    one_hot = np.eye(3, dtype="float32")[CLASSES]
    return [
        loss.CategoricalFocalCrossentropy()(one_hot, ROWS),
        loss.CategoricalFocalCrossentropy(
            [0.1, 0.2, 0.3], 1.5, label_smoothing=0.1, reduction="none"
        )(one_hot, ROWS),
        loss.categorical_focal_crossentropy(one_hot, ROWS, from_logits=True),
    ]


def case_sequences(tf):
    pad = tf.keras.utils.pad_sequences
    rows = [[1], [2, 3], [4, 5, 6], []]
    ordinal = tf.keras.utils.to_ordinal
    return [
        pad(rows),
        pad(rows, 2, "float32", "post", "post", -1.0),
        pad(rows, 5, padding="post"),
        pad([[[1, 2]], [[3, 4], [5, 6]]]),
        ordinal([0, 1, 2, 3]),
        ordinal([[1], [2]], 4),
    ]


def case_not_sequences(tf):
    return tf.keras.utils.pad_sequences([1])
