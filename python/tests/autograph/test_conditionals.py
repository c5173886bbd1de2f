"""if statements and conditional expressions on tensors."""

import pytest
from scalar_programs import refused, run

import headrace as tf


class Thing:
    pass


def test_chosen_when_the_graph_runs():
    traced = []

    def f(x):
        if x > 3:
            traced.append("main")
            y = x * 2
        elif x > 1:
            traced.append("elif")
            y = -x
        else:
            traced.append("else")
            y = x
        return y

    g = tf.function(f)
    assert [int(g(tf.constant(x))) for x in (5, 2, 0)] == [10, -2, 0]
    assert traced == ["main", "elif", "else"]


def test_python_conditions_add_one_branch_alone():
    def f(x, flag):
        return tf.sin(x) if flag else tf.cos(x)

    graph = tf.function(f).get_concrete_function(tf.constant(1.0), True).graph
    types = [op.type for op in graph.get_operations()]
    assert "Sin" in types
    assert "Cos" not in types


def test_one_operation_for_a_statement():
    def f(x):
        if x > 0:
            a, b = x, x + 1
        else:
            a, b = -x, x
        return a, b

    graph = tf.function(f).get_concrete_function(tf.constant(1)).graph
    types = [op.type for op in graph.get_operations()]
    assert sum("If" in t for t in types) == 1


def test_values_after_it_are_tensors_of_both_branches():
    def f(x):
        y = 3
        name = "a"
        if x > 0:
            y = 4
            name = "b"
        return y, name

    y, name = run(f)
    assert (int(y), name.numpy()) == (4, b"b")
    assert int(run(f, -1)[0]) == 3


def test_structures_keep_their_kind():
    def f(x):
        d = {"b": 1, "a": tf.constant(1.0)}
        if x > 0:
            d = {"a": tf.constant(2.0), "b": 3}
        return d

    assert {k: float(v) for k, v in run(f).items()} == {"a": 2.0, "b": 3.0}


def test_ragged_tensors_datasets_arrays_and_variables():
    v = tf.Variable([1.0, 2.0])

    def f(x):
        ragged = tf.ragged.constant([[1], [2, 3]])
        data = tf.data.Dataset.range(3)
        array = tf.TensorArray(tf.int32, 2)
        if x > 0:
            ragged = ragged + 1
            data = data.map(lambda i: i + 1)
            array = array.write(0, x)
            y = v
        else:
            array = array.write(1, x)
            y = v + 1
        total = data.reduce(tf.constant(0, tf.int64), lambda a, b: a + b)
        return ragged, total, array.stack(), y

    ragged, total, array, y = run(f)
    assert ragged.to_list() == [[2], [3, 4]]
    assert int(total) == 6
    assert array.numpy().tolist() == [5, 0]
    assert y.numpy().tolist() == [1.0, 2.0]


def test_attributes_and_items():
    def f(x):
        thing, d = Thing(), {"a": 1}
        thing.a = x
        if x > 0:
            thing.a = x + 1
            d["a"] = 7
        return thing.a, d["a"]

    assert [int(t) for t in run(f)] == [6, 7]


def test_what_is_not_used_afterwards_may_be_anything():
    def f(x):
        kind = int
        if x > 0:
            kind = float
            extra = x
        else:
            del kind
        return x

    assert int(run(f)) == 5


def test_returns_of_both_branches():
    def f(x):
        if x > 0:
            return x + 1, "pos"
        return x, "neg"

    assert int(run(f)[0]) == 6
    assert run(f, -1)[1].numpy() == b"neg"


def _other(x):
    if x > 0:
        y = 1
    return y


def _main(x):
    if x > 0:
        pass
    else:
        y = 1
    return y


def _attribute(x):
    thing = Thing()
    if x > 0:
        thing.a = x
    return thing.a


def _item(x):
    d = {}
    if x > 0:
        d["a"] = x
    return d["a"]


def _none_before(x):
    y = None
    if x > 0:
        y = 1
    return y


def _none_after(x):
    y = (1, 2)
    if x > 0:
        y = (1, None)
    return y


def _undefined_and_none(x):
    a = 1
    if x > 0:
        a = None
    else:
        b = 2
    return a, b


def _no_return(x):
    if x > 0:
        return 1


def _no_return_nested(x):
    if x > 0:
        if x > 2:
            return x
    return x + 1


def _return_none(x):
    if x > 0:
        return x
    return None


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_other, "'y' must also be initialized in the else branch"),
        (_main, "'y' must also be initialized in the main branch"),
        (_attribute, "'thing.a' must also be initialized in the else branch"),
        (_item, "'d['a']' must also be initialized in the else branch"),
        (_none_before, "'y' is None at the end of the else branch."),
        (_none_after, "'y' is None at the end of the main branch."),
        (_undefined_and_none, "'b' must also be initialized in the main branch"),
        (_no_return, "the else branch must also have a return statement."),
        (_no_return_nested, "the else branch must also have a return statement."),
        (_return_none, "'retval_' is None at the end of the else branch."),
    ],
)
def test_both_branches_give_values(function, text):
    refused(function, ValueError, text)


def _dtypes(x):
    y = 1
    if x > 0:
        y = 2.0
    return y


