"""A program of TensorFlow 1.x: softmax regression on points, fed through placeholders.

    feed_dict.py --folder F

F keeps the checkpoints: started again, the program goes on where the last one ended.
The last lines are the step and the share of the points that is told right.
"""

import argparse
import os

import numpy as np

import headrace.compat.v1 as tf

CLASSES, STEPS, BATCH = 3, 200, 32


def points():
    """Points around three centres, and which centre each is of."""
    draw = np.random.RandomState(0)
    labels = draw.randint(CLASSES, size=600)
    centres = np.array([[0.0, 2.0], [-2.0, -1.0], [2.0, -1.0]])
    return centres[labels] + draw.normal(scale=0.7, size=(600, 2)), labels


def model(x, labels):
    """(loss, accuracy) of a batch."""
    with tf.variable_scope("softmax"):
        w = tf.get_variable("w", [2, CLASSES], initializer=tf.zeros_initializer())
        b = tf.get_variable("b", [CLASSES], initializer=tf.zeros_initializer())
    logits = tf.nn.xw_plus_b(x, w, b)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits
    )
    right = tf.equal(tf.argmax(logits, 1), labels)
    return tf.reduce_mean(losses), tf.reduce_mean(tf.cast(right, tf.float32))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    folder = parser.parse_args().folder
    tf.disable_v2_behavior()

    x = tf.placeholder(tf.float32, [None, 2], name="x")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    loss, accuracy = model(x, labels)
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.MomentumOptimizer(0.1, momentum=0.9)
    train = optimizer.minimize(loss, global_step=step)
    saver = tf.train.Saver(max_to_keep=2)

    inputs, classes = points()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        latest = tf.train.latest_checkpoint(folder)
        if latest:
            saver.restore(session, latest)
            print("restored step", session.run(step))
        for begin in range(STEPS):
            rows = np.arange(begin * BATCH, (begin + 1) * BATCH) % len(inputs)
            session.run(train, feed_dict={x: inputs[rows], labels: classes[rows]})
        saver.save(session, os.path.join(folder, "model"), global_step=step)
        told = session.run(accuracy, feed_dict={x: inputs, labels: classes})
        print("step", session.run(step))
        print(f"accuracy: {told:.2f}")


if __name__ == "__main__":
    main()
