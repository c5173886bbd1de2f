"""TensorFlow 1's way: a convolutional network of tf.layers, its updates and penalties."""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
rng = np.random.default_rng(7)


def batch(rows):
    labels = rng.integers(0, 3, rows)
    images = rng.normal(size=(rows, 12, 12, 1)).astype("f4") * 0.4
    for row, label in enumerate(labels):
        images[row, 4 * label : 4 * label + 4] += 1.0
    return images, labels


def waves(shape, dtype=None, partition_info=None):
    n = int(np.prod(shape))
    return tf.constant(np.sin(np.arange(n) * 1.9 + 1).reshape(shape) * 0.3, dtype)


def network(x, training, reuse=None):
    penalty = tf.keras.regularizers.l2(0.01)
    with tf1.variable_scope("net", initializer=waves, reuse=reuse):
        x = tf1.layers.conv2d(x, 4, 3, padding="same", name="first")
        x = tf1.layers.batch_normalization(x, training=training, momentum=0.9)
        x = tf1.layers.max_pooling2d(tf1.nn.relu(x), 2, 2)
        x = tf1.layers.separable_conv2d(
            x, 6, 3, activation=tf1.nn.relu, depthwise_regularizer=penalty
        )
        x = tf1.layers.average_pooling2d(x, 2, 2)
        x = tf1.layers.flatten(x)
        x = tf1.layers.dropout(x, 0.2, training=False)
        return tf1.layers.dense(x, 3, kernel_regularizer=penalty, name="logits")


images = tf1.placeholder(tf.float32, [None, 12, 12, 1])
labels = tf1.placeholder(tf.int64, [None])
training = tf1.placeholder_with_default(False, [])
logits = network(images, training)
again = network(images, False, reuse=True)
tf1.losses.sparse_softmax_cross_entropy(labels, logits)
loss = tf1.losses.get_total_loss()
updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
step = tf1.train.get_or_create_global_step()
with tf1.control_dependencies(updates):
    train = tf1.train.MomentumOptimizer(0.02, 0.9).minimize(loss, global_step=step)
accuracy = tf1.reduce_mean(
    tf1.cast(tf1.equal(tf1.argmax(logits, 1), labels), tf.float32)
)

for v in tf1.global_variables():
    print(v.op.name, v.shape, v in tf1.trainable_variables())
print(len(updates), [x.op.name for x in tf1.losses.get_regularization_losses()])
print(logits, again.name)
folder = tempfile.mkdtemp()
saver = tf1.train.Saver(tf1.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES, "net"))
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for i in range(31):
        values = batch(24)
        feed = {images: values[0], labels: values[1], training: True}
        _, value = session.run([train, loss], feed)
        if i % 10 == 0:
            print(i, "%.3f" % value)
    values = batch(30)
    feed = {images: values[0], labels: values[1]}
    print("%.2f" % session.run(accuracy, feed), session.run(step))
    a, b = session.run([logits, again], feed)
    print(np.allclose(a, b, atol=1e-5))
    with tf1.variable_scope("net", reuse=True):
        mean = tf1.get_variable("batch_normalization/moving_mean")
    print(session.run(mean).round(3))
    path = saver.save(session, os.path.join(folder, "net"), write_meta_graph=False)
print(*(f"{name} {shape}" for name, shape in tf.train.list_variables(path)), sep="\n")
try:
    network(images, False)
except ValueError as error:
    print(str(error).partition(" Originally")[0])
