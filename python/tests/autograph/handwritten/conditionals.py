"""if, elif, else, conditional expressions, logic and comparisons."""

from .table import Static, gives, tf


@gives(1.5, 0.75, 3)
def both_branches_assign(x, n):
    if n > 2:
        y = x * 2.0
    else:
        y = -x
    return y


@gives((1.75, 3), 0.75, 3)
def one_branch_changes_what_was_there(x, n):
    if x > 0.5:
        x += 1.0
    return x, n


@gives(-2, 7)
def elif_chain(n):
    if n < 0:
        r = 0
    elif n < 5:
        r = -1
    elif n < 10:
        r = -2
    else:
        r = -3
    return r


@gives(12.0, 2.0, 1)
def conditionals_in_conditionals(x, n):
    if x > 1.0:
        x = x * 2.0
        if n == 1:
            x = x * 3.0
        else:
            x = x * 5.0
    else:
        if n == 1:
            x = x * 7.0
    return x


@gives(-1.0, 1.0, False)
def a_bool_decides(x, b):
    if b:
        x = x + 1.0
    else:
        x = x - 2.0
    return x


@gives(4.0, 1.0, Static(3))
def a_python_value_decides_once(x, k):
    if k > 2:
        x = x * 4.0
    else:
        undefined_elsewhere = x
        x = undefined_elsewhere + 1.0
    return x


@gives((2.0, 1.0), 1.0, 2.0, True)
def branches_swap(a, b, c):
    if c:
        a, b = b, a
    return a, b


@gives({"p": 3.0, "q": [1.0, 2.0]}, 1.0, 3)
def branches_give_structures(x, n):
    if n > 2:
        d = {"p": x * 3.0, "q": [x, x * 2.0]}
    else:
        d = {"p": x, "q": [-x, -x]}
    return d


@gives([1.0, 5.0, 1.0], 1.0, 3)
def branches_change_an_item(x, n):
    y = [x, x, x]
    if n > 2:
        y[1] = y[0] + 4.0
    return y


@gives(6.0, 1.0, 3)
def branches_change_an_attribute(x, n):
    class Held:
        pass

    held = Held()
    held.part = Held()
    held.part.value = x
    if n > 2:
        held.part.value = held.part.value + 5.0
    return held.part.value


@gives([1.0, 2.0, 0.0], [1.0, 2.0, 0.0], 3)
def branches_of_unlike_shapes(v, n):
    if n > 2:
        w = v
    else:
        w = v[:1]
    return w


@gives(2.0, 1.0, 3)
def a_name_of_one_branch_not_used_later(x, n):
    if n > 2:
        only_here = x * 2.0
        x = only_here
    return x


@gives((1, 2.0), 3)
def python_numbers_become_tensors(n):
    if n > 2:
        a, b = 1, 2.0
    else:
        a, b = 3, 4.0
    return a, b


@gives(5.0, 1.0, 3)
def early_return_then_more(x, n):
    if n < 2:
        return x
    x = x + 4.0
    return x


@gives((7.0, 3), 7.0, 3)
def every_branch_returns_a_pair(x, n):
    if n < 2:
        return -x, n + 1
    else:
        if x > 0.0:
            return x, n
        return x * 2.0, n


@gives((-1.0, 5), 1.0, 5)
def conditional_expressions(x, n):
    y = x if n < 2 else -x
    return y, (n if x > 0.0 else 0)


@gives(3.0, 3.0, 1)
def a_conditional_expression_runs_one_side(x, n):
    def checked(t):
        tf.debugging.assert_less(t, 1.0)
        return t

    return x if n == 1 else checked(x)


@gives(1.0, 1.0, Static(None))
def a_python_condition_in_an_expression(x, y):
    return x if y is None else x + y


@gives((False, True, False, True), 1.0, 3)
def logic(x, n):
    a = x > 2.0
    b = n == 3
    return a and b, a or b, not b, not (a and not b)


@gives(False, 0)
def and_stops_at_the_first_false(n):
    return n > 0 and 6 // n > 2


@gives((True, 2.0), 1.0, 3)
def python_and_tensor_operands_mixed(x, n):
    flag = True
    if flag and x > 0.5:
        x = x * 2.0
    if not flag or n < 0:
        x = -x
    return flag and n > 2, x


@gives((True, False), 3)
def chained_comparisons(n):
    return 0 < n <= 3 < 5, 0 < n < 3 < 5


@gives((0.75, 2), 0.75, 2)
def a_chained_comparison_decides(x, n):
    while 0.0 < x < 0.5 or n < 2:
        x, n = x + 0.25, n + 1
    return x, n


@gives((True, True, False), 3, 3)
def equality_of_tensors(n, m):
    return n == m, n != 4, n == 4


@gives((False, True, 3), 3)
def identity_is_python(n):
    if n is None:
        r = 0
    else:
        r = n
    return n is None, n is not None, r


@gives((2.0, 2.0), 1.0, 3)
def one_value_for_two_names(x, n):
    a = b = x
    if n > 2:
        a = b = x * 2.0
    return a, b


@gives((4.0, 1.0), 1.0, 3)
def a_deleted_name_comes_back(x, n):
    t = x * 2.0
    y = t / 2.0
    del t
    if n > 2:
        t = x * 4.0
    else:
        t = x
    return t, y


@gives(b"many", 3)
def strings_from_branches(n):
    if n > 2:
        s = "many"
    else:
        s = "few"
    return tf.strings.join([s])
