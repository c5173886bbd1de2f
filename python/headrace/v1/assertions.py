"""tf.debugging's assertions with data to show in the place of their own words."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import errors
from headrace.framework import execution
from headrace.ops import check_ops, shape_check_ops


def _assert(condition, lines, summarize, name):
    if not _headrace.is_eager():
        return tf.debugging.Assert(condition, lines, summarize, name)
    if not bool(condition):
        limit = 3 if summarize is None else summarize
        shown = [check_ops._summary(line, limit) for line in lines]
        raise errors.InvalidArgumentError._of("\n".join(shown))
    return None


def _binary(check, compare):
    def assertion(x, y, data=None, summarize=None, message=None, name=None):
        if data is None:
            return check(x, y, message=message, summarize=summarize, name=name)
        lines = [*([] if message is None else [message]), *data]
        name = name or check.__name__
        return _assert(tf.reduce_all(compare(x, y)), lines, summarize, name)

    return assertion


assert_equal = _binary(tf.debugging.assert_equal, tf.equal)
assert_none_equal = _binary(tf.debugging.assert_none_equal, tf.not_equal)
assert_less = _binary(tf.debugging.assert_less, tf.less)
assert_less_equal = _binary(tf.debugging.assert_less_equal, tf.less_equal)
assert_greater = _binary(tf.debugging.assert_greater, tf.greater)
assert_greater_equal = _binary(tf.debugging.assert_greater_equal, tf.greater_equal)


def _unary(check, compare):
    def assertion(x, data=None, summarize=None, message=None, name=None):
        if data is None:
            return check(x, message=message, summarize=summarize, name=name)
        x = tf.convert_to_tensor(x)
        condition = tf.reduce_all(compare(x, tf.zeros([], x.dtype)))
        return _assert(condition, data, summarize, name or check.__name__)

    return assertion


assert_positive = _unary(tf.debugging.assert_positive, tf.greater)
assert_negative = _unary(tf.debugging.assert_negative, tf.less)
assert_non_negative = _unary(tf.debugging.assert_non_negative, tf.greater_equal)
assert_non_positive = _unary(tf.debugging.assert_non_positive, tf.less_equal)


def assert_integer(x, message=None, name=None):
    """Asserts that x is of an integer type."""
    tf.debugging.assert_integer(x, message)
    return execution.no_op()


def assert_type(tensor, tf_type, message=None, name=None):
    """An operation that does nothing; TypeError where the dtype is not `tf_type`."""
    tf.debugging.assert_type(tensor, tf_type, message)
    return execution.no_op()


def assert_scalar(tensor, name=None, message=None):
    """The tensor, which must be a scalar."""
    tensor = tf.convert_to_tensor(tensor)
    tf.debugging.assert_scalar(tensor, message)
    return tensor


# These take data as they are; what rows of signatures.txt name is passed by keyword.
assert_near = check_ops.assert_near_with_data
assert_rank = shape_check_ops.assert_rank_with_data
assert_rank_at_least = shape_check_ops.assert_rank_at_least_with_data
assert_rank_in = shape_check_ops.assert_rank_in_with_data
assert_shapes = tf.debugging.assert_shapes
