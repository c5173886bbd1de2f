"""What cannot be traced, and what is said about it."""

from .table import Static, fails, gives, tf

NOT_A_BOOL = "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed"
NOT_ITERABLE = "Iterating over a symbolic `tf.Tensor` is not allowed"


class _Positive:
    def __init__(self, t):
        self.t = t if t > 0.0 else -t


@tf.autograph.experimental.do_not_convert
def _size(t):
    if t > 0.0:
        return t
    return -t


@fails("ValueError", "'y' must also be initialized in the else branch", 1.0, 3)
def set_in_the_main_branch_only(x, n):
    if n > 2:
        y = x
    return y


@fails("ValueError", "'y' must also be initialized in the main branch", 1.0, 3)
def set_in_the_else_branch_only(x, n):
    if n > 2:
        pass
    else:
        y = x
    return y


@fails(
    "TypeError",
    "'y' has dtype float32 in the main branch, but dtype int32 in the else",
    1.0,
    3,
)
def dtypes_of_branches(x, n):
    if n > 2:
        y = x
    else:
        y = n
    return y


@fails("ValueError", "'y' is None at the end of the main branch", 1.0, 3)
def none_in_a_branch(x, n):
    if n > 2:
        y = None
    else:
        y = x
    return y


@fails("TypeError", "'y' must have the same nested structure", 1.0, 3)
def structures_of_branches(x, n):
    if n > 2:
        y = (x, x)
    else:
        y = [x]
    return y


@fails("ValueError", "the else branch must also have a return statement", 1.0, 3)
def a_return_in_one_branch(x, n):
    if n > 2:
        return x


@fails("ValueError", "'retval_' is None", 1.0, 3)
def a_return_of_none_in_one_branch(x, n):
    if n > 2:
        return x
    return None


@fails("ValueError", "'y' must be defined before the loop", 1.0, 3)
def a_name_read_before_the_loop_sets_it(x, n):
    while n > 0:
        n -= 1
        if n > 1:
            y = x
        x = y
    return x


@fails("TypeError", "'s' has dtype int32 before the loop, but dtype float32", 1.0, 3)
def a_dtype_changed_by_while(x, n):
    s = 0
    while n > 0:
        n -= 1
        s = s + x if s is None else x
    return s


@fails("TypeError", "'s' has dtype int32 before the loop, but dtype float32", 1.0, 3)
def a_dtype_changed_by_for(x, n):
    s = 0
    for _ in tf.range(n):
        s = x
    return s


@fails("ValueError", "has shape (1,) before the loop, but shape (2,)", 3)
def a_shape_changed(n):
    v = tf.ones([1])
    for _ in tf.range(n):
        v = tf.ones([2])
    return v


@fails("ValueError", "has shape (1,) before the loop, but shape (None,)", 3)
def a_shape_that_grows(n):
    v = tf.ones([1])
    for _ in tf.range(n):
        v = tf.concat([v, tf.zeros([n])], 0)
    return v


@fails("TypeError", "'pair' does not have the same nested structure", 1.0, 3)
def a_structure_changed(x, n):
    pair = (x,)
    while n > 0:
        n -= 1
        pair = (x, x)
    return pair


@gives(1.0, 1.0, 3)
def a_loop_variable_that_is_none(x, n):
    y = None
    while n > 0:
        n -= 1
        y = x
    return y


@fails("NotImplementedError", "a return statement cannot be placed inside", 3)
def a_return_in_some_turns(n):
    for i in tf.range(n):
        if i > 1:
            return i
    return n


@fails("NotImplementedError", "are not supported in Python for loops", 1.0, 3)
def a_tensor_breaks_a_python_loop(x, n):
    for i in range(3):
        if n > i:
            break
        x += 1.0
    return x


@fails("NotImplementedError", "changing to a TF loop should remove the error", 3)
def a_tensor_breaks_a_python_while(n):
    i = 0
    while True:
        i += 1
        if i > n:
            break
    return i


@fails("ValueError", "len requires a non-scalar tensor, got one of shape", 3)
def iterating_a_scalar(n):
    s = 0
    for i in n:
        s += i
    return s


@fails("OperatorNotAllowedInGraphError", NOT_A_BOOL, 1.0, 3)
def an_assert_on_a_tensor(x, n):
    assert n > 2
    return x


@fails("OperatorNotAllowedInGraphError", NOT_A_BOOL, 1.0, 3)
def for_with_else_runs_as_it_is(x, n):
    for _ in (1, 2):
        if n > 2:
            x += 1.0
    else:
        x += 2.0
    return x


@gives(6.0, 1.0)
def while_with_else_of_python_values(x):
    k = 0
    while k < 3:
        k += 1
        x += 1.0
    else:
        x += 2.0
    return x


