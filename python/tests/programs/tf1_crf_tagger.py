"""TensorFlow 1's way: a bidirectional tagger, a linear chain's likelihood written by hand."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
WORDS, TAGS, LONGEST, UNITS = 15, 3, 6, 8
words = tf.placeholder(tf.int32, [None, None], name="word_ids")
lengths = tf.placeholder(tf.int32, [None], name="sequence_lengths")
labels = tf.placeholder(tf.int32, [None, None], name="labels")


def glorot(seed):
    return tf.glorot_uniform_initializer(seed=seed)


with tf.variable_scope("words"):
    _embeddings = tf.get_variable("_word_embeddings", [WORDS, 6], initializer=glorot(1))
    embedded = tf.nn.embedding_lookup(_embeddings, words, name="word_embeddings")
with tf.variable_scope("bi-lstm"):
    cell_fw = tf.nn.rnn_cell.LSTMCell(UNITS, initializer=glorot(2), use_peepholes=True)
    cell_bw = tf.nn.rnn_cell.LSTMCell(UNITS, initializer=glorot(3), forget_bias=0.5)
    (out_fw, out_bw), _ = tf.nn.bidirectional_dynamic_rnn(
        cell_fw, cell_bw, embedded, sequence_length=lengths, dtype=tf.float32
    )
    output = tf.concat([out_fw, out_bw], axis=-1)
with tf.variable_scope("proj"):
    W = tf.get_variable("W", [2 * UNITS, TAGS], tf.float32, glorot(4))
    b = tf.get_variable("b", [TAGS], tf.float32, tf.zeros_initializer())
    nsteps = tf.shape(output)[1]
    pred = tf.matmul(tf.reshape(output, [-1, 2 * UNITS]), W) + b
    logits = tf.reshape(pred, [-1, nsteps, TAGS])
with tf.variable_scope("crf"):
    transitions = tf.get_variable("transitions", [TAGS, TAGS], initializer=glorot(5))


def log_norm(inputs, lengths, transitions):
    def step(state, slice_):
        time, alphas = state
        scores, _ = slice_
        new = scores + tf.reduce_logsumexp(alphas[:, :, None] + transitions[None], 1)
        return time + 1, tf.where(time < lengths, new, alphas)

    rest = tf.transpose(inputs[:, 1:], [1, 0, 2])
    first = (tf.constant(1), inputs[:, 0])
    _, alphas = tf.scan(step, (rest, rest[:, :, 0]), first)
    return tf.reduce_logsumexp(alphas[-1], 1)


def sequence_score(inputs, tags, lengths, transitions):
    mask = tf.sequence_mask(lengths, tf.shape(inputs)[1], tf.float32)
    unary = tf.reduce_sum(inputs * tf.one_hot(tags, TAGS), 2) * mask
    flat = tags[:, :-1] * TAGS + tags[:, 1:]
    binary = tf.gather(tf.reshape(transitions, [-1]), flat) * mask[:, 1:]
    return tf.reduce_sum(unary, 1) + tf.reduce_sum(binary, 1)


def viterbi(score, transitions):
    trellis, back = score[0], []
    for row in score[1:]:
        v = trellis[:, None] + transitions
        back.append(v.argmax(0))
        trellis = row + v.max(0)
    path = [trellis.argmax()]
    for pointers in reversed(back):
        path.append(pointers[path[-1]])
    return np.array(path[::-1]), trellis.max()


likelihood = sequence_score(logits, labels, lengths, transitions) - log_norm(
    logits, lengths, transitions
)
loss = tf.reduce_mean(-likelihood)
tf.summary.scalar("loss", loss)
optimizer = tf.train.AdamOptimizer(0.05)
grads, variables = zip(*optimizer.compute_gradients(loss))
grads, gnorm = tf.clip_by_global_norm(grads, 5.0)
train_op = optimizer.apply_gradients(zip(grads, variables))

draw = np.random.RandomState(2)
n = draw.randint(2, LONGEST + 1, 24)
x = draw.randint(1, WORDS, (24, LONGEST)) * (np.arange(LONGEST) < n[:, None])
y = np.where((x > 0) & (np.roll(x, 1, 1) % 2 == 0), 1, x % 2 * 2) * (x > 0)
feed = {words: x, lengths: n, labels: y}
print([type(g).__name__ for g, _ in optimizer.compute_gradients(loss)][:3])
for v in tf.trainable_variables():
    print(v.name, v.shape)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(np.round(sess.run(likelihood, feed)[:4], 4))
    for i in range(21):
        _, value, size = sess.run([train_op, loss, gnorm], feed)
        if i % 5 == 0:
            print(i, "%.4f %.3f" % (value, size))
    scores, matrix = sess.run([logits, transitions], feed)
    right = 0
    for row, length in enumerate(n):
        path, best = viterbi(scores[row, :length], matrix)
        right += (path == y[row, :length]).sum()
    print("accuracy %.3f" % (right / n.sum()), "%.3f" % best)
