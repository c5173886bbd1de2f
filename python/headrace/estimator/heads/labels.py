"""Labels, logits, weights and loss functions, checked and brought to one form."""

import inspect

from headrace import _api as tf
from headrace.feature_column.base import FeatureTransformationCache
from headrace.feature_column.numeric import NumericColumn

_LOSS_ARGUMENTS = {"labels", "logits", "features", "loss_reduction"}


def checked_loss_fn(loss_fn):
    """The function of labels, logits and, if it names them, features and the reduction.
    TypeError for what is none, ValueError for other arguments."""
    if loss_fn is None:
        return None
    if not callable(loss_fn):
        raise TypeError("unsupported callable")
    names = tuple(inspect.signature(loss_fn).parameters)
    for needed in ("labels", "logits"):
        if needed not in names:
            raise ValueError(
                f"loss_fn must contain argument: {needed}. Given arguments: {names}"
            )
    unknown = [n for n in names if n not in _LOSS_ARGUMENTS]
    if unknown:
        raise ValueError(f"loss_fn has unexpected args: {unknown}")
    return loss_fn


def call_loss_fn(loss_fn, labels, logits, features, size):
    """The loss of each label, [..., size]; InvalidArgumentError, or ValueError where it is
    known before it runs, for another shape."""
    given = {"labels": labels, "logits": logits, "features": features}
    names = inspect.signature(loss_fn).parameters
    loss = loss_fn(**{n: v for n, v in given.items() if n in names})
    expected = logits.shape[:-1].concatenate([size])
    text = (
        f"loss_fn must return Tensor of shape [D0, D1, ... DN, {size}], {expected}; it "
        f"returned {loss.shape}."
    )
    if not loss.shape.is_compatible_with(expected):
        raise ValueError(text)
    wanted = tf.concat([tf.shape(logits)[:-1], [size]], 0)
    with tf.control_dependencies(
        _checks(tf.debugging.assert_equal(tf.shape(loss), wanted, message=text))
    ):
        return tf.identity(loss)


def _checks(*made):
    """The assertions that are operations: eager ones have been run."""
    return [x for x in made if x is not None]


def checked_logits(logits, dimension):
    """The logits, float32 [..., dimension]; ValueError for another shape."""
    logits = tf.cast(tf.convert_to_tensor(logits), tf.float32)
    size = logits.shape[-1] if logits.shape.rank else None
    if logits.shape.rank in (0, 1) or size not in (None, dimension):
        raise ValueError(
            "logits shape must be [D0, D1, ... DN, logits_dimension], got "
            f"{logits.shape}."
        )
    return logits


def checked_labels(labels, logits, dimension):
    """The labels, a tensor [..., dimension] with the first dimensions of the logits; a
    last dimension of 1 may lack. ValueError for none, sparse ones and other shapes."""
    if labels is None:
        raise ValueError(
            "You must provide a labels Tensor. Given: None. Suggested troubleshooting "
            "steps: Check that your data contains your label feature. Check that your "
            "input_fn properly parses and returns labels."
        )
    if isinstance(labels, tf.SparseTensor):
        raise ValueError(
            "SparseTensor labels are not supported. Labels must be a Tensor of shape "
            f"[D0, D1, ..., DN, {dimension}], e.g. [batch_size, {dimension}].Suggested "
            "Fix (1): Check the label feature in your data. Each example must contain "
            f"{dimension} value(s). If not, your choice of label was probably incorrect."
            " Suggested Fix (2): In your input_fn, use tf.sparse_tensor_to_dense() to "
            "turn labels into a Tensor."
        )
    labels = tf.convert_to_tensor(labels)
    rank = logits.shape.rank
    if dimension == 1 and rank is not None and labels.shape.rank == rank - 1:
        labels = tf.expand_dims(labels, -1)
    if labels.shape.rank and labels.shape[-1] not in (None, dimension):
        raise ValueError(
            f"Mismatched label shape. Expected labels dimension={dimension}.  Received "
            f"{labels.shape[-1]}. Suggested Fix: If your classifier expects one-hot "
            "encoding label, check your n_classes argument to the estimator and/or the "
            "shape of your label. Otherwise, check the shape of your label."
        )
    expected = logits.shape[:-1].concatenate([dimension])
    text = (
        f"labels shape must be [D0, D1, ... DN, {dimension}]. Suggested Fix: check your "
        "n_classes argument to the head and/or the shape of your label."
    )
    if not labels.shape.is_compatible_with(expected):
        raise ValueError(
            f"{text}, expected_labels_shape: {expected}. labels_shape: {labels.shape}."
        )
    wanted = tf.concat([tf.shape(logits)[:-1], [dimension]], 0)
    with tf.control_dependencies(
        _checks(tf.debugging.assert_equal(tf.shape(labels), wanted, message=text))
    ):
        return tf.identity(labels)


