"""Losses of ragged targets and predictions."""

import functools

from headrace import _api as tf

_UNLIKE = "Inputs must have identical ragged splits"


def is_ragged(*values):
    """Whether one of them is a tf.RaggedTensor."""
    return any(isinstance(v, tf.RaggedTensor) for v in values)


def of_rows(function):
    """Decorates a loss of y_true and y_pred over the last axis: takes ragged ones, too.

    It is taken over the last axis of ragged ones as of dense ones, and the result has
    their partition without that axis: values [..., (rows), d] give [..., (rows)], rows
    of any length their loss each. Predictions whose targets are dense are filled up
    with 0. InvalidArgumentError where the two have different partitions.
    """

    @functools.wraps(function)
    def of_any(y_true, y_pred, *args, **kwargs):
        if not is_ragged(y_true, y_pred):
            return function(y_true, y_pred, *args, **kwargs)
        if not is_ragged(y_true):
            y_true = tf.convert_to_tensor(y_true)
            y_pred = y_pred.to_tensor(shape=_head(tf.shape(y_true), y_pred))
            return function(y_true, y_pred, *args, **kwargs)
        call = functools.partial(_call, function, *args, **kwargs)
        return _ragged(call, *_alike(y_true, y_pred))

    return of_any


def _call(function, *args, **kwargs):
    *further, y_true, y_pred = args
    return function(y_true, y_pred, *further, **kwargs)


def _head(shape, ragged):
    """The sizes of `shape`, and behind them, where they are fewer, the ragged one's."""
    rank = ragged.shape.rank
    return [shape[k] if k < shape.shape[0] else None for k in range(rank)]


def _alike(y_true, y_pred):
    """Both ragged, behind a check that their partitions are the same."""
    if not is_ragged(y_pred):
        y_pred = tf.RaggedTensor.from_tensor(y_pred, ragged_rank=y_true.ragged_rank)
    if y_true.ragged_rank != y_pred.ragged_rank:
        raise ValueError(
            f"{_UNLIKE}: y_true has a ragged rank of {y_true.ragged_rank}, y_pred of "
            f"{y_pred.ragged_rank}"
        )
    splits = zip(y_true.nested_row_splits, y_pred.nested_row_splits)
    checks = [tf.debugging.assert_equal(a, b, message=_UNLIKE) for a, b in splits]
    with tf.control_dependencies([c for c in checks if c is not None]):
        return tuple(
            x.with_flat_values(tf.identity(x.flat_values)) for x in (y_true, y_pred)
        )


def _ragged(function, y_true, y_pred):
    if y_pred.flat_values.shape.rank != 1:
        values = function(y_true.flat_values, y_pred.flat_values)
        return y_pred.with_flat_values(values)
    *outer, rows = y_pred.nested_row_splits
    pairs = [
        tf.RaggedTensor.from_row_splits(x.flat_values, rows) for x in (y_true, y_pred)
    ]
    values = tf.map_fn(
        lambda pair: function(*pair), pairs, fn_output_signature=y_pred.dtype
    )
    return tf.RaggedTensor.from_nested_row_splits(values, outer)


def deepened(weight, rank):
    """A weight with axes of 1 behind its own, up to that rank; a scalar as it is."""
    while weight.shape.rank and weight.shape.rank < rank:
        weight = tf.expand_dims(weight, -1)
    return weight


def weighted(values, weight):
    """The values of a ragged loss, each times its weight: [n].

    The weight is ragged as the values, or dense and has their first axes.
    """
    if weight is not None:
        if not is_ragged(weight):
            weight = deepened(tf.convert_to_tensor(weight), values.shape.rank)
        values = values * tf.cast(weight, values.dtype)
    return values


def flat_values(y_true, y_pred, sample_weight):
    """For a metric: the values of the two and their weights as dense tensors, [n, 1] of
    ragged ones whose last axis is ragged; TypeError unless all are ragged."""
    given = (
        [y_true, y_pred] if sample_weight is None else [y_true, y_pred, sample_weight]
    )
    if not all(isinstance(x, tf.RaggedTensor) for x in given):
        raise TypeError(
            f"Some of the inputs are not tf.RaggedTensor. Input received: {given[:2]}"
        )
    y_true, y_pred = _alike(y_true, y_pred)
    y_true, y_pred = y_true.flat_values, y_pred.flat_values
    if y_true.shape.rank == y_pred.shape.rank == 1:
        y_true, y_pred = y_true[:, tf.newaxis], y_pred[:, tf.newaxis]
    if sample_weight is not None:
        sample_weight = sample_weight.flat_values
    return y_true, y_pred, sample_weight
