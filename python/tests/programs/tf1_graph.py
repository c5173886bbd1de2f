"""TensorFlow 1's way: placeholders, a session, a saver."""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
folder = tempfile.mkdtemp()
graph = tf.Graph()
with graph.as_default():
    tf1.set_random_seed(1)
    x = tf1.placeholder(tf.float32, [None, 3], name="x")
    y = tf1.placeholder(tf.float32, [None, 1], name="y")
    with tf1.variable_scope("net"):
        w = tf1.get_variable("w", [3, 1], initializer=tf1.zeros_initializer())
        b = tf1.get_variable("b", [1], initializer=tf1.constant_initializer(0.5))
    out = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.square(out - y), name="loss")
    step = tf1.train.get_or_create_global_step()
    rate = tf1.train.exponential_decay(0.1, step, 5, 0.5, staircase=True)
    train = tf1.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
    saver = tf1.train.Saver(max_to_keep=2)
    rng = np.random.default_rng(0)
    data = rng.normal(size=(20, 3)).astype("float32")
    feed = {x: data, y: data @ [[1.0], [-2.0], [0.5]]}
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        for i in range(12):
            _, value = session.run([train, loss], feed)
            if i % 4 == 0:
                print(i, "%.4f" % value, "%.3f" % session.run(rate))
                saver.save(session, os.path.join(folder, "made", "m"), global_step=step)
        final = session.run(w)
    print([v.name for v in tf1.trainable_variables()], np.round(final.ravel(), 3))
    with tf1.Session() as session:
        saver.restore(session, tf.train.latest_checkpoint(os.path.join(folder, "made")))
        print(session.run(step), "%.4f" % session.run(loss, feed))
    print(
        sorted(
            f for f in os.listdir(os.path.join(folder, "made")) if f.endswith(".index")
        )
    )
    print([op.type for op in graph.get_operations()][:6], x.shape, loss.name)
with tf.Graph().as_default(), tf1.Session() as session:
    i = tf1.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), [0, 0])
    c = tf1.cond(tf.constant(True), lambda: tf.constant(1), lambda: tf.constant(2))
    print(session.run([i, c]))
    try:
        session.run(tf1.placeholder(tf.float32, name="lost") + 1.0)
    except tf.errors.InvalidArgumentError as e:
        print("placeholder" in e.message, "lost" in e.message)
