"""Python's builtins for tensors of a graph, and for what else is registered."""

import builtins as python
import functools

from headrace._load import _headrace, raw
from headrace.autograph import rows, tensors
from headrace.context import stack
from headrace.control_flow import mapping
from headrace.control_flow.eager_array import EagerArray
from headrace.control_flow.list_array import ListArray
from headrace.framework import conversion, dtypes, nest
from headrace.framework.execution import get_static_value
from headrace.function import py_functions
from headrace.ops import (
    array_ops,
    elementwise_ops,
    math_ops,
    reduction_ops,
    sort_ops,
    string_ops,
)
from headrace.ragged.ragged_tensor import RaggedTensor

_kinds = {}  # builtin -> [(class, function)]


def register_overload(builtin, cls, function):
    """Says what `builtin` of instances of `cls` is, in its positional arguments.

    `function(*args)` is called where one at least is such an instance; it returns
    NotImplemented for arguments that are Python's to handle.
    """
    _kinds.setdefault(builtin, []).insert(0, (cls, function))


def overload_of(function, features_print=False):
    """What converted code calls instead of a builtin, or the function itself.

    print stays Python's unless `features_print` (Feature.BUILTIN_FUNCTIONS) is set.
    """
    try:
        overload = _OVERLOADS.get(function)
    except TypeError:  # no key
        return function
    if overload is None or (function is print and not features_print):
        return function
    return overload


def _overload(builtin):
    """Makes a function the overload of a builtin: asked for registered classes first."""

    def decorate(function):
        @functools.wraps(builtin, updated=())
        def overload(*args, **kwargs):
            for cls, special in _kinds.get(builtin, ()):
                if any(isinstance(arg, cls) for arg in args):
                    result = special(*args, **kwargs)
                    if result is not NotImplemented:
                        return result
            return function(*args, **kwargs)

        _OVERLOADS[builtin] = overload
        return overload

    return decorate


_OVERLOADS = {}


def _in_graph(value):
    return tensors.is_tensor(value) and tensors.in_graph()


def _symbolic(value):
    return isinstance(value, _headrace.SymbolicTensor) and tensors.in_graph()


# --- numbers ---


@_overload(abs)
def abs_(x):
    return elementwise_ops.abs(x) if tensors.is_tensor(x) else abs(x)


@_overload(float)
def float_(x=0):
    if not _in_graph(x):
        return float(x)
    x = tensors.tensor(x)
    if x.dtype == dtypes.string:
        return string_ops.to_number(x, dtypes.float32)
    return math_ops.cast(x, dtypes.float32)


@_overload(int)
def int_(x=0, *base, **keywords):
    if not _in_graph(x):
        return int(x, *base, **keywords)
    for number in (*base, *keywords.values()):
        if number not in (10, ""):
            raise NotImplementedError(f"base {number} not supported for int")
    x = tensors.tensor(x)
    if x.dtype == dtypes.string:
        return string_ops.to_number(x, dtypes.int32)
    return math_ops.cast(x, dtypes.int32)


# --- sizes ---


@_overload(len)
def len_(x):
    if isinstance(x, (ListArray, EagerArray)):
        return x.size()
    if isinstance(x, RaggedTensor) and tensors.in_graph():
        return math_ops.cast(x.nrows(), dtypes.int32)
    if not tensors.is_tensor(x):
        return len(x)
    x = tensors.tensor(x)
    if x.dtype == dtypes.variant:
        return raw.TensorListLength(x)
    return rows.length(x)


@_overload(range)
def range_(start_or_stop, stop=None, step=None):
    given = (start_or_stop, stop, step)
    if not any(map(_in_graph, given)):
        return range(*(x for x in given if x is not None))
    start, limit = (0, start_or_stop) if stop is None else (start_or_stop, stop)
    delta = 1 if step is None else step
    sign = delta if not tensors.is_tensor(delta) else get_static_value(delta)
    if sign is None:
        ahead = raw.GreaterEqual((limit - start) * delta, array_ops.zeros_like(delta))
        limit = array_ops.where(ahead, limit, start)
    elif sign > 0:
        limit = elementwise_ops.maximum(start, limit)
    elif sign < 0:
        limit = elementwise_ops.minimum(start, limit)
    return array_ops.range(start, limit, delta)


# --- over iterables ---


def _rows(tensor, name):
    """A tensor that has rows of one number each."""
    if tensor.shape.rank not in (1, None):
        raise ValueError(
            f"{name} of a tensor needs one of rank 1, got one of shape {tensor.shape}"
        )
    return tensor


def _as_bool(tensor):
    if tensor.dtype == dtypes.bool:
        return tensor
    return raw.NotEqual(tensor, array_ops.zeros_like(tensor))


