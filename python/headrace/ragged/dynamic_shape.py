"""What tf.shape gives for a ragged tensor: the lengths of its rows."""

from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.framework import dtypes, execution
from headrace.ops import array_ops, math_ops
from headrace.ragged.ragged_tensor import RaggedTensor, levels


class DynamicRaggedShape:
    """The shape of a ragged tensor: sizes of its uniform dimensions as tensors, the row
    splits of the others."""

    def __init__(self, row_splits, uniform, inner_shape):
        self._splits, self._uniform = tuple(row_splits), tuple(uniform)
        self._inner_shape = inner_shape

    @classmethod
    def from_tensor(cls, t, dtype=None):
        """The shape of a tensor or ragged tensor, in `dtype`."""
        rows = levels(t)
        if dtype is None:
            dtype = t.row_splits.dtype if rows else dtypes.int64
        dtype = dtypes.as_dtype(dtype)
        splits = [math_ops.cast(level.row_splits, dtype) for level in rows]
        inner = array_ops.shape(t.flat_values if rows else t, out_type=dtype)
        return cls(splits, [level._uniform for level in rows], inner)

    dtype = read_only("_inner_shape.dtype", "The dtype of the sizes: int32 or int64.")

    @property
    def num_row_partitions(self):
        """How many dimensions are held as row splits: an int."""
        return len(self._splits)

    inner_shape = read_only(
        "_inner_shape", "The sizes of the innermost values: a vector."
    )

    @property
    def inner_rank(self):
        """The number of dimensions of the innermost values, or None."""
        return self._inner_shape.shape[0]

    @property
    def rank(self):
        """The number of dimensions, or None."""
        inner = self.inner_rank
        return None if inner is None else inner + len(self._splits)

    def is_uniform(self, axis):
        """Whether all rows of the dimension have one length."""
        return not 0 < axis <= len(self._splits) or self._uniform[axis - 1] is not None

    def __getitem__(self, index):
        """The size of a uniform dimension as a scalar, or the sizes of several.

        ValueError for a ragged dimension.
        """
        if isinstance(index, slice):
            every = range(*index.indices(self.rank))
            return array_ops.stack([self[i] for i in every])
        rank = self.rank
        axis = index + rank if index < 0 else index
        if not 0 <= axis < rank:
            raise IndexError("Index must be non-negative and less than the rank")
        if axis == 0 and self._splits:
            return array_ops.shape(self._splits[0], out_type=self.dtype)[0] - 1
        if axis <= len(self._splits) and axis > 0:
            if self._uniform[axis - 1] is None:
                raise ValueError(f"Index {axis} is not uniform")
            return math_ops.cast(self._uniform[axis - 1], self.dtype)
        return self._inner_shape[axis - len(self._splits)]

    def over(self, tensor):
        """The values of a tensor in this shape."""
        flat = getattr(tensor, "flat_values", tensor)
        result = array_ops.reshape(flat, self._inner_shape)
        for splits, uniform in list(zip(self._splits, self._uniform))[::-1]:
            result = RaggedTensor(result, splits, internal=True, uniform=uniform)
        return result

    def _lengths(self):
        parts = []
        if self._splits:
            n = self._splits[0].shape[0]
            parts.append("None" if n is None else str(n - 1))
        for splits, uniform in zip(self._splits, self._uniform):
            if uniform is not None:
                parts.append(str(uniform))
                continue
            known = execution.get_static_value(splits)
            if known is None or not isinstance(splits, _headrace.EagerTensor):
                parts.append("None")
                continue
            lengths = ", ".join(str(n) for n in (known[1:] - known[:-1]).tolist())
            parts.append(f"({lengths}{',' if len(known) == 2 else ''})")
        inner = execution.get_static_value(self._inner_shape)
        sizes = [] if inner is None else [str(n) for n in inner.tolist()]
        return parts + (sizes[1:] if self._splits else sizes)

    def __repr__(self):
        return (
            f"<DynamicRaggedShape lengths=[{', '.join(self._lengths())}] "
            f"num_row_partitions={self.num_row_partitions}>"
        )
