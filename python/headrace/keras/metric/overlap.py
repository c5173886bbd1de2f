"""Intersection by union, of classes."""

from headrace import _api as tf
from headrace.keras.classes import takes
from headrace.keras.metric.base import Metric


@takes(
    "num_classes, name=None, dtype=None, ignore_class=None, sparse_y_true=True, "
    "sparse_y_pred=True, axis=-1"
)
class _Overlap(Metric):
    """Counts what classes were taken for what; the result is of some classes."""

    def _begin(self):
        self.target_class_ids = list(range(self.num_classes))
        self.total_cm = self.add_weight(
            "total_confusion_matrix", shape=(self.num_classes, self.num_classes)
        )

    def _kept(self, name, value):
        if name == "target_class_ids":
            if max(value) >= self.num_classes:
                raise ValueError(
                    f"Target class id {max(value)} is out of range, which is [0, "
                    f"{self.num_classes})."
                )
            return list(value)
        return super()._kept(name, value)

    def update_state(self, y_true, y_pred, sample_weight=None):
        if not self.sparse_y_true:
            y_true = tf.argmax(y_true, axis=self.axis)
        if not self.sparse_y_pred:
            y_pred = tf.argmax(y_pred, axis=self.axis)
        y_true = tf.reshape(tf.cast(y_true, tf.int64), [-1])
        y_pred = tf.reshape(tf.cast(y_pred, tf.int64), [-1])
        weight = None
        if sample_weight is not None:
            weight = tf.reshape(tf.cast(sample_weight, self._dtype), [-1])
        if self.ignore_class is not None:
            kept = tf.not_equal(y_true, tf.cast(self.ignore_class, tf.int64))
            y_true, y_pred = (
                tf.boolean_mask(y_true, kept),
                tf.boolean_mask(y_pred, kept),
            )
            weight = None if weight is None else tf.boolean_mask(weight, kept)
        self.total_cm.assign_add(
            tf.math.confusion_matrix(
                y_true, y_pred, self.num_classes, weights=weight, dtype=self._dtype
            )
        )

    def result(self):
        table = self._reads(*["total_cm"] * 3)["total_cm"]
        hits = tf.linalg.diag_part(table)
        whole = tf.reduce_sum(table, 0) + tf.reduce_sum(table, 1) - hits
        hits = tf.gather(hits, self.target_class_ids)
        whole = tf.gather(whole, self.target_class_ids)
        seen = tf.reduce_sum(tf.cast(tf.not_equal(whole, 0), self._dtype))
        ious = tf.math.divide_no_nan(hits, whole)
        return tf.math.divide_no_nan(tf.reduce_sum(ious), seen)


class MeanIoU(_Overlap):
    """The mean over classes of intersection by union."""


@takes(
    "num_classes, target_class_ids, name=None, dtype=None, ignore_class=None, "
    "sparse_y_true=True, sparse_y_pred=True, axis=-1"
)
class IoU(_Overlap):
    """The mean over the target classes."""

    _config_names = ("target_class_ids", "num_classes", "ignore_class", "sparse_y_true")
    _config_names += ("sparse_y_pred", "axis")


@takes("target_class_ids=(0, 1), threshold=0.5, name=None, dtype=None", num_classes=2)
class BinaryIoU(_Overlap):
    """Of two classes that a threshold tells apart."""

    _config_names = ("target_class_ids", "threshold")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_pred = tf.cast(tf.cast(y_pred, self._dtype) >= self.threshold, self._dtype)
        return super().update_state(y_true, y_pred, sample_weight)


@takes(
    "num_classes, target_class_ids, name=None, dtype=None, ignore_class=None, "
    "sparse_y_pred=False, axis=-1",
    sparse_y_true=False,
)
class OneHotIoU(IoU):
    """IoU of labels as rows of ones."""

    _config_names = tuple(n for n in IoU._config_names if n != "sparse_y_true")


@takes(
    "num_classes, name=None, dtype=None, ignore_class=None, sparse_y_pred=False, "
    "axis=-1",
    sparse_y_true=False,
)
class OneHotMeanIoU(MeanIoU):
    """MeanIoU of labels as rows of ones."""

    _config_without = ("sparse_y_true",)
