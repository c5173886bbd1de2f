"""tf.experimental.DynamicRaggedShape: the shapes of ragged tensors, as tensors."""

from collections import abc
from typing import Tuple

from headrace._load import _headrace, raw
from headrace.framework import (
    conversion,
    dispatch,
    dtypes,
    execution,
    tensor_shape,
)
from headrace.framework.extension import batches
from headrace.ops import array_ops, check_ops, math_ops, reduction_ops
from headrace.ragged import checks, dynamic_shape_spec
from headrace.ragged.dynamic_shape_spec import aligned
from headrace.ragged.parts import checked_axis, levels
from headrace.ragged.ragged_tensor import RaggedTensor, as_values
from headrace.ragged.row_partition import RowPartition
from headrace.ragged.spec import RaggedTensorSpec


def _index_dtype(dtype):
    dtype = dtypes.as_dtype(dtype)
    if dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"Illegal dtype: {dtype}")
    return dtype


def _checked(row_partitions):
    if not isinstance(row_partitions, abc.Iterable):
        raise TypeError(
            "row_partitions should be a list of row partitions. Instead, got "
            f"{row_partitions}"
        )
    row_partitions = tuple(row_partitions)
    for p in row_partitions:
        if not isinstance(p, RowPartition):
            raise TypeError(f"row_partitions contains {p} which is not a RowPartition")
    return row_partitions


def _common_dtype(row_partitions, inner_shape):
    found = {p.dtype for p in row_partitions}
    found.add(dtypes.as_dtype(getattr(inner_shape, "dtype", dtypes.int64)))
    return dtypes.int32 if found == {dtypes.int32} else dtypes.int64


def _is_settled(row_partitions, inner):
    """Whether all know of each other's sizes already."""
    sizes = [p.static_nvals for p in row_partitions]
    rows = [p.static_nrows for p in row_partitions[1:]]
    if row_partitions:
        if not inner.rank:
            return False
        rows.append(inner[0])
    return sizes == rows


def _statically_aligned(row_partitions, inner):
    """The same that know of each other's sizes: see dynamic_shape_spec.aligned."""
    for i, (a, b) in enumerate(zip(row_partitions, row_partitions[1:])):
        if None not in (a.static_nvals, b.static_nrows):
            if a.static_nvals != b.static_nrows:
                raise ValueError(
                    "RowPartitions in DynamicRaggedShape do not align between "
                    f"{i} and {i + 1}"
                )
    if row_partitions and inner.rank and inner[0] is not None:
        if row_partitions[-1].static_nvals not in (None, inner[0]):
            raise ValueError("Last row partition does not match inner_shape.")
    if _is_settled(row_partitions, inner):
        return row_partitions, inner
    specs, inner = aligned([p._type_spec for p in row_partitions], inner)
    return tuple(
        p._with_sizes(s.nrows, s.nvals, s.uniform_row_length)
        for p, s in zip(row_partitions, specs)
    ), inner


def _dynamically_aligned(row_partitions, inner_shape):
    """The inner shape, once all rows are as many as the values above them."""
    assertions = [
        check_ops.assert_equal(
            a.nvals(),
            b.nrows(),
            message=f"RowPartitions in DynamicRaggedShape do not align between {i} and "
            f"{i + 1}",
        )
        for i, (a, b) in enumerate(zip(row_partitions, row_partitions[1:]))
    ]
    if row_partitions:
        message = "Last row partition does not match inner_shape."
        last = row_partitions[-1].nvals()
        assertions.append(check_ops.assert_equal(last, inner_shape[0], message=message))
    return checks.after(assertions, inner_shape)


def _is_int(x):
    return isinstance(x, int) and not isinstance(x, bool)


