"""Heads of classifiers: two classes, several, or several at once."""

from headrace import _api as tf
from headrace.estimator.export_outputs import (
    ClassificationOutput,
    PredictOutput,
    RegressionOutput,
)
from headrace.estimator.heads import labels as labels_
from headrace.estimator.heads.base import AccuracyBaseline, SingleHead, with_default

_POSITIVE = "{}/positive_threshold_{:g}"
_OF_TWO = ("logits", "logistic", "probabilities", "class_ids", "classes")
_ALL = ("all_class_ids", "all_classes")


def _checked_thresholds(thresholds):
    thresholds = tuple(thresholds or ())
    for threshold in thresholds:
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"thresholds not in (0, 1): ({thresholds},).")
    return thresholds


class _ClassHead(SingleHead):
    """What heads share whose examples are of one class."""

    _keys = ()  # of predictions, in their order

    def _chosen(self, keys):
        for key in keys or ():
            if key not in self._keys:
                raise ValueError(
                    f"Prediction key must be in PredictionKeys, given: {key}.Valid "
                    f"prediction keys include {list(self._keys)}."
                )
        return [key for key in self._keys if keys is None or key in keys]

    def predictions(self, logits, keys=None):
        """{key: tensor}: "logits", "probabilities", "class_ids" and "classes" (strings)
        of the likeliest, "all_class_ids" and "all_classes". ValueError for others."""
        chosen = self._chosen(keys)
        with tf.name_scope("predictions"):
            logits = labels_.checked_logits(logits, self.logits_dimension)
            found = self._found(logits)
            ids = tf.argmax(found["of_classes"], -1, name="class_ids")
            found["class_ids"] = tf.expand_dims(ids, -1)
            names = labels_.names_of(found["class_ids"], self._label_vocabulary)
            found["classes"] = names
            if set(_ALL) & set(chosen):
                found.update(self._all_classes(logits))
        return {key: found[key] for key in chosen}

    def _all_classes(self, logits):
        count, batch = self._n_classes, tf.shape(logits)[0]
        words = self._label_vocabulary or [str(i) for i in range(count)]
        every = {"all_class_ids": tf.range(count), "all_classes": tf.constant(words)}
        return {k: tf.tile(tf.expand_dims(x, 0), [batch, 1]) for k, x in every.items()}

    def _export_outputs(self, predictions):
        every = predictions["all_classes"]
        outputs = {
            "classification": ClassificationOutput(predictions["probabilities"], every)
        }
        if "logistic" in predictions:
            outputs["regression"] = RegressionOutput(predictions["logistic"])
        outputs["predict"] = PredictOutput(predictions)
        return with_default(outputs)


class BinaryClassHead(_ClassHead):
    """Two classes by one logit: the loss is the sigmoid cross entropy.

    Labels are [..., 1]: numbers from 0 to 1, or strings of `label_vocabulary`, a list of
    two. `thresholds`: numbers between 0 and 1 at which accuracy, precision and recall
    are told too. `weight_column`: the name of a feature, or a numeric column, that
    losses and metrics are weighted by. `loss_fn(labels, logits)` gives another loss,
    [..., 1]; it may take `features` too.
    """

    _keys = (*_OF_TWO, *_ALL)

    def __init__(
        self,
        weight_column=None,
        thresholds=None,
        label_vocabulary=None,
        loss_reduction="sum_over_batch_size",
        loss_fn=None,
        name=None,
    ):
        if label_vocabulary is not None and not isinstance(
            label_vocabulary, (list, tuple)
        ):
            labels_.checked_vocabulary(label_vocabulary, 2)
        self._thresholds = _checked_thresholds(thresholds)
        self._label_vocabulary, self._n_classes = label_vocabulary, 2
        super().__init__(1, weight_column, loss_reduction, loss_fn, name)

    def _processed(self, labels, logits):
        labels = labels_.checked_labels(labels, logits, 1)
        if self._label_vocabulary is not None:
            labels = labels_.ids_of(labels, self._label_vocabulary)
        return labels_.in_range(tf.cast(labels, tf.float32), 2)

    def _losses(self, labels, logits):
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def _found(self, logits):
        two = tf.concat([tf.zeros_like(logits), logits], -1, name="two_class_logits")
        return {
            "logits": logits,
            "logistic": tf.sigmoid(logits, name="logistic"),
            "probabilities": tf.nn.softmax(two, name="probabilities"),
            "of_classes": two,
        }

    def _new_metrics(self):
        made = {
            "accuracy": tf.keras.metrics.Accuracy(),
            "precision": tf.keras.metrics.Precision(),
            "recall": tf.keras.metrics.Recall(),
            "prediction/mean": tf.keras.metrics.Mean(),
            "label/mean": tf.keras.metrics.Mean(),
            "accuracy_baseline": AccuracyBaseline(),
            "auc": tf.keras.metrics.AUC(),
            "auc_precision_recall": tf.keras.metrics.AUC(curve="PR"),
        }
        return {**made, **_metrics_at(self._thresholds)}

    def _update(self, update, labels, logits, predictions):
        for key in ("accuracy", "precision", "recall"):
            update(key, labels, predictions["class_ids"])
        logistic = predictions["logistic"]
        update("prediction/mean", logistic)
        update("label/mean", labels)
        update("accuracy_baseline", labels)
        for key in ("auc", "auc_precision_recall", *_metrics_at(self._thresholds)):
            update(key, labels, logistic)


