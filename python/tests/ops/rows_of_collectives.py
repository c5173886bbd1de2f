"""Rows of collectives, whose members are devices in one function, or threads that say
their ranks. Values are TensorFlow 2.21's, but for the reduce-scatter: it has no kernel
of that on CPUs."""

import itertools
import threading

import numpy as np
from rows import formula

_keys = itertools.count(7001)


def _members(tf, count, call):
    """What call(i) gives for each member, which is a device of one function. Each group
    has a key of its own."""
    key = next(_keys)

    @tf.function
    def together():
        given = []
        for i in range(count):
            with tf.device(f"/device:CPU:{i}"):
                given.append(call(i, key))
        return given

    return together()


def _threads(count, call):
    given = [None] * count

    def work(i):
        given[i] = call(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return given


def _ints(tf, *values):
    return [tf.constant(v, tf.int32) for v in values]


_INPUTS = ([1.0, 2.0, 5.0], [3.0, -4.0, 7.0])
_MERGED = [
    ("Add", "Id", [4.0, -2.0, 12.0]),
    ("Mul", "Id", [3.0, -8.0, 35.0]),
    ("Min", "Id", [1.0, -4.0, 5.0]),
    ("Max", "Id", [3.0, 2.0, 7.0]),
    ("Add", "Div", [2.0, -1.0, 6.0]),
    ("Mul", "Div", [1.5, -4.0, 17.5]),
]


@formula("CollectiveReduce CollectiveReduceV2")
def reductions_of_members(tf, raw):
    pairs = []
    for merge, final, wanted in _MERGED:
        how = {"merge_op": merge, "final_op": final}

        def second(i, key, how=how):
            size, group, instance = _ints(tf, 2, key, 1)
            return raw.CollectiveReduceV2(
                input=tf.constant(_INPUTS[i]),
                group_size=size,
                group_key=group,
                instance_key=instance,
                ordering_token=[],
                **how,
            )

        def first(i, key, how=how):
            return raw.CollectiveReduce(
                input=tf.constant(_INPUTS[i]),
                group_size=2,
                group_key=key,
                instance_key=1,
                subdiv_offsets=[0],
                **how,
            )

        for call in (first, second):
            for x in _members(tf, 2, call):
                pairs += [x, np.float32(wanted)]
    return pairs


@formula("CollectiveReduceV2")
def integers_and_small_numbers_divided(tf, raw):
    def given(values, dtype):
        def call(i, key):
            size, group, instance = _ints(tf, 2, key, 1)
            return raw.CollectiveReduceV2(
                input=tf.constant(values[i], dtype),
                group_size=size,
                group_key=group,
                instance_key=instance,
                ordering_token=[],
                merge_op="Add",
                final_op="Div",
            )

        return _members(tf, 2, call)[0]

    return [
        given([[1, 2, 5], [3, -5, 8]], tf.int32),
        np.int32([2, -1, 6]),
        tf.cast(given([[1.0], [2.0]], tf.float16), tf.float32),
        np.float32([1.5]),
        tf.cast(given([[1.0], [2.0]], tf.bfloat16), tf.float32),
        np.float32([1.5]),
    ]


@formula("CollectiveGather CollectiveGatherV2 CollectiveAllToAllV2")
def gathered_and_exchanged_rows(tf, raw):
    rows = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]

    def op(name):
        def call(i, key):
            size, group, instance = _ints(tf, 2, key, 2)
            return getattr(raw, name)(
                input=tf.constant(rows[i]),
                group_size=size,
                group_key=group,
                instance_key=instance,
                ordering_token=[],
            )

        return _members(tf, 2, call)

    def first(i, key):
        return raw.CollectiveGather(
            input=tf.constant(rows[i]),
            group_size=2,
            group_key=key,
            instance_key=2,
            shape=[4, 2],
        )

    every = np.float32(rows).reshape(4, 2)
    pairs = []
    for x in [*op("CollectiveGatherV2"), *_members(tf, 2, first)]:
        pairs += [x, every]
    exchanged = op("CollectiveAllToAllV2")
    pairs += [exchanged[0], np.float32([[1, 2], [5, 6]])]
    pairs += [exchanged[1], np.float32([[3, 4], [7, 8]])]
    return pairs


