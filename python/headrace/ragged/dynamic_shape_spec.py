"""tf.experimental.DynamicRaggedShape.Spec: what is known of shapes without a run."""

from collections import abc

from headrace.framework import dimension, dtypes, tensor_shape, type_spec
from headrace.ragged.row_partition import RowPartitionSpec
from headrace.ragged.spec import RaggedTensorSpec


def index_dtype(dtype):
    """A dtype of sizes; ValueError for others than int32 and int64."""
    dtype = dtypes.as_dtype(dtype)
    if dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError("dtype must be tf.int32 or tf.int64")
    return dtype


def product(sizes):
    """The product of sizes, None where one is not known."""
    result = 1
    for n in sizes:
        if n is None:
            return None
        result *= n
    return result


def _checked(row_partitions, dtype):
    what = "row_partitions should be an Iterable"
    if not isinstance(row_partitions, abc.Iterable):
        raise TypeError(f"{what}, got {row_partitions!r}")
    row_partitions = tuple(row_partitions)
    for p in row_partitions:
        if not isinstance(p, RowPartitionSpec):
            raise TypeError(f"{what} of RowPartitionSpecs, got {row_partitions!r}")
        if p.dtype != dtype:
            raise ValueError(f"dtype of {p!r} is {p.dtype!r}: expected {dtype!r}")
    return row_partitions


def aligned(row_partitions, inner):
    """(specs of partitions, TensorShape of the innermost values) that know of each other:
    the values of one are the rows of the next. ValueError where that is not so."""
    if not row_partitions:
        return (), inner
    if inner.rank == 0:
        raise ValueError(
            "If row_partitions are provided, must have inner_rank > 0. Got "
            f"{row_partitions} and {inner}"
        )
    found, rows = [], dimension.Dimension(None)
    for p in row_partitions:  # what the outer ones know, to the inner ones
        nrows = dimension.Dimension(p.nrows).merge_with(rows)
        p = p._merge_with(RowPartitionSpec(nrows, dtype=p.dtype))
        rows = dimension.Dimension(p.nvals)
        found.append(p)
    if inner.rank is not None:
        rows = rows.merge_with(inner[0])
        inner = tensor_shape.TensorShape([rows.value, *inner[1:]])
    for i in reversed(range(len(found))):
        p = found[i]
        found[i] = p._merge_with(RowPartitionSpec(nvals=rows, dtype=p.dtype))
        rows = found[i].nrows
    return tuple(found), inner


