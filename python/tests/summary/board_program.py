"""Writes what TensorBoard shows, one run a kind: board_program.py LOGDIR PACKAGES.

PACKAGES is where the tensorboard package lies, whose plug-ins' functions write by
the module "tensorflow": here Headrace.
"""

import os
import sys

import headrace as tf
import numpy as np

v1 = tf.compat.v1
LOGDIR = sys.argv[1]


def run(name, **how):
    return tf.summary.create_file_writer(os.path.join(LOGDIR, name)).as_default(**how)


@tf.function
def product(x):
    return tf.matmul(x, x) + 1.0


def values():
    with run("values"):
        for step in range(3):
            tf.summary.scalar("loss", 1 / (step + 1), step=step, description="falls")
            numbers = np.arange(10.0) * step
            tf.summary.histogram("spread", numbers, buckets=5, step=step)
        pixels = np.zeros([2, 4, 6, 3], np.float32)
        tf.summary.image("picture", pixels, step=1)
        tf.summary.audio("sound", np.zeros([1, 80, 1], np.float32), 8000, step=1)
        tf.summary.text("note", ["# title", "words"], step=2)


def graphs():
    with run("functions"):
        tf.summary.trace_on(graph=True)
        product(tf.ones([2, 2]))
        tf.summary.trace_export("product", step=0)
        tf.summary.graph(product.get_concrete_function(tf.ones([2, 2])).graph)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [], name="x")
        v1.summary.scalar("old", x)
        v1.summary.histogram("old_spread", x + tf.range(5.0))
        merged = v1.summary.merge_all()
        with v1.summary.FileWriter(os.path.join(LOGDIR, "session"), graph) as writer:
            for step in range(3):
                writer.add_summary(session.run(merged, {x: step}), step)


def keras():
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Embedding(5, 3, input_length=4), layers.Flatten(), layers.Dense(2)]
    )
    model.compile("sgd", "mse")
    board = tf.keras.callbacks.TensorBoard(
        os.path.join(LOGDIR, "keras"),
        histogram_freq=1,
        write_images=True,
        embeddings_freq=1,
        embeddings_metadata="rows.tsv",
    )
    model.fit(np.zeros([4, 4]), np.zeros([4, 2]), verbose=0, callbacks=[board])


def plugins():
    """What functions of the tensorboard package write."""
    sys.path.append(sys.argv[2])
    sys.modules["tensorflow"] = tf
    for name in ("compat", "summary", "io"):
        sys.modules[f"tensorflow.{name}"] = getattr(tf, name)
    for name in ("v1", "v2"):
        sys.modules[f"tensorflow.compat.{name}"] = getattr(tf.compat, name)
    from tensorboard.plugins.hparams import api as hp
    from tensorboard.plugins.pr_curve import summary as pr

    units = hp.HParam("units", hp.Discrete([2, 4]))
    with run("hp"):
        assert hp.hparams_config(hparams=[units], metrics=[hp.Metric("accuracy")])
    for count in (2, 4):
        with run(f"hp/{count}", step=1):
            assert hp.hparams({units: count}, trial_id=str(count))
            tf.summary.scalar("accuracy", count / 10)
    with run("pr", step=1):
        labels, scores = np.array([True, False, True]), np.float32([0.9, 0.2, 0.6])
        curve = pr.pb("curve", labels=labels, predictions=scores, num_thresholds=5)
        tf.summary.experimental.write_raw_pb(curve.SerializeToString())


values()
graphs()
keras()
plugins()