def _metrics_at(thresholds):
    """{key: metric} of decisions at thresholds."""
    made = {}
    for at in thresholds:
        made[_POSITIVE.format("accuracy", at)] = tf.keras.metrics.BinaryAccuracy(
            threshold=at
        )
        made[_POSITIVE.format("precision", at)] = tf.keras.metrics.Precision(
            thresholds=at
        )
        made[_POSITIVE.format("recall", at)] = tf.keras.metrics.Recall(thresholds=at)
    return made


class MultiClassHead(_ClassHead):
    """More than two classes: the loss is the softmax cross entropy.

    Labels are [..., 1]: integers from 0 to n_classes - 1, or strings of
    `label_vocabulary`, a list of n_classes; the other parameters are BinaryClassHead's.
    ValueError for less than three classes.
    """

    _keys = ("logits", "probabilities", "class_ids", "classes", *_ALL)

    def __init__(
        self,
        n_classes,
        weight_column=None,
        label_vocabulary=None,
        loss_reduction="sum_over_batch_size",
        loss_fn=None,
        name=None,
    ):
        if n_classes is None or n_classes <= 2:
            raise ValueError(f"n_classes must be > 2: {n_classes}.")
        labels_.checked_vocabulary(label_vocabulary, n_classes)
        self._label_vocabulary, self._n_classes = label_vocabulary, n_classes
        super().__init__(n_classes, weight_column, loss_reduction, loss_fn, name)

    def _processed(self, labels, logits):
        labels = labels_.checked_labels(labels, logits, 1)
        if self._label_vocabulary is not None:
            labels = labels_.ids_of(labels, self._label_vocabulary)
        elif not labels.dtype.is_integer:
            raise ValueError(
                f"Labels dtype should be integer. Instead got {labels.dtype!r}."
            )
        return labels_.in_range(labels, self._n_classes)

    def _losses(self, labels, logits):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.squeeze(labels, -1), logits=logits
        )
        return tf.expand_dims(losses, -1)

    def _found(self, logits):
        probabilities = tf.nn.softmax(logits, name="probabilities")
        return {"logits": logits, "probabilities": probabilities, "of_classes": logits}

    def _new_metrics(self):
        return {"accuracy": tf.keras.metrics.Accuracy()}

    def _update(self, update, labels, logits, predictions):
        update("accuracy", labels, predictions["class_ids"])


