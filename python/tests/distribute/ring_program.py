"""A worker of MultiWorkerMirroredStrategy by RING, of Headrace or TensorFlow.

`ring_program.py MODULE WHAT JOB INDEX CLUSTER` prints what it finds, a line of JSON each.
"""

import importlib
import json
import os
import sys
import time

import numpy as np

_MODULE, _WHAT, _JOB, _INDEX, _CLUSTER = sys.argv[1:6]
_SELF = int(_INDEX)
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": json.loads(_CLUSTER), "task": {"type": _JOB, "index": _SELF}}
)
tf = importlib.import_module(_MODULE)


def told(name, *values):
    found = [np.asarray(v).tolist() for v in values]
    print(json.dumps([name, found]), flush=True)


def strategy(**options):
    experimental = tf.distribute.experimental
    ring = experimental.CommunicationImplementation.RING
    return tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=experimental.CommunicationOptions(
            implementation=ring, **options
        )
    )


def replica():
    return tf.distribute.get_replica_context()


def ops():
    """Each kind of collective, of sizes that one and several parts hold."""
    count = strategy().num_replicas_in_sync
    keys = {"group_size": count, "group_key": 7, "communication_hint": "RING"}
    instance = iter(range(200, 300))

    def reduced(x, **how):
        how = {"merge_op": "Add", "final_op": "Id", **how}
        return tf.raw_ops.CollectiveReduceV2(
            input=x, instance_key=next(instance), ordering_token=[], **how, **keys
        )

    for dtype in ("float32", "float64", "int32", "float16"):
        for size in (0, 1, 15, 16, 33, 1000):
            told(f"{dtype} {size}", reduced(tf.cast(tf.range(size) + _SELF, dtype)))
    many = reduced(tf.cast(tf.range(3000001) % 97 + _SELF, tf.float32))
    told("many", many[:3], tf.reduce_sum(tf.cast(many, tf.float64)))
    told("div", reduced(tf.constant([1.0 + _SELF, 2.0]), final_op="Div"))
    told("max", reduced(tf.constant([[1.0 + _SELF, 2.0]]), merge_op="Max"))
    for size in (1, 500000):
        rows = tf.raw_ops.CollectiveGatherV2(
            input=tf.range(size) + _SELF,
            instance_key=next(instance),
            ordering_token=[],
            **keys,
        )
        told(f"gather {size}", tf.shape(rows), rows[0], rows[-1], tf.reduce_max(rows))
    for source in range(count):
        for size in (3, 1000000):
            given = {"instance_key": next(instance), **keys}
            if source == _SELF:
                op, x = tf.raw_ops.CollectiveBcastSendV2, tf.range(float(size)) + source
                got = op(input=x, **given)
            else:
                op = tf.raw_ops.CollectiveBcastRecvV2
                got = op(T=tf.float32, shape=[size], **given)
            told(f"broadcast {source} {size}", got[0], got[-1])
    rows = tf.raw_ops.CollectiveAllToAllV2(
        input=tf.reshape(tf.range(2.0 * count), [count, 2]) + 100.0 * _SELF,
        instance_key=next(instance),
        ordering_token=[],
        **keys,
    )
    told("all to all", tf.reduce_sum(rows - 2.0 * _SELF))


def _training():
    s = strategy(bytes_per_pack=20)
    with s.scope():
        v = tf.Variable([1.0 + _SELF, 2.0])
        w = tf.Variable(tf.ones([3, 2]) * (_SELF + 1))
        flags = tf.Variable([True, False])
        read = tf.Variable(
            1.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
    told("variables", v, w, flags)

    @tf.function
    def step(x):
        def ran():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.linalg.matvec(w, v) * x)
            found = replica().all_reduce("SUM", tape.gradient(loss, [v, w]))
            v.assign_sub(0.1 * found[0])
            w.assign_sub(0.1 * found[1])
            read.assign_add(1.0)
            return loss

        return s.reduce("SUM", s.run(ran), axis=None)

    told("losses", *[step(tf.constant([1.0, 2.0, 3.0]) * (_SELF + 1)) for _ in "abc"])
    told("trained", v, w, read.read_value())
    rows = tf.data.Dataset.from_tensor_slices(np.arange(12.0, dtype="float32")).batch(4)
    added = tf.function(
        lambda x: s.reduce("SUM", s.run(tf.reduce_sum, args=(x,)), axis=None)
    )
    told("rows", *[added(x) for x in s.experimental_distribute_dataset(rows)])
    return s


