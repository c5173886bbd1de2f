"""tf.experimental.RowPartition: where each row of a sequence of values begins and ends."""

from headrace._load import _headrace, raw
from headrace.context.properties import read_only
from headrace.framework import (
    conversion,
    dtypes,
    execution,
    name_scopes,
    tensor_shape,
    type_spec,
)
from headrace.ops import array_ops, check_ops, math_ops
from headrace.ragged import checks, parts

_INDEXES = (dtypes.int32, dtypes.int64)


def _tensor(x, what, dtype=None, dtype_hint=None):
    if dtype is not None:
        x = conversion.convert_to_tensor(x, dtypes.as_dtype(dtype), name=what)
    elif dtype_hint is not None and not hasattr(x, "dtype"):
        x = conversion.convert_to_tensor(x, dtype_hint=dtype_hint, name=what)
    return parts.partition(x, what=what)


def _vector(x, what, dtype=None, dtype_hint=None):
    x = _tensor(x, what, dtype, dtype_hint)
    x.shape.assert_has_rank(1)
    return x


def _known(x):
    """The int of a scalar tensor where it is known, else None."""
    value = None if x is None else execution.get_static_value(x)
    return None if value is None else int(value)


def _size(shape, less=0):
    """The size of a vector's shape, less something, or None."""
    n = None if shape.rank is None else shape[0]
    return None if n is None else n - less


