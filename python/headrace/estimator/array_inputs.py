"""tf.compat.v1.estimator.inputs: input functions over arrays."""

import numpy as np

from headrace.data.dataset import Dataset


def numpy_input_fn(
    x,
    y=None,
    batch_size=128,
    num_epochs=1,
    shuffle=None,
    queue_capacity=1000,
    num_threads=1,
):
    """A function that gives the rows of arrays in batches, as features and labels."""
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean (it is recommended "
            f"to set it as True for training); got {shuffle}"
        )
    if isinstance(x, dict):
        if not x:
            raise ValueError("x cannot be an empty dict")
        features = {k: np.asarray(v) for k, v in x.items()}
    else:
        features = np.asarray(x)
    arrays = list(features.values()) if isinstance(features, dict) else [features]
    labels = {k: np.asarray(v) for k, v in y.items()} if isinstance(y, dict) else y
    arrays += list(labels.values()) if isinstance(labels, dict) else []
    arrays += [np.asarray(labels)] if isinstance(labels, (np.ndarray, list)) else []
    if len({len(a) for a in arrays}) > 1:
        raise ValueError(
            "Length of tensors in x and y is mismatched. All elements in x and y must "
            f"have the same length; got {[len(a) for a in arrays]}"
        )

    def input_fn():
        rows = features if y is None else (features, labels)
        dataset = Dataset.from_tensor_slices(rows)
        if shuffle:
            dataset = dataset.shuffle(max(queue_capacity, 1))
        return dataset.repeat(num_epochs).batch(batch_size)

    return input_fn
