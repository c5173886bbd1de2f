"""Heads whose losses are reduced in TensorFlow 1's ways."""

from headrace import _api as tf
from headrace.estimator.heads import classes, numbers


class _Reduced:
    def _reductions(self):
        kinds = tf.compat.v1.losses.Reduction
        return tuple(kind for kind in kinds.all() if kind != kinds.NONE)

    def _reduced(self, losses, weights):
        return tf.compat.v1.losses.compute_weighted_loss(
            losses, weights, loss_collection=None, reduction=self.loss_reduction
        )


class BinaryClassHead(_Reduced, classes.BinaryClassHead):
    """Two classes."""


class MultiClassHead(_Reduced, classes.MultiClassHead):
    """More than two classes."""


class RegressionHead(_Reduced, numbers.RegressionHead):
    """Numbers."""
