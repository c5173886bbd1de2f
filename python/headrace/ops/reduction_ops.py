"""Sums, means, extremes and their kin over dimensions; cumulative ones."""

import collections.abc

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes, tensor_shape
from headrace.framework.indexed_slices import IndexedSlices
from headrace.framework.name_scopes import composite
from headrace.framework.support import signatures
from headrace.ops import array_ops, elementwise_ops, math_ops
from headrace.ops.faces import face


def _tensor(x):
    return x if isinstance(x, _headrace.Tensor) else conversion.convert_to_tensor(x)


def _axes(x, axis):
    if axis is not None:
        return axis
    rank = x._rank()
    if rank is not None:
        return _headrace.to_tensor(list(range(rank)), dtypes.int32, None)
    return raw.Range(0, array_ops.rank(x), 1)


def _reduction(op, name, doc):
    raw = []

    def reduce(input_tensor, axis=None, keepdims=False, name=None):
        if op in ("Any", "All") and not isinstance(input_tensor, _headrace.Tensor):
            input_tensor = conversion.to_tensor(input_tensor, dtypes.bool)
        x = _tensor(input_tensor)
        if not raw:
            raw.append(_headrace.raw_op(op))
        axes = _axes(x, axis)
        result = raw[0](input=x, axis=axes, keep_dims=bool(keepdims), name=name)
        if axis is None and not keepdims and x._rank() is None:
            result.set_shape([])
        return result

    return signatures.called(reduce, name, doc)


reduce_sum = _reduction("Sum", "reduce_sum", "The sum over `axis` (all by default).")
reduce_prod = _reduction("Prod", "reduce_prod", "The product over `axis`.")
reduce_mean = _reduction("Mean", "reduce_mean", "The mean over `axis`.")
reduce_max = _reduction("Max", "reduce_max", "The greatest over `axis`.")
reduce_min = _reduction("Min", "reduce_min", "The least over `axis`.")
reduce_all = _reduction("All", "reduce_all", "Whether all are true over `axis`.")
reduce_any = _reduction("Any", "reduce_any", "Whether any is true over `axis`.")
reduce_euclidean_norm = _reduction(
    "EuclideanNorm", "reduce_euclidean_norm", "The square root of the sum of squares."
)


@composite("reduce_variance")
def reduce_variance(input_tensor, axis=None, keepdims=False, name=None):
    """The variance over `axis`."""
    x = _tensor(input_tensor)
    if x.dtype.is_integer:
        raise TypeError(
            f"Input must be either real or complex. Received integer type {x.dtype}."
        )
    difference = x - reduce_mean(x, axis, True)
    if x.dtype.is_complex:
        squares = elementwise_ops.real(difference * raw.Conj(difference))
    else:
        squares = elementwise_ops.square(difference)
    return reduce_mean(squares, axis, keepdims, name)


@composite("reduce_std")
def reduce_std(input_tensor, axis=None, keepdims=False, name=None):
    """The standard deviation over `axis`."""
    return elementwise_ops.sqrt(reduce_variance(input_tensor, axis, keepdims), name)


@composite("ReduceLogSumExp", ends=True)
def reduce_logsumexp(input_tensor, axis=None, keepdims=False, name=None):
    """log(sum(exp(x))) over `axis`, without overflow."""
    x = _tensor(input_tensor)
    top = reduce_max(x, axis, True)
    top = array_ops.stop_gradient(
        array_ops.where(elementwise_ops.is_finite(top), top, array_ops.zeros_like(top))
    )
    total = elementwise_ops.log(
        reduce_sum(elementwise_ops.exp(x - top), axis, keepdims)
    )
    if not keepdims:
        top = array_ops.reshape(top, array_ops.shape(total))
    return raw.AddV2(total, top, name=name)


@composite("count_nonzero")
def count_nonzero(input, axis=None, keepdims=None, dtype=dtypes.int64, name=None):
    """How many elements are not zero."""
    x = _tensor(input)
    zero = {dtypes.string: "", dtypes.bool: False}.get(x.dtype, 0)
    zero = conversion.convert_to_tensor(zero, x.dtype, name="zeros")
    there = math_ops.cast(math_ops.not_equal(x, zero), dtypes.int64)
    return math_ops.cast(reduce_sum(there, axis, bool(keepdims)), dtype, name)


@composite("zero_fraction")
def zero_fraction(value, name=None):
    """The fraction of elements that are zero."""
    value = _tensor(value)
    size = array_ops.size(value, dtypes.int64)
    zeros = size - count_nonzero(value)
    return math_ops.cast(zeros, dtypes.float32) / math_ops.cast(size, dtypes.float32)


def _extreme(op, what):
    def arg(input, axis=None, output_type=dtypes.int64, name=None):
        axis = 0 if axis is None else axis
        return _headrace.raw_op(op)(
            input=input, dimension=axis, output_type=output_type, name=name
        )

    doc = f"The index of the {what} element along `axis`."
    return signatures.called(arg, op.lower(), doc)


