"""Lists and assignments to elements in converted code, with Feature.LISTS.

The programs are written as the converter writes them: `l.append(x)` is
`l = ag.list_append(l, x)`, a loop or branch a call with its body.
"""

import pytest

import headrace as tf
from headrace.autograph import lists, operators as ag

_STACK = ag.ListStackOpts(element_dtype=None, original_call=tf.stack)


def run(function, x=5):
    """What tf.function of a program of one int32 scalar gives, not converted again."""
    return tf.function(function, autograph=False)(tf.constant(x))


def over(rows, items, turn):
    """The list after `turn(list, row)` of all rows, a loop of converted code."""

    def get_state():
        return (items,)

    def set_state(values):
        nonlocal items
        (items,) = values

    def body(row):
        nonlocal items
        items = turn(items, row)

    ag.for_stmt(rows, None, body, get_state, set_state, ("l",), {"iterate_names": "i"})
    return items


def choose(condition, items, then, otherwise=lambda items: items):
    """The list after an if statement of converted code."""

    def get_state():
        return (items,)

    def set_state(values):
        nonlocal items
        (items,) = values

    def body():
        nonlocal items
        items = then(items)

    def orelse():
        nonlocal items
        items = otherwise(items)

    ag.if_stmt(condition, body, orelse, get_state, set_state, ("l",), 1)
    return items


def test_lists_fill_in_loops():
    def f(x):
        found = over(tf.range(x), ag.new_list([]), ag.list_append)
        from_data = over(tf.data.Dataset.range(4), ag.new_list([]), ag.list_append)
        zeros = over(
            tf.range(3),
            ag.new_list([]),
            lambda items, i: ag.list_append(items, tf.zeros([2])),
        )
        return [ag.list_stack(items, _STACK) for items in (found, from_data, zeros)]

    found, from_data, zeros = run(f)
    assert found.numpy().tolist() == [0, 1, 2, 3, 4]
    assert from_data.numpy().tolist() == [0, 1, 2, 3]
    assert zeros.shape == (3, 2)
    assert run(f, 0)[0].numpy().tolist() == []


def test_lists_fill_in_loops_inside_loops():
    def f(x):
        def turn(items, i):
            return over(
                tf.range(i), items, lambda inner, j: ag.list_append(inner, i * j)
            )

        return ag.list_stack(over(tf.range(x), ag.new_list([7]), turn), _STACK)

    assert run(f, 4).numpy().tolist() == [7, 0, 0, 2, 0, 3, 6]


def test_lists_grow_and_shrink_in_branches():
    def f(x):
        items = choose(x > 3, ag.new_list([1]), lambda l: ag.list_append(l, x))
        items = choose(
            x > 4,
            items,
            lambda l: ag.list_append(l, x * 2),
            lambda l: ag.list_pop(l, None, ag.ListPopOpts(None, None))[0],
        )
        return ag.list_stack(items, _STACK)

    assert [run(f, x).numpy().tolist() for x in (5, 4, 3)] == [[1, 5, 10], [1], []]


def test_what_loops_leave_is_used_as_a_list():
    def f(x):
        items = over(tf.range(x), ag.new_list([]), ag.list_append)
        items, last = ag.list_pop(items, None, ag.ListPopOpts(None, None))
        items = ag.set_item(items, 0, 9)
        first = ag.get_item(items, 0, ag.GetItemOpts(None))
        total = 0
        for_all = over(
            items, ag.new_list([]), lambda l, i: ag.list_append(l, i + total)
        )
        return last, first, items.size(), ag.list_stack(for_all, _STACK)

    last, first, size, same = run(f)
    assert [int(last), int(first), int(size)] == [4, 9, 4]
    assert same.numpy().tolist() == [9, 1, 2, 3]


def test_lists_whose_length_stays_are_pythons():
    def f(x):
        items = ag.list_append(ag.new_list([1, "two"]), (x, x))
        items, last = ag.list_pop(items, None, ag.ListPopOpts(None, None))
        items, first = ag.list_pop(items, 0, ag.ListPopOpts(None, None))
        assert isinstance(items, list)
        return items, first, last, ag.list_stack(ag.new_list([x, 2]), _STACK)

    items, first, last, stacked = run(f)
    assert [items[0].numpy(), int(first), int(last[1])] == [b"two", 1, 5]
    assert stacked.numpy().tolist() == [5, 2]


def test_lists_are_filled_with_one_kind():
    def f(x):
        return over(
            tf.range(x), ag.new_list([1.5]), lambda items, i: ag.list_append(items, i)
        )

    with pytest.raises(TypeError, match="'l' does not have the same nested structure"):
        run(f)


def test_eager_lists_are_pythons():
    items = over(tf.range(3), ag.new_list([]), ag.list_append)
    assert type(items) is list
    assert [int(i) for i in items] == [0, 1, 2]