def _together(s):
    """Values of replicas, at once and in functions."""

    def slices(count):
        return tf.IndexedSlices(
            tf.ones([count, 3]) * (_SELF + 1.0),
            tf.constant([0, 2, 1, 3][:count]),
            tf.constant([4, 3]),
        )

    def summed(count):
        given = [tf.constant([11.0 + _SELF]), slices(count), tf.constant([[2.0, 3.0]])]
        a, b, c = replica().all_reduce("SUM", given)
        return a, tf.convert_to_tensor(b), c

    for name, count in (("alike", 2), ("other", 2 + _SELF)):
        told(f"slices {name}", *s.run(summed, args=(count,)))
        traced = tf.function(lambda count=count: s.run(summed, args=(count,)))
        told(f"traced slices {name}", *traced(), *traced())
    mean = tf.constant([1.0 + _SELF, 2.0])
    told("mean", s.run(lambda: replica().all_reduce("MEAN", mean)))
    told("reduced", s.reduce("MEAN", tf.ones([2 + _SELF, 2]) * (_SELF + 1.0), axis=0))
    told("count", s.reduce("SUM", tf.constant([3], tf.int64), axis=None))
    told("gather", s.gather(tf.ones([2, 1 + _SELF, 3]) * (_SELF + 1.0), axis=1))
    mine = tf.ones([1 + _SELF, 2]) * (_SELF + 1.0)
    told("all gather", s.run(lambda: replica().all_gather(mine, axis=0)))


def train():
    _together(_training())


def _walks(s):
    """Functions that walk over datasets, whose last batches some workers lack."""
    rows = tf.data.Dataset.range(22).map(lambda i: tf.cast(i, tf.float32)).batch(4)
    uneven = s.distribute_datasets_from_function(
        lambda _: rows.take(2 + 2 * _SELF)  # the first worker has the fewest
    )

    def added(x):
        return s.reduce("SUM", s.run(tf.reduce_sum, args=(x,)), axis=None)

    @tf.function
    def whole(dataset):
        total, turns = 0.0, 0
        for x in dataset:
            total += added(x)
            turns += 1
        return total, turns

    @tf.function
    def some(iterator):
        total = 0.0
        for _ in tf.range(2):
            total += added(next(iterator))
        return total

    @tf.function
    def optional(iterator):
        total, found = 0.0, iterator.get_next_as_optional()
        while found.has_value():
            total += added(found.get_value())
            found = iterator.get_next_as_optional()
        return total

    for name, dataset in (
        ("even", s.experimental_distribute_dataset(rows)),
        ("uneven", uneven),
    ):
        told(f"{name} whole", *whole(dataset), *whole(iter(dataset)))
        iterator = iter(dataset)
        told(f"{name} some", some(iterator), *whole(iterator))
        told(f"{name} optional", optional(iter(dataset)))


def walk():
    s = strategy()
    _walks(s)
    with s.scope():
        v = tf.Variable([[1.0, 2.0]] * 2)

    @tf.function
    def train(steps):
        for _ in tf.range(steps):
            s.run(lambda: v.assign_add(replica().all_reduce("SUM", v * 0.5)))
        return v.read_value()

    told("train", train(tf.constant(3)), train(tf.constant(1)))

    @tf.function
    def called(x):
        return s.reduce("SUM", s.run(lambda: x * (_SELF + 1.0)), axis=None)

    @tf.function
    def calls():
        total = called(tf.ones([]))
        for i in tf.range(3):
            total += called(tf.cast(i, tf.float32))
        return total

    @tf.function
    def branches():
        total = 0.0
        for i in tf.range(3):
            if i > 0:
                total += added(tf.cast(i, tf.float32))
        return total

    def added(x):
        return s.reduce("SUM", s.run(lambda: x), axis=None)

    told("calls", calls(), calls(), branches())


def refused():
    s = strategy()

    def added():
        return s.reduce("SUM", s.run(lambda: tf.ones([2])), axis=None)

    @tf.function
    def nested():
        total = tf.zeros([2])
        for _ in tf.range(2):
            for _ in tf.range(2):
                total += added()
        return total

    @tf.function
    def loop():
        total = tf.zeros([2])
        for _ in tf.range(2):
            total += added()
        return total

    @tf.function
    def called():
        return loop() + 1.0

    def scatter():
        tf.raw_ops.CollectiveReduceScatterV2(
            input=tf.ones([2 * s.num_replicas_in_sync]),
            group_size=s.num_replicas_in_sync,
            group_key=7,
            instance_key=200,
            ordering_token=[],
            merge_op="Add",
            final_op="Id",
            communication_hint="RING",
        )

    for name, function, error, text in (
        (
            "nested",
            nested,
            tf.errors.UnimplementedError,
            "a collective in the loop while within another loop",
        ),
        (
            "called",
            called,
            tf.errors.UnimplementedError,
            "a collective in the loop while of a function",
        ),
        (
            "scatter",
            scatter,
            tf.errors.InternalError,
            "CollectiveRegistry::Lookup did not find collective",
        ),
    ):
        try:
            function()
        except error as e:
            told(name, text if text in str(e) else str(e))
    told("sum", added())


def death():
    """The last one dies in the middle; others say what they are told."""
    s = strategy()
    add = tf.function(lambda x: s.run(lambda: replica().all_reduce("SUM", x * 1.0)))
    told("sum", add(tf.ones([3])))
    if _SELF == s.num_replicas_in_sync - 1:
        time.sleep(1)  # until all have the sum
        os._exit(9)
    for what in ("first", "again"):
        try:
            add(tf.ones([3]))
        except tf.errors.UnavailableError:
            told(what, "unavailable")
    os._exit(0)  # TensorFlow's own end may wait for who is dead


{"ops": ops, "train": train, "walk": walk, "refused": refused, "death": death}[_WHAT]()
