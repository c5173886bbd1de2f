"""Heads of regressions."""

from headrace import _api as tf
from headrace.estimator.export_outputs import PredictOutput, RegressionOutput
from headrace.estimator.heads import labels as labels_
from headrace.estimator.heads.base import SingleHead, with_default


class RegressionHead(SingleHead):
    """Numbers: the loss is the squared difference.

    Labels are [..., label_dimension]. `inverse_link_fn` makes predictions of logits;
    `loss_fn(labels, logits)` gives another loss, [..., 1], and may take `features`;
    `weight_column`: the name of a feature, or a numeric column, that losses and metrics
    are weighted by. ValueError for a dimension below 1.
    """

    _one_weight_a_logit = True

    def __init__(
        self,
        label_dimension=1,
        weight_column=None,
        loss_reduction="sum_over_batch_size",
        loss_fn=None,
        inverse_link_fn=None,
        name=None,
    ):
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        self._inverse_link_fn = inverse_link_fn
        super().__init__(label_dimension, weight_column, loss_reduction, loss_fn, name)

    def _processed(self, labels, logits):
        labels = labels_.checked_labels(labels, logits, self.logits_dimension)
        return tf.cast(labels, tf.float32)

    def _losses(self, labels, logits):
        return tf.math.squared_difference(labels, logits)

    def predictions(self, logits):
        """{"predictions": numbers}, and the "logits" where these are others."""
        logits = labels_.checked_logits(logits, self.logits_dimension)
        if self._inverse_link_fn is None:
            return {"predictions": logits}
        with tf.name_scope("predictions"):
            return {"predictions": self._inverse_link_fn(logits), "logits": logits}

    def _export_outputs(self, predictions):
        outputs = {
            "regression": RegressionOutput(predictions["predictions"]),
            "predict": PredictOutput(predictions),
        }
        return with_default(outputs)

    def _new_metrics(self):
        mean = tf.keras.metrics.Mean
        return {"prediction/mean": mean(), "label/mean": mean()}

    def _update(self, update, labels, logits, predictions):
        update("prediction/mean", predictions["predictions"])
        update("label/mean", labels)


class PoissonRegressionHead(RegressionHead):
    """Counts, of which the logits are logarithms: the loss is the negative logarithm of
    the Poisson distribution, without the labels' factorials (Stirling's formula) where
    `compute_full_loss` is false. The other parameters are RegressionHead's."""

    def __init__(
        self,
        label_dimension=1,
        weight_column=None,
        loss_reduction="sum_over_batch_size",
        compute_full_loss=True,
        name=None,
    ):
        self._compute_full_loss = compute_full_loss
        super().__init__(
            label_dimension,
            weight_column,
            loss_reduction,
            inverse_link_fn=tf.math.exp,
            name=name,
        )

    def _losses(self, labels, logits):
        full = self._compute_full_loss
        return tf.nn.log_poisson_loss(labels, logits, compute_full_loss=full)


class LogisticRegressionHead(RegressionHead):
    """Numbers from 0 to 1: the loss is the sigmoid cross entropy. The parameters are
    RegressionHead's."""

    def __init__(
        self, weight_column=None, loss_reduction="sum_over_batch_size", name=None
    ):
        super().__init__(
            1, weight_column, loss_reduction, inverse_link_fn=tf.sigmoid, name=name
        )

    def _processed(self, labels, logits):
        return labels_.in_range(super()._processed(labels, logits), 2)

    def _losses(self, labels, logits):
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
