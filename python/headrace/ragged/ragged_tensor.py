"""tf.RaggedTensor: values, and where each row of them begins and ends."""

import numpy as np

from headrace._load import _headrace
from headrace.framework import conversion, dtypes, tensor_shape
from headrace.ops import array_ops, math_ops
from headrace.ragged import checks, text


def _raw(op, **arguments):
    return _headrace.raw_op(op)(**arguments)


def is_ragged(x):
    """True for ragged tensors."""
    return isinstance(x, RaggedTensor)


def as_values(x):
    """A tensor or a ragged tensor."""
    return x if is_ragged(x) else conversion.convert_to_tensor(x)


def _partition(x, dtype=None):
    if not isinstance(x, _headrace.Tensor):
        given = getattr(x, "dtype", None)
        keep = dtype is None and given in (np.int32, np.dtype(np.int32))
        return conversion.convert_to_tensor(
            x, dtypes.int32 if keep else dtype or dtypes.int64
        )
    return x


def splits_of_lengths(lengths):
    """Where rows of these lengths begin, and the end."""
    zero = array_ops.zeros([1], lengths.dtype)
    total = _raw("Cumsum", x=lengths, axis=0, exclusive=False, reverse=False)
    return array_ops.concat([zero, total], 0)


class RaggedTensor:
    """Row i is values[row_splits[i] : row_splits[i + 1]]."""

    _is_composite_tensor = True
    _is_ragged = True
    __array_priority__ = 100

    def __init__(self, values, row_splits, internal=False, uniform=None):
        if not internal:
            raise ValueError(
                "RaggedTensor constructor is private; please use one of the factory "
                "methods instead (e.g., RaggedTensor.from_row_lengths())"
            )
        self._values_part = values
        self._splits = row_splits
        self._uniform = uniform  # the length of all rows, where it is one

    # --- Making them.
    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        """Of where each row begins, and the end."""
        values, splits = as_values(values), _partition(row_splits)
        splits.shape.assert_has_rank(1)
        if splits.shape[0] == 0:
            raise ValueError("Argument row_splits must not be empty.")
        if validate:
            checks.splits(splits, array_ops_rows(values), "from_row_splits")
        return cls(values, splits, internal=True)

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        """Of the length of each row."""
        values, lengths = as_values(values), _partition(row_lengths)
        lengths.shape.assert_has_rank(1)
        splits = splits_of_lengths(lengths)
        if validate:
            checks.lengths(lengths, splits, array_ops_rows(values))
        return cls(values, splits, internal=True)

    @classmethod
    def from_value_rowids(
        cls, values, value_rowids, nrows=None, name=None, validate=True
    ):
        """Of the row that each value is in."""
        values, ids = as_values(values), _partition(value_rowids)
        ids.shape.assert_has_rank(1)
        if nrows is None:
            last = array_ops.concat([array_ops.ones([1], ids.dtype) * -1, ids], 0)
            nrows = last[-1] + 1
        else:
            if isinstance(nrows, int) and nrows < 0:
                raise ValueError(f"Argument nrows must be >= 0; got {nrows}")
            nrows = math_ops.cast(_partition(nrows, ids.dtype), ids.dtype)
        if validate:
            checks.rowids(ids, nrows, array_ops_rows(values))
        lengths = _raw(
            "UnsortedSegmentSum",
            data=array_ops.ones_like(ids),
            segment_ids=ids,
            num_segments=nrows,
        )
        return cls(values, splits_of_lengths(lengths), internal=True)

    @classmethod
    def from_row_starts(cls, values, row_starts, name=None, validate=True):
        """Of where each row begins."""
        values, starts = as_values(values), _partition(row_starts)
        end = array_ops.reshape(
            math_ops.cast(array_ops_rows(values), starts.dtype), [1]
        )
        splits = array_ops.concat([starts, end], 0)
        return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_row_limits(cls, values, row_limits, name=None, validate=True):
        """Of where each row ends."""
        values, limits = as_values(values), _partition(row_limits)
        splits = array_ops.concat([array_ops.zeros([1], limits.dtype), limits], 0)
        return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_uniform_row_length(
        cls, values, uniform_row_length, nrows=None, name=None, validate=True
    ):
        """Rows of one length."""
        values = as_values(values)
        length = int(uniform_row_length)
        count = math_ops.cast(array_ops_rows(values), dtypes.int64)
        if nrows is None:
            nrows = count // length if length else array_ops.zeros([], dtypes.int64)
        nrows = math_ops.cast(_partition(nrows), dtypes.int64)
        splits = array_ops.range(nrows + 1, dtype=dtypes.int64) * length
        if validate:
            checks.splits(splits, count, "from_uniform_row_length")
        return cls(values, splits, internal=True, uniform=length)

    @classmethod
    def _nested(cls, make, flat_values, nested, validate):
        if isinstance(nested, _headrace.Tensor):
            raise TypeError(f"Argument must be a list of Tensors. Received {nested}.")
        result = flat_values
        for part in reversed(list(nested)):
            result = make(result, part, validate=validate)
        return result

    @classmethod
    def from_nested_row_splits(
        cls, flat_values, nested_row_splits, name=None, validate=True
    ):
        """Of the splits of each level, outermost first."""
        return cls._nested(
            cls.from_row_splits, flat_values, nested_row_splits, validate
        )

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values, nested_row_lengths, name=None, validate=True
    ):
        """Of the lengths of each level, outermost first."""
        return cls._nested(
            cls.from_row_lengths, flat_values, nested_row_lengths, validate
        )

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values,
        nested_value_rowids,
        nested_nrows=None,
        name=None,
        validate=True,
    ):
        """Of the row numbers of each level, outermost first."""
        nrows = nested_nrows or [None] * len(nested_value_rowids)
        result = flat_values
        for ids, n in list(zip(nested_value_rowids, nrows))[::-1]:
            result = cls.from_value_rowids(result, ids, n, validate=validate)
        return result

    @classmethod
    def from_tensor(
        cls,
        tensor,
        lengths=None,
        padding=None,
        ragged_rank=1,
        name=None,
        row_splits_dtype=dtypes.int64,
    ):
        """The rows of a dense tensor, cut to lengths or freed from padding."""
        from headrace.ragged import convert

        made = convert.from_tensor(tensor, lengths, padding, ragged_rank)
        return made.with_row_splits_dtype(row_splits_dtype)

    @classmethod
    def from_sparse(cls, st_input, name=None, row_splits_dtype=dtypes.int64):
        """The rows of a sparse matrix whose entries are at the left."""
        ids = st_input.indices[:, 0]
        nrows = st_input.dense_shape[0]
        made = cls.from_value_rowids(st_input.values, ids, nrows, validate=False)
        return made.with_row_splits_dtype(row_splits_dtype)

    # --- What they are.
    dtype = property(
        lambda self: self._values_part.dtype, doc="The dtype of the values."
    )
    values = property(
        lambda self: self._values_part,
        doc=(
            "The rows one after another, without the outermost splits: [total, ...]. A "
            "RaggedTensor where `ragged_rank` is above 1, else a Tensor."
        ),
    )
    row_splits = property(
        lambda self: self._splits,
        doc=(
            "Where the rows begin and end in `values`: [rows + 1], int32 or int64, "
            "from 0."
        ),
    )

    @property
    def ragged_rank(self):
        """How many of the dimensions, from the second on, are held as splits:
        an int."""
        return 1 + (self.values.ragged_rank if is_ragged(self.values) else 0)

    @property
    def flat_values(self):
        """The innermost values, with all splits taken off: a Tensor."""
        return self.values.flat_values if is_ragged(self.values) else self.values

    @property
    def nested_row_splits(self):
        """A tuple of the row_splits of each ragged dimension, the outermost first."""
        inner = self.values.nested_row_splits if is_ragged(self.values) else ()
        return (self._splits, *inner)

    @property
    def uniform_row_length(self):
        """The length that all rows are known to have, as a scalar tensor, or None."""
        if self._uniform is None:
            return None
        return conversion.constant(self._uniform, self._splits.dtype)

    @property
    def shape(self):
        """The static shape; None for the sizes of ragged dimensions that are not
        uniform.
        """
        n = self._splits.shape[0]
        inner = self.values.shape
        rows = None if n is None else n - 1
        tail = [None] if inner.rank is None else inner.as_list()[1:]
        return tensor_shape.TensorShape([rows, self._uniform, *tail])

    def get_shape(self):
        """The same as `shape`."""
        return self.shape

    @property
    def _type_spec(self):
        from headrace.ragged.spec import RaggedTensorSpec

        return RaggedTensorSpec.from_value(self)

    def nrows(self, out_type=None, name=None):
        """The number of rows of the outermost dimension: a scalar of `out_type`.

        `out_type` is int32 or int64; the splits' dtype where it is not given.
        """
        n = array_ops.shape(self._splits, out_type=out_type or self._splits.dtype)
        return n[0] - 1

    def row_starts(self, name=None):
        """Where each row begins in `values`: [rows]."""
        return self._splits[:-1]

    def row_limits(self, name=None):
        """Where each row ends in `values`, one past its last: [rows]."""
        return self._splits[1:]

    def row_lengths(self, axis=1, name=None):
        """Lengths of the rows; of an inner dimension as a ragged tensor."""
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return self._splits[1:] - self._splits[:-1]
        if is_ragged(self.values):
            return self.with_values(self.values.row_lengths(axis - 1))
        shape = array_ops.shape(self.values, out_type=self._splits.dtype)
        return self.with_values(array_ops.fill(shape[: axis - 1], shape[axis - 1]))

    def value_rowids(self, name=None):
        """The row of each value."""
        from headrace.ragged import convert

        return convert.rowids_of_splits(self._splits)

    def nested_row_lengths(self, name=None):
        """A tuple of the row_lengths() of each ragged dimension,
        the outermost first."""
        inner = self.values.nested_row_lengths() if is_ragged(self.values) else ()
        return (self.row_lengths(), *inner)

    def nested_value_rowids(self, name=None):
        """A tuple of the value_rowids() of each ragged dimension,
        the outermost first."""
        inner = self.values.nested_value_rowids() if is_ragged(self.values) else ()
        return (self.value_rowids(), *inner)

    def bounding_shape(self, axis=None, name=None, out_type=None):
        """The sizes of the smallest dense tensor that holds all values."""
        from headrace.ragged import convert

        return convert.bounding_shape(self, axis, out_type)

    # --- Others like them.
    def with_values(self, new_values):
        """The same outermost splits with other values,
        of as many rows as `values` has."""
        return RaggedTensor(
            as_values(new_values), self._splits, internal=True, uniform=self._uniform
        )

    def with_flat_values(self, new_values):
        """The same splits at all levels with other innermost values,
        as many as before."""
        if is_ragged(self.values):
            return self.with_values(self.values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype):
        """The same rows with splits of `dtype` at all levels; ValueError unless int32
        or int64.
        """
        dtype = dtypes.as_dtype(dtype)
        if dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError(f"Argument dtype must be int32 or int64; got {dtype!r}")
        values = self.values
        if is_ragged(values):
            values = values.with_row_splits_dtype(dtype)
        splits = math_ops.cast(self._splits, dtype)
        return RaggedTensor(values, splits, internal=True, uniform=self._uniform)

    def merge_dims(self, outer_axis, inner_axis):
        """Dimensions outer_axis to inner_axis as one."""
        from headrace.ragged import convert

        return convert.merge_dims(self, outer_axis, inner_axis)

    def to_tensor(self, default_value=None, name=None, shape=None):
        """A dense tensor, padded with `default_value`."""
        from headrace.ragged import convert

        return convert.to_tensor(self, default_value, shape, name)

    def to_sparse(self, name=None):
        """The values as the entries of a sparse tensor."""
        from headrace.framework.sparse_tensor import SparseTensor

        return SparseTensor(
            *_raw(
                "RaggedTensorToSparse",
                rt_nested_splits=list(self.nested_row_splits),
                rt_dense_values=self.flat_values,
                name=name,
            )
        )

    def to_list(self):
        """Nested lists of Python values."""
        values = (
            self.values.to_list()
            if is_ragged(self.values)
            else self.values.numpy().tolist()
        )
        splits = self._splits.numpy().tolist()
        return [values[b:e] for b, e in zip(splits, splits[1:])]

    def numpy(self):
        """An array; of objects where rows differ in length."""
        values, splits = self.values.numpy(), self._splits.numpy().tolist()
        rows = [values[b:e] for b, e in zip(splits, splits[1:])]
        if not rows:
            return np.zeros((0, 0) + values.shape[1:], values.dtype)
        if len({len(r) for r in rows}) == 1:
            return np.stack(rows)
        out = np.empty(len(rows), object)
        for i, row in enumerate(rows):
            out[i] = row
        return out

    def consumers(self):
        """An empty list: consumers of ragged tensors are not kept."""
        return []

    # --- As parts.
    def _components(self):
        return [self.flat_values, *self.nested_row_splits]

    def _from_components(self, parts):
        if not isinstance(parts[0], _headrace.Tensor):
            if isinstance(parts[0], np.ndarray):
                return RaggedTensorValue.of(parts)
            return parts
        result = parts[0]
        uniforms, level = [], self
        while is_ragged(level):
            uniforms.append(level._uniform)
            level = level.values
        for splits, uniform in list(zip(parts[1:], uniforms))[::-1]:
            result = RaggedTensor(result, splits, internal=True, uniform=uniform)
        return result

    def _print_parts(self):
        return text.print_parts(self)

    def __repr__(self):
        if isinstance(self.flat_values, _headrace.EagerTensor):
            return f"<tf.RaggedTensor {text.of_array(self.numpy())}>"
        return f"tf.RaggedTensor(values={self.values}, row_splits={self._splits})"

    def __bool__(self):
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __tf_tensor__(self, dtype=None, name=None):
        raise ValueError("TypeError: object of type 'RaggedTensor' has no len()\n")

    def __getitem__(self, key):
        from headrace.ragged import indexing

        return indexing.getitem(self, key)

    def __iter__(self):
        n = self._splits.shape[0]
        if n is None:
            raise TypeError("Cannot iterate over a ragged tensor of unknown length")
        return iter([self[i] for i in range(n - 1)])


