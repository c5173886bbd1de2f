"""The losses that Keras 3 has beside Keras 2's."""

from headrace import _api as tf
from headrace.keras import settings


def pair(y_true, y_pred):
    """Both as tensors of the predictions' dtype."""
    y_pred = tf.convert_to_tensor(y_pred)
    return tf.cast(tf.convert_to_tensor(y_true), y_pred.dtype), y_pred


def dice(y_true, y_pred, axis=None):
    """1 - 2 (y_true y_pred) / (y_true + y_pred), of sums over the axes (all)."""
    y_true, y_pred = pair(y_true, y_pred)
    both = tf.reduce_sum(y_true * y_pred, axis)
    total = tf.reduce_sum(y_true, axis) + tf.reduce_sum(y_pred, axis)
    return 1.0 - 2.0 * both / (total + settings.epsilon())


def tversky(y_true, y_pred, alpha=0.5, beta=0.5, axis=None):
    """dice, where what is missed counts alpha, what is wrongly predicted beta."""
    y_true, y_pred = pair(y_true, y_pred)
    both = tf.reduce_sum(y_true * y_pred, axis)
    wrong = tf.reduce_sum((1.0 - y_true) * y_pred, axis)
    missed = tf.reduce_sum(y_true * (1.0 - y_pred), axis)
    total = both + alpha * missed + beta * wrong + settings.epsilon()
    return 1.0 - both / total


def ctc(y_true, y_pred):
    """tf.nn.ctc_loss of labels [batch, n], where 0 only fills up, and logits [batch,
    steps, classes], where class 0 is the blank. ValueError for other ranks.
    """
    y_true, y_pred = tf.convert_to_tensor(y_true), tf.convert_to_tensor(y_pred)
    if y_true.shape.rank != 2 or y_pred.shape.rank != 3:
        raise ValueError(
            "CTC wants labels of shape (batch_size, max_length) and logits of shape "
            "(batch_size, max_length, num_classes). Received: y_true.shape="
            f"{y_true.shape}, y_pred.shape={y_pred.shape}"
        )
    used = tf.reduce_sum(tf.cast(tf.not_equal(y_true, 0), tf.int32), axis=-1)
    steps = tf.fill([tf.shape(y_pred)[0]], tf.shape(y_pred)[1])
    return tf.nn.ctc_loss(
        y_true, y_pred, used, steps, logits_time_major=False, blank_index=0
    )
