"""Functions of tf.experimental.numpy that reduce dimensions, scan and sort."""

import functools

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.numpy_api import arrays, indexing, promotion, shaping
from headrace.numpy_api.arrays import as_array, floating
from headrace.numpy_api.weak_tensor import plain


def _refuse_out(out):
    if out is not None:
        raise ValueError("Setting out is not supported.")


def _wide(a):
    """Integers and booleans in the size that sums of them need."""
    dtype = a.dtype
    if not (dtype == tf.bool or dtype.is_integer) or isinstance(a, arrays.WeakTensor):
        return a
    wide = promotion.default_int()
    if dtype.is_unsigned:
        wide = tf.uint32 if wide == tf.int32 else tf.uint64
    return tf.cast(a, wide) if dtype.size < wide.size or dtype == tf.bool else a


def _bool_or(of_bools, reduce):
    return lambda a, axis, keepdims: (of_bools if a.dtype == tf.bool else reduce)(
        a, axis, keepdims
    )


_largest = _bool_or(tf.reduce_any, tf.reduce_max)
_smallest = _bool_or(tf.reduce_all, tf.reduce_min)


def _axes(axis):
    """What reductions take as dimensions: also of none, or of floating numbers."""
    if axis is None or isinstance(axis, int):
        return axis
    axis = plain(as_array(axis))
    return axis if axis.dtype.is_integer else tf.cast(axis, tf.int32)


def _reduce(reduce, convert, a, axis, dtype, keepdims):
    a = as_array(a, promotion.as_dtype(dtype))
    axis = _axes(axis)
    return reduce(convert(a) if dtype is None else a, axis, bool(keepdims))


def _add_reductions(scope, table, of):
    """Rows: "name (parameters) what it gives", with `of[name]` = (reduce, convert).
    Gives the functions by name."""
    found = {}
    for row in table.strip().splitlines():
        head, _, doc = row.partition(") ")
        name, _, parameters = head.partition(" (")

        def call(a, axis, out=None, dtype=None, keepdims=None, own=of[name]):
            _refuse_out(out)
            return _reduce(*own, a, axis, dtype, keepdims)

        like = signatures.named(name, doc, scope["__name__"])
        made = signatures.function_of(like, signatures.from_text(parameters), call)
        scope[name] = found[name] = made
    return found


def _as_is(a):
    return a


_to_bool = functools.partial(as_array, dtype=tf.bool)

_made = _add_reductions(
    globals(),
    """
all (a, axis=None, keepdims=None) Whether all elements along dimensions are true.
any (a, axis=None, keepdims=None) Whether an element along dimensions is true.
sum (a, axis=None, dtype=None, keepdims=None) Sums; small integers become larger ones.
prod (a, axis=None, dtype=None, keepdims=None) Products; small integers become larger ones.
max (a, axis=None, keepdims=None) The largest elements along dimensions.
min (a, axis=None, keepdims=None) The smallest elements along dimensions.
amax (a, axis=None, out=None, keepdims=None) The largest elements along dimensions.
amin (a, axis=None, out=None, keepdims=None) The smallest elements along dimensions.
mean (a, axis=None, dtype=None, out=None, keepdims=None) Means; floating ones of integers.
""",
    {
        "all": (tf.reduce_all, _to_bool),
        "any": (tf.reduce_any, _to_bool),
        "sum": (lambda *given: tf.reduce_sum(*given), _wide),
        "prod": (lambda *given: tf.reduce_prod(*given), _wide),
        "max": (_largest, _as_is),
        "min": (_smallest, _as_is),
        "amax": (_largest, _as_is),
        "amin": (_smallest, _as_is),
        "mean": (lambda *given: tf.reduce_mean(*given), floating),
    },
)


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=None):
    """Variances along dimensions: sums of squared distances from the mean, divided by
    the number of elements less `ddof`. ValueError for `out`."""
    _refuse_out(out)
    a = as_array(a, promotion.as_dtype(dtype))
    a = a if dtype is not None else floating(a)
    axis, keepdims = _axes(axis), bool(keepdims)
    if not ddof and not a.dtype.is_integer:
        return tf.math.reduce_variance(a, axis, keepdims)
    squares = tf.square(tf.abs(a - tf.reduce_mean(a, axis, True)))
    if not ddof:
        return tf.reduce_mean(squares, axis, keepdims)
    total = tf.reduce_sum(squares, axis, keepdims)
    count = plain(tf.reduce_sum(tf.ones_like(squares), axis, keepdims))
    return total / (count - tf.cast(ddof, count.dtype))