def test_tensor_lists_and_arrays():
    def f(x):
        items = tf.raw_ops.EmptyTensorList(
            element_shape=-1, max_num_elements=-1, element_dtype=tf.int32
        )
        items = ag.list_append(ag.list_append(items, x), x + 1)
        items = ag.set_item(items, 0, 7)
        first = ag.get_item(items, 0, ag.GetItemOpts(tf.int32))
        both = ag.list_stack(items, ag.ListStackOpts(tf.int32, None))
        items, last = ag.list_pop(items, None, ag.ListPopOpts(tf.int32, ()))
        array = ag.list_append(tf.TensorArray(tf.int32, 0, dynamic_size=True), x)
        return first, both, last, array.stack()

    first, both, last, array = run(f)
    assert [int(first), int(last)] == [7, 6]
    assert [both.numpy().tolist(), array.numpy().tolist()] == [[7, 6], [5]]


def test_tensor_lists_of_unknown_kind_are_refused():
    def items():
        return tf.raw_ops.EmptyTensorList(
            element_shape=-1, max_num_elements=-1, element_dtype=tf.int32
        )

    unknown = "without knowing its element type; use set_element_type to annotate it"
    for use in (
        lambda l: ag.list_stack(l, _STACK),
        lambda l: ag.get_item(l, 0, ag.GetItemOpts(None)),
        lambda l: ag.list_pop(l, None, ag.ListPopOpts(None, None)),
    ):
        with pytest.raises(ValueError, match=unknown):
            run(lambda x, use=use: use(items()))
    with pytest.raises(NotImplementedError, match="removing from the end"):
        run(lambda x: ag.list_pop(items(), 0, ag.ListPopOpts(tf.int32, ())))
    with pytest.raises(ValueError, match="dtype=tf.variant"):
        run(lambda x: ag.list_append(x, 1))
    with pytest.raises(ValueError, match="no tensor list"):
        run(lambda x: ag.list_pop(x, None, ag.ListPopOpts(None, None)))


def test_elements_of_tensors():
    def f(x):
        rows = ag.set_item(tf.stack([x, x, x]), 1, 4)
        rows = ag.set_item(rows, x - 3, 8)
        text = tf.constant("abc")
        return (
            rows,
            ag.get_item(rows, x - 4, ag.GetItemOpts(None)),
            ag.get_item(text, x - 3, ag.GetItemOpts(None)),
        )

    rows, one, letter = run(f)
    assert rows.numpy().tolist() == [5, 4, 8]
    assert [int(one), letter.numpy()] == [4, b"c"]


def test_lists_of_converted_code_are_lists():
    with tf.Graph().as_default():
        made = ag.new_list([1, 2])
    assert made == [1, 2]
    assert lists.may_grow(made)
    tf.nest.assert_same_structure(made, [3, 4])


# --- as the converter writes it ---

_LISTS = tf.autograph.experimental.Feature.LISTS


def converted(function, x=5):
    """What a program gives, converted with Feature.LISTS."""
    return tf.function(function, experimental_autograph_options=_LISTS)(tf.constant(x))


def test_converted_programs():
    def f(x):
        evens = []
        for i in tf.range(x):
            if i % 2 == 0:
                evens.append(i)
        pair = [x, x]
        pair[0] = 7
        last = pair.pop()
        rows = tf.zeros([3], tf.int32)
        rows[1] = x
        return tf.stack(evens), len(evens), evens[1], pair, last, rows

    assert type(converted(f)[3]) is list
    evens, count, one, pair, last, rows = converted(f)
    assert evens.numpy().tolist() == [0, 2, 4]
    assert [int(count), int(one), int(pair[0]), int(last)] == [3, 2, 7, 5]
    assert rows.numpy().tolist() == [0, 5, 0]


def test_element_types():
    def f(x):
        found, none = [], []
        tf.autograph.experimental.set_element_type(found, tf.float32)
        tf.autograph.experimental.set_element_type(none, tf.int64, (2,))
        for _ in tf.range(x):
            found.append(1)
        return tf.stack(found), tf.stack(none)

    found, none = converted(f, 3)
    assert (found.dtype, found.numpy().tolist()) == (tf.float32, [1.0, 1.0, 1.0])
    assert (none.dtype, none.shape) == (tf.int64, (0, 2))

    def untyped(x):
        return tf.stack([])

    with pytest.raises(ValueError, match="cannot stack a list without knowing its"):
        converted(untyped)


def test_element_types_are_nothing_to_lists_of_python():
    def f(x):
        found = []
        tf.autograph.experimental.set_element_type(found, tf.float32)
        found.append(x)
        return found

    assert int(tf.function(f)(tf.constant(5))[0]) == 5


def test_code_with_lists_can_be_read():
    def f(x):
        l = [x]
        l.append(x)
        y = l.pop()
        return tf.stack(l), l[0], y

    code = tf.autograph.to_code(f, experimental_optional_features=_LISTS)
    for line in (
        "l = ag__.new_list([ag__.ld(x)])",
        "l = ag__.list_append(ag__.ld(l), ag__.ld(x))",
        "l, l_1 = ag__.list_pop(ag__.ld(l), None, opts=ag__.ListPopOpts("
        "element_dtype=None, element_shape=None))",
        "ag__.list_stack(ag__.ld(l), opts=ag__.ListStackOpts(element_dtype=None, "
        "original_call=ag__.ld(tf).stack))",
        "ag__.get_item(ag__.ld(l), 0, opts=ag__.GetItemOpts(element_dtype=None))",
    ):
        assert line in code
