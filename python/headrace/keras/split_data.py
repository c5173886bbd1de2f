"""split_dataset: data in two parts."""

import random

import numpy as np

from headrace import _api as tf


def split_dataset(dataset, left_size=None, right_size=None, shuffle=False, seed=None):
    """Two datasets: of the first `left_size` elements and of the last `right_size`.

    Sizes are numbers of elements, or shares from 0 to 1 as floats; one that is left out
    is the rest. `dataset` is a finite Dataset, whose batches are split into elements, an
    array, or a list or tuple of arrays of one length. ValueError for sizes that leave a
    part empty or are more than all, TypeError for other data.
    """
    batch, elements = _elements(dataset)
    if not elements:
        raise ValueError(
            "Received an empty Dataset. `dataset` must be a non-empty list/tuple of "
            "`numpy.ndarray` objects or `tf.data.Dataset` objects."
        )
    if shuffle:
        seed = random.randint(0, int(1e6)) if seed is None else seed
        random.Random(seed).shuffle(elements)
    left, right = _sizes(left_size, right_size, len(elements))
    found = []
    for part in (elements[:left], elements[len(elements) - right :]):
        made = tf.data.Dataset.from_tensor_slices(
            tf.nest.map_structure(lambda *values: np.stack(values), *part)
        )
        found.append(made if batch is None else made.batch(batch))
    return tuple(part.prefetch(tf.data.AUTOTUNE) for part in found)


def _elements(dataset):
    """(the size of batches, a list of the elements)."""
    if isinstance(dataset, tf.data.Dataset):
        if int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY:
            raise ValueError("split_dataset: the dataset is infinite")
        batch = getattr(dataset, "_batch_size", None)
        if batch is not None:
            batch = int(batch)
            dataset = dataset.unbatch()
        return batch, list(dataset.as_numpy_iterator())
    if isinstance(dataset, np.ndarray):
        return None, list(dataset)
    if not isinstance(dataset, (list, tuple)):
        raise TypeError(
            "The `dataset` argument must be either a `tf.data.Dataset` object or a "
            f"list/tuple of arrays. Received: dataset={dataset} of type {type(dataset)}"
        )
    kind = type(dataset).__name__
    for i, x in enumerate(dataset):
        if not isinstance(x, np.ndarray):
            raise ValueError(
                f"Expected a {kind} of `numpy.ndarray` objects,Received: {type(x)}"
            )
        if x.shape[:1] != dataset[0].shape[:1]:
            raise ValueError(
                f"Received a {kind} of NumPy arrays with different lengths. Mismatch "
                f"found at index {i}, Expected shape={dataset[0].shape} Received "
                f"shape={x.shape}.Please provide a {kind} of NumPy arrays with the same "
                "length."
            )
    return None, list(zip(*dataset))


def _sizes(left, right, total):
    """The numbers of elements of both parts."""
    if left is None and right is None:
        raise ValueError(
            "At least one of the `left_size` or `right_size` must be specified. "
            "Received: left_size=None and right_size=None"
        )
    for name, size in (("left_size", left), ("right_size", right)):
        if type(size) not in (int, float, type(None)):
            raise TypeError(
                f"Invalid `{name}` Type. Expected: int or float or None, Received: "
                f"type({name})={type(size)}.  "
            )
        most = total if isinstance(size, int) else 1
        if size is not None and not 0 < size < most:
            raise ValueError(
                f"`{name}` should be either a positive integer smaller than {total}, or "
                f"a float within the range `[0, 1]`. Received: {name}={size}"
            )
    if isinstance(left, float) and isinstance(right, float) and left + right > 1:
        raise ValueError(
            "The sum of `left_size` and `right_size` is greater than 1. It must be less "
            "than or equal to 1."
        )
    left, right = (
        round(x * total) if isinstance(x, float) else x for x in (left, right)
    )
    counts = [
        total - right if left is None else left,
        total - left if right is None else right,
    ]
    if sum(counts) > total:
        raise ValueError(
            "The sum of `left_size` and `right_size` should be smaller than "
            f"{total}. Received: left_size + right_size = {sum(counts)}"
        )
    for side, count in zip(("left", "right"), counts):
        if count <= 0:
            raise ValueError(
                f"With `dataset` of length={total}, `left_size`={counts[0]} and "
                f"`right_size`={counts[1]}.Resulting {side} side dataset split will be "
                "empty. Adjust any of the aforementioned parameters"
            )
    return counts
