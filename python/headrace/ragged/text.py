"""Ragged tensors as text."""

import numpy as np

from headrace._load import _headrace


def of_array(array):
    """Rows as NumPy lays out arrays of objects, elements as str gives them."""

    def element(x):
        return of_array(x) if isinstance(x, np.ndarray) else str(x)

    if not array.size:
        return str(array.tolist())
    return np.array2string(array, separator=", ", formatter={"all": element})


def _element(x):
    if isinstance(x, bytes):
        return f"'{x.decode('utf8', 'replace')}'"
    if isinstance(x, bool):
        return str(int(x))
    if isinstance(x, float):
        return f"{x:f}"
    return str(x)


def _summary(x, ends):
    if not isinstance(x, list):
        return _element(x)
    if ends < 0 or len(x) <= 2 * ends:
        return "[" + ", ".join(_summary(v, ends) for v in x) + "]"
    first = [_summary(v, ends) for v in x[:ends]]
    last = [_summary(v, ends) for v in x[len(x) - ends :]]
    return "[" + ", ".join([*first, "...", *last]) + "]"


def print_parts(ragged, ends=3):
    """What tf.print shows: text, and the tensors of graphs."""
    if isinstance(ragged.flat_values, _headrace.EagerTensor):
        return [_summary(ragged.to_list(), ends)]
    return [
        "RaggedTensor(values=",
        ragged.values,
        ", row_splits=",
        ragged.row_splits,
        ")",
    ]