def std(a, axis=None, keepdims=None):
    """Standard deviations along dimensions."""
    return tf.math.reduce_std(floating(a), _axes(axis), bool(keepdims))


def ptp(a, axis=None, keepdims=None):
    """The largest less the smallest elements along dimensions."""
    keepdims = bool(keepdims)
    a = as_array(a)
    return tf.reduce_max(a, axis, keepdims) - tf.reduce_min(a, axis, keepdims)


def average(a, axis=None, weights=None, returned=False):
    """Means of elements that have weights: of the same shape, or, with an axis, those
    along it; with `returned` their sum is given, too.

    ValueError for several axes, InvalidArgumentError for weights of another shape.
    """
    if axis is not None and not isinstance(axis, int):
        raise ValueError(
            "Argument `axis` must be an integer. "
            f"Received axis={axis} (of type {type(axis)})"
        )
    a = floating(a)
    if weights is None:
        made = tf.reduce_mean(a, axis)
        total = tf.cast(tf.size(a) / tf.size(made), made.dtype)
        total = tf.broadcast_to(total, tf.shape(made))
    else:
        a, weights = (floating(x) for x in arrays.plain_arrays(a, weights))
        weights = _like_elements(a, axis, weights)
        total = tf.reduce_sum(weights, axis)
        made = tf.reduce_sum(a * weights, axis) / total
    return (made, total) if returned else made


def _like_elements(a, axis, weights):
    """The weights of all elements, given those along an axis."""
    rank = arrays.static_rank(a)
    if weights.shape.rank == rank and (rank != 1 or axis is None):
        _check_same(tf.shape(a), tf.shape(weights))
        return weights
    axis = arrays.axis_of(0 if axis is None else axis, rank)
    _check_same(tf.shape(a)[axis : axis + 1], tf.shape(weights))
    sizes = [1] * rank
    sizes[axis] = -1
    return tf.broadcast_to(tf.reshape(weights, sizes), tf.shape(a))


def _check_same(sizes, found):
    static = [tf.get_static_value(x) for x in (sizes, found)]
    text = "The weights do not have the shape of the elements that they are for."
    if None not in [x if x is None else 0 for x in static]:
        if list(static[0]) != list(static[1]):
            raise tf.errors.InvalidArgumentError(None, None, text)
    else:
        tf.debugging.assert_equal(sizes, found, text)


def _nan_as(value, reduce):
    def call(a, axis=None, dtype=None, keepdims=False):
        a = plain(as_array(a))
        if a.dtype.is_floating or a.dtype.is_complex:
            a = tf.where(tf.not_equal(a, a), tf.cast(value, a.dtype), a)
        return reduce(a, axis=axis, dtype=dtype, keepdims=keepdims)

    return call


_nansum, _nanprod = _nan_as(0, _made["sum"]), _nan_as(1, _made["prod"])


def nansum(a, axis=None, dtype=None, keepdims=False):
    """Sums along dimensions in which NaN is 0."""
    return _nansum(a, axis, dtype, keepdims)


def nanprod(a, axis=None, dtype=None, keepdims=False):
    """Products along dimensions in which NaN is 1."""
    return _nanprod(a, axis, dtype, keepdims)


def nanmean(a, axis=None, dtype=None, keepdims=None):
    """Means along dimensions of what is not NaN."""
    a = as_array(a)
    if not (a.dtype.is_floating or a.dtype.is_complex):
        return _made["mean"](a, axis=axis, dtype=dtype, keepdims=keepdims)
    total = nansum(a, axis, dtype, bool(keepdims))
    a = plain(a)
    count = tf.reduce_sum(tf.cast(tf.equal(a, a), total.dtype), axis, bool(keepdims))
    return total / count


