"""tf.debugging: assertions about values, shapes and types."""

import numpy as np

from headrace._load import _headrace, raw
from headrace.context import errors
from headrace.framework import conversion, dtypes, execution
from headrace.framework.name_scopes import composite, graph_scope
from headrace.framework.sparse_tensor import SparseTensor
from headrace.framework.support import signatures
from headrace.ops import (
    array_ops,
    elementwise_ops,
    graph_assert,
    math_ops,
    reduction_ops,
)
from headrace.ops.faces import add_faces


def _tensor(x, hint=None, name=None):
    return conversion.convert_to_tensor(x, dtype_hint=hint, name=name)


def _summary(value, summarize):
    """Data as a failed assertion shows it."""
    if isinstance(value, _headrace.Tensor):
        array = value.numpy()
        flat = np.ravel(array)
        limit = 3 if summarize is None else summarize
        shown = flat if limit < 0 else flat[:limit]
        text = ", ".join(str(x) for x in shown)
        return text + (", ..." if len(shown) < len(flat) else "")
    return str(value)


def Assert(condition, data, summarize=None, name=None):
    """Raises InvalidArgumentError with the data where the condition is false."""
    if not _headrace.is_eager():
        return graph_assert.make(condition, data, summarize, name)
    if not bool(condition):
        limit = 3 if summarize is None else summarize
        texts = [_summary(_tensor(d), limit) for d in data]
        raise errors.InvalidArgumentError._of(
            f"Expected '{condition!s}' to be true. Summarized data: " + "\n".join(texts)
        )
    return None


def _limit(summarize):
    """How many elements a message shows: 3 unless told, all for a negative number."""
    if summarize is None:
        return 3
    return 2**31 if summarize < 0 else summarize


def _head(tensor, count):
    return np.ravel(tensor.numpy())[:count]


_NUMPY = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _known_false(symbol, x, y):
    """Whether a graph's comparison of x and y fails whatever is fed."""
    known = [execution.get_static_value(t) for t in (x, y)]
    if any(value is None for value in known):
        return False
    return not bool(np.all(_NUMPY[symbol](*known)))


def _refuse_statically(message, condition, parts):
    lines = [] if message is None else [message]
    lines.append(f"Condition {condition} did not hold element-wise:")
    for label, tensor in parts:
        lines += [
            f"{label} ({_name(tensor)}) = ",
            str(execution.get_static_value(tensor)),
        ]
    raise errors.InvalidArgumentError._of("\n".join(lines))


def _binary(symbol, op_name, module, compare):
    def check(x, y, message=None, summarize=None, name=None):
        same = x is y
        x = _tensor(x, getattr(y, "dtype", None), "x")
        y = _tensor(y, x.dtype, "y")
        if not _headrace.is_eager():
            if same and symbol == "==":
                return execution.no_op()
            condition = reduction_ops.reduce_all(getattr(module, compare)(x, y))
            if _known_false(symbol, x, y):
                parts = (("x", x), ("y", y))
                _refuse_statically(message, f"x {symbol} y", parts)
            data = [] if message is None else [message]
            data += [
                f"Condition x {symbol} y did not hold element-wise:",
                f"x ({_name(x)}) = ",
                x,
                f"y ({_name(y)}) = ",
                y,
            ]
            return Assert(condition, data, summarize)
        result = getattr(module, compare)(x, y)
        if bool(np.all(result.numpy())):
            return None
        limit = _limit(summarize)
        lines = [] if message is None else [message]
        lines.append(f"Condition x {symbol} y did not hold.")
        if x.shape == y.shape and x.shape.rank:
            wrong = np.argwhere(~result.numpy())
            count = min(limit, len(wrong))
            places = wrong[:count]
            at = tuple(places.T)
            lines += [
                f"Indices of first {count} different values:",
                str(places),
                "Corresponding x values:",
                str(x.numpy()[at]),
                "Corresponding y values:",
                str(y.numpy()[at]),
            ]
        n = min(x.numpy().size, limit)
        m = min(y.numpy().size, limit)
        lines += [
            f"First {n} elements of x:",
            str(_head(x, n)),
            f"First {m} elements of y:",
            str(_head(y, m)),
        ]
        raise errors.InvalidArgumentError._of("\n".join(lines))

    doc = f"Asserts x {symbol} y, element by element."
    return composite(op_name)(signatures.called(check, op_name, doc))


