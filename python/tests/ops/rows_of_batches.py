"""Rows of ops that put the rows of several calls together. Values are TensorFlow
2.21's; ids differ from run to run there."""

import threading

import numpy as np
from rows import formula

_RULES = {"num_batch_threads": 1, "max_batch_size": 4, "batch_timeout_micros": 20000}


def together(calls):
    """What each call, by its number, gives in a thread of its own."""
    found = {}

    def run(i, call):
        found[i] = call()

    threads = [threading.Thread(target=run, args=p) for p in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[i] for i in range(len(calls))]


@formula("Batch")
def a_call_alone(tf, raw):
    batch = raw.Batch(
        in_tensors=[np.float32([[1], [2], [3]]), np.int32([3, 4, 5])],
        allowed_batch_sizes=[2, 4],
        grad_timeout_micros=1000,
        shared_name="alone",
        **_RULES,
    )
    x, y = batch.batched_tensors
    pairs = [x, np.float32([[1], [2], [3], [1]]), y, np.int32([3, 4, 5, 3])]
    index = [[0, 3]]
    pairs += [batch.batch_index[:, 1:], np.int64(index)]
    return [*pairs, batch.batch_index[0, 0] == batch.id, np.array(True)]


@formula("Unbatch UnbatchGrad")
def rows_given_back(tf, raw):
    """Two steps of a graph at the same time, of one row and of three."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 1])
        batch = raw.Batch(
            in_tensors=[x],
            grad_timeout_micros=10**7,
            shared_name="shared",
            **_RULES | {"batch_timeout_micros": 10**7},
        )
        own = raw.Unbatch(
            batched_tensor=batch.batched_tensors[0] * 10,
            batch_index=batch.batch_index,
            id=batch.id,
            timeout_micros=10**7,
            shared_name="given",
        )
        gathered = raw.UnbatchGrad(
            original_input=batch.batched_tensors[0],
            batch_index=batch.batch_index,
            grad=own + 1,
            id=batch.id,
            shared_name="gathered",
        )
        steps = [
            lambda rows=rows: session.run([own, gathered], {x: rows})
            for rows in ([[7.0]], [[1.0], [2.0], [3.0]])
        ]
        (one, first), (three, second) = together(steps)
    both = np.concatenate([first, second])
    assert sorted([len(first), len(second)]) == [0, 4]
    wanted = np.float32([[11], [21], [31], [71]])
    return [
        *(one, np.float32([[70]]), three, np.float32([[10], [20], [30]])),
        *(np.sort(both, 0), wanted),
    ]


@formula("BatchFunction")
def a_function_of_all_rows(tf, raw):
    signature = [tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32)]

    @tf.function(input_signature=signature)
    def f(x, c):
        return x * c, tf.reduce_sum(x, keepdims=True) + x * 0

    concrete = f.get_concrete_function()

    def call(rows):
        return raw.BatchFunction(
            in_tensors=[np.float32(rows)],
            captured_tensors=[np.float32(2)],
            Tout=[tf.float32] * 2,
            f=concrete,
            shared_name="function",
            **_RULES | {"batch_timeout_micros": 10**7},
        )

    one, three = together([lambda: call([4]), lambda: call([1, 2, 3])])
    pairs = [one[0], np.float32([8]), three[0], np.float32([2, 4, 6])]
    return [*pairs, one[1], np.float32([10]), three[1], np.float32([10] * 3)]
