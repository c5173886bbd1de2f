"""tf.keras.utils: sequences of batches and small helpers."""

import numpy as np

from headrace.keras.engine.data_adapter import (  # noqa: F401
    pack_x_y_sample_weight,
    unpack_x_y_sample_weight,
)


class Sequence:
    """Batches by number: subclasses have __getitem__ and __len__."""

    def __getitem__(self, index):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def on_epoch_end(self):
        """Called at the end of every epoch."""

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]


def to_categorical(y, num_classes=None, dtype="float32"):
    """Class numbers as rows with a single one."""
    y = np.array(y, dtype="int")
    shape = y.shape
    if shape and shape[-1] == 1 and len(shape) > 1:
        shape = shape[:-1]
    y = y.reshape(-1)
    if not num_classes:
        num_classes = np.max(y) + 1
    out = np.zeros((y.shape[0], num_classes), dtype=dtype)
    out[np.arange(y.shape[0]), y] = 1
    return out.reshape((*shape, num_classes))


def normalize(x, axis=-1, order=2):
    """x divided by its norms along an axis."""
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return x / np.expand_dims(norms, axis)
