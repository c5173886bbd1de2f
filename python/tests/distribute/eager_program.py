"""A client whose eager operations run on a task, of Headrace or TensorFlow.

`eager_program.py MODULE HOST:PORT` prints what they give, a line of JSON each.
"""

import importlib
import json
import sys

import numpy as np

tf = importlib.import_module(sys.argv[1])
_TASK = "/job:worker/replica:0/task:0/device:CPU:0"


def told(name, value):
    print(json.dumps([name, value], default=lambda x: np.asarray(x).tolist()))


def refused(name, call):
    """The class and text of what a call raises, without the operation's name: who sends
    it may learn of the error with a later one."""
    try:
        call()
    except tf.errors.OpError as e:
        text = e.message.split("}} ")[-1].split(" [Op:")[0].removesuffix(" name: ")
        told(name, [type(e).__name__, text])


def main():
    tf.config.experimental_connect_to_host(f"grpc://{sys.argv[2]}")
    told("devices", [d.name for d in tf.config.list_logical_devices()])
    here = tf.constant([5.0, 6.0])
    with tf.device("/job:worker/task:0"):
        a = here + 1.0
        b = tf.concat([a, here], 0)
        text = tf.strings.join([tf.constant("a"), tf.constant("b")])
        v = tf.Variable([1.0, 2.0])
        assert v.device == a.device == b.device == _TASK
        assert v.handle.device == _TASK
        told("values", [a.numpy(), b.numpy(), text.numpy().decode()])
        v.assign_add(a)
        told("variable", v.numpy())

        @tf.function
        def step(x, n):
            for _ in tf.range(n):
                v.assign_add(x)
            return v * 2.0, tf.reduce_sum(x), tf.shape(x)

        told("called", step(a, 2))
        told("again", step(here, 1))
        refused("reshape", lambda: tf.reshape(a, [3]).numpy())
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        told("gradient", tape.gradient(loss, v))
        queue = tf.queue.FIFOQueue(2, [tf.int32], [[]])
        queue.enqueue(7)
        told("queue", queue.dequeue())
    told("outside", [(a + v).numpy(), (here + a).device[:14]])
    for device in ("/job:nobody/task:0", "/job:worker/task:0/device:CPU:9"):
        with tf.device(device):
            refused("device", lambda: tf.identity(here))
    big = np.arange(300000, dtype=np.float32)
    with tf.device("/job:worker/task:0"):
        told("big", float(tf.reduce_max(tf.constant(big) * 2.0)))


main()