def in_range(labels, n_classes, message=None):
    """Labels that are 0 to n_classes - 1; ValueError, or InvalidArgumentError where it
    only runs later, for others."""
    bounds = (
        (labels >= tf.cast(0, labels.dtype), message or "Labels must be >= 0"),
        (
            labels <= tf.cast(n_classes - 1, labels.dtype),
            message or f"Labels must be <= {n_classes} - 1",
        ),
    )
    made = []
    for holds, text in reversed(bounds):
        known = tf.get_static_value(tf.reduce_all(holds))
        if known is not None and not known:
            raise ValueError(text)
        made.append(tf.debugging.Assert(tf.reduce_all(holds), [text, labels]))
    with tf.control_dependencies(_checks(*made)):
        return tf.identity(labels)


def ids_of(labels, vocabulary):
    """The numbers of labels in a vocabulary, -1 for those that are not in it."""
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            list(vocabulary), tf.range(len(vocabulary), dtype=tf.int64)
        ),
        -1,
    )
    return table.lookup(labels)


def names_of(ids, vocabulary):
    """The labels, as strings, of their numbers: words of the vocabulary, or digits."""
    if not vocabulary:
        return tf.strings.as_string(ids, name="str_classes")
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.range(len(vocabulary), dtype=tf.int64), list(vocabulary)
        ),
        "",
    )
    return table.lookup(ids)


def checked_vocabulary(vocabulary, n_classes):
    """ValueError for a vocabulary that is no list or tuple of n_classes words."""
    if vocabulary is None:
        return
    if not isinstance(vocabulary, (list, tuple)):
        raise ValueError(
            "label_vocabulary should be a list or a tuple. Given type: "
            f"{type(vocabulary)}"
        )
    if len(vocabulary) != n_classes:
        raise ValueError(
            '"label_vocabulary" does not have "n_classes" items. len(label_vocabulary)='
            f"{len(vocabulary)}, n_classes={n_classes}, label_vocabulary={vocabulary}"
        )


def weights_of(features, weight_column, logits, one_a_logit=False):
    """The weights of examples, float32 [..., 1], or 1.0 where there is no column.

    `weight_column`: the name of a feature, or a numeric column. ValueError for a
    feature that is missing or of another shape, TypeError for another column.
    """
    if weight_column is None:
        return 1.0
    if isinstance(weight_column, str):
        weight_column = tf.feature_column.numeric_column(weight_column, shape=(1,))
    if not isinstance(weight_column, NumericColumn):
        raise TypeError(
            "Weight column must be either a string or NumericColumn. Given type: "
            f"{type(weight_column)}."
        )
    cache = FeatureTransformationCache(features or {})
    weights = tf.cast(cache.get(weight_column, None), tf.float32)
    rank = logits.shape.rank
    if weights.shape.rank is not None and weights.shape.rank == rank - 1:
        weights = tf.expand_dims(weights, -1)
    fits = [logits.shape[:-1].concatenate([1])] + [logits.shape] * one_a_logit
    if not any(weights.shape.is_compatible_with(shape) for shape in fits):
        more = "[D0, D1, ... DN, 1] or [D0, D1, ... DN, logits_dimension]"
        what = f", {more}" if one_a_logit else " or [D0, D1, ... DN, 1]"
        raise ValueError(
            f"weights shape must be [D0, D1, ... DN]{what}, logits_shape: "
            f"{logits.shape}. weights_shape: {weights.shape}."
        )
    return weights
