"""tf.compat.v1.ragged.RaggedTensorValue."""

import numpy as np

from headrace.context.properties import read_only


class RaggedTensorValue:
    """The value of a RaggedTensor, as sessions give it: NumPy arrays."""

    def __init__(self, values, row_splits):
        """Of values (an array or another RaggedTensorValue) and row splits (int32 or
        int64, one dimension); TypeError for anything else."""
        if not (
            isinstance(row_splits, (np.ndarray, np.generic))
            and row_splits.dtype in (np.int64, np.int32)
            and row_splits.ndim == 1
        ):
            raise TypeError("row_splits must be a 1D int32 or int64 numpy array")
        if not isinstance(values, (np.ndarray, np.generic, RaggedTensorValue)):
            raise TypeError("values must be a numpy array or a RaggedTensorValue")
        self._values, self._row_splits = values, row_splits

    @classmethod
    def of(cls, parts):
        """Of the innermost values and the row splits, the outermost first."""
        result = parts[0]
        for splits in parts[:0:-1]:
            result = cls(result, splits)
        return result

    values = read_only(
        "_values", "The rows one after another: an array or another RaggedTensorValue."
    )
    row_splits = read_only(
        "_row_splits", "Where the rows begin and end in `values`: an integer array."
    )
    dtype = read_only("_values.dtype", "The NumPy dtype of the values.")

    @property
    def flat_values(self):
        """The innermost values: an array."""
        nested = isinstance(self._values, RaggedTensorValue)
        return self._values.flat_values if nested else self._values

    @property
    def nested_row_splits(self):
        """The row splits of each ragged dimension, the outermost first: a tuple."""
        nested = isinstance(self._values, RaggedTensorValue)
        inner = self._values.nested_row_splits if nested else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self):
        """How many dimensions are ragged: an int."""
        return len(self.nested_row_splits)

    @property
    def shape(self):
        """A tuple of sizes, None for ragged dimensions."""
        return (len(self._row_splits) - 1, None, *self._values.shape[1:])

    def to_list(self):
        """Nested lists of Python values."""
        nested = isinstance(self._values, RaggedTensorValue)
        values = self._values.to_list() if nested else self._values.tolist()
        s = self._row_splits.tolist()
        return [values[b:e] for b, e in zip(s, s[1:])]

    def _parts(self):
        return [self.flat_values, *self.nested_row_splits]

    def __repr__(self):
        return (
            f"tf.RaggedTensorValue(values={self._values!r}, "
            f"row_splits={self._row_splits!r})"
        )

    def __str__(self):
        return f"<tf.RaggedTensorValue {self.to_list()}>"