def _checked_lengths(lengths, count):
    """The number of dimensions that become row partitions."""
    if not isinstance(lengths, (list, tuple)):
        raise ValueError("lengths should be a list")
    for x in lengths:
        if not isinstance(x, int) and not (
            isinstance(x, (list, tuple)) and all(isinstance(n, int) for n in x)
        ):
            raise ValueError(
                f"element of lengths should be int or tuple of ints: instead {x!r}"
            )
    ragged = [i for i, x in enumerate(lengths) if not isinstance(x, int)]
    least = ragged[-1] if ragged else 0
    if count is None:
        count = least
    if not isinstance(count, int):
        raise ValueError("num_row_partitions should be an int or None")
    if not lengths and count > 0:
        raise ValueError("num_row_partitions==0 for a scalar shape")
    if lengths and count >= len(lengths):
        raise ValueError(
            "num_row_partitions should be less than `len(lengths)` if shape is not "
            "scalar."
        )
    if ragged and (ragged[0] == 0 or count < least):
        raise ValueError(
            f"num_row_partitions={count} does not hold the ragged dimensions of "
            f"lengths={lengths}"
        )
    if any(isinstance(x, int) and x < 0 for x in lengths):
        raise ValueError(f"lengths should not be negative; got {lengths}")
    return max(count, 0)


class _ShapeEncoder(batches.ExtensionTypeBatchEncoder):
    """Shapes in datasets are ragged tensors of that shape whose values take no place:
    all their dimensions are ragged there, so that rows of them are such shapes, too."""

    def batch(self, spec, batch_size):
        if spec.rank is None and not spec.num_row_partitions:
            raise ValueError("Shapes of unknown rank cannot be batched")
        shape = spec._to_tensor_shape()
        if shape.rank is not None:
            shape = tensor_shape.TensorShape([batch_size]).concatenate(shape)
        count = spec.num_row_partitions + (spec.rank != 0)
        return type(spec)._from_tensor_shape(shape, count, spec.dtype)

    def unbatch(self, spec):
        shape, count = spec._to_tensor_shape(), spec.num_row_partitions
        if shape.rank == 0:
            raise ValueError("Unbatching a scalar shape is not possible")
        shape = shape[1:] if shape.rank is not None else shape
        return type(spec)._from_tensor_shape(shape, max(count - 1, 0), spec.dtype)

    def encoding_specs(self, spec):
        shape = spec._to_tensor_shape().concatenate([0])
        count = spec.num_row_partitions if spec.rank is None else spec.rank
        return RaggedTensorSpec(shape, dtypes.bool, count, spec.dtype)

    def encode(self, spec, value, minimum_rank=0):
        count = value.num_row_partitions if spec.rank is None else spec.rank
        nothing = DynamicRaggedShape._from_inner_shape(
            array_ops.concat([value.inner_shape, [0]], 0), value.dtype
        )
        whole = DynamicRaggedShape(value.row_partitions, nothing.inner_shape)
        whole = whole._with_num_row_partitions(count)
        flat = array_ops.zeros(whole.inner_shape, dtypes.bool)
        return whole._add_row_partitions(flat)

    def decode(self, spec, encoded_value):
        shape = DynamicRaggedShape.from_tensor(encoded_value, spec.dtype)
        if spec.rank is None:
            return DynamicRaggedShape(shape.row_partitions, shape.inner_shape[:-1])
        found = DynamicRaggedShape([], array_ops.zeros([0], spec.dtype))
        if spec.rank == 1:
            nrows = array_ops.reshape(shape.row_partitions[0].nrows(), [1])
            found = DynamicRaggedShape([], nrows)
        elif spec.rank > 1:
            found = DynamicRaggedShape.from_row_partitions(shape.row_partitions[:-1])
        return found._as_uniform(spec)