def _flags(x):
    y = x
    if x > 0:
        y = True
    return y


def _lengths(x):
    y = (1, 2)
    if x > 0:
        y = (1, 2, 3)
    return y


def _kinds(x):
    y = (1, 2)
    if x > 0:
        y = [1, 2]
    return y


def _list_or_tensor(x):
    y = tf.zeros([2])
    if x > 0:
        y = y + 1
    else:
        y = [3.0, 4.0]
    return y


def _function(x):
    y = int
    if x > 0:
        y = int
    return y(x)


_STRUCTURE = "'y' must have the same nested structure in the main and else branches:"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            _dtypes,
            "'y' has dtype float32 in the main branch, but dtype int32 in the else "
            "branch",
        ),
        (
            _flags,
            "'y' has dtype bool in the main branch, but dtype int32 in the else branch",
        ),
        (_lengths, _STRUCTURE),
        (_kinds, _STRUCTURE),
        (_list_or_tensor, _STRUCTURE),
        (_function, "found return value of type type, which is not a Tensor"),
    ],
)
def test_both_branches_give_the_same_kind(function, text):
    refused(function, TypeError, text)


def _vector(x):
    if tf.stack([x, x]) > 0:
        x = 1
    return x


def _number(x):
    if x:
        x = 1
    return x


def _text(x):
    if tf.as_string(x):
        x = 1
    return x


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (_vector, "dtype=bool); to check for None, use `is not None`"),
        (_number, "dtype=int32); to use as boolean Tensor, use `tf.cast`; to check"),
        (_text, "dtype=string); to use as boolean Tensor, use `tf.cast`; to check"),
    ],
)
def test_conditions_are_bool_scalars(function, hint):
    start = "condition of if statement expected to be `tf.bool` scalar, got Tensor("
    refused(function, ValueError, start)
    refused(function, ValueError, hint)


def test_conditions_of_one_element_or_unknown_shape():
    def f(x):
        a = b = 1
        if tf.stack([x > 0]):
            a = 2
        if tf.raw_ops.PlaceholderWithDefault(input=x > 0, shape=None):
            b = 3
        return a, b

    assert [int(t) for t in run(f)] == [2, 3]


def test_variables_and_known_tensors_are_conditions():
    flag, known = tf.Variable(True), tf.constant(False)

    def f(x):
        y = 1
        if flag:
            y = 2
        if known:
            y = 3
        return y

    g = tf.function(f)
    assert int(g(tf.constant(1))) == 2
    flag.assign(False)
    assert int(g(tf.constant(1))) == 1


def test_reading_what_has_no_value():
    def f(x):
        if x is None:
            y = 1
        return y

    refused(f, UnboundLocalError, "'y' is used before assignment")

    def g(x):
        y = 1
        del y
        return y.shape

    refused(g, UnboundLocalError, "'y' is used before assignment")


def test_expressions():
    def f(x):
        a = 1 if x > 2 else 2 if x > 1 else 3
        b = (a, {"k": x}) if x > 2 else (x, {"k": a})
        return a, b[1]["k"]

    assert [int(t) for t in run(f)] == [1, 5]
    assert [int(t) for t in run(f, 2)] == [2, 2]


def test_expressions_that_differ():
    refused(
        lambda x: 1 if x > 0 else 2.0,
        TypeError,
        "'x > 0' has dtype int32 in the main branch, but dtype float32 in the else "
        "branch",
    )
    refused(
        lambda x: 1 if x > 0 else None,
        ValueError,
        "'x > 0' is None at the end of the else branch.",
    )
    refused(lambda x: (1, 2) if x > 0 else (1, 2, 3), AssertionError, "[2, 3]")


def test_logic_is_lazy():
    def f(x):
        both = x > 0 and 10 // x > 1
        either = x == 0 or 10 // x > 1
        return both, either, not both, 1 < x < 10

    def values(x):
        return [bool(t) for t in run(f, x)]

    assert values(5) == [True, True, False, True]
    assert values(0) == [False, True, True, False]


def test_logic_of_python_values_is_pythons():
    def f(x):
        return [] or x, 0 and x, not [], "a" == "a"

    first, second, third, fourth = tf.function(f)(tf.constant(5))
    assert [int(first), int(second)] == [5, 0]
    assert bool(third)
    assert bool(fourth)


def test_logic_of_different_kinds():
    refused(
        lambda x: x > 10 or "a",
        TypeError,
        "true_fn and false_fn arguments to tf.cond must have the same number, type, "
        "and overall structure of return values.",
    )
    refused(
        lambda x: x > 0 and None,
        ValueError,
        "Lengths of branch outputs of cond must match.",
    )


def test_gradients_go_through_branches():
    def f(x):
        if x > 0:
            y = x * x
        else:
            y = 3.0 * x
        return y

    def slope(x):
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.function(f)(x)
        return float(tape.gradient(y, x))

    assert [slope(2.0), slope(-2.0)] == [4.0, 3.0]


def test_eager_values_run_as_python():
    def f(x):
        if x > 3:
            return "large"
        return None

    converted = tf.autograph.to_graph(f)
    assert converted(tf.constant(5)) == "large"
    assert converted(tf.constant(2)) is None
