"""TensorFlow 1's way: an LSTM that tags words, rows of different lengths."""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
VOCABULARY, TAGS, UNITS = 12, 3, 8
rng = np.random.default_rng(3)


def batch(rows):
    lengths = rng.integers(2, 8, rows)
    words = rng.integers(1, VOCABULARY, (rows, 7))
    words *= np.arange(7) < lengths[:, None]
    before = np.concatenate([np.zeros((rows, 1), int), words[:, :-1]], 1)
    return words, lengths, (words + before) % TAGS


words = tf1.placeholder(tf.int32, [None, None], name="words")
lengths = tf1.placeholder(tf.int32, [None], name="lengths")
tags = tf1.placeholder(tf.int32, [None, None], name="tags")
keep = tf1.placeholder_with_default(1.0, [], name="keep")


def waves(shape, dtype=None, partition_info=None):
    n = int(np.prod(shape))
    return tf.constant(np.sin(np.arange(n) * 1.7).reshape(shape) * 0.3, dtype)


with tf1.variable_scope("tagger", initializer=waves):
    table = tf1.get_variable("embedding", [VOCABULARY, 5])
    inputs = tf.nn.embedding_lookup(table, words)
    cell_fw = tf1.nn.rnn_cell.DropoutWrapper(
        tf1.nn.rnn_cell.BasicLSTMCell(UNITS), output_keep_prob=keep
    )
    cell_bw = tf1.nn.rnn_cell.MultiRNNCell(
        [tf1.nn.rnn_cell.GRUCell(UNITS), tf1.nn.rnn_cell.LSTMCell(UNITS, num_proj=4)]
    )
    (fw, bw), (state_fw, state_bw) = tf1.nn.bidirectional_dynamic_rnn(
        cell_fw, cell_bw, inputs, sequence_length=lengths, dtype=tf.float32
    )
    logits = tf1.layers.dense(tf.concat([fw, bw], -1), TAGS, name="logits")
mask = tf.sequence_mask(lengths, tf.shape(words)[1], tf.float32)
loss = tf1.losses.sparse_softmax_cross_entropy(tags, logits, weights=mask)
right = tf.cast(tf.equal(tf.argmax(logits, -1, tf.int32), tags), tf.float32)
accuracy = tf.reduce_sum(right * mask) / tf.reduce_sum(mask)
step = tf1.train.get_or_create_global_step()
optimizer = tf1.train.AdamOptimizer(0.02)
gradients, variables = zip(*optimizer.compute_gradients(loss))
gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
train = optimizer.apply_gradients(zip(gradients, variables), global_step=step)

for v in tf1.trainable_variables():
    print(v.name, v.shape)
print(logits.shape, state_fw.h.shape, state_bw[1].c.shape, len(tf1.global_variables()))
saver = tf1.train.Saver()
folder = tempfile.mkdtemp()
test = batch(16)
feed_test = dict(zip((words, lengths, tags), test))
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for i in range(61):
        feed = dict(zip((words, lengths, tags), batch(16)))
        _, value, size = session.run([train, loss, norm], feed)
        if i % 20 == 0:
            print(i, "%.3f" % value, "%.2f" % size)
    print("%.2f" % session.run(accuracy, feed_test), session.run(step))
    outputs, last = session.run([fw, state_fw], feed_test)
    first = test[1][0]
    print(np.abs(outputs[0, first:]).max(), outputs[0, first - 1, :3].round(2))
    print(np.allclose(outputs[0, first - 1], last.h[0]))
    dropped = session.run(fw, {**feed_test, keep: 0.5})
    print(0.3 < np.mean(dropped[:, :2] == 0) < 0.7)
    path = saver.save(session, os.path.join(folder, "tagger"), global_step=step)
with tf1.Session() as session:
    saver.restore(session, path)
    print("%.2f" % session.run(accuracy, feed_test))
print([name for name, _ in tf.train.list_variables(path) if "Adam" not in name])