def _name(x):
    return x.name if isinstance(x, _headrace.SymbolicTensor) else f"shape={x.shape}"


assert_equal = _binary("==", "assert_equal", math_ops, "equal")
_assert_none_equal = _binary("!=", "assert_none_equal", math_ops, "not_equal")
assert_less = _binary("<", "assert_less", elementwise_ops, "less")
assert_less_equal = _binary("<=", "assert_less_equal", elementwise_ops, "less_equal")
assert_greater = _binary(">", "assert_greater", elementwise_ops, "greater")
assert_greater_equal = _binary(
    ">=", "assert_greater_equal", elementwise_ops, "greater_equal"
)


assert_none_equal = signatures.twin(
    _assert_none_equal,
    "assert_none_equal",
    _assert_none_equal.__doc__,
    "x, y, summarize=None, message=None, name=None",
)


def _unary(symbol, op_name, module, compare):
    def check(x, message=None, summarize=None, name=None):
        x = _tensor(x, name="x")
        zero = conversion.to_tensor(0, x.dtype)
        text = _prefix(message)
        says = f"x {symbol} 0"
        if not _headrace.is_eager():
            data = [
                text,
                f"Condition {says} did not hold element-wise:",
                f"x ({_name(x)}) = ",
                x,
            ]
            inner = "assert_less_equal" if "=" in symbol else "assert_less"
            with graph_scope(None, inner):
                ok = reduction_ops.reduce_all(getattr(module, compare)(x, zero))
                if _known_false(symbol, x, zero):
                    _refuse_statically(text, says, (("x", x),))
                return Assert(ok, data, summarize)
        if bool(reduction_ops.reduce_all(getattr(module, compare)(x, zero))):
            return None
        limit = _limit(summarize)
        shown = [str(v) for v in _head(x, limit)]
        if len(shown) < x.numpy().size:
            shown.append("...")
        lines = [
            text,
            f"Condition {says} did not hold element-wise:",
            f"x ({_describe(x)}) = ",
            str(shown) if x.shape.rank else shown[0],
        ]
        raise errors.InvalidArgumentError._of("\n".join(lines))

    doc = f"Asserts x {symbol} 0, element by element."
    return composite(op_name)(signatures.called(check, op_name, doc))


assert_positive = _unary(">", "assert_positive", elementwise_ops, "greater")
assert_negative = _unary("<", "assert_negative", elementwise_ops, "less")
assert_non_negative = _unary(
    ">=", "assert_non_negative", elementwise_ops, "greater_equal"
)
assert_non_positive = _unary("<=", "assert_non_positive", elementwise_ops, "less_equal")


@composite("assert_near")
def assert_near_with_data(
    x, y, rtol=None, atol=None, message=None, summarize=None, name=None, data=None
):
    """Asserts |x - y| <= atol + rtol * |y|."""
    x = _tensor(x, getattr(y, "dtype", None), "x")
    y = _tensor(y, x.dtype, "y")
    real = x.dtype.real_dtype
    default = (
        10 * float(np.finfo(real.as_numpy_dtype).eps)
        if real != dtypes.bfloat16
        else 10 * 2.0**-7
    )
    rtol, atol = (
        conversion.convert_to_tensor(default if value is None else value, real, name=n)
        for value, n in ((rtol, "rtol"), (atol, "atol"))
    )
    condition = reduction_ops.reduce_all(
        elementwise_ops.abs(x - y) <= atol + rtol * elementwise_ops.abs(y)
    )
    data = data or [
        _prefix(message),
        f"x and y not equal to tolerance rtol = {rtol!s}, atol = {atol!s}",
        f"x ({_describe(x)}) = ",
        x,
        f"y ({_describe(y)}) = ",
        y,
    ]
    return Assert(condition, data, summarize)


assert_near = signatures.twin(
    assert_near_with_data,
    "assert_near",
    assert_near_with_data.__doc__,
    "x, y, rtol=None, atol=None, message=None, summarize=None, name=None",
)


def _describe(x):
    if isinstance(x, _headrace.SymbolicTensor):
        return x.name
    return f"shape={x.shape} dtype={x.dtype.name}"


