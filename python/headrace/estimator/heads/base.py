"""tf.estimator.Head: from logits to losses, metrics, predictions and EstimatorSpecs."""

import abc

from headrace import _api as tf
from headrace.estimator.heads import labels as labels_
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.spec import EstimatorSpec
from headrace.framework.support import signatures
from headrace.keras.optimizer.base import BaseOptimizer
from headrace.saved_model import constants

_KERAS_REDUCTIONS = ("sum", "sum_over_batch_size")


class AccuracyBaseline(tf.keras.metrics.Mean):
    """The accuracy of always giving the more frequent of two labels."""

    def result(self):
        mean = super().result()
        return tf.maximum(mean, 1.0 - mean)


class Head(abc.ABC):
    """What a model's last layer is for: logits in, the parts of an EstimatorSpec out.

    Attributes:
      name: a str that metrics' names end with, or None.
      logits_dimension: the size of the logits' last dimension, an int.
      loss_reduction: how losses of examples become one, of tf.losses.Reduction.
    """

    name = logits_dimension = loss_reduction = None

    @abc.abstractmethod
    def loss(
        self, labels, logits, features=None, mode=None, regularization_losses=None
    ):
        """The loss, a float32 scalar, of labels and logits [batch, ..., dimension];
        with the sum of `regularization_losses`, a list of scalars."""

    @abc.abstractmethod
    def predictions(self, logits, keys=None):
        """{key: tensor} of what the logits say; `keys` chooses some."""

    @abc.abstractmethod
    def metrics(self, regularization_losses=None):
        """{name: new Keras metric}."""

    @abc.abstractmethod
    def update_metrics(
        self,
        eval_metrics,
        features,
        logits,
        labels,
        mode=None,
        regularization_losses=None,
    ):
        """The metrics of `metrics()`, after they have seen a batch."""

    @abc.abstractmethod
    def _export_outputs(self, predictions):
        """{name of a signature: ExportOutput}."""

    def _named(self, key):
        return f"{key}/{self.name}" if self.name else key

    def _scope(self):
        return tf.name_scope(self.name or "head")

    @signatures.having(
        "self, features, mode, logits, labels=None, optimizer=None, "
        "trainable_variables=None, train_op_fn=None, update_ops=None, "
        "regularization_losses=None"
    )
    def create_estimator_spec(self, mode, **given):
        """The EstimatorSpec of a mode.

        To train one of `optimizer`, a Keras optimizer, with the list
        `trainable_variables`, and `train_op_fn`, a function of the loss that gives the
        operation, is needed; `update_ops` run before. ValueError for both or neither.
        """
        with self._scope():
            return self._spec(mode, **given)

    def _spec(self, mode, features, logits, labels, regularization_losses, **how):
        predictions = self.predictions(logits)
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(
                mode, predictions, export_outputs=self._export_outputs(predictions)
            )
        loss = self.loss(labels, logits, features, mode, regularization_losses)
        if mode == ModeKeys.EVAL:
            metrics = self.metrics(regularization_losses)
            more = {"regularization_losses": regularization_losses}
            self.update_metrics(metrics, features, logits, labels, **more)
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
        if mode != ModeKeys.TRAIN:
            raise ValueError(
                f"Mode not recognized: {mode}. Each mode must be one of "
                f"{[ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT]}"
            )
        with tf.name_scope(""):
            train_op = _train_op(loss, **how)
            tf.compat.v1.summary.scalar(self._named("loss"), loss)
        return EstimatorSpec(mode, predictions, loss, train_op)


def _train_op(loss, optimizer, trainable_variables, train_op_fn, update_ops):
    if optimizer is None and train_op_fn is None:
        raise ValueError("train_op_fn and optimizer cannot both be None.")
    if optimizer is not None and train_op_fn is not None:
        raise ValueError("train_op_fn and optimizer cannot both be set.")
    if optimizer is not None:
        if not isinstance(optimizer, BaseOptimizer):
            raise ValueError(
                "The given optimizer is not a tf.keras.optimizers.Optimizer instance. "
                f"Received optimizer of type {type(optimizer)}"
            )
        if trainable_variables is None:
            raise ValueError("trainable_variables cannot be None. Given None")
        if not isinstance(trainable_variables, (list, tuple)):
            raise ValueError(
                "trainable_variables should be a list or a tuple. Given type: "
                f"{type(trainable_variables)}"
            )
        train_op = updates_of(optimizer, loss, list(trainable_variables))
    else:
        train_op = train_op_fn(loss)
    if train_op is None or not update_ops:
        return train_op
    return tf.group(train_op, *update_ops)


