"""A ring of workers that goes on where it was when one of them dies: the launcher starts
again what ended, the first worker saves each step, and all take its state at a start.

    headrace run -n 3 --restarts 100 ring_that_dies.py FOLDER STEPS

FOLDER/steps has a line a step, written once it is saved; FOLDER/last.npy the weights.
"""

import os
import sys
import time

import numpy as np

import headrace as tf

WIDTH = 300  # more than goes in one message of small tensors


def main(folder, steps):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker = strategy.cluster_resolver.task_id
    with strategy.scope():
        weights = tf.Variable(np.linspace(-1, 1, WIDTH, dtype=np.float32))
        step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(weights=weights, step=step)
    manager = tf.train.CheckpointManager(checkpoint, folder + "/saved", max_to_keep=2)
    if worker == 0 and manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).assert_consumed()
    first = float(worker == 0)

    @tf.function
    def take_those_of_first():
        def of_replica():
            both = [weights * first, tf.cast(step, tf.float32) * first]
            return tf.distribute.get_replica_context().all_reduce("SUM", both)

        return strategy.run(of_replica)

    values, number = take_those_of_first()
    with strategy.scope():
        weights.assign(values)
        step.assign(tf.cast(number, tf.int64))

    @tf.function
    def train(rows):
        def of_replica(rows):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.linalg.matvec(rows, weights) - 1.0) ** 2)
            gradient = tape.gradient(loss, weights)
            mean = tf.distribute.get_replica_context().all_reduce("MEAN", gradient)
            weights.assign_sub(0.01 * mean)

        strategy.run(of_replica, args=(rows,))

    while (number := int(step.numpy())) < steps:
        draw = np.random.RandomState(1000 * number + worker)
        train(tf.constant(draw.rand(4, WIDTH), tf.float32))
        step.assign_add(1)
        if worker == 0:
            manager.save(checkpoint_number=number + 1)
            with open(folder + "/steps", "a", encoding="utf-8") as file:
                file.write(f"{number + 1} {time.time()}\n")
        time.sleep(0.02)
    if worker == 0:
        np.save(folder + "/last.npy", weights.numpy())


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    main(sys.argv[1], int(sys.argv[2]))