@formula("CollectiveReduceScatterV2")
def scattered_sums(tf, raw):
    def call(i, key):
        size, group, instance = _ints(tf, 2, key, 1)
        return raw.CollectiveReduceScatterV2(
            input=tf.constant([[1.0], [2.0], [3.0], [4.0]]) * (10.0**i),
            group_size=size,
            group_key=group,
            instance_key=instance,
            ordering_token=[],
            merge_op="Add",
            final_op="Id",
        )

    first, second = _members(tf, 2, call)
    return [first, np.float32([[11], [22]]), second, np.float32([[33], [44]])]


@formula(
    "CollectiveBcastSend CollectiveBcastRecv CollectiveBcastSendV2"
    " CollectiveBcastRecvV2"
)
def what_one_member_sends(tf, raw):
    value = tf.constant([3.0, 4.0])

    def first(i, key):
        keys = {"group_size": 3, "group_key": key, "instance_key": 1, "shape": [2]}
        if i == 1:
            return raw.CollectiveBcastSend(input=value, **keys)
        return raw.CollectiveBcastRecv(T=tf.float32, **keys)

    def second(i, key):
        size, group, instance = _ints(tf, 3, key, 1)
        keys = {"group_size": size, "group_key": group, "instance_key": instance}
        if i == 1:
            return raw.CollectiveBcastSendV2(input=value, **keys)
        return raw.CollectiveBcastRecvV2(T=tf.float32, shape=[2], **keys)

    pairs = []
    for call in (first, second):
        for x in _members(tf, 3, call):
            pairs += [x, np.float32([3, 4])]
    return pairs


@formula(
    "CollectiveInitializeCommunicator CollectiveReduceV3 CollectiveAllToAllV3"
    " CollectiveAssignGroupV2"
)
def members_that_say_their_ranks(tf, raw):
    pairs = []
    nothing = tf.zeros([0, 0], tf.int32)
    inputs = [[1.0, 4.0], [3.0, 2.0]]
    merged = {
        "Add": [4.0, 6.0],
        "Mul": [3.0, 8.0],
        "Min": [1.0, 2.0],
        "Max": [3.0, 4.0],
    }
    key = next(_keys)

    def work(i):
        size, group, rank = _ints(tf, 2, key, i)
        door = raw.CollectiveInitializeCommunicator(
            group_key=group, rank=rank, group_size=size
        )
        how = {
            "input": tf.constant(inputs[i]),
            "communicator": door,
            "group_assignment": nothing,
        }
        reduced = [raw.CollectiveReduceV3(reduction=kind, **how) for kind in merged]
        return [*reduced, raw.CollectiveAllToAllV3(**how)]

    for given, exchanged in zip(
        _threads(2, work), [[1.0, 3.0], [4.0, 2.0]], strict=True
    ):
        for x, wanted in zip(given, [*merged.values(), exchanged], strict=True):
            pairs += [x, np.float32(wanted)]
    for device, group in [(0, 11), (3, 12), (4, 10), (5, 10)]:
        assigned = raw.CollectiveAssignGroupV2(
            group_assignment=[[4, 5], [0, 1], [2, 3]],
            device_index=device,
            base_key=10,
        )
        pairs += [tf.stack(assigned), np.int32([2, group])]
    return pairs


@formula("RemoteCall")
def a_function_called_by_device(tf, raw):
    squared = tf.function(lambda x: (x * x, x + 1.0)).get_concrete_function(
        tf.TensorSpec([], tf.float32)
    )
    found = raw.RemoteCall(
        target="/device:CPU:0",
        args=[tf.constant(2.0)],
        Tout=[tf.float32, tf.float32],
        f=squared,
    )
    return [found[0], np.float32(4.0), found[1], np.float32(3.0)]
