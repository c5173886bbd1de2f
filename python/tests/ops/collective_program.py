"""Collectives of eager threads, each on a logical device of its own; prints what they
give. test_collectives.py runs it, as logical devices are set before all else."""

import threading

import headrace as tf

raw = tf.raw_ops


def together(*calls):
    """What each call gives in a thread on its device, or its error."""
    given = [None] * len(calls)

    def work(i):
        with tf.device(f"CPU:{i}"):
            try:
                given[i] = calls[i]().numpy().tolist()
            except tf.errors.OpError as e:
                given[i] = f"{type(e).__name__}: {e.message}"

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(calls))]
    for t in reversed(threads):  # the last comes first: it changes nothing
        t.start()
    for t in threads:
        t.join(30)
    return given


def keys(size, group, instance):
    return {
        "group_size": tf.constant(size),
        "group_key": tf.constant(group),
        "instance_key": tf.constant(instance),
        "ordering_token": [],
    }


def reduce(x, size, group, instance, **how):
    how = {"merge_op": "Add", "final_op": "Id", **how}
    return raw.CollectiveReduceV2(
        input=tf.constant(x), **keys(size, group, instance), **how
    )


def gather(x, size, group, instance):
    return raw.CollectiveGatherV2(input=tf.constant(x), **keys(size, group, instance))


def main():
    cpu = tf.config.list_physical_devices("CPU")[0]
    four = [tf.config.LogicalDeviceConfiguration()] * 4
    tf.config.set_logical_device_configuration(cpu, four)
    print(together(*[lambda i=i: gather([i], 4, 1, 1) for i in range(4)]))
    # Once the group is full, further ones do not come in, and it ends.
    print(together(*[lambda: reduce([1.0], 2, 2, 1)] * 2))
    print(together(*[lambda: reduce([1.0], 2, 2, 2)] * 3))
    # Members that do not agree.
    print(together(lambda: reduce([1.0], 2, 3, 1), lambda: reduce([1], 2, 3, 1)))
    print(together(lambda: reduce([1.0, 2.0], 2, 4, 1), lambda: reduce([1.0], 2, 4, 1)))
    print(together(lambda: reduce([1.0], 2, 5, 1), lambda: reduce([1.0], 3, 5, 1)))
    print(together(lambda: reduce([1.0], 2, 6, 1), lambda: gather([1.0], 2, 6, 1)))
    # Nobody else comes.
    print(together(lambda: reduce([1.0], 2, 7, 1, timeout_seconds=0.2)))
    print(together(*[lambda: reduce([1.0], 2, 7, 1)] * 2))
    # A group that failed leaves others alone.
    print(together(*[lambda: reduce([1.0], 2, 8, 1)] * 2))


if __name__ == "__main__":
    main()