def count_nonzero(a, axis=None):
    """The number of elements along dimensions that are not 0."""
    return tf.math.count_nonzero(plain(as_array(a)), axis)


def _scanned(scan, a, axis, dtype):
    a = as_array(a, promotion.as_dtype(dtype))
    a = _wide_of_numpy(a) if dtype is None else a
    if axis is None:
        a, axis = tf.reshape(a, [-1]), 0
    made = scan(plain(a), axis)
    return arrays.weakened(made) if isinstance(a, arrays.WeakTensor) else made


def _wide_of_numpy(a):
    small = a.dtype.is_integer and a.dtype.size < promotion.default_int().size
    if not (small or a.dtype == tf.bool) or isinstance(a, arrays.WeakTensor):
        return a
    return tf.cast(a, promotion.default_int())


def cumsum(a, axis=None, dtype=None):
    """Sums of all elements up to each, along a dimension or of all as one."""
    return _scanned(tf.cumsum, a, axis, dtype)


def cumprod(a, axis=None, dtype=None):
    """Products of all elements up to each, along a dimension or of all as one."""
    return _scanned(tf.math.cumprod, a, axis, dtype)


def diff(a, n=1, axis=-1):
    """Differences of neighbours along a dimension, n times; of booleans whether they
    differ. ValueError for a negative n, or where there is no such dimension."""
    a = as_array(a)
    rank = arrays.static_rank(a)
    if n < 0:
        raise ValueError(
            f"Argument `order` must be a non-negative integer. Received: axis={n}"
        )
    axis = arrays.axis_of(axis, rank)
    differ = tf.not_equal if a.dtype == tf.bool else tf.subtract
    made, before = plain(a), [slice(None)] * axis
    for _ in range(n):
        made = differ(made[(*before, slice(1, None))], made[(*before, slice(None, -1))])
    return arrays.weakened(made) if isinstance(a, arrays.WeakTensor) else made


# --- Order.


def _at(find, a, axis):
    a = plain(as_array(a))
    if axis is None or a.shape.rank == 0:
        a, axis = tf.reshape(a, [-1]), 0
    return find(tf.cast(a, tf.int8) if a.dtype == tf.bool else a, axis)


def argmax(a, axis=None):
    """The places of the largest elements along a dimension, or of all as one."""
    return _at(tf.argmax, a, axis)


def argmin(a, axis=None):
    """The places of the smallest elements along a dimension, or of all as one."""
    return _at(tf.argmin, a, axis)


def _check_order(kind, order, kinds):
    if kind not in kinds:
        only = " and ".join(f'kind="{k}"' for k in kinds)
        verb = "are" if len(kinds) > 1 else "is"
        raise ValueError(
            f"Invalid value for argument `kind`. Only {only} {verb} supported. Received: "
            f"kind={kind}"
        )
    if order is not None:
        raise ValueError("The `order` argument is not supported. Pass order=None")


def argsort(a, axis=-1, kind="quicksort", order=None):
    """The places of elements in rising order along a dimension, or of all as one.

    ValueError for an `order`, and for kinds other than "quicksort" and "stable".
    """
    _check_order(kind, order, ("quicksort", "stable"))
    a = plain(as_array(a))
    if axis is None or a.shape.rank == 0:
        a, axis = tf.reshape(a, [-1]), 0
    return tf.cast(tf.argsort(a, axis, stable=kind == "stable"), tf.int64)


def sort(a, axis=-1, kind="quicksort", order=None):
    """The elements in rising order along a dimension, or all as one.

    ValueError for an `order`, and for kinds other than "quicksort".
    """
    _check_order(kind, order, ("quicksort",))
    a = as_array(a)
    if axis is None:
        a, axis = tf.reshape(a, [-1]), 0
    made = tf.sort(plain(a), axis)
    return arrays.weakened(made) if isinstance(a, arrays.WeakTensor) else made


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    """The sums of the diagonals of two dimensions."""
    a = as_array(a, promotion.as_dtype(dtype))
    if offset == 0:
        moved = shaping.moveaxis(a, (axis1, axis2), (-2, -1))
        return tf.linalg.trace(moved)
    return tf.reduce_sum(indexing.diagonal(a, offset, axis1, axis2), -1)
