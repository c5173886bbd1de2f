"""tf.compat.v1.metrics of the k classes with the highest scores."""

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.v1 import weights as weighting
from headrace.v1.metric import base
from headrace.v1.metric.base import added, metric_variable


def _called(name, k, class_id=None):
    """What counts of the top k are called: "recall_at_2_class1"."""
    name = f"{name}_at_{'k' if k is None else k}"
    return name if class_id is None else f"{name}_class{class_id}"


def _is_sparse(labels):
    return isinstance(labels, tf.SparseTensor)


def _rows(labels, predictions):
    """The labels, or a SparseTensor of them, with the predictions' rank."""
    labels = tf.compat.v1.convert_to_tensor_or_sparse_tensor(labels)
    if labels.dtype != tf.int64:
        raise TypeError(f"Types don't match, {tf.int64} vs {labels.dtype}.")
    have, want = labels.shape.rank, predictions.shape.rank
    if have is None or want is None or have == want:
        return labels
    if have != want - 1:
        raise ValueError(
            f"Unexpected labels shape {labels.shape} for predictions shape "
            f"{predictions.shape}. Predictions rank should be the same rank as labels "
            "rank or labels rank plus one ."
        )
    if not _is_sparse(labels):
        return tf.expand_dims(labels, -1)
    shape = tf.concat([labels.dense_shape, [1]], 0)
    return tf.sparse.reshape(labels, shape)


def _of_class(ids, class_id):
    """Of each row of ids the one class, as a sparse tensor: where it is among them."""
    if class_id is None:
        return ids
    if _is_sparse(ids):
        return tf.sparse.retain(ids, tf.equal(ids.values, class_id))
    shape = tf.concat([tf.shape(ids)[:-1], [1]], 0)
    return tf.sets.intersection(tf.fill(shape, tf.cast(class_id, tf.int64)), ids)


def _counter(operation, name, given, class_id, k):
    """(value, update) of how many classes `operation` leaves of labels and predictions."""
    labels, predictions, weights = given
    left = operation(_of_class(predictions, class_id), _of_class(labels, class_id))
    found = tf.cast(tf.sets.size(left), tf.float64)
    if weights is not None:
        weights = tf.cast(weights, tf.float64)
        checked = weighting.assert_broadcastable(weights, found)
        with tf.control_dependencies([] if checked is None else [checked]):
            found = tf.multiply(found, weights)
    counted = metric_variable([], tf.float64, name=_called(name, k, class_id))
    update = added(counted, tf.reduce_sum(found))
    return counted.read_value(), update


def _right(predictions, labels):
    return tf.sets.intersection(predictions, labels)


def _wrong(predictions, labels):
    return tf.sets.difference(predictions, labels)


def _missed(predictions, labels):
    return tf.sets.difference(predictions, labels, aminusb=False)


_DOC = """{what}, so far.

    `labels`, int64 of [..., classes of the example] or one class each, may be a
    SparseTensor; {how}. `weights` are one for each example, `class_id` looks at one
    class alone. Gives (value, update_op), float64, and notes them in the collections
    that are named. The counts are local variables of the graph; RuntimeError when eager.
    """
_FURTHER = (
    "class_id=None, weights=None, metrics_collections=None, updates_collections=None, "
    "name=None"
)


def _top(scores, k):
    return tf.cast(tf.math.top_k(scores, k)[1], tf.int64)


# Of each kind of function: its name, the parameters it begins with, its predictions'
# part of the docstring, and the classes of its predictions.
_KINDS = (
    (
        "at_k",
        "labels, predictions, k",
        "`predictions` are scores of all classes, of which the k highest count",
        _top,
    ),
    (
        "at_top_k",
        "labels, predictions_idx, k=None",
        "`predictions_idx`, int64, are the classes that were predicted",
        lambda classes, k: tf.cast(classes, tf.int64),
    ),
)


