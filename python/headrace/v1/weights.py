"""Weights of losses and metrics, and what they broadcast to."""

from headrace import _api as tf

_CANNOT = "weights can not be broadcast to values."


def _refused(weights, values):
    """What is wrong with the static shapes, or None."""
    have, want = weights.shape, values.shape
    if have.rank is None or want.rank is None or have.rank == 0:
        return None
    received = f" Received weights={weights}, values={values}"
    if have.rank != want.rank:
        return (
            f"{_CANNOT} values.rank={want.rank}. weights.rank={have.rank}. "
            f"values.shape={want}. weights.shape={have}." + received
        )
    sizes = list(zip(have.as_list(), want.as_list()))
    for i, (a, b) in enumerate(sizes):
        if a not in (1, None) and b is not None and a != b:
            texts = (
                " ".join("?" if s is None else str(s) for s in d) for d in (want, have)
            )
            shapes = "values.shape=[{}], weights.shape=[{}].".format(*texts)
            return f"{_CANNOT} Mismatch at dim {i}. {shapes}" + received
    return None


def _known_to_fit(weights, values):
    have, want = weights.shape, values.shape
    if have.rank == 0:
        return True
    if have.rank is None or want.rank is None:
        return False
    return all(
        a == 1 or (a is not None and a == b)
        for a, b in zip(have.as_list(), want.as_list())
    )


def _fits(weights_shape, values_shape):
    """Whether each dimension is 1 or that of the values, as a scalar."""
    one = tf.logical_or(
        tf.equal(weights_shape, 1), tf.equal(weights_shape, values_shape)
    )
    return tf.reduce_all(one)


def assert_broadcastable(weights, values):
    """Weights of the values' rank, each dimension 1 or the values', or a scalar.

    ValueError where static shapes say otherwise; else an assertion's operation, None
    where there is nothing to check.
    """
    refused = _refused(weights, values)
    if refused:
        raise ValueError(refused)
    if _known_to_fit(weights, values):
        return None
    have, want = tf.shape(weights), tf.shape(values)
    is_scalar = tf.equal(tf.rank(weights), 0)
    same_rank = tf.equal(tf.rank(weights), tf.rank(values))
    fits = tf.cond(
        is_scalar,
        lambda: tf.constant(True),
        lambda: tf.cond(
            same_rank, lambda: _fits(have, want), lambda: tf.constant(False)
        ),
    )
    data = [_CANNOT, "weights.shape=", weights.name, have]
    data += ["values.shape=", values.name, want, "is_scalar=", is_scalar]
    return tf.debugging.Assert(fits, data)


def broadcast(weights, values):
    """The weights, one for each value."""
    checked = assert_broadcastable(weights, values)
    with tf.control_dependencies([] if checked is None else [checked]):
        return tf.broadcast_to(weights, tf.shape(values))


def _one_dimension_off(weights, values):
    """The weights with a last dimension of 1 added or taken off, by ranks of a run."""
    off = tf.rank(weights) - tf.rank(values)
    cases = [(tf.equal(off, -1), lambda: tf.expand_dims(weights, -1))]
    if weights.shape.rank is None or weights.shape[-1] in (1, None):
        cases.append((tf.equal(off, 1), lambda: tf.squeeze(weights, [-1])))
    return tf.case(cases, default=lambda: tf.identity(weights))


def matched(weights, values):
    """The weights with the values' rank where theirs is one more or less; scalars stay."""
    rank, wanted = weights.shape.rank, values.shape.rank
    if rank == 0:
        return weights
    if rank is None or wanted is None:
        return _one_dimension_off(weights, values)
    if rank == wanted + 1:
        return tf.squeeze(weights, [-1])
    return tf.expand_dims(weights, -1) if rank + 1 == wanted else weights