@fails("OperatorNotAllowedInGraphError", NOT_ITERABLE, [1.0, 2.0])
def a_tensor_unpacked(v):
    a, b = v
    return a + b


@fails("OperatorNotAllowedInGraphError", NOT_ITERABLE, [1.0, 2.0])
def a_comprehension_over_a_tensor(v):
    return [e * 2.0 for e in v]


@fails("OperatorNotAllowedInGraphError", NOT_A_BOOL, 1.0, 3)
def a_tensor_in_a_tuple(x, n):
    if n in (1, 2):
        x = x + 1.0
    return x


@fails("OperatorNotAllowedInGraphError", NOT_A_BOOL, 1.0)
def a_constructor_runs_as_it_is(x):
    return _Positive(x).t


@fails("OperatorNotAllowedInGraphError", NOT_A_BOOL, 1.0)
def a_generator_with_a_condition(x):
    def parts():
        if x > 0.0:
            yield x

    return sum(list(parts()))


@fails("InaccessibleTensorError", "out of scope", 1.0, 3)
def a_list_changed_in_a_branch(x, n):
    found = []
    if n > 2:
        found.append(x * 2.0)
    return found[0] + 1.0


@fails("InvalidArgumentError", "assertion failed", 1.0, 3)
def an_assertion_in_a_branch(x, n):
    if n > 2:
        tf.debugging.assert_less(x, 0.5, message="too large")
    return x


@fails("InvalidArgumentError", "loop must iterate at least once", 0)
def a_name_of_a_loop_that_never_runs(n):
    for i in tf.range(n):
        last = i
    return last


@fails("ValueError", "of the user's own", 1.0, Static(3))
def an_error_of_the_program(x, k):
    if k > 2:
        raise ValueError("of the user's own")
    return x


@fails("ValueError", "in a branch", 1.0, 3)
def an_error_in_a_branch_is_raised_while_tracing(x, n):
    if n > 2:
        raise ValueError("in a branch")
    return x


@fails("ValueError", "'y' is None at the end of the else branch", 1.0, 3)
def a_name_that_stays_none_in_the_other_branch(x, n):
    y = None
    if n > 2:
        y = x
    return y


@fails(
    "ValueError", "condition of if statement expected to be `tf.bool` scalar", 1.0, 3
)
def a_float_as_a_condition(x, n):
    if x:
        n = n + 1
    return n


@fails("ValueError", "condition of while loop expected to be `tf.bool` scalar", 1.0)
def a_float_as_a_condition_of_while(x):
    while x:
        x = x - 1.0
    return x


@fails("AttributeError", "has no attribute 'foo'", 1.0)
def an_attribute_that_a_tensor_lacks(x):
    return x.foo


@fails("TypeError", "does not support item assignment", 1.0, 3)
def an_item_of_a_tensor_assigned(x, n):
    v = tf.zeros([3])
    for i in tf.range(n):
        v[i] = x
    return v


@fails(
    "ValueError", "'x' has shape () before the loop, but shape (1,) after one", 1.0, 3
)
def a_rank_changed(x, n):
    for _ in tf.range(n):
        x = tf.expand_dims(x, 0)
    return x


@fails("ValueError", "Use tf.autograph.experimental.set_loop_options to set shape", 3)
def what_helps_where_a_shape_changes(n):
    v = tf.ones([2])
    while n > 0:
        n -= 1
        v = v[:1]
    return v


@fails("TypeError", "'y' has dtype float32 before the loop, but dtype string", 1.0, 3)
def a_number_that_becomes_a_string(x, n):
    y = x
    while n > 0:
        n -= 1
        y = "a"
    return y


@fails("TypeError", "don't have the same number of elements", 1.0, 3)
def a_list_that_grows_in_a_loop(x, n):
    parts = [x]
    while n > 0:
        n -= 1
        parts = [*parts, x]
    return parts


@fails("OperatorNotAllowedInGraphError", NOT_A_BOOL, 1.0, 3)
def match_runs_as_it_is(x, n):
    match n:
        case 3:
            return x
    return x * 2.0


@fails("OperatorNotAllowedInGraphError", NOT_A_BOOL, 1.0, 3)
def a_condition_in_code_without_source(x, n):
    made = {}
    exec("def larger(a, b):\n    return a if a > b else b\n", made)
    return made["larger"](x, x + 1.0)


@fails("OperatorNotAllowedInGraphError", NOT_A_BOOL, 1.0)
def a_function_left_alone_meets_a_condition(x):
    return _size(x)


@fails("TypeError", "'dict' object", 1.0, 3)
def a_wrong_call_in_a_loop(x, n):
    settings = {}
    for _ in tf.range(n):
        x = settings(x)
    return x
