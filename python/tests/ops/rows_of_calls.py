"""Rows of ops that call functions: values that TensorFlow 2.21 gave."""

import numpy as np
from rows import formula


def _traced(tf, function, *specs):
    made = tf.function(function, autograph=False)
    return made.get_concrete_function(*specs)


@formula("For")
def counted_loops(tf, raw):
    one, count = tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)
    body = _traced(tf, lambda i, x: (x * 2 + tf.cast(i, tf.float32),), count, one)

    def run(start, limit, delta):
        return raw.For(start=start, limit=limit, delta=delta, input=[1.0], body=body)

    pairs = []
    for numbers, wanted in (((0, 3, 1), 12), ((3, 0, -1), 25), ((2, 2, 5), 1)):
        pairs += [run(*numbers)[0], np.float32(wanted)]
        traced = tf.function(lambda n=numbers: run(*n)[0], autograph=False)
        pairs += [traced(), np.float32(wanted)]
    # The last step would leave the range of the counter.
    return [*pairs, run(2**31 - 2, 2**31 - 1, 2**30)[0], np.float32(2**31)]


@formula("SymbolicGradient")
def gradients_of_functions(tf, raw):
    one = tf.TensorSpec([], tf.float32)
    function = _traced(tf, lambda x, y: (x * x * y, tf.sin(y)), one, one)
    rows = _traced(
        tf,
        lambda table, at: tf.gather(table, at),
        tf.TensorSpec([3], tf.float32),
        tf.TensorSpec([2], tf.int32),
    )

    def run():
        both = raw.SymbolicGradient(
            input=[2.0, 3.0, 1.0, 10.0], Tout=[tf.float32, tf.float32], f=function
        )
        sparse = raw.SymbolicGradient(
            input=[tf.ones([3]), [2, 2], tf.constant([1.0, 4.0])],
            Tout=[tf.float32, tf.int32],
            f=rows,
        )
        return [*both, *sparse]

    wanted = [
        np.float32(12),
        np.float32(-5.899925231933594),
        np.float32([0, 0, 5]),
        np.int32([0, 0]),
    ]
    found = [*run(), *tf.function(run, autograph=False)()]
    return [x for pair in zip(found, wanted * 2, strict=True) for x in pair]


@formula("MapDefun")
def functions_of_rows(tf, raw):
    one = tf.TensorSpec([], tf.float32)
    function = _traced(
        tf,
        lambda x, y, z: (x + y * z, tf.reduce_sum(x)),
        tf.TensorSpec([2], tf.float32),
        one,
        one,
    )
    table = np.float32([[1, 2], [3, 4], [5, 6]])

    def run(table, shape=(2,)):
        return raw.MapDefun(
            arguments=[table, tf.constant([1.0, 2.0, 3.0])[: len(table)]],
            captured_inputs=[10.0],
            output_types=[tf.float32, tf.float32],
            output_shapes=[list(shape), []],
            f=function,
        )

    wanted = [
        np.float32([[11, 12], [23, 24], [35, 36]]),
        np.float32([3, 7, 11]),
    ]
    pairs = [x for p in zip(run(table), wanted, strict=True) for x in p]
    pairs += [x for p in zip(run(table, [None]), wanted, strict=True) for x in p]
    none = run(table[:0])
    return [*pairs, none[0], wanted[0][:0], none[1], wanted[1][:0]]