def _share(name, what, other, operation):
    """The functions of scores, and of given classes: right / (right + other)."""

    def compute(scope, given, k, class_id):
        right = _counter(_right, "true_positive", given, class_id, k)
        wrong = _counter(operation, other, given, class_id, k)
        return [
            tf.math.divide(a, tf.add(a, b), name=role)
            for a, b, role in zip(right, wrong, (scope, "update"))
        ]

    def of_kind(kind, first, how, classes):
        public = f"{name}_{kind}"

        def call(labels, weights, k, class_id, name, **rest):
            # TensorFlow's text names the function that it once was.
            base.check(public.replace("precision_at_k", "sparse_precision_at_k"))
            where = rest.pop("metrics_collections"), rest.pop("updates_collections")
            (predictions,) = rest.values()
            given = (labels, predictions, weights)
            with tf.compat.v1.name_scope(
                name, _called(of, k, class_id), given
            ) as scope:
                predicted = classes(tf.convert_to_tensor(predictions), k)
                given = _rows(labels, predicted), predicted, weights
                return base.collected(*compute(scope, given, k, class_id), *where)

        of = public.partition("_at_")[0]
        like = signatures.named(public, _DOC.format(what=what, how=how))
        parameters = signatures.from_text(f"{first}, {_FURTHER}")
        return signatures.function_of(like, parameters, call)

    return [of_kind(*kind) for kind in _KINDS]


precision_at_k, precision_at_top_k = _share(
    "precision", "How many predicted classes are labels", "false_positive", _wrong
)
recall_at_k, recall_at_top_k = _share(
    "recall",
    "How many labels are among the predicted classes",
    "false_negative",
    _missed,
)


# --- average precision ---


def _relevant(labels, top):
    """Whether each of the top k, [..., k], is a label; and how many labels there are."""
    if _is_sparse(labels):
        number = tf.sets.size(labels)
        labels = tf.sparse.to_dense(labels, default_value=-1)
        real = None
    else:
        real = tf.greater_equal(labels, 0)
        number = tf.reduce_sum(tf.cast(real, tf.int32), -1)
    same = tf.equal(tf.expand_dims(top, -1), tf.expand_dims(labels, -2))
    return tf.reduce_any(same, -1), number


def _average_precision(labels, predictions, k):
    """Of each example the mean precision at its labels among the top k."""
    _, top = tf.math.top_k(predictions, k)
    top = tf.cast(top, tf.int64)
    relevant, number = _relevant(_rows(labels, top), top)
    relevant = tf.cast(relevant, tf.float64)
    ranks = tf.range(1, k + 1, dtype=tf.float64)
    precisions = tf.cumsum(relevant, -1) / ranks * relevant
    number = tf.cast(tf.minimum(number, k), tf.float64)
    return tf.math.divide_no_nan(tf.reduce_sum(precisions, -1), number)


def average_precision_at_k(
    labels,
    predictions,
    k,
    weights=None,
    metrics_collections=None,
    updates_collections=None,
    name=None,
):
    """The mean precision at the labels among the k highest scores, so far.

    `labels`, int64 of [..., classes of the example] or one class each, may be a
    SparseTensor; `predictions` are scores of all classes. `weights` are one for each
    example. Gives (value, update_op), float64; ValueError of a k below 1.
    """
    base.check("sparse_average_precision_at_k")
    if k < 1:
        raise ValueError(f"Invalid k={k}. `k` should be >= 1.")
    given = (labels, predictions, weights)
    with tf.compat.v1.name_scope(name, _called("average_precision", k), given) as scope:
        average = _average_precision(labels, tf.convert_to_tensor(predictions), k)
        if weights is None:
            batch = tf.cast(tf.size(average), tf.float64)
        else:
            weights = weighting.broadcast(tf.cast(weights, tf.float64), average)
            average = tf.multiply(average, weights)
            batch = tf.reduce_sum(weights)
        with tf.name_scope("max"):
            batch = tf.identity(batch)
        most = metric_variable([], tf.float64, name="max_1")
        total = metric_variable([], tf.float64, name="total")
        counts = (total.read_value(), most.read_value())
        updates = (added(total, tf.reduce_sum(average)), added(most, batch))
        value, update = (
            tf.math.divide_no_nan(*pair, name=name)
            for pair, name in ((counts, "mean"), (updates, scope))
        )
        return base.collected(value, update, metrics_collections, updates_collections)
