"""Trains one weight, saving after each step; to be killed at any moment.

Usage: saving_program.py FOLDER STEPS MODE, MODE one of manager, same, shards.
The weight of step n is f(n) in every element: a mixture of two steps shows.
"""

import os
import sys

import headrace as tf

SIZE = 20000
SAME = "same"


def at(step):
    """The value of the weight after so many steps."""
    x = 1.0
    for _ in range(step):
        x = (x * 3.0 + 1.0) % 1024.0
    return x


def make():
    step = tf.Variable(0, dtype=tf.int64)
    weight = tf.Variable(tf.fill([SIZE], 1.0))
    more = [tf.Variable(tf.zeros([10])) for _ in range(20)]
    return tf.train.Checkpoint(step=step, weight=weight, more=more)


def train(folder, steps, mode):
    c = make()
    manager = tf.train.CheckpointManager(c, folder, max_to_keep=2)
    same = os.path.join(folder, SAME)
    options = None
    if mode == "shards":
        policy = tf.train.experimental.MaxShardSizePolicy(30000)
        options = tf.train.CheckpointOptions(experimental_sharding_callback=policy)
    if mode == "manager":
        c.restore(manager.latest_checkpoint)
    elif os.path.exists(same + ".index"):
        c.read(same).assert_consumed()
    values = set(c.weight.numpy().tolist())
    assert values == {at(int(c.step))}, (int(c.step), values)
    while int(c.step) < steps:
        c.weight.assign((c.weight * 3.0 + 1.0) % 1024.0)
        c.step.assign_add(1)
        if mode == "manager":
            manager.save()
        else:
            c.write(same, options)
    return c


if __name__ == "__main__":
    print(float(train(sys.argv[1], int(sys.argv[2]), sys.argv[3]).weight[0]))
