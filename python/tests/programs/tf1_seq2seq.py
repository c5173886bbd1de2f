"""TensorFlow 1's way: sequences reversed by an encoder, and a decoder with attention
written on raw_rnn."""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
SYMBOLS, UNITS, LONGEST, END = 6, 12, 5, 0
rng = np.random.default_rng(5)


def batch(rows):
    lengths = rng.integers(2, LONGEST + 1, rows)
    source = rng.integers(1, SYMBOLS, (rows, LONGEST))
    target = np.full((rows, LONGEST + 1), END)
    for row, n in enumerate(lengths):
        source[row, n:] = END
        target[row, :n] = source[row, :n][::-1]
    return source, lengths, target


source = tf1.placeholder(tf.int32, [None, LONGEST], name="source")
lengths = tf1.placeholder(tf.int32, [None], name="lengths")
target = tf1.placeholder(tf.int32, [None, LONGEST + 1], name="target")
rows = tf.shape(source)[0]
table = tf1.get_variable(
    "symbols",
    initializer=np.cos(np.arange(SYMBOLS * 4) * 1.3).reshape(SYMBOLS, 4).astype("f4"),
)


def waves(shape, dtype=None, partition_info=None):
    n = int(np.prod(shape))
    return tf.constant(np.sin(np.arange(n) * 2.3 + 1).reshape(shape) * 0.25, dtype)


with tf1.variable_scope("encoder", initializer=waves):
    memory, state = tf1.nn.dynamic_rnn(
        tf1.nn.rnn_cell.GRUCell(UNITS),
        tf.nn.embedding_lookup(table, source),
        sequence_length=lengths,
        dtype=tf.float32,
    )
hidden = tf.where(tf.sequence_mask(lengths, LONGEST), 0.0, -1e9)


class AttentionCell(tf1.nn.rnn_cell.RNNCell):
    """A GRU that sees what it looks at in the memory."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self._inner, self._units = tf1.nn.rnn_cell.GRUCell(units), units

    @property
    def state_size(self):
        return self._units

    @property
    def output_size(self):
        return self._units

    def call(self, inputs, state):
        query = tf1.layers.dense(state, UNITS, use_bias=False, name="query")
        scores = tf.reduce_sum(memory * tf.expand_dims(query, 1), -1) + hidden
        seen = tf.reduce_sum(memory * tf.expand_dims(tf.nn.softmax(scores), -1), 1)
        output, state = self._inner(tf.concat([inputs, seen], 1), state)
        w = tf1.get_variable("mix", [2 * UNITS, UNITS])
        return tf.tanh(tf.matmul(tf.concat([output, seen], 1), w)), state


def decode(cell, teacher):
    given = tf.TensorArray(tf.int32, LONGEST + 1).unstack(tf.transpose(target))

    def loop(time, output, cell_state, best):
        if output is None:
            word, next_state = tf.fill([rows], END), state
            finished, best = tf.zeros([rows], tf.bool), tf.zeros([rows], tf.int32)
        else:
            next_state = cell_state
            logits = tf1.layers.dense(output, SYMBOLS, name="logits")
            best = tf.argmax(logits, -1, tf.int32)
            finished = tf.fill([rows], time > LONGEST)
            word = given.read(tf.minimum(time - 1, LONGEST)) if teacher else best
            if not teacher:
                finished |= tf.equal(best, END)
        inputs = tf.nn.embedding_lookup(table, word)
        return finished, inputs, next_state, output, best

    with tf1.variable_scope("decoder", initializer=waves, reuse=tf1.AUTO_REUSE):
        outputs, _, last = tf1.nn.raw_rnn(cell, loop, scope="steps")
        outputs = tf.transpose(outputs.stack(), [1, 0, 2])
        with tf1.variable_scope("steps"):
            logits = tf1.layers.dense(outputs, SYMBOLS, name="logits")
        return logits, last


cell = AttentionCell(UNITS, name="attention")
logits, last = decode(cell, teacher=True)
loss = tf.reduce_mean(
    tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)
)
answers = tf.argmax(decode(cell, teacher=False)[0], -1, tf.int32)
optimizer = tf1.train.AdamOptimizer(0.02)
train = optimizer.minimize(loss)
for v in tf1.trainable_variables():
    print(v.name, v.shape)
print(len(cell.trainable_variables), logits.shape)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for i in range(201):
        feed = dict(zip((source, lengths, target), batch(32)))
        _, value = session.run([train, loss], feed)
        if i in (0, 1, 2, 5, 10):
            print(i, "%.3f" % value)
    print(value < 0.7)
    feed = dict(zip((source, lengths, target), batch(8)))
    found = session.run(answers, feed)
    print(found.shape[0], found.shape[1] <= LONGEST + 1, found.dtype)
    try:
        session.run(loss, {source: feed[source], lengths: [1, 2], target: feed[target]})
    except tf.errors.InvalidArgumentError as error:
        print("Expected shape for Tensor" in error.message)
