"""The assertions of tf.compat.v1: `data` first, and it may say what is printed."""

from headrace._load import _headrace
from headrace.framework import errors
from headrace.ops import check_ops, elementwise_ops, math_ops, reduction_ops


def _with_data(condition, data, summarize, message, name):
    """Asserts the condition with the caller's own data to be shown."""
    shown = list(data) if message is None else [message, *data]
    if not _headrace.is_eager():
        return check_ops.Assert(condition, shown, summarize, name)
    if not bool(condition):
        texts = [x.numpy() if hasattr(x, "numpy") else x for x in shown]
        raise errors.InvalidArgumentError(None, None, "\n".join(map(str, texts)))
    return None


def _binary(check, compare):
    def face(x, y, data=None, summarize=None, message=None, name=None):
        if data is None:
            return check(x, y, message, summarize, name)
        condition = reduction_ops.reduce_all(compare(x, y))
        return _with_data(condition, data, summarize, message, name or check.__name__)

    face.__name__ = face.__qualname__ = check.__name__
    face.__doc__ = check.__doc__
    return face


def _against_zero(check, compare):
    def face(x, data=None, summarize=None, message=None, name=None):
        if data is None:
            return check(x, message, summarize, name)
        x = check_ops._tensor(x)
        zero = _headrace.to_tensor(0, x.dtype)
        condition = reduction_ops.reduce_all(compare(x, zero))
        return _with_data(condition, data, summarize, message, name or check.__name__)

    face.__name__ = face.__qualname__ = check.__name__
    face.__doc__ = check.__doc__
    return face


def _of_rank(check):
    def face(x, rank, data=None, summarize=None, message=None, name=None):
        if data is not None:
            raise NotImplementedError(f"{check.__name__}: data is not supported")
        return check(x, rank, message, name, summarize)

    face.__name__ = face.__qualname__ = check.__name__
    face.__doc__ = check.__doc__
    return face


assert_equal = _binary(check_ops.assert_equal, math_ops.equal)
assert_none_equal = _binary(check_ops.assert_none_equal, math_ops.not_equal)
assert_less = _binary(check_ops.assert_less, elementwise_ops.less)
assert_less_equal = _binary(check_ops.assert_less_equal, elementwise_ops.less_equal)
assert_greater = _binary(check_ops.assert_greater, elementwise_ops.greater)
assert_greater_equal = _binary(
    check_ops.assert_greater_equal, elementwise_ops.greater_equal
)
assert_positive = _against_zero(check_ops.assert_positive, elementwise_ops.greater)
assert_negative = _against_zero(check_ops.assert_negative, elementwise_ops.less)
assert_non_negative = _against_zero(
    check_ops.assert_non_negative, elementwise_ops.greater_equal
)
assert_non_positive = _against_zero(
    check_ops.assert_non_positive, elementwise_ops.less_equal
)
assert_rank = _of_rank(check_ops.assert_rank)
assert_rank_at_least = _of_rank(check_ops.assert_rank_at_least)


def assert_rank_in(x, ranks, data=None, summarize=None, message=None, name=None):
    """Asserts that the rank is one of several."""
    return _of_rank(check_ops.assert_rank_in)(x, ranks, data, summarize, message, name)


def assert_near(
    x, y, rtol=None, atol=None, data=None, summarize=None, message=None, name=None
):
    """Asserts that x and y are near, element by element."""
    if data is None:
        return check_ops.assert_near(x, y, rtol, atol, message, summarize, name)
    raise NotImplementedError("compat.v1.assert_near: data is not supported")


def assert_scalar(tensor, name=None, message=None):
    """Asserts that the tensor is a scalar."""
    return check_ops.assert_scalar(tensor, message, name)
