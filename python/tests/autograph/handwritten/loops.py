"""while and for, over all that can be iterated; break, continue, return."""

import collections
import contextlib

from .table import Static, gives, tf


@gives((0, 10), 4)
def while_counts(n):
    s = 0
    while n > 0:
        s += n
        n -= 1
    return n, s


@gives(1.0, 1.0, 0)
def while_never_runs(x, n):
    while n > 0:
        x = x * 2.0
        n -= 1
    return x


@gives((3, 6), 3)
def while_on_python_values_unrolls(n):
    i, s = 0, n * 0
    while i < 3:
        i += 1
        s += i
    return i, s


@gives(10.0, 1.0, 4)
def for_over_a_tensor_range(x, n):
    s = 0.0
    for i in tf.range(n):
        s += x * tf.cast(i + 1, tf.float32)
    return s


@gives((12, 5), 5)
def for_over_a_range_of_a_tensor(n):
    s, t = 0, 0
    for i in range(n, 2, -1):
        s += i
    for j in range(1, n, 3):
        t += j
    return s, t


@gives(1.5, [0.5, -1.0, 2.0])
def for_over_a_vector(v):
    s = 0.0
    for e in v:
        s += e
    return s


@gives([4.0, 6.0], [[1.0, 2.0], [3.0, 4.0]])
def for_over_rows(m):
    s = tf.zeros([2])
    for row in m:
        s = s + row
    return s


@gives(6, Static(4))
def for_over_a_data_set(k):
    s = tf.constant(0, tf.int64)
    for e in tf.data.Dataset.range(k):
        s += e
    return tf.cast(s, tf.int32)


@gives((10, 6.0), [1.0, 2.0, 3.0])
def for_over_numbered_pairs_of_a_data_set(v):
    s, t = 0, 0.0
    for i, (e, f) in tf.data.Dataset.from_tensor_slices((v, v)).enumerate(start=1):
        s += tf.cast(i, tf.int32) + 1 if e > 1.5 else 3
        t += f
    return s, t


@gives((1, 5), 3)
def for_over_an_iterator_goes_on_where_it_stopped(n):
    it = iter(tf.data.Dataset.range(4))
    first = 0
    for e in it:
        first += tf.cast(e, tf.int32)
        if e > 0:
            break
    rest = n * 0
    for e in it:
        rest += tf.cast(e, tf.int32)
    return first, rest


@gives(3, 3)
def next_in_a_loop(n):
    it = iter(tf.data.Dataset.range(4).repeat())
    s = 0
    for _ in tf.range(n):
        s += tf.cast(next(it), tf.int32)
    return s


@gives([3, 0, 3], 0)
def for_over_ragged_rows(n):
    rows = tf.ragged.constant([[1, 2], [], [3]])
    sums = tf.TensorArray(tf.int32, 3)
    i = 0
    for row in rows:
        sums = sums.write(i, tf.reduce_sum(row) + n)
        i += 1
    return sums.stack()


@gives([0.0, 1.0, 4.0], 3)
def a_tensor_array_filled(n):
    squares = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(n):
        t = tf.cast(i, tf.float32)
        squares = squares.write(i, t * t)
    return squares.stack()


@gives(8.0, [1.0, 2.0, 5.0])
def a_tensor_array_read(v):
    parts = tf.TensorArray(tf.float32, size=3).unstack(v)
    s = 0.0
    i = 0
    while i < 3:
        s += parts.read(i)
        i += 1
    return s


@gives((5, 3), 10)
def break_leaves(n):
    s, i = 0, 0
    for i in tf.range(n):
        if s > 4:
            break
        s += i
        if s == 3:
            s += 2
    return s, i


@gives(9, 6)
def continue_goes_on(n):
    s = 0
    for i in tf.range(n):
        if i % 2 == 0:
            continue
        s += i
    return s


@gives((16, 4), 7)
def break_and_continue_in_nested_loops(n):
    s, outer = 0, 0
    for i in tf.range(n):
        if i == 2:
            continue
        if i > 4:
            break
        outer = i
        j = 0
        while j < n:
            j += 1
            if j == i:
                break
            if j % 2 == 1:
                continue
            s += j
    return s, outer