class Spec:
    """What a DynamicRaggedShape is like: specs of its row partitions, of which the values
    of each are the rows of the next, the sizes of the innermost values, and the dtype."""

    def __init__(self, row_partitions, static_inner_shape, dtype):
        dtype = index_dtype(dtype)
        inner = tensor_shape.as_shape(static_inner_shape)
        found, inner = aligned(_checked(row_partitions, dtype), inner)
        self._row_partitions = found
        self._static_inner_shape = inner
        self._inner_shape = type_spec.TensorSpec([inner.rank], dtype)

    def __repr__(self):
        return (
            f"DynamicRaggedShape.Spec(row_partitions={self._row_partitions!r}, "
            f"static_inner_shape={self._static_inner_shape!r}, dtype={self.dtype!r})"
        )

    @classmethod
    def from_value(cls, value):
        """The spec of a DynamicRaggedShape."""
        return value._type_spec

    @classmethod
    def _from_tensor_shape(cls, shape, num_row_partitions, dtype):
        dtype = index_dtype(dtype)
        shape = tensor_shape.as_shape(shape)
        count = num_row_partitions
        if shape.rank is None:
            return cls([RowPartitionSpec(dtype=dtype)] * count, shape, dtype)
        if shape.rank <= 1 and count:
            raise ValueError(
                "num_row_partitions should be zero if shape is a scalar or vector."
            )
        if shape.rank and count >= shape.rank:
            raise ValueError("num_row_partitions must be less than rank")
        return cls([], shape, dtype)._with_num_row_partitions(count)

    @classmethod
    def _from_spec(cls, spec, dtype=dtypes.int64):
        """The spec of the shapes of what another spec is of; None for other kinds."""
        if isinstance(spec, cls):
            return spec
        if isinstance(spec, RaggedTensorSpec):
            return cls._from_tensor_shape(spec.shape, spec.ragged_rank, dtype)
        if isinstance(spec, type_spec.TensorSpec):
            return cls._from_tensor_shape(spec.shape, 0, dtype)
        return None

    @property
    def dtype(self):
        """The dtype of the sizes: int32 or int64."""
        return self._inner_shape.dtype

    @property
    def inner_rank(self):
        """The number of dimensions of the innermost values, or None."""
        return self._static_inner_shape.rank

    @property
    def num_row_partitions(self):
        """How many dimensions are held as row partitions: an int."""
        return len(self._row_partitions)

    @property
    def rank(self):
        """The number of dimensions, or None."""
        inner = self.inner_rank
        return None if inner is None else inner + self.num_row_partitions

    def with_dtype(self, dtype):
        """The same with sizes of another dtype: int32 or int64."""
        dtype = index_dtype(dtype)
        partitions = [p.with_dtype(dtype) for p in self._row_partitions]
        return type(self)(partitions, self._static_inner_shape, dtype)

    def _dimension(self, index):
        """The size of a dimension where all slices have that, else None."""
        count, rank = self.num_row_partitions, self.rank
        if index < 0 or rank is not None and index >= rank:
            raise ValueError(f"Index out of range: {index}.")
        if index == 0 and count:
            return self._row_partitions[0].nrows
        if 0 < index <= count:
            return self._row_partitions[index - 1].uniform_row_length
        return None if rank is None else self._static_inner_shape[index - count]

    def _num_slices_in_dimension(self, axis):
        """The number of parts that the dimensions down to `axis` divide into."""
        if not isinstance(axis, int):
            raise TypeError("axis must be an integer")
        if axis < 0:
            if self.rank is None:
                raise ValueError(
                    f"axis={axis} may only be negative if rank is statically known."
                )
            axis += self.rank
        count = self.num_row_partitions
        if axis == 0:
            return self._dimension(0)
        if axis <= count:
            return self._row_partitions[axis - 1].nvals
        inner = self._static_inner_shape
        return None if inner.rank is None else product(inner[: axis - count + 1])

    def _to_tensor_shape(self):
        if self.rank is None:
            return tensor_shape.TensorShape(None)
        return tensor_shape.TensorShape([self._dimension(i) for i in range(self.rank)])

    def _with_num_row_partitions(self, new_num_row_partitions):
        count, rank = new_num_row_partitions, self.rank
        if rank is None:
            raise ValueError(
                "Changing num_row_partitions with unknown rank unsupported"
            )
        if count > max(rank - 1, 0):
            raise ValueError("Number of row partitions too large")
        if count < 0:
            raise ValueError("Number of row partitions negative")
        partitions = list(self._row_partitions[:count])
        for i in range(len(partitions), count):
            n = [self._num_slices_in_dimension(k) for k in (i, i + 1)]
            partitions.append(RowPartitionSpec(*n, self._dimension(i + 1), self.dtype))
        inner = [self._dimension(i) for i in range(count + 1, rank)]
        if rank:
            inner.insert(0, self._num_slices_in_dimension(count))
        return type(self)(partitions, inner, self.dtype)

    def _set_rank_if_unknown(self, new_rank):
        """The same, with the rank where it is not known; ValueError where it is less."""
        if not isinstance(new_rank, int):
            raise TypeError(f"new_rank is {new_rank}, but expected int")
        if self.rank is not None and self.rank >= new_rank:
            return self
        if self.rank is not None:
            raise ValueError(f"Rank is {self.rank}, expected at least {new_rank}.")
        inner = [None] * (new_rank - self.num_row_partitions)
        return type(self)(self._row_partitions, inner, self.dtype)

    def _truncate(self, new_rank):
        """The spec of the shapes' first dimensions."""
        if self.rank is None:
            return self._set_rank_if_unknown(new_rank)._truncate(new_rank)
        if new_rank < 0:
            raise ValueError(f"new_rank must be nonnegative; got {new_rank}")
        if self.rank <= new_rank:
            return self
        count = self.num_row_partitions
        if new_rank > count:
            inner = self._static_inner_shape[: new_rank - count]
            return type(self)(self._row_partitions, inner, self.dtype)
        inner = [self._num_slices_in_dimension(new_rank - 1)] if new_rank else []
        return type(self)(
            self._row_partitions[: max(new_rank - 1, 0)], inner, self.dtype
        )

    def _merge_with(self, other):
        """The spec of what both fit; ValueError where there is none."""
        a, b = self, other
        if a.num_row_partitions < b.num_row_partitions:
            a = a._with_num_row_partitions(b.num_row_partitions)
        elif b.num_row_partitions < a.num_row_partitions:
            b = b._with_num_row_partitions(a.num_row_partitions)
        pairs = zip(a._row_partitions, b._row_partitions)
        return type(self)(
            [x._merge_with(y) for x, y in pairs],
            a._static_inner_shape.merge_with(b._static_inner_shape),
            self.dtype,
        )