class RowPartition:
    """A sequence of values cut into rows, one after another.

    It holds the row splits (int32 or int64, [nrows + 1]), knows of rows that all have one
    length, and keeps what it was made of, which need not be computed again.
    """

    _is_composite_tensor = True

    def __init__(
        self,
        row_splits,
        row_lengths=None,
        value_rowids=None,
        nrows=None,
        uniform_row_length=None,
        nvals=None,
        internal=False,
    ):
        if not internal:
            raise ValueError(
                "RowPartition constructor is private; please use one of the factory "
                "methods instead (e.g., RowPartition.from_row_lengths())"
            )
        self._splits = row_splits
        self._uniform_size = uniform_row_length  # a scalar tensor, or None
        given = {
            "lengths": row_lengths,
            "rowids": value_rowids,
            "nrows": nrows,
            "nvals": nvals,
        }
        self._given = {k: v for k, v in given.items() if v is not None}
        self._uniform = _known(uniform_row_length)
        self._nvals = self._known_nvals()

    def _known_nvals(self):
        if "nvals" in self._given:
            return _known(self._given["nvals"])
        if "rowids" in self._given:
            return _size(self._given["rowids"].shape)
        rows = self.static_nrows
        return None if None in (self._uniform, rows) else self._uniform * rows

    def _known_sum(self):
        """The number of values where it can be told without a run, else None."""
        if self._nvals is not None:
            return self._nvals
        splits = execution.get_static_value(self._splits)
        if splits is not None:
            return int(splits[-1])
        lengths = self._given.get("lengths")
        lengths = None if lengths is None else execution.get_static_value(lengths)
        return None if lengths is None else int(lengths.sum())

    # --- Making them.
    @classmethod
    def from_value_rowids(
        cls, value_rowids, nrows=None, validate=True, dtype=None, dtype_hint=None
    ):
        """Of the row that each value is in: int32 or int64, [nvals], sorted.

        `nrows` is the number of rows where the last ones may be empty. ValueError or, with
        `validate`, InvalidArgumentError where these do not fit.
        """
        with name_scopes.graph_scope(None, "RowPartitionFromValueRowIds"):
            ids = _vector(value_rowids, "value_rowids", dtype, dtype_hint)
            known = None
            if nrows is None:
                last = array_ops.concat([array_ops.ones([1], ids.dtype) * -1, ids], 0)
                nrows = last[-1] + 1
                last = execution.get_static_value(ids)
                if last is not None:
                    known = int(last[-1]) + 1 if len(last) else 0
            else:
                nrows = math_ops.cast(_tensor(nrows, "nrows"), ids.dtype)
                nrows.shape.assert_has_rank(0)
                known = _known(nrows)
                checks.nrows(known, ids)
            if validate:
                ids = checks.rowids(ids, nrows)
            lengths = raw.UnsortedSegmentSum(array_ops.ones_like(ids), ids, nrows)
            if known is not None and known >= 0:
                lengths.set_shape([known])
            splits = parts.splits_of_lengths(lengths)
            return cls(splits, value_rowids=ids, nrows=nrows, internal=True)

    @classmethod
    def from_row_splits(cls, row_splits, validate=True, dtype=None, dtype_hint=None):
        """Of where each row begins, and the end: int32 or int64, [nrows + 1].

        It begins with 0 and never goes down. ValueError or, with `validate`,
        InvalidArgumentError otherwise.
        """
        with name_scopes.graph_scope(None, "RowPartitionFromRowSplits"):
            splits = _vector(row_splits, "row_splits", dtype, dtype_hint)
            if splits.shape.rank is not None and splits.shape[0] == 0:
                raise ValueError("row_splits tensor may not be empty.")
            if validate:
                splits = checks.splits(splits, "from_row_splits")
            return cls(splits, internal=True)

    @classmethod
    def from_row_lengths(cls, row_lengths, validate=True, dtype=None, dtype_hint=None):
        """Of the length of each row: int32 or int64, [nrows], none negative."""
        with name_scopes.graph_scope(None, "RowPartitionFromRowLengths"):
            lengths = _vector(row_lengths, "row_lengths", dtype, dtype_hint)
            if validate:
                lengths = checks.lengths(lengths)
            splits = parts.splits_of_lengths(lengths)
            return cls(splits, row_lengths=lengths, internal=True)

    @classmethod
    def from_row_starts(
        cls, row_starts, nvals, validate=True, dtype=None, dtype_hint=None
    ):
        """Of where each row begins, int32 or int64, [nrows], and the number of values."""
        with name_scopes.graph_scope(None, "RowPartitionFromRowStarts"):
            starts = _vector(row_starts, "row_starts", dtype, dtype_hint)
            nvals = math_ops.cast(_tensor(nvals, "nvals"), starts.dtype)
            if validate:
                text = checks.text("from_row_starts")
                starts = checks.after(
                    [
                        check_ops.assert_equal(
                            starts[:1], array_ops.zeros_like(starts[:1]), message=text
                        ),
                        check_ops.assert_non_negative(
                            starts[1:] - starts[:-1], message=text
                        ),
                        check_ops.assert_less_equal(starts[-1:], nvals, message=text),
                    ],
                    starts,
                )
            end = array_ops.reshape(nvals, [1])
            splits = array_ops.concat([starts, end], 0)
            return cls(splits, nvals=nvals, internal=True)

    @classmethod
    def from_row_limits(cls, row_limits, validate=True, dtype=None, dtype_hint=None):
        """Of where each row ends: int32 or int64, [nrows]."""
        with name_scopes.graph_scope(None, "RowPartitionFromRowLimits"):
            limits = _vector(row_limits, "row_limits", dtype, dtype_hint)
            if validate:
                text = checks.text("from_row_limits")
                limits = checks.after(
                    [
                        check_ops.assert_non_negative(limits[:1], message=text),
                        check_ops.assert_non_negative(
                            limits[1:] - limits[:-1], message=text
                        ),
                    ],
                    limits,
                )
            zero = array_ops.zeros([1], limits.dtype)
            return cls(array_ops.concat([zero, limits], 0), internal=True)

    @classmethod
    def from_uniform_row_length(
        cls,
        uniform_row_length,
        nvals=None,
        nrows=None,
        validate=True,
        dtype=None,
        dtype_hint=None,
    ):
        """Rows of one length, a scalar; the number of values or of rows is needed.

        `nrows` is needed where the length is 0. ValueError or, with `validate`,
        InvalidArgumentError where the length does not divide the number of values.
        """
        if nvals is None and nrows is None:
            raise ValueError("Either (or both) of nvals and nrows must be specified")
        with name_scopes.graph_scope(None, "RowPartitionFromUniformRowLength"):
            given = (uniform_row_length, nvals, nrows)
            if dtype is None and dtype_hint is None:
                found = [
                    x.dtype for x in given if getattr(x, "dtype", None) in _INDEXES
                ]
                dtype_hint = found[0] if found else dtypes.int64
            length = _scalar(
                uniform_row_length, "uniform_row_length", dtype, dtype_hint
            )
            nvals = _scalar(nvals, "nvals", length.dtype)
            nrows = _scalar(nrows, "nrows", length.dtype)
            return cls._of_length(length, nvals, nrows, validate)

    @classmethod
    def _of_length(cls, length, nvals, nrows, validate):
        known, values, rows = _known(length), _known(nvals), _known(nrows)
        for what, x in (("uniform_row_length", known), ("nrows", rows)):
            if x is not None and x < 0:
                raise ValueError(f"{what} must be >= 0.")
        if nrows is None and known is not None and values is not None:
            rows = max(values, 0) // known if known else 0
            nrows = math_ops.cast(rows, length.dtype)
        elif nrows is None:
            nrows = _quotient(nvals, length)
        if nvals is None:
            nvals = nrows * length
        elif None not in (known, rows, values):
            if known * rows != values:
                raise ValueError(
                    f"uniform_row_length={known} times nrows={rows} must equal "
                    f"nvals={values}"
                )
        elif validate:
            text = "uniform_row_length times nrows must equal nvals"
            nrows = checks.after(
                [check_ops.assert_equal(nrows * length, nvals, message=text)], nrows
            )
        splits = array_ops.range(nrows + 1, dtype=length.dtype) * length
        if rows is not None:
            splits.set_shape([rows + 1])
        return cls(
            splits, nrows=nrows, uniform_row_length=length, nvals=nvals, internal=True
        )

    # --- What they are.
    dtype = read_only("_splits.dtype", "The dtype of the splits: int32 or int64.")
    static_nvals = read_only("_nvals", "The number of values, an int or None.")
    static_uniform_row_length = read_only(
        "_uniform", "The length that all rows are known to have, an int or None."
    )

    @property
    def static_nrows(self):
        """The number of rows, an int or None."""
        n = _size(self._splits.shape, 1)
        return _known(self._given.get("nrows")) if n is None else n

    def row_splits(self):
        """Where the rows begin, and the end: [nrows + 1]."""
        return self._splits

    def value_rowids(self):
        """The row of each value: [nvals]."""
        return self._part("rowids", lambda: parts.rowids_of_splits(self._splits))

    def nvals(self):
        """The number of values: a scalar."""
        return self._part("nvals", lambda: self._splits[-1])

    def nrows(self):
        """The number of rows: a scalar."""
        known = _size(self._splits.shape, 1)
        if known is not None:
            return conversion.constant(known, self.dtype)
        return self._part(
            "nrows", lambda: array_ops.shape(self._splits, out_type=self.dtype)[0] - 1
        )

    def uniform_row_length(self):
        """The length that all rows are known to have, a scalar tensor, or None."""
        if self._uniform_size is None and self._uniform is not None:
            return conversion.constant(self._uniform, self.dtype)
        return self._uniform_size

    def row_starts(self):
        """Where each row begins: [nrows]."""
        return self._splits[:-1]

    def row_limits(self):
        """Where each row ends, one past its last value: [nrows]."""
        return self._splits[1:]

    def row_lengths(self):
        """The length of each row: [nrows]."""
        return self._part("lengths", lambda: self._splits[1:] - self._splits[:-1])

    def offsets_in_rows(self):
        """The place of each value in its row, from 0: [nvals]."""
        rowids = self.value_rowids()
        count = array_ops.shape(rowids, out_type=self.dtype)[0]
        places = array_ops.range(count, dtype=self.dtype)
        return places - array_ops.gather(self.row_starts(), rowids)

    def is_uniform(self):
        """Whether all rows are known to have one length."""
        return self._uniform is not None or self._uniform_size is not None

    def _part(self, kind, make):
        if kind in self._given:
            return self._given[kind]
        made = make()
        if isinstance(made, _headrace.EagerTensor):
            self._given[kind] = made  # tensors of a graph may be out of scope later
        return made

    # --- Others like them.
    def with_dtype(self, dtype):
        """The same partition in int32 or int64; ValueError for other dtypes."""
        dtype = dtypes.as_dtype(dtype)
        if dtype not in _INDEXES:
            raise ValueError("dtype must be int32 or int64")
        return self if dtype == self.dtype else self._each(math_ops.cast, dtype)

    def _each(self, change, *args):
        """The same with each tensor changed."""
        made = RowPartition(change(self._splits, *args), internal=True)
        if self._uniform_size is not None:
            made._uniform_size = change(self._uniform_size, *args)
        made._given = {k: change(v, *args) for k, v in self._given.items()}
        made._uniform, made._nvals = self._uniform, self._nvals
        return made

    def _with_dependencies(self, assertions):
        """The same once assertions hold."""
        held = [a for a in assertions if a is not None]
        if not held:
            return self
        return self._each(lambda x: checks.after(held, x))

    def _with_sizes(self, nrows=None, nvals=None, uniform=None):
        """The same, of which these ints (or None) are known, too. ValueError where they
        contradict what is known."""
        spec = self._type_spec._merge_with(
            RowPartitionSpec(nrows, nvals, uniform, self.dtype)
        )
        if spec == self._type_spec:
            return self
        made = self._each(lambda x: x)
        if spec.nrows is not None:
            made._splits.set_shape([spec.nrows + 1])
        made._uniform, made._nvals = spec.uniform_row_length, spec.nvals
        return made

    def _merge_with_spec(self, b):
        """The same, of which is known what a spec says; ValueError where that differs."""
        if not b.is_compatible_with(self._type_spec):
            raise ValueError("RowPartition and RowPartitionSpec are not compatible")
        return self._with_sizes(b.nrows, b.nvals, b.uniform_row_length)

    def _merge_precomputed_encodings(self, other, validate=True):
        """One partition with what two equal ones know: ValueError or, with `validate`,
        InvalidArgumentError where they differ."""
        if self is other or self._splits is other._splits and not other._given:
            return self
        text = (
            "RowPartition._merge_precomputed_encodings: partitions have incompatible "
            "row_splits"
        )
        if self.dtype != other.dtype:
            raise ValueError(text)
        a, b = self._type_spec, other._type_spec
        if not a.is_compatible_with(b):
            raise ValueError(text)
        made = self._with_sizes(b.nrows, b.nvals, b.uniform_row_length)
        if validate and self._splits is not other._splits:
            held = check_ops.assert_equal(self._splits, other._splits, message=text)
            made = made._with_dependencies([held])
        made = made._each(lambda x: x)
        made._given = {**other._given, **made._given}
        if made._uniform_size is None:
            made._uniform_size = other._uniform_size
        return made

    def __repr__(self):
        def shown(x):
            return str(x.numpy()) if isinstance(x, _headrace.EagerTensor) else str(x)

        if not self.is_uniform():
            return f"tf.RowPartition(row_splits={shown(self._splits)})"
        return (
            f"tf.RowPartition(nrows={shown(self.nrows())}, "
            f"uniform_row_length={shown(self.uniform_row_length())})"
        )

    # --- As parts.
    @property
    def _type_spec(self):
        return RowPartitionSpec.from_value(self)

    def _components(self):
        return [self._splits]

    def _static_parts(self):
        return (self._nvals, self._uniform)

    def _from_components(self, components):
        return self._type_spec._from_components(components)


