"""Programs that plain Python's rules allow and TensorFlow 2.21 cannot trace.

Where TensorFlow's conversion loses a name, leaves code as it is, or refuses, these
give what Python gives. They are no part of what is asked of a TensorFlow.
"""

from .table import gives, tf


@gives(3.5, 0.75, 3)
def a_closure_alone_reads_what_a_branch_sets(x, n):
    a = x
    twice = lambda: a * 2.0
    if n > 2:
        a = a + 1.0
    return twice()


@gives((4, 0.75), 0.75, 3)
def a_name_of_both_branches_set_again_in_the_loop(x, n):
    last = 0
    for i in tf.range(n):
        if i > 1:
            a = i
        else:
            a = i + 1
        a = a * 2
        last = a
    return last, x


@gives(-0.75, 0.75, 3)
def a_conditional_expression_in_another(x, n):
    return x if n > 5 else (x * 2.0 if n < 2 else -x)


@gives((2.0, 4.0), 1.0, 2.0)
def max_and_min_of_tensors(x, y):
    return max(x, y), min(y, x) * 4.0


@gives((1.5, 1.5), 0.75)
def a_named_expression(x):
    if (y := x * 2.0) > 1.0:
        x = y
    return x, y


@gives(3.0, [0.5, 1.5], 3)
def data_after_a_python_loop_that_may_return(v, n):
    s = tf.cast(n, tf.float32) - 2.0
    for k in range(2):
        if k > 1:
            return s
    for e in tf.data.Dataset.from_tensor_slices(v):
        s = s + e
    return s