class DynamicRaggedShape(batches.BatchableExtensionType):
    """The shape of a ragged tensor: row partitions, and the sizes of the innermost values.

    The values of each partition are the rows of the next, those of the last one the first
    size of `inner_shape`. The outermost dimension is always uniform; a partition whose
    rows have one length is a uniform dimension, too.
    """

    _row_partitions: Tuple[RowPartition, ...]
    _inner_shape: _headrace.Tensor
    _static_inner_shape: tensor_shape.TensorShape

    __batch_encoder__ = _ShapeEncoder()
    Spec = dynamic_shape_spec.Spec

    def __init__(
        self,
        row_partitions,
        inner_shape,
        dtype=None,
        validate=False,
        static_inner_shape=None,
    ):
        """`inner_shape` is a vector of int32 or int64 (`dtype`, where it is given).

        TypeError for what are no row partitions; ValueError where sizes contradict each
        other, with `validate` also InvalidArgumentError when that is found in a run.
        """
        row_partitions = _checked(row_partitions)
        if dtype is None:
            dtype = _common_dtype(row_partitions, inner_shape)
        dtype = _index_dtype(dtype)
        inner_shape = _sizes(inner_shape, dtype)
        inner_shape.shape.assert_has_rank(1)
        static = _known_sizes(inner_shape)
        if static_inner_shape is not None:
            static = static.merge_with(static_inner_shape)
        row_partitions = tuple(p.with_dtype(dtype) for p in row_partitions)
        if validate:
            inner_shape = _dynamically_aligned(row_partitions, inner_shape)
        self._row_partitions, static = _statically_aligned(row_partitions, static)
        self._inner_shape, self._static_inner_shape = inner_shape, static

    @classmethod
    def from_lengths(cls, lengths, num_row_partitions=None, dtype=dtypes.int64):
        """Of a list of sizes: ints, and tuples of the lengths of all rows of a ragged
        dimension.

        `num_row_partitions` says how many dimensions are held as row partitions; the last
        ragged one is the last of them where it is None. ValueError for other lengths.
        """
        count = _checked_lengths(lengths, num_row_partitions)
        dtype = _index_dtype(dtype)
        if not lengths:
            return cls([], [], dtype)
        total, partitions = lengths[0], []
        for n in lengths[1 : count + 1]:
            if isinstance(n, int):
                partitions.append(
                    RowPartition.from_uniform_row_length(n, nrows=total, dtype=dtype)
                )
                total *= n
                continue
            if len(n) != total:
                raise ValueError("Shape not consistent.")
            partitions.append(RowPartition.from_row_lengths(n, dtype=dtype))
            total = sum(n)
        return cls(partitions, [int(total), *lengths[count + 1 :]], dtype)

    @classmethod
    def from_row_partitions(cls, row_partitions, dtype=None):
        """Of row partitions alone: the innermost values are scalars.

        ValueError where there are none.
        """
        row_partitions = _checked(row_partitions)
        if not row_partitions:
            raise ValueError("row_partitions cannot be empty")
        nvals = row_partitions[-1].nvals()
        return cls(row_partitions, array_ops.reshape(nvals, [1]), dtype)

    @classmethod
    def _from_inner_shape(cls, inner_shape, dtype=None):
        """The shape of a dense tensor."""
        return cls([], inner_shape, dtype)

    @classmethod
    def from_tensor(cls, t, dtype=None):
        """The shape of a tensor, a ragged tensor or what tf.shape gives one of."""
        t = _with_shape(t)
        own = getattr(t, "_ragged_shape", None)
        if own is not None:
            return own if dtype is None else own.with_dtype(dtype)
        if dtype is not None:
            dtype = _index_dtype(dtype)
        rows = levels(t)
        if rows:
            found = cls(
                t._nested_row_partitions, array_ops.shape(t.flat_values, dtypes.int64)
            )
            return found.with_dtype(dtype or t.row_splits.dtype)
        if not isinstance(t, _headrace.Tensor):  # a sparse tensor
            return cls([], t.dense_shape, dtype)
        sizes = array_ops.shape(t, out_type=dtype or dtypes.int32)
        return cls([], sizes, dtype or dtypes.int32, static_inner_shape=t.shape)

    # --- What it is.
    @property
    def dtype(self):
        """The dtype of the sizes: int32 or int64."""
        return self._inner_shape.dtype

    @property
    def row_partitions(self):
        """A tuple of the RowPartitions, the outermost first."""
        return self._row_partitions

    @property
    def num_row_partitions(self):
        """How many dimensions are held as row partitions: an int."""
        return len(self._row_partitions)

    @property
    def inner_shape(self):
        """The sizes of the innermost values: a vector."""
        return self._inner_shape

    @property
    def inner_rank(self):
        """The number of dimensions of the innermost values, or None."""
        return self._static_inner_shape.rank

    @property
    def rank(self):
        """The number of dimensions, or None."""
        inner = self.inner_rank
        return None if inner is None else inner + self.num_row_partitions

    def with_dtype(self, dtype):
        """The same with sizes and partitions of another dtype: int32 or int64."""
        dtype = _index_dtype(dtype)
        return self if dtype == self.dtype else self._like(dtype=dtype)

    def _like(self, row_partitions=None, inner_shape=None, static=None, dtype=None):
        if row_partitions is None:
            row_partitions = self._row_partitions
        if inner_shape is None:
            inner_shape = self._inner_shape
            static = self._static_inner_shape if static is None else static
        dtype = self.dtype if dtype is None else dtype
        return DynamicRaggedShape(
            row_partitions, inner_shape, dtype, static_inner_shape=static
        )

    def is_uniform(self, axis):
        """Whether all slices of a dimension have one length: ragged dimensions do not.

        TypeError unless `axis` is an int, IndexError where there is no such dimension.
        """
        if not _is_int(axis):
            raise TypeError("axis must be an integer")
        if axis < 0:
            raise IndexError("Negative axis values are not supported")
        if self.rank is not None and axis >= self.rank:
            raise IndexError(f"Expected axis={axis} < rank={self.rank}")
        if axis == 0 or axis > self.num_row_partitions:
            return True
        return self._row_partitions[axis - 1].is_uniform()

    def static_lengths(self, ragged_lengths=True):
        """A list of what is known of the sizes without a run: an int for a uniform
        dimension, a tuple of the rows' lengths for a ragged one (None unless
        `ragged_lengths`), None where a size is not known, and, where the rank is not
        known, an Ellipsis at the end.
        """
        found = []
        for p in self._row_partitions:
            if not found:
                found.append(p.static_nrows)
            if p.is_uniform():
                found.append(p.static_uniform_row_length)
            else:
                found.append(_static_lengths(p) if ragged_lengths else None)
        inner = self._static_inner_shape
        if inner.rank is None:
            return [*found, ...]
        return found + inner.as_list()[1 if found else 0 :]

    def _to_tensor_shape(self):
        return self._type_spec._to_tensor_shape()

    def __repr__(self):
        shown = ["..." if n is ... else str(n) for n in self.static_lengths()]
        return (
            f"<DynamicRaggedShape lengths=[{', '.join(shown)}] "
            f"num_row_partitions={self.num_row_partitions}>"
        )

    def _dimension(self, index):
        """The size of a dimension: a scalar, or a vector of the lengths of all rows."""
        if not _is_int(index):
            raise TypeError("index should be an int")
        count = self.num_row_partitions
        if not 0 < index <= count:
            return self[index]
        p = self._row_partitions[index - 1]
        return p.uniform_row_length() if p.is_uniform() else p.row_lengths()

    def __getitem__(self, index):
        """The size of a uniform dimension as a scalar, or the shape of several dimensions.

        Dimensions from the first on may be ragged, others not: ValueError. TypeError for
        what is no int or slice, IndexError where there is no such dimension, and for steps.
        """
        if isinstance(index, slice):
            return self._part(index)
        if not _is_int(index):
            raise TypeError("Argument is not an int or a slice")
        rank, count = self.rank, self.num_row_partitions
        if index < 0:
            index += self._known_rank()
        if index < 0:
            raise IndexError(f"Index must be non-negative: {index}")
        if rank is not None and index >= rank:
            raise IndexError(f"Index is too big: {index}>={rank}")
        if index == 0 and count:
            return self._row_partitions[0].nrows()
        if index <= count and count:
            if not self.is_uniform(index):
                raise ValueError(f"Index {index} is not uniform")
            return self._row_partitions[index - 1].uniform_row_length()
        return self._inner_size(index - count)

    def _known_rank(self, what="use __getitem__ with a negative index"):
        if self.rank is None:
            raise ValueError(f"Rank must be known to {what}.")
        return self.rank

    def _inner_size(self, place):
        """A size of the innermost values as a tensor, a constant where it is known."""
        static = self._static_inner_shape
        if static.rank is not None and static[place] is not None:
            return conversion.constant(static[place], self.dtype)
        return self._inner_shape[place]

    def _part(self, index):
        if index.step not in (None, 1):
            raise IndexError("Cannot stride through a shape")
        start, stop = index.start, index.stop
        if any(x is not None and x < 0 for x in (start, stop)):
            self._known_rank()
        if self.rank is not None:
            start, stop, _ = index.indices(self.rank)
        return self._slice_shape(start or 0, stop)

    def _slice_shape(self, start, stop):
        count, rank = self.num_row_partitions, self.rank
        if stop is not None and stop <= start:
            return self._like([], [], None)
        if start == 0:
            return self if stop is None else self._first(stop)
        ragged = [i for i in range(1, count + 1) if not self.is_uniform(i)]
        if any(stop is None or i < stop for i in ragged):
            raise ValueError("All relevant dimensions must be uniform")
        if rank is not None:
            sizes = [self[i] for i in range(start, rank if stop is None else stop)]
            return self._like([], array_ops.stack(sizes))
        outer = [self[i] for i in range(start, min(count + 1, stop or count + 1))]
        place = max(start - count, 1 if count else 0)
        inner = self._inner_shape[place : None if stop is None else stop - count]
        return self._like([], array_ops.concat([outer, inner], 0) if outer else inner)

    def _first(self, stop):
        """The shape of the first dimensions."""
        count = self.num_row_partitions
        if self.rank is not None and stop >= self.rank:
            return self
        if stop > count:
            known = self._static_inner_shape
            known = known[: stop - count] if known.rank is not None else None
            return self._like(None, self._inner_shape[: stop - count], known)
        if stop == 1:
            return self._like([], array_ops.reshape(self[0], [1]))
        return self.from_row_partitions(self._row_partitions[: stop - 1])

    def _num_slices_in_dimension(self, axis):
        """The number of parts that the dimensions down to `axis` divide into."""
        if not _is_int(axis):
            raise TypeError("axis must be an integer")
        if axis < 0:
            if self.rank is None:
                raise ValueError(f"You can't use axis={axis} if the rank is undefined")
            axis += self.rank
        count = self.num_row_partitions
        if axis == 0:
            return self[0]
        if axis <= count:
            return self._row_partitions[axis - 1].nvals()
        return _product([self._inner_size(i) for i in range(axis - count + 1)])

    def _num_elements(self):
        """The number of all scalars."""
        return reduction_ops.reduce_prod(self._inner_shape)

    # --- As other partitions.
    def _with_num_row_partitions(self, num_row_partitions):
        """The same shape with that many dimensions held as row partitions.

        ValueError where there are not as many dimensions, or where a ragged one would be
        held as none.
        """
        count = num_row_partitions
        rank = self._known_rank("adjust num_row_partitions")
        if not _is_int(count):
            raise ValueError("num_row_partitions must be an int")
        if count < 0:
            raise ValueError("num_row_partitions must be nonnegative")
        if count >= max(rank, 1):
            raise ValueError("num_row_partitions must be less than rank")
        if count == self.num_row_partitions:
            return self
        partitions = list(self._row_partitions[:count])
        inner = self._alt_inner_shape(rank - count)
        for axis in range(len(partitions), count):
            length = self._inner_size(axis + 1 - self.num_row_partitions)
            partitions.append(
                RowPartition.from_uniform_row_length(
                    length,
                    self._num_slices_in_dimension(axis + 1),
                    self._num_slices_in_dimension(axis),
                    validate=False,
                )
            )
        return self._like(partitions, inner)

    def _with_inner_rank(self, inner_rank):
        """The same shape with that many dimensions in the inner shape."""
        rank = self._known_rank("adjust inner_rank")
        if rank <= 1 and inner_rank != rank:
            raise ValueError(f"Cannot change inner_rank if rank is {rank}")
        return self._with_num_row_partitions(rank - inner_rank)

    def _alt_inner_shape(self, new_inner_rank):
        """The inner shape that there is with another number of partitions."""
        if self.inner_rank == new_inner_rank:
            return self._inner_shape
        rank = self._known_rank("adjust inner_rank")
        if self.inner_rank == 0:
            raise ValueError("old inner_rank cannot be zero")
        if new_inner_rank == 0:
            raise ValueError("new_inner_rank cannot be zero")
        outer = rank - new_inner_rank
        for axis in range(outer + 1, self.num_row_partitions + 1):
            if not self.is_uniform(axis):
                raise ValueError(f"Cannot get an inner shape of a ragged axis: {axis}")
        sizes = [self[i] for i in range(outer + 1, rank)]
        return array_ops.stack([self._num_slices_in_dimension(outer), *sizes])

    def _as_row_partitions(self):
        """All dimensions but the first as row partitions."""
        if self._known_rank("get row partitions") == 0:
            raise ValueError("rank must be >= 1 for _as_row_partitions")
        return self._with_num_row_partitions(self.rank - 1).row_partitions

    def _as_uniform(self, spec):
        """The same, of which all dimensions are row partitions, as a spec has it."""
        partitions = list(self._row_partitions)
        for axis in range(spec.num_row_partitions, len(partitions)):
            p, known = partitions[axis], spec._dimension(axis + 1)
            if not p.is_uniform():
                rows = p.nrows()
                length = p.nvals() // raw.Maximum(rows, array_ops.ones_like(rows))
                if known is not None:
                    length = conversion.constant(known, self.dtype)
                partitions[axis] = RowPartition.from_uniform_row_length(
                    length, p.nvals(), rows, validate=False
                )
        found = self._like(partitions) if partitions else self
        return found._with_num_row_partitions(spec.num_row_partitions)

    def _merge_dims(self, outer_axis, inner_axis):
        """The shape with dimensions outer_axis to inner_axis as one."""
        rank, count = self.rank, self.num_row_partitions
        outer = checked_axis(outer_axis, rank, "outer_axis")
        inner = checked_axis(inner_axis, rank, "inner_axis")
        if outer > inner:
            raise ValueError(
                f"Expected outer_axis ({outer_axis}) to be less than or equal to "
                f"inner_axis ({inner_axis})."
            )
        if outer == inner:
            return self
        if outer > count or not count:
            first, end = outer - count, inner - count + 1
            sizes = self._inner_shape
            merged = reduction_ops.reduce_prod(sizes[first:end], keepdims=True)
            return self._like(
                None, array_ops.concat([sizes[:first], merged, sizes[end:]], 0)
            )
        if inner > count:
            return self._with_num_row_partitions(inner)._merge_dims(outer, inner)
        partitions = self._row_partitions
        if outer == 0:
            return self._like(partitions[inner:])
        splits = partitions[outer - 1].row_splits()
        for p in partitions[outer:inner]:
            splits = array_ops.gather(p.row_splits(), splits)
        whole = RowPartition.from_row_splits(splits, validate=False)
        return self._like([*partitions[: outer - 1], whole, *partitions[inner:]])

    def _merge_with(self, other):
        """One shape with what two equal ones know."""
        a, b = self, other
        count = max(a.num_row_partitions, b.num_row_partitions)
        if count > a.num_row_partitions:
            a = a._with_num_row_partitions(count)
        if count > b.num_row_partitions:
            b = b._with_num_row_partitions(count)
        pairs = zip(a.row_partitions, b.row_partitions)
        partitions = [x._merge_precomputed_encodings(y) for x, y in pairs]
        static = a._static_inner_shape.merge_with(b._static_inner_shape)
        return a._like(partitions, a.inner_shape, static)

    def _merge_with_spec(self, other):
        """The same, of which is known what a spec says; ValueError where that differs."""
        count = max(self.num_row_partitions, other.num_row_partitions)
        a, spec = self, other
        if count > a.num_row_partitions:
            a = a._with_num_row_partitions(count)
        if count > spec.num_row_partitions:
            spec = spec._with_num_row_partitions(count)
        pairs = zip(a.row_partitions, spec._row_partitions)
        partitions = [p._merge_with_spec(s) for p, s in pairs]
        static = a._static_inner_shape.merge_with(spec._static_inner_shape)
        return a._like(partitions, a.inner_shape, static)

    # --- With values.
    def _add_row_partitions(self, flat_values, validate=False):
        """The ragged tensor of this shape with these innermost values."""
        if not self._row_partitions:
            return flat_values
        if validate:
            message = "Last row partition does not match flat_values."
            count = array_ops.shape(flat_values, out_type=self.dtype)[0]
            last = self._row_partitions[-1].nvals()
            flat_values = checks.after(
                [check_ops.assert_equal(last, count, message=message)], flat_values
            )
        return RaggedTensor._from_nested_row_partitions(
            flat_values, self._row_partitions, validate=False
        )

    def over(self, tensor):
        """The values of a tensor in this shape."""
        flat = getattr(tensor, "flat_values", tensor)
        return self._add_row_partitions(array_ops.reshape(flat, self._inner_shape))


