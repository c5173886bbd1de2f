"""tf.test.compute_gradient: a derivative twice, told and measured."""

import numpy as np

import headrace as tf


def compute_gradient(f, x, delta=None):
    """Of f at the list x: Jacobians by the tape and by central differences, for each x
    an array [size of x's element ..., size of f's value] turned to [outputs, inputs]."""
    if not isinstance(x, (list, tuple)):
        raise ValueError(
            "`x` must be a list or tuple of values convertible to a Tensor"
        )
    x = [tf.convert_to_tensor(v) for v in x]
    if delta is None:
        coarse = min(2.0 if v.dtype in (tf.float16, tf.bfloat16) else 1.0 for v in x)
        delta = 1.0 / 1024 if coarse == 1.0 else 1.0 / 16
    theoretical = tuple(_told(f, x, i) for i in range(len(x)))
    numeric = tuple(_measured(f, x, i, delta) for i in range(len(x)))
    return theoretical, numeric


def _told(f, x, i):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.reshape(f(*x), [-1])
        parts = tf.unstack(y) if y.shape[0] else []
    size = int(np.prod(x[i].shape.as_list()))
    rows = np.zeros((len(parts), size), x[i].dtype.as_numpy_dtype)
    for row, part in zip(rows, parts):
        slope = tape.gradient(part, x[i])
        if slope is not None:
            row[:] = np.ravel(tf.convert_to_tensor(slope).numpy())
    return rows


def _measured(f, x, i, delta):
    at = x[i].numpy()
    columns = []
    for place in np.ndindex(*at.shape):
        values = []
        for sign in (1, -1):
            moved = np.array(at)
            moved[place] += sign * delta
            given = [*x[:i], tf.constant(moved), *x[i + 1 :]]
            values.append(np.ravel(f(*given).numpy()).astype(np.float64))
        columns.append((values[0] - values[1]) / (2 * delta))
    found = np.stack(columns, axis=-1) if columns else np.zeros((0, 0))
    return found.astype(at.dtype)