def updates_of(optimizer, loss, variables):
    """The operation by which a Keras optimizer changes variables of the graph."""
    gradients = tf.gradients(loss, variables)
    with tf.name_scope("training/"):  # of all optimizers
        return optimizer.apply_gradients(zip(gradients, variables))


class SingleHead(Head):
    """A head of one task: subclasses say what its labels, losses and metrics are."""

    _one_weight_a_logit = False

    def __init__(self, logits_dimension, weight_column, loss_reduction, loss_fn, name):
        if loss_reduction not in self._reductions():
            raise ValueError(
                f"Invalid loss_reduction: {loss_reduction}. See `tf.losses.Reduction` "
                "for valid options."
            )
        self.logits_dimension, self.name = logits_dimension, name
        self.loss_reduction = loss_reduction
        self._weight_column = weight_column
        self._loss_fn = labels_.checked_loss_fn(loss_fn)

    def _reductions(self):
        return _KERAS_REDUCTIONS

    @abc.abstractmethod
    def _processed(self, labels, logits):
        """The labels, checked, as losses and metrics take them."""

    @abc.abstractmethod
    def _losses(self, labels, logits):
        """The loss of each example, [..., 1], or of each logit."""

    def _parts(self, labels, logits, features):
        """(labels, logits, weights, losses), checked."""
        logits = labels_.checked_logits(logits, self.logits_dimension)
        labels = self._processed(labels, logits)
        weights = labels_.weights_of(
            features, self._weight_column, logits, self._one_weight_a_logit
        )
        if self._loss_fn is None:
            return labels, logits, weights, self._losses(labels, logits)
        size = self.logits_dimension if self._one_weight_a_logit else 1
        found = labels_.call_loss_fn(self._loss_fn, labels, logits, features, size)
        return labels, logits, weights, found

    def loss(
        self, labels, logits, features=None, mode=None, regularization_losses=None
    ):
        _, _, weights, losses = self._parts(labels, logits, features)
        loss = self._reduced(losses, weights)
        if regularization_losses:
            loss += tf.add_n(regularization_losses)
        return loss

    def _reduced(self, losses, weights):
        total = tf.reduce_sum(losses * weights)
        if self.loss_reduction == "sum":
            return total
        return total / tf.cast(tf.size(losses), tf.float32)

    def metrics(self, regularization_losses=None):
        with tf.name_scope("metrics"):
            made = {"average_loss": tf.keras.metrics.Mean(), **self._new_metrics()}
            if regularization_losses is not None:
                made["regularization_loss"] = tf.keras.metrics.Mean()
            return {self._named(key): metric for key, metric in made.items()}

    def update_metrics(
        self, eval_metrics, features, logits, labels, regularization_losses=None
    ):
        labels, logits, weights, losses = self._parts(labels, logits, features)
        if self._weight_column is None:
            weights = None

        def update(key, *given, **more):
            eval_metrics[self._named(key)].update_state(
                *given, sample_weight=more.get("sample_weight", weights)
            )

        update("average_loss", losses)
        if regularization_losses is not None:
            loss = tf.add_n(regularization_losses)
            update("regularization_loss", loss, sample_weight=None)
        self._update(update, labels, logits, self.predictions(logits))
        return eval_metrics

    @abc.abstractmethod
    def _new_metrics(self):
        """{key: metric}, without the average loss."""

    @abc.abstractmethod
    def _update(self, update, labels, logits, predictions):
        """Calls update(key, values...) for each of them."""


def with_default(outputs):
    """{signature's name: ExportOutput}, the first of which is the default one too."""
    default = next(iter(outputs.values()))
    return {constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: default, **outputs}