def _scalar(x, what, dtype=None, dtype_hint=None):
    if x is None:
        return None
    if dtype is not None and hasattr(x, "dtype"):
        x = math_ops.cast(_tensor(x, what), dtypes.as_dtype(dtype))
    else:
        x = _tensor(x, what, dtype, dtype_hint)
    x.shape.assert_has_rank(0)
    return x


def _quotient(count, length):
    one = array_ops.ones_like(length)
    return array_ops.where(
        length > 0,
        count // array_ops.where(length > 0, length, one),
        array_ops.zeros_like(length),
    )


class RowPartitionSpec(type_spec.TypeSpec):
    """What a RowPartition is like: sizes that are known, ints or None, and the dtype.

    ValueError for sizes that contradict each other or are negative, and for dtypes other
    than int32 and int64.
    """

    value_type = RowPartition

    def __init__(
        self, nrows=None, nvals=None, uniform_row_length=None, dtype=dtypes.int64
    ):
        self._dtype = dtypes.as_dtype(dtype)
        if self._dtype not in _INDEXES:
            raise ValueError("dtype must be tf.int32 or tf.int64")
        sizes = [
            tensor_shape.TensorShape([n]) for n in (nrows, nvals, uniform_row_length)
        ]
        rows, values, length = (s[0] for s in sizes)
        if length is not None and values is not None:
            if length == 0 and values != 0:
                raise ValueError(
                    f"nvals={values} is not compatible with uniform_row_length="
                    f"({length},)"
                )
            if length and values % length:
                raise ValueError(
                    f"nvals={values} is not compatible with uniform_row_length="
                    f"{length} (doesn't divide evenly)"
                )
            if length:
                sizes[0] = sizes[0].merge_with([values // length])
        if rows == 0:
            sizes[1] = sizes[1].merge_with([0])
        if None not in (length, rows):
            sizes[1] = sizes[1].merge_with([rows * length])
        self._nrows, self._nvals, self._uniform_row_length = sizes

    dtype = read_only("_dtype", "int32 or int64.")

    @property
    def nrows(self):
        """The number of rows, or None."""
        return self._nrows[0]

    @property
    def nvals(self):
        """The number of values, or None."""
        return self._nvals[0]

    @property
    def uniform_row_length(self):
        """The length of all rows, or None."""
        return self._uniform_row_length[0]

    def _sizes(self):
        return self.nrows, self.nvals, self.uniform_row_length

    def _serialize(self):
        return self._nrows, self._nvals, self._uniform_row_length, self._dtype

    @classmethod
    def _deserialize(cls, serialization):
        *sizes, dtype = serialization
        return cls(*(s[0] for s in sizes), dtype)

    @property
    def _component_specs(self):
        size = None if self.nrows is None else self.nrows + 1
        return [type_spec.TensorSpec([size], self._dtype)]

    def _from_components(self, parts):
        if not isinstance(parts[0], _headrace.Tensor):
            return parts
        return RowPartition(parts[0], internal=True)._with_sizes(*self._sizes())

    # --- As elements of datasets: the splits.

    @property
    def _flat_tensor_specs(self):
        return self._component_specs

    def _to_tensor_list(self, value):
        return value._components()

    _from_tensor_list = _from_compatible_tensor_list = _from_components

    @classmethod
    def from_value(cls, value):
        """The spec of a RowPartition."""
        return cls(value.static_nrows, value._nvals, value._uniform, value.dtype)

    def with_dtype(self, dtype):
        """The same with another dtype."""
        return RowPartitionSpec(*self._sizes(), dtype)

    def _merge_with(self, other):
        """The spec of what both fit; ValueError where there is none."""
        pairs = zip(self._serialize()[:3], other._serialize()[:3])
        return RowPartitionSpec(*(a.merge_with(b)[0] for a, b in pairs), self._dtype)

    def __repr__(self):
        nrows, nvals, length = self._sizes()
        return (
            f"RowPartitionSpec(nrows={nrows}, nvals={nvals}, "
            f"uniform_row_length={length}, dtype={self._dtype!r})"
        )
