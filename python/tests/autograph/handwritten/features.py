"""Features that are asked for, and the functions of tf.autograph itself."""

from .table import fails, gives, tf


@fails("InvalidArgumentError", "too small", 3, features=("ASSERT_STATEMENTS",))
def an_assert_becomes_an_operation(n):
    assert n > 5, "too small"
    return n


@gives(7, 7, features=("ASSERT_STATEMENTS",))
def an_assert_that_holds(n):
    assert n > 5, "too small"
    return n


@gives([0.75, 0.75, 0.75], 0.75, 3, plain=False, features=("LISTS",))
def items_of_tensors_are_set(x, n):
    v = tf.zeros([3])
    for i in tf.range(n):
        v[i] = x
    return v


@gives((1.5, [0.75]), 0.75, features=("LISTS",))
def a_list_of_python_keeps_its_ways(x):
    parts = [x]
    parts.append(x * 2.0)
    last = parts.pop()
    return last, parts


@gives((True, False), 3, features=("EQUALITY_OPERATORS",))
def equality_as_an_operation(n):
    return n == 3, n != 3


@gives((True, 2), 3, features=("ALL",))
def all_features(n):
    assert n > 2, "too small"
    parts = [n, 2]
    return n == 3, parts[1]


def _size(t):
    if t > 0.0:
        return t
    return -t


@gives((0.5, 0.5), 0.5, -0.5)
def a_graph_of_a_function(x, y):
    converted = tf.autograph.to_graph(_size)
    return converted(x), converted(y)


@gives(8, 3)
def a_traced_function_in_a_traced_function(n):
    @tf.function
    def inner(m):
        if m > 2:
            return m * 2
        else:
            return m

    return inner(n) + inner(n - 1)


@gives(3, 3)
def code_can_be_seen(n):
    code = tf.autograph.to_code(equality_as_an_operation)
    return n if "def tf__equality_as_an_operation(n):" in code else 0


@fails("OperatorNotAllowedInGraphError", "bool", 3.0)
def a_traced_function_without_conversion(n):
    return tf.function(_size, autograph=False)(n)