class RaggedTensorValue:
    """A ragged tensor's value, as sessions give it."""

    def __init__(self, values, row_splits):
        self.values, self.row_splits = values, row_splits

    @classmethod
    def of(cls, parts):
        result = parts[0]
        for splits in parts[:0:-1]:
            result = cls(result, splits)
        return result

    def to_list(self):
        nested = isinstance(self.values, RaggedTensorValue)
        values = self.values.to_list() if nested else self.values.tolist()
        s = self.row_splits.tolist()
        return [values[b:e] for b, e in zip(s, s[1:])]

    def __repr__(self):
        return (
            f"tf.RaggedTensorValue(values={self.values!r}, "
            f"row_splits={self.row_splits!r})"
        )


def array_ops_rows(values):
    """The number of rows of a tensor or ragged tensor, int64."""
    if is_ragged(values):
        return math_ops.cast(values.nrows(), dtypes.int64)
    if values.shape.rank is not None and values.shape[0] is not None:
        return conversion.constant(values.shape[0], dtypes.int64)
    return array_ops.shape(values, out_type=dtypes.int64)[0]


def _operator(function, swapped=False):
    def apply(self, other=None):
        from headrace.ragged import elementwise

        operands = [self] if other is None else [self, other]
        return elementwise.apply(function, operands[::-1] if swapped else operands)

    return apply


def _add_operators():
    import operator as o

    pairs = "add sub mul truediv floordiv mod pow and_ or_ xor".split()
    for name in pairs:
        function = getattr(o, name)
        plain = name.rstrip("_")
        setattr(RaggedTensor, f"__{plain}__", _operator(function))
        setattr(RaggedTensor, f"__r{plain}__", _operator(function, swapped=True))
    for name in "lt le gt ge eq ne neg abs invert".split():
        setattr(RaggedTensor, f"__{name}__", _operator(getattr(o, name)))
    RaggedTensor.__hash__ = object.__hash__


_add_operators()