class MultiLabelHead(_ClassHead):
    """Any number of classes at once: the loss is the mean of the classes' sigmoid cross
    entropies.

    Labels are integers [..., n_classes] of 0 and 1, or a SparseTensor of class numbers,
    or of strings of `label_vocabulary`, a list of n_classes.
    `classes_for_class_based_metrics`: numbers or words of classes whose mean
    probability and AUC are told alone; the other parameters are BinaryClassHead's.
    """

    _keys = ("logits", "probabilities", "classes")

    def __init__(
        self,
        n_classes,
        weight_column=None,
        thresholds=None,
        label_vocabulary=None,
        loss_reduction="sum_over_batch_size",
        loss_fn=None,
        classes_for_class_based_metrics=None,
        name=None,
    ):
        if n_classes is None or n_classes < 2:
            raise ValueError(
                f"n_classes must be > 1 for multi-label classification. Given: {n_classes}"
            )
        for at in thresholds or ():
            if not 0.0 < at < 1.0:
                raise ValueError(f"thresholds must be in (0, 1) range. Given: {at}")
        if label_vocabulary is not None:
            if not isinstance(label_vocabulary, (list, tuple)):
                labels_.checked_vocabulary(label_vocabulary, n_classes)
            if len(label_vocabulary) != n_classes:
                raise ValueError(
                    f"Length of label_vocabulary must be n_classes ({n_classes}). Given: "
                    f"{len(label_vocabulary)}"
                )
        self._thresholds = tuple(thresholds or ())
        self._label_vocabulary, self._n_classes = label_vocabulary, n_classes
        self._told = self._classes_told(classes_for_class_based_metrics)
        super().__init__(n_classes, weight_column, loss_reduction, loss_fn, name)

    def _classes_told(self, classes):
        """{what metrics' names say: number} of the classes that are told alone."""
        told, words = {}, self._label_vocabulary
        for given in classes or ():
            if isinstance(given, str) and not words:
                raise ValueError(
                    "label_vocabulary must be provided when "
                    "classes_for_class_based_metrics are strings."
                )
            number = list(words).index(given) if isinstance(given, str) else given
            if not 0 <= number < self._n_classes:
                raise ValueError(
                    "All classes_for_class_based_metrics must be in range "
                    f"[0, {self._n_classes - 1}]. Given: {number}"
                )
            told[words[number] if words else f"class{number}"] = number
        return told

    def _processed(self, labels, logits):
        if isinstance(labels, tf.SparseTensor):
            labels = self._indicators(labels)
        elif self._label_vocabulary is not None and labels is not None:
            labels = tf.convert_to_tensor(labels)
            if labels.dtype == tf.string:
                raise ValueError(
                    "labels of words must be a SparseTensor: of each example those that "
                    "it has"
                )
        labels = labels_.checked_labels(labels, logits, self._n_classes)
        if labels.dtype == tf.string:
            raise ValueError(
                "labels must be an integer indicator Tensor with values in [0, 1]"
            )
        return labels_.in_range(
            labels,
            2,
            "labels must be an integer indicator Tensor with values in [0, 1]",
        )

    def _indicators(self, labels):
        ids, count = labels.values, self._n_classes
        if ids.dtype == tf.string:
            ids = labels_.ids_of(ids, self._label_vocabulary or ())
        ids = labels_.in_range(
            tf.cast(ids, tf.int64),
            count,
            f"labels must be an integer SparseTensor with values in [0, {count})",
        )
        numbers = tf.SparseTensor(labels.indices, ids, labels.dense_shape)
        return tf.cast(tf.sparse.to_indicator(numbers, count), tf.int64)

    def _losses(self, labels, logits):
        losses = tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(labels, tf.float32), logits=logits
        )
        return tf.reduce_mean(losses, -1, keepdims=True)

    def predictions(self, logits, keys=None):
        """{key: tensor}: "logits", "probabilities", and "classes": the words or numbers
        of all classes, as strings. ValueError for other keys."""
        chosen = self._chosen(keys)
        with tf.name_scope("predictions"):
            logits = labels_.checked_logits(logits, self.logits_dimension)
            found = {
                "logits": logits,
                "probabilities": tf.sigmoid(logits, name="probabilities"),
                "classes": self._all_classes(logits)["all_classes"],
            }
        return {key: found[key] for key in chosen}

    def _export_outputs(self, predictions):
        outputs = {
            "classification": ClassificationOutput(
                predictions["probabilities"], predictions["classes"]
            ),
            "predict": PredictOutput(predictions),
        }
        return with_default(outputs)

    def _new_metrics(self):
        made = {
            "auc": tf.keras.metrics.AUC(),
            "auc_precision_recall": tf.keras.metrics.AUC(curve="PR"),
        }
        made.update(_metrics_at(self._thresholds))
        for name in self._told:
            made[f"probability_mean/{name}"] = tf.keras.metrics.Mean()
            made[f"auc/{name}"] = tf.keras.metrics.AUC()
            made[f"auc_precision_recall/{name}"] = tf.keras.metrics.AUC(curve="PR")
        return made

    def _update(self, update, labels, logits, predictions):
        probabilities = predictions["probabilities"]
        for key in ("auc", "auc_precision_recall", *_metrics_at(self._thresholds)):
            update(key, labels, probabilities)
        for name, number in self._told.items():
            one = slice(number, number + 1)
            update(f"probability_mean/{name}", probabilities[..., one])
            for key in ("auc", "auc_precision_recall"):
                update(f"{key}/{name}", labels[..., one], probabilities[..., one])
