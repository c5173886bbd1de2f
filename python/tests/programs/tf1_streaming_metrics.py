"""TensorFlow 1's way: streaming metrics over batches, reset, and averages of weights."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
draw = np.random.RandomState(4)
labels = tf.placeholder(tf.int64, [None], name="labels")
scores = tf.placeholder(tf.float32, [None, 3], name="scores")
predictions = tf.argmax(scores, 1)
with tf.variable_scope("metrics"):
    metrics = {
        "accuracy": tf.metrics.accuracy(labels, predictions),
        "per_class": tf.metrics.mean_per_class_accuracy(labels, predictions, 3),
        "iou": tf.metrics.mean_iou(labels, predictions, 3),
        "precision": tf.metrics.precision(labels > 0, predictions > 0),
        "recall": tf.metrics.recall(labels > 0, predictions > 0),
        "auc": tf.metrics.auc(labels > 0, tf.sigmoid(scores[:, 1]), num_thresholds=20),
        "pr": tf.metrics.auc(
            labels > 0,
            tf.sigmoid(scores[:, 1]),
            num_thresholds=20,
            curve="PR",
            summation_method="careful_interpolation",
        ),
        "mean": tf.metrics.mean(scores, weights=tf.to_float(labels)[:, None]),
        "top2": tf.metrics.recall_at_k(labels, scores, 2),
        "average": tf.metrics.average_precision_at_k(labels[:, None], scores, 2),
        "positives": tf.metrics.true_positives(labels > 1, predictions > 1),
        "rmse": tf.metrics.root_mean_squared_error(tf.to_float(labels), scores[:, 0]),
        "sensitivity": tf.metrics.sensitivity_at_specificity(
            labels > 0, tf.sigmoid(scores[:, 1]), 0.5, num_thresholds=20
        ),
        "cosine": tf.metrics.mean_cosine_distance(
            tf.nn.l2_normalize(tf.one_hot(labels, 3), 1),
            tf.nn.l2_normalize(scores, 1),
            1,
        ),
        "below": tf.metrics.percentage_below(scores, 0.5),
        "tensor": tf.metrics.mean_tensor(tf.reduce_sum(scores, 0)),
    }
values, updates = {}, {}
for name, (value, update) in metrics.items():
    values[name], updates[name] = value, update
local = tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)
print(len(local), [v.op.name for v in local[:6]], len(tf.local_variables()))
reset = tf.variables_initializer(tf.local_variables("metrics"), name="reset")

w = tf.get_variable("w", initializer=[1.0, 2.0])
step = tf.train.get_or_create_global_step()
ema = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
slow = tf.train.ExponentialMovingAverage(0.5, zero_debias=True, name="Slow")
grow = tf.group(w.assign_add([1.0, -0.5]), step.assign_add(1))
with tf.control_dependencies([grow]):
    track = ema.apply([w])
    seen = w.read_value()
    track_slow = slow.apply([seen])
print(
    ema.average_name(w),
    ema.average(w).op.name,
    ema.average(seen),
    slow.average(seen).op.name,
)
print(sorted(ema.variables_to_restore()))
path = os.path.join(tempfile.mkdtemp(), "averages")
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for epoch in range(2):
        sess.run(reset)
        for _ in range(3):
            y = draw.randint(0, 3, 20)
            s = draw.normal(size=(20, 3)) + np.eye(3)[y] * (epoch + 1)
            told = sess.run(updates, {labels: y, scores: s})
        for name, value in sorted(sess.run(values).items()):
            print(
                epoch,
                name,
                np.round(value, 3),
                np.allclose(value, told[name]) or "later",
            )
    for _ in range(4):
        sess.run([track, track_slow])
        print(*sess.run([w, ema.average(w), slow.average(seen)]))
    tf.train.Saver().save(sess, path)
print([n for n, _ in tf.train.list_variables(path)])
with tf.Graph().as_default(), tf.Session() as sess:
    w = tf.get_variable("w", [2])
    ema = tf.train.ExponentialMovingAverage(0.9)
    tf.train.Saver(ema.variables_to_restore()).restore(sess, path)
    print(sess.run(w))