argmax, argmin = _extreme("ArgMax", "greatest"), _extreme("ArgMin", "least")


def cumsum(x, axis=0, exclusive=False, reverse=False, name=None):
    """The running sum along `axis`."""
    return raw.Cumsum(_tensor(x), axis, exclusive=exclusive, reverse=reverse, name=name)


def cumprod(x, axis=0, exclusive=False, reverse=False, name=None):
    """The running product along `axis`."""
    return raw.Cumprod(
        _tensor(x), axis, exclusive=exclusive, reverse=reverse, name=name
    )


def cumulative_logsumexp(x, axis=0, exclusive=False, reverse=False, name=None):
    """The running log-sum-exp along `axis`."""
    return raw.CumulativeLogsumexp(
        _tensor(x), axis, exclusive=exclusive, reverse=reverse, name=name
    )


def add_n(inputs, name=None):
    """The sum of tensors of one shape: of a list or another iterable, or of the parts
    of a tensor along its first dimension."""
    if isinstance(inputs, collections.abc.Iterable):
        inputs = list(inputs)
    if not inputs or not isinstance(inputs, list):
        raise ValueError(
            "Inputs must be an iterable of at least one Tensor/IndexedSlices with the "
            "same dtype and shape."
        )
    items = [
        conversion.convert_to_tensor(x) if isinstance(x, IndexedSlices) else x
        for x in inputs
    ]
    if len(items) == 1:
        value = _tensor(items[0])
        return raw.Identity(value, name=name) if name else value
    return raw.AddN(items, name=name)


def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    """The sum of a list of tensors of one shape."""
    if not inputs or not isinstance(inputs, (list, tuple)):
        raise ValueError("inputs must be a list of at least one Tensor")
    merged = None if shape is None else tensor_shape.as_shape(shape)
    for x in inputs:
        own = _tensor(x).shape
        merged = own if merged is None else merged
        merged.assert_is_compatible_with(own)
        merged = merged.merge_with(own)
    return add_n(inputs, name)


_SORTED = """The {what} of the rows of each segment.

    `data` is [rows, ...], `segment_ids` int32 or int64 [rows], sorted, from 0; the
    result is [last id + 1, ...]. A segment without rows gets {empty}. Ids that go down
    or are negative raise InvalidArgumentError.
    """
_UNSORTED = """The {what} of the rows of each segment, in any order.

    `segment_ids` is int32 or int64 and has the first dimensions of `data`; the others
    stay: [num_segments, ...]. A segment without rows gets {empty}. Rows of negative ids
    are left out; ids of num_segments or more raise InvalidArgumentError.
    """


def _segments(name, what, empty="0"):
    """The face of a reduction of segments, which is called like its op."""
    op = name.title().replace("_", "")
    unsorted = name.startswith("unsorted")
    parameters = "data, segment_ids, num_segments" if unsorted else "data, segment_ids"
    doc = (_UNSORTED if unsorted else _SORTED).format(what=what, empty=empty)
    return face(op, name, parameters + ", name=None", doc, __name__)


_LOWEST, _HIGHEST = "the lowest finite value", "the highest finite value"
segment_sum = _segments("segment_sum", "sum")
segment_mean = _segments("segment_mean", "mean")
segment_max = _segments("segment_max", "maximum")
segment_min = _segments("segment_min", "minimum")
segment_prod = _segments("segment_prod", "product", "1")
unsorted_segment_sum = _segments("unsorted_segment_sum", "sum")
unsorted_segment_max = _segments("unsorted_segment_max", "maximum", _LOWEST)
unsorted_segment_min = _segments("unsorted_segment_min", "minimum", _HIGHEST)
unsorted_segment_prod = _segments("unsorted_segment_prod", "product", "1")


def _segment_sizes(data, segment_ids, num_segments):
    segment_ids = _tensor(segment_ids)
    count = unsorted_segment_sum(
        array_ops.ones_like(segment_ids, data.dtype), segment_ids, num_segments
    )
    extra = (data._rank() or 0) - (segment_ids._rank() or 0)
    for _ in range(extra):
        count = array_ops.expand_dims(count, -1)
    return elementwise_ops.maximum(count, conversion.to_tensor(1, data.dtype))


@composite("UnsortedSegmentMean")
def unsorted_segment_mean(data, segment_ids, num_segments, name=None):
    """The mean of the rows of each segment."""
    data = _tensor(data)
    total = unsorted_segment_sum(data, segment_ids, num_segments)
    return total / _segment_sizes(data, segment_ids, num_segments)


@composite("UnsortedSegmentSqrtN")
def unsorted_segment_sqrt_n(data, segment_ids, num_segments, name=None):
    """The sum of the rows of each segment over the square root of their number."""
    data = _tensor(data)
    total = unsorted_segment_sum(data, segment_ids, num_segments)
    return total / elementwise_ops.sqrt(_segment_sizes(data, segment_ids, num_segments))