@gives((4, 4), 4)
def while_on_a_true_tensor(n):
    i = 0
    while tf.constant(True):
        i += 1
        if i == n:
            break
    return i, n


@gives(5, 9)
def every_turn_returns(n):
    for i in tf.range(n):
        if i > 3:
            return i
        else:
            return n - 4
    return 0


@gives(2.0, 1.0, Static(2))
def a_python_loop_returns(x, k):
    for i in range(5):
        if i == k:
            return x * i
    return x


@gives(10.5, 0.5, Static(4))
def a_python_loop_breaks_and_tensors_continue(x, k):
    for i in range(10):
        if i > k:
            break
        if x < 0.0:
            continue
        x = x + float(i)
    return x


@gives((3, 2.0), 3)
def a_name_first_set_in_the_loop(n):
    for i in tf.range(n):
        last = tf.cast(i, tf.float32)
    return i + 1, last


@gives((13, 8), 6)
def loop_variables_swap(n):
    a, b = 1, 1
    for _ in tf.range(n - 1):
        a, b = a + b, a
    return a, b


@gives(([8.0, 4.0], {"k": (4, 8.0)}), 1.0, 3)
def structures_as_loop_variables(x, n):
    both = [x, x]
    d = {"k": (n, x)}
    for i in tf.range(n):
        both = [both[0] * 2.0, both[0]]
        m, y = d["k"]
        d = {"k": (n + 1, y * 2.0)}
    return both, d


@gives((6.0, 0), 1.0, 3)
def a_named_tuple_as_a_loop_variable(x, n):
    Pair = collections.namedtuple("Pair", ["a", "b"])
    pair = Pair(x, n)
    while pair.b > 0:
        pair = Pair(pair.a + tf.cast(pair.b, tf.float32) - 1.0 / 3.0, pair.b - 1)
    return tf.round(pair.a), pair.b


@gives((7.0, 3), 1.0, 3)
def parts_of_objects_as_loop_variables(x, n):
    class Held:
        pass

    held = Held()
    held.x, counts = x, {"turns": 0}
    for i in tf.range(n):
        held.x = held.x + 2.0
        counts["turns"] += 1
    return held.x, counts["turns"]


@gives((2.0, 3), 2.0, 3)
def the_target_is_not_the_outer_name(x, n):
    y = x
    for x in tf.range(3.0):
        pass
    return y, n


@gives(18.0, [1.0, 2.0], 2)
def loops_over_tensors_inside_python_loops(v, n):
    s = 0.0
    for k in (1, 2):
        for e in v:
            for _ in tf.range(n):
                s += e * k
    return s


@gives((3, 6.0), [1.0, 2.0, 3.0])
def a_loop_within_with_and_try(v):
    turns, s = 0, 0.0
    with tf.name_scope("sums"), contextlib.nullcontext():
        for e in v:
            try:
                if e > 0.0:
                    s += e
            finally:
                turns += 1
    return turns, s


@gives([1.0, 1.0, 1.0, 1.0], 3)
def a_shape_that_changes_is_declared(n):
    v = tf.ones([1])
    for _ in tf.range(n):
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(v, tf.TensorShape([None]))]
        )
        v = tf.concat([v, [1.0]], 0)
    return v


@gives(2, 9, plain=False)
def a_loop_with_most_turns(n):
    i = 0
    while i < n:
        tf.autograph.experimental.set_loop_options(maximum_iterations=2)
        i += 1
    return i


@gives([1, 1, 2, 3, 5], 5)
def a_list_stacked_after_a_python_loop(n):
    found = [n - 4, n - 4]
    for _ in range(3):
        found.append(found[-1] + found[-2])
    return tf.stack(found)


@gives(45, Static(10))
def a_data_set_with_break(k):
    s = tf.constant(0, tf.int64)
    for e in tf.data.Dataset.range(100):
        if e >= k:
            break
        if e < 0:
            continue
        s += e
    return tf.cast(s, tf.int32)