def _sizes(inner_shape, dtype):
    if isinstance(inner_shape, _headrace.Tensor):
        return math_ops.cast(inner_shape, dtype)
    try:
        return conversion.convert_to_tensor(inner_shape, dtype)
    except (TypeError, ValueError):
        # Floats that are whole are sizes, as upstream.
        return math_ops.cast(conversion.convert_to_tensor(inner_shape), dtype)


def _known_sizes(sizes):
    """What is known of a vector of sizes, as a TensorShape."""
    known = execution.get_static_value(sizes, partial=True)
    if known is None:
        count = sizes.shape[0]
        return tensor_shape.TensorShape(None if count is None else [None] * count)
    return tensor_shape.TensorShape(known.tolist())


def _with_shape(t):
    """What has a shape: tensors, and composite ones that know theirs."""
    known = hasattr(t, "_ragged_shape") or hasattr(t, "dense_shape")
    return t if known else as_values(t)


def _static_lengths(partition):
    splits = execution.get_static_value(partition.row_splits())
    if splits is not None:
        return tuple((splits[1:] - splits[:-1]).tolist())
    lengths = execution.get_static_value(partition.row_lengths())
    return None if lengths is None else tuple(lengths.tolist())


def _product(sizes):
    result = sizes[0]
    for n in sizes[1:]:
        result = result * n
    return result


# --- tf's functions of shapes.


def _like(function):
    def make(shape, *args, **kwargs):
        return shape._add_row_partitions(function(shape.inner_shape, *args, **kwargs))

    return make


def reshape(tensor, shape, name=None):
    """The values, all in one, in another shape."""
    return shape.over(as_values(tensor))


def fill(dims, value, name=None):
    """A ragged tensor of a shape, of one value."""
    return dims._add_row_partitions(array_ops.fill(dims.inner_shape, value))


zeros, ones = _like(array_ops.zeros), _like(array_ops.ones)

dispatch.add_functions(
    DynamicRaggedShape,
    """reshape shape ragged.dynamic_shape:reshape
zeros shape ragged.dynamic_shape:zeros
ones shape ragged.dynamic_shape:ones
fill dims ragged.dynamic_shape:fill
broadcast_to shape ragged.shape_broadcast:broadcast_to
broadcast_dynamic_shape shape_x,shape_y ragged.shape_broadcast:broadcast_dynamic_shape
""",
)
