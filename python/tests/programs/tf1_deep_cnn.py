"""TensorFlow 1's way: a deep convolutional network by hand, dropout, flags, a graph's seed."""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_float("learning_rate", 1e-3, "Initial learning rate.")
flags.DEFINE_integer("max_steps", 12, "Number of steps to run trainer.")
flags.DEFINE_string("mode", "train", "What to do.")


def weight_variable(shape):
    initial = tf.truncated_normal(shape, stddev=0.1)
    return tf.Variable(initial, name="weights")


def bias_variable(shape):
    initial = tf.constant(0.1, shape=shape)
    return tf.Variable(initial, name="biases")


def conv2d(x, W):
    return tf.nn.conv2d(x, W, strides=[1, 1, 1, 1], padding="SAME")


def max_pool_2x2(x):
    return tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def deepnn(x):
    with tf.name_scope("reshape"):
        x_image = tf.reshape(x, [-1, 12, 12, 1])
    with tf.name_scope("conv1"):
        W_conv1 = weight_variable([5, 5, 1, 8])
        b_conv1 = bias_variable([8])
        h_conv1 = tf.nn.relu(conv2d(x_image, W_conv1) + b_conv1)
    with tf.name_scope("pool1"):
        h_pool1 = max_pool_2x2(h_conv1)
        norm1 = tf.nn.lrn(h_pool1, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)
    with tf.name_scope("conv2"):
        W_conv2 = weight_variable([3, 3, 8, 16])
        b_conv2 = bias_variable([16])
        h_conv2 = tf.nn.relu(tf.nn.bias_add(conv2d(norm1, W_conv2), b_conv2))
        h_pool2 = max_pool_2x2(h_conv2)
    with tf.name_scope("fc1"):
        W_fc1 = weight_variable([3 * 3 * 16, 32])
        b_fc1 = bias_variable([32])
        h_flat = tf.reshape(h_pool2, [-1, 3 * 3 * 16])
        h_fc1 = tf.nn.relu(tf.matmul(h_flat, W_fc1) + b_fc1)
    with tf.name_scope("dropout"):
        keep_prob = tf.placeholder(tf.float32)
        h_fc1_drop = tf.nn.dropout(h_fc1, keep_prob)
    with tf.name_scope("fc2"):
        W_fc2 = weight_variable([32, 4])
        b_fc2 = bias_variable([4])
        y_conv = tf.matmul(h_fc1_drop, W_fc2) + b_fc2
    return y_conv, keep_prob


def main(_):
    tf.set_random_seed(1234)
    x = tf.placeholder(tf.float32, [None, 144], name="x")
    y_ = tf.placeholder(tf.int64, [None], name="y")
    y_conv, keep_prob = deepnn(x)
    with tf.name_scope("loss"):
        cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels=y_, logits=y_conv)
        decay = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()[::2]])
        loss = cross_entropy + 1e-4 * decay
    with tf.name_scope("adam_optimizer"):
        train_step = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(loss)
    with tf.name_scope("accuracy"):
        right = tf.cast(tf.equal(tf.argmax(y_conv, 1), y_), tf.float32)
    accuracy = tf.reduce_mean(right)

    draw = np.random.RandomState(0)
    labels = draw.randint(0, 4, 32)
    images = draw.rand(32, 12, 12).astype("f4")
    for row, label in enumerate(labels):
        images[row, 3 * label : 3 * label + 3] += 1
    feed = {x: images.reshape(32, 144), y_: labels}
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for v in tf.trainable_variables():
            print(v.name, v.shape, "%.5f" % abs(sess.run(v)).mean())
        print(np.round(sess.run(y_conv, {**feed, keep_prob: 1.0})[:2], 4))
        print(np.round(sess.run(y_conv, {**feed, keep_prob: 0.5})[:2], 4))
        for i in range(FLAGS.max_steps):
            _, value = sess.run([train_step, loss], {**feed, keep_prob: 0.5})
            if i % 3 == 0:
                print("step %d, loss %.3f" % (i, value))
        print("accuracy %.2f" % accuracy.eval({**feed, keep_prob: 1.0}))
    print(FLAGS.mode, sorted(x.op.name for x in tf.get_collection("losses")))
    sys.exit(0 if FLAGS.max_steps == 12 else 1)


if __name__ == "__main__":
    tf.app.run(main=main, argv=sys.argv[:1])