def _quantifier(builtin, reduce, combine, decided):
    @_overload(builtin)
    def overload(iterable, /):
        if _symbolic(iterable):
            if iterable.shape.rank == 0:
                return builtin(iterable)
            return reduce(_as_bool(_rows(iterable, builtin.__name__)))
        if not tensors.in_graph():
            return builtin(iterable)
        found = None
        for item in iterable:
            if _symbolic(item):
                item = tensors.bool_scalar(item, builtin.__name__)
                found = item if found is None else combine(found, item)
            elif bool(item) is decided:
                return decided
        return (not decided) if found is None else found

    return overload


all_ = _quantifier(all, reduction_ops.reduce_all, raw.LogicalAnd, False)
any_ = _quantifier(any, reduction_ops.reduce_any, raw.LogicalOr, True)


def _extreme(builtin, reduce, combine):
    @_overload(builtin)
    def overload(*args, **kwargs):
        if kwargs or not args or not tensors.in_graph():
            return builtin(*args, **kwargs)
        if len(args) == 1 and _symbolic(args[0]):
            if args[0].shape.rank == 0:
                return args[0]
            return reduce(_rows(args[0], builtin.__name__))
        items = args
        if len(args) == 1:
            if not isinstance(args[0], (list, tuple)):
                return builtin(args[0])
            items = args[0]
        if not any(map(_symbolic, items)):
            return builtin(*args)
        for item in items:
            if tensors.is_tensor(item) and item.shape.rank not in (0, None):
                raise ValueError(
                    f"{builtin.__name__} of several tensors needs scalars, got one of "
                    f"shape {item.shape}"
                )
        return functools.reduce(combine, items)

    return overload


max_ = _extreme(max, reduction_ops.reduce_max, elementwise_ops.maximum)
min_ = _extreme(min, reduction_ops.reduce_min, elementwise_ops.minimum)


@_overload(sum)
def sum_(iterable, /, start=0):
    if not _symbolic(iterable) or iterable.shape.rank == 0:
        return sum(iterable, start)
    total = reduction_ops.reduce_sum(iterable, axis=0)
    if tensors.is_tensor(start) or start != 0:
        total = total + start
    return total


@_overload(sorted)
def sorted_(iterable, /, *, key=None, reverse=False):
    if not _symbolic(iterable):
        return sorted(iterable, key=key, reverse=reverse)
    direction = "DESCENDING" if reverse else "ASCENDING"
    if key is not None:
        keys = mapping.map_fn(
            key, iterable, fn_output_signature=_dtype_of(key, iterable)
        )
        order = sort_ops.argsort(keys, direction=direction, stable=True)
        return array_ops.gather(iterable, order)
    if iterable.shape.rank not in (1, None):
        raise ValueError("sort only supports only 1D tensors")
    return sort_ops.sort(iterable, direction=direction)


def _dtype_of(key, rows):
    with tensors.scratch_graph():
        return conversion.convert_to_tensor(key(rows[0])).dtype


def _lazy(iterables):
    """Whether they are rows of graphs all, which loops of graphs alone go over."""
    return bool(iterables) and all(
        _symbolic(x) or isinstance(x, rows.Rows) for x in iterables
    )


@_overload(enumerate)
def enumerate_(iterable, start=0):
    if not _lazy([iterable]):
        return enumerate(iterable, start)
    found = rows.of(iterable)
    return rows.Rows(found.count, lambda i: (i + start, found.read(i)))


@_overload(zip)
def zip_(*iterables, **kwargs):
    if not _lazy(iterables) or kwargs:
        return zip(*iterables, **kwargs)
    return rows.together(iterables)


@_overload(map)
def map_(function, *iterables):
    if not _lazy(iterables):
        return map(function, *iterables)
    found = rows.together(iterables)
    return rows.Rows(found.count, lambda i: function(*found.read(i)))


@_overload(filter)
def filter_(function, iterable, /):
    return filter(function, iterable)


@_overload(next)
def next_(iterator, /, *default):
    return next(iterator, *default)


# --- print ---


@_overload(print)
def print_(*objects, **kwargs):
    """Python's print; of the values that tensors have when the graph runs."""
    flat = [leaf for x in objects for leaf in tensors.leaves(x)]
    given = [leaf for leaf in flat if tensors.is_tensor(leaf)]
    if not given or not tensors.in_graph():
        return python.print(*objects, **kwargs)
    unknown = set(kwargs) - {"sep", "end", "file", "flush"}
    if unknown:
        raise ValueError(f"invalid keyword arguments for print: {sorted(unknown)}")

    def show(*values):
        rest = iter(values)
        python.print(
            *nest.map_structure(
                lambda x: _shown(next(rest)) if tensors.is_tensor(x) else x, objects
            ),
            **kwargs,
        )
        return []

    py_functions.numpy_function(show, given, [])
    return stack.current()._last_operation()


def _shown(value):
    """An array's value as Python prints it: texts without quotes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
