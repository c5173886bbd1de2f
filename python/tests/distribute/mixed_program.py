"""A client of a cluster of one ps and one worker, of Headrace or TensorFlow.

`mixed_program.py MODULE TARGET` prints what its runs give, a line of JSON each.
"""

import importlib
import json
import sys

import numpy as np

tf = importlib.import_module(sys.argv[1])
v1 = tf.compat.v1


def told(name, value):
    print(json.dumps([name, value], default=lambda x: np.asarray(x).tolist()))


def main():
    with tf.Graph().as_default(), v1.Session(sys.argv[2]) as session:
        with v1.device("/job:ps/task:0"):
            v = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
            r = v1.get_variable("r", initializer=[[1.0], [2.0]], use_resource=False)
            sums = v1.ConditionalAccumulator(tf.float32, [2], shared_name="sums")
            queue = v1.FIFOQueue(4, [tf.int64], shapes=[()], shared_name="queue")
            enqueue, dequeue, take = (
                queue.enqueue(5),
                queue.dequeue(),
                sums.take_grad(1),
            )
            which = v1.placeholder(tf.bool, [])
            no, yes = tf.raw_ops.Switch(data=tf.constant(3.0), pred=which)
        with v1.device("/job:worker/task:0"):
            x = v1.placeholder(tf.float32, [None, 2], name="x")
            y = tf.matmul(x, r)
            loss = tf.reduce_sum(y * y) + tf.reduce_sum(v * v)
            step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
            added, push = v1.assign_add(v, [1.0, 1.0]), sums.apply_grad(x[0])
            twice, token, minus = v * 2.0, tf.identity(dequeue), tf.negative(yes)
            rows = tf.gather(v, [1])
        with v1.device("/job:ps/task:0"):
            merged, at = tf.raw_ops.Merge(inputs=[no, minus])
        session.run(v1.global_variables_initializer())
        told("devices", sorted(d.name for d in session.list_devices()))
        told("added", session.run(added))
        told("rows", session.run(rows))
        told("loss", session.run([loss, step], {x: [[1.0, 2.0]]})[0])
        told("variables", session.run([v, r]))
        session.run(enqueue)
        told("token", session.run(token))
        session.run(push, {x: [[1.0, 2.0]]})
        told("sums", session.run(take))
        for taken in (True, False):
            told("branch", session.run([merged, at], {which: taken}))
        try:
            session.run(token, options=v1.RunOptions(timeout_in_ms=500))
        except tf.errors.DeadlineExceededError:
            told("waited", True)
        try:
            session.run(y)
        except tf.errors.InvalidArgumentError as e:
            told("unfed", "You must feed a value for placeholder" in str(e))
        told("called", session.make_callable([y], [x])([[1.0, 1.0]]))
        part = session.partial_run_setup([y, twice], [x])
        told("part", session.partial_run(part, [twice]))
        told("part", session.partial_run(part, [y], {x: [[1.0, 1.0]]}))
        with v1.device("/job:ps/task:0"):
            later = tf.negative(twice)
        told("later", session.run(later))


main()
