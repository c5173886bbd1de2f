"""Calls of Python's own functions with tensors among their arguments."""

from .table import Static, gives, tf


@gives((1.5, 2), -1.5, 2)
def abs_of_tensors(x, n):
    return abs(x), abs(-n)


@gives((2, 3.0, 1.0, 4), 2.5, 3)
def numbers_of_tensors(x, n):
    return int(x), float(n), float("1"), int("4")


@gives((3, 2), [1.0, 2.0, 3.0])
def len_of_tensors_and_lists(v):
    return len(v), len([v, v])


@gives((2, 4), [1.0, 2.0])
def len_of_what_grows(v):
    parts = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for e in v:
        parts = parts.write(parts.size(), e)
    return len(v), len(tf.range(len(v) * 2))


@gives((3, 10.0, 6), 3)
def range_of_tensors(n):
    s = 0.0
    for i in range(n + 2):
        s += float(i)
    t = 0
    for i in range(n, 0, -1):
        t += i
    return len([0 for _ in range(3)]), s, t


@gives(14.0, [1.0, 2.0, 3.0])
def enumerate_of_a_data_set(v):
    s = 0.0
    for i, e in enumerate(tf.data.Dataset.from_tensor_slices(v), 1):
        s += e * tf.cast(i, tf.float32)
    return s


@gives(5.0, 1.0)
def enumerate_of_a_list(x):
    s = x
    for i, e in enumerate([x, x * 2.0, x], start=0):
        s += e * float(i)
    return s


@gives(35, Static(3))
def zip_of_data_sets(k):
    s = tf.constant(0, tf.int64)
    for a, b in zip(tf.data.Dataset.range(k), tf.data.Dataset.range(10, 20)):
        s += a * b
    return tf.cast(s, tf.int32)


@gives(7.0, 1.0)
def zip_and_reversed_of_lists(x):
    s = 0.0
    for a, b in zip([x, x * 2.0], reversed([x, x * 3.0])):
        s += a * b + 1.0
    return s


@gives((6, [2.0, 4.0]), Static(3), [1.0, 2.0])
def map_of_data_sets_and_lists(k, v):
    s = tf.constant(0, tf.int64)
    for e in map(lambda t: t * 2, tf.data.Dataset.range(k)):
        s += e
    return tf.cast(s, tf.int32), list(map(lambda t: t * 2.0, [v[0], v[1]]))


@gives((5, [4]), Static(4))
def filter_of_data_sets_and_lists(k):
    s = tf.constant(0, tf.int64)
    for e in filter(lambda t: t > 1, tf.data.Dataset.range(k)):
        s += e
    return tf.cast(s, tf.int32), list(filter(lambda t: t > 3, [1, 4]))


@gives((True, False, True, False), [1.0, -1.0])
def any_and_all(v):
    positive = tf.data.Dataset.from_tensor_slices(v > 0.0)
    return any(positive), all(positive), any([0, 1]), all([0, 1])


@gives(([1.0, 2.0, 3.0], [3, 2, 1]), [2.0, 3.0, 1.0])
def sorted_tensors_and_lists(v):
    return tf.stack(sorted(v)), sorted([1, 3, 2], reverse=True)


@gives([-3.0, 2.0, 1.0], [2.0, -3.0, 1.0])
def sorted_by_a_key(v):
    return tf.stack(sorted(v, key=lambda t: -abs(t)))


@gives((3, 1, 5, 7), 3)
def of_python_values(n):
    return max(1, 3), min([2, 1]), sum([2, 3]), sum([1, 2], 4)


@gives((3.0, 6.0), 3.0)
def sum_of_tensors_in_a_list(x):
    return sum([x]), sum([x, x])


@gives((True, 9.0, 2), 3.0)
def other_functions(x):
    return isinstance(x, tf.Tensor), pow(x, 2.0), round(2.4)


@gives((1.0, 3.0), 1.0)
def names_asked_for(x):
    y = x * 3.0
    return locals()["x"], eval("y")


@gives(2.0, 1.0)
def attributes_asked_for(x):
    class Held:
        value = 2.0

    return x * getattr(Held, "value") * float(hasattr(Held, "value"))