def _subject(x):
    return x.name if isinstance(x, _headrace.SymbolicTensor) else "tensor"


def _shown(x):
    return x.name if isinstance(x, _headrace.SymbolicTensor) else str(x)


def _prefix(message):
    return f"{message}.  " if message else ""


def assert_type(tensor, tf_type, message=None, name=None):
    """TypeError where the tensor's dtype is another than `tf_type`."""
    tf_type = dtypes.as_dtype(tf_type)
    if not getattr(type(tensor), "_is_tensor_like", False):
        tensor = _tensor(tensor)
    if tensor.dtype != tf_type:
        raise TypeError(
            f"{_prefix(message)}{_subject(tensor)} must be of type {tf_type!r}; got "
            f"{tensor.dtype!r}"
        )


@composite("assert_integer")
def assert_integer(x, message=None, name=None):
    """Asserts that x is of an integer type."""
    x = _tensor(x, name="x")
    if not x.dtype.is_integer:
        raise TypeError(
            f'{_prefix(message)}Expected "x" to be integer type.  Found: '
            f"{_subject(x)} of dtype {x.dtype}"
        )


def assert_scalar(tensor, message=None, name=None):
    """Asserts that the tensor is a scalar."""
    tensor = _tensor(tensor, name=name or "assert_scalar")
    if tensor.shape.rank != 0:
        symbolic = isinstance(tensor, _headrace.SymbolicTensor)
        raise ValueError(
            f"{_prefix(message)}Expected scalar shape"
            f"{' for ' + tensor.name if symbolic else ''}, saw shape: {tensor.shape}."
        )


def assert_proper_iterable(values):
    """Asserts that values may be iterated, and is no tensor or string."""
    bad = (
        _headrace.Tensor,
        _headrace.VariableBase,
        SparseTensor,
        np.ndarray,
        bytes,
        str,
    )
    if isinstance(values, bad):
        raise TypeError(
            'Expected argument "values" to be a "proper" iterable.  Found: '
            f"{type(values)}"
        )
    if not hasattr(values, "__iter__"):
        raise TypeError(
            f'Expected argument "values" to be iterable.  Found: {type(values)}'
        )


def assert_same_float_dtype(tensors=None, dtype=None):
    """Asserts one floating type; returns it."""
    found, first = (None if dtype is None else dtypes.as_dtype(dtype)), None
    for t in tensors or []:
        if t is None:
            continue
        kind = dtypes.as_dtype(t.dtype)
        if found is None:
            found, first = kind, t
        elif kind != found:
            like = "" if first is None else f" as {_shown(first)}"
            raise ValueError(
                f"{_shown(t)}, type={kind}, must be of the same type ({found}){like}."
            )
    if found is None:
        found = dtypes.float32
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found}.")
    return found


def is_numeric_tensor(tensor):
    """True for tensors of numbers."""
    if not isinstance(tensor, (_headrace.Tensor, _headrace.VariableBase)):
        return False
    return tensor.dtype.is_numeric or tensor.dtype.is_quantized


add_faces(
    globals(),
    """
check_numerics CheckNumerics(tensor, message, name=None)
    The tensor, after a check that no element is NaN or infinite.
check_pinned CheckPinned(tensor, name=None)
""",
)


def assert_all_finite(x, message, name=None):
    """The tensor, after a check that no element is NaN or infinite."""
    with graph_scope(name, "VerifyFinite"):
        x = _tensor(x, name="x")
        checked = check_numerics(x, message)
        if _headrace.is_eager():
            return checked
        with execution.control_dependencies([checked]):
            return raw.Identity(x, name="control_dependency")


def _flat_numbers(x):
    x = array_ops.reshape(x, [-1])
    if not (x.dtype.is_integer or x.dtype.is_floating):
        raise TypeError(f"Expected x to be numeric, instead found: {x}")
    return x


def is_non_decreasing(x, name=None):
    """Whether each element is at least the one before."""
    x = _flat_numbers(x)
    return reduction_ops.reduce_all(x[1:] >= x[:-1], name=name)


def is_strictly_increasing(x, name=None):
    """Whether each element is greater than the one before."""
    x = _flat_numbers(x)
    return reduction_ops.reduce_all(x[1:] > x[:-1], name=name)
