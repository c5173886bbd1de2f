"""Rows of one length."""

from headrace._load import _headrace
from headrace.framework import conversion, dtypes, execution
from headrace.ops import array_ops, check_ops, math_ops
from headrace.ragged import checks
from headrace.ragged.ragged_tensor import rows_of


def _scalar(x, dtype, what):
    if not isinstance(x, _headrace.Tensor):
        x = conversion.convert_to_tensor(x, dtype_hint=dtype)
    checks.integers(x, what)
    x.shape.assert_has_rank(0)
    known = execution.get_static_value(x)
    return math_ops.cast(x, dtype), None if known is None else int(known)


def _splits_dtype(values, length):
    inner = getattr(values, "row_splits", None)
    if inner is not None:
        return inner.dtype
    is_int32 = isinstance(length, _headrace.Tensor) and length.dtype == dtypes.int32
    return dtypes.int32 if is_int32 else dtypes.int64


def make(cls, values, length, nrows, validate):
    """See RaggedTensor.from_uniform_row_length."""
    values.shape.with_rank_at_least(1)
    dtype = _splits_dtype(values, length)
    length, known = _scalar(length, dtype, "uniform_row_length")
    if known is not None and known < 0:
        raise ValueError("uniform_row_length must be >= 0.")
    total = values.shape[0]
    count = math_ops.cast(rows_of(values), dtype)
    rows = None
    if nrows is not None:
        nrows, rows = _scalar(nrows, dtype, "nrows")
        if rows is not None and rows < 0:
            raise ValueError("nrows must be >= 0.")
    elif known is not None and total is not None:
        rows = total // known if known else 0
        nrows = math_ops.cast(rows, dtype)
    else:
        nrows = _quotient(count, length)
    if None not in (known, rows, total):
        if known * rows != total:
            raise ValueError(
                f"uniform_row_length={known} times nrows={rows} must equal nvals={total}"
            )
    elif validate:
        nrows = _checked(nrows, length, count)
    splits = array_ops.range(nrows + 1, dtype=dtype) * length
    if rows is not None:
        splits.set_shape([rows + 1])
    return cls(
        values,
        splits,
        internal=True,
        uniform=known,
        uniform_size=None if known is not None else length,
    )


def _quotient(count, length):
    one = array_ops.ones_like(length)
    return array_ops.where(
        length > 0, count // array_ops.where(length > 0, length, one), 0
    )


def _checked(nrows, length, count):
    text = "uniform_row_length times nrows must equal nvals"
    return checks.after(
        [check_ops.assert_equal(nrows * length, count, message=text)], nrows
    )
