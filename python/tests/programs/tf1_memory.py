"""TensorFlow 1's way: a memory that is written and read by content, cond and nested loops."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
SLOTS, WIDTH, STEPS = 5, 4, 6
x = tf.placeholder(tf.float32, [None, STEPS, WIDTH], name="x")
training = tf.placeholder_with_default(True, [], name="training")
batch = tf.shape(x)[0]
init = tf.random_normal_initializer(stddev=0.5, seed=3)


class MemoryCell(tf.nn.rnn_cell.RNNCell):
    """Writes what comes to where it resembles, reads by a key."""

    state_size = property(lambda self: (SLOTS * WIDTH, SLOTS))
    output_size = WIDTH

    def __call__(self, inputs, state, scope=None):
        flat, usage = state
        memory = tf.reshape(flat, [-1, SLOTS, WIDTH])
        with tf.variable_scope(scope or type(self).__name__, initializer=init):
            key = self._linear(inputs, "key")
            erase = tf.sigmoid(self._linear(inputs, "erase"))
            strength = tf.nn.softplus(tf.get_variable("strength", []))
        unit = tf.nn.l2_normalize(memory, 2, epsilon=1e-6)
        likeness = tf.squeeze(
            tf.matmul(unit, tf.nn.l2_normalize(key, 1)[:, :, None]), 2
        )
        weights = tf.nn.softmax(strength * likeness - usage)
        kept = memory * (1 - weights[:, :, None] * erase[:, None])
        memory = kept + weights[:, :, None] * inputs[:, None]
        read = tf.reduce_sum(weights[:, :, None] * memory, 1)
        return read, (tf.reshape(memory, [-1, SLOTS * WIDTH]), 0.9 * usage + weights)

    def _linear(self, x, name):
        with tf.variable_scope(name):
            w = tf.get_variable("w", [WIDTH, WIDTH])
            return tf.nn.bias_add(
                tf.matmul(x, w),
                tf.get_variable("b", [WIDTH], initializer=tf.zeros_initializer()),
            )


cell = MemoryCell()
outputs, (memory, usage) = tf.nn.dynamic_rnn(
    cell, x, initial_state=cell.zero_state(batch, tf.float32), scope="rnn"
)
noise = tf.constant(np.sin(np.arange(WIDTH)), tf.float32)
outputs = tf.cond(training, lambda: outputs + 0.01 * noise, lambda: outputs * 1.0)
loss = tf.reduce_mean(tf.square(outputs - tf.reverse(x, [1])))
case = tf.case(
    [
        (loss < 0.1, lambda: tf.constant("small")),
        (loss < 10.0, lambda: tf.constant("middle")),
    ],
    default=lambda: tf.constant("large"),
    exclusive=False,
)
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def collatz(n):
    def body(n, count):
        n = tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1)
        return n, count + 1

    return tf.while_loop(lambda n, _: n > 1, body, [n, tf.constant(0)])[1]


n = tf.placeholder(tf.int32, [], name="n")
steps = collatz(n)
rows = tf.while_loop(
    lambda i, *_: i < 3,
    lambda i, a, s: (
        i + 1,
        a.write(
            i, tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + j), [0, 0])[1]
        ),
        s + i,
    ),
    [tf.constant(0), tf.TensorArray(tf.int32, 3), tf.constant(0)],
)
table = rows[1].stack()
grown = tf.while_loop(
    lambda v: tf.shape(v)[0] < 5,
    lambda v: tf.concat([v, v[-1:] * 2], 0),
    [tf.constant([1.0])],
    shape_invariants=[tf.TensorShape([None])],
)
power = tf.while_loop(
    lambda i, v: i < 4,
    lambda i, v: (i + 1, v * v[0]),
    [0, tf.constant([1.5, 2.0])],
    back_prop=True,
)[1]
slope = tf.gradients(grown, grown.op.inputs[0])
draw = np.random.RandomState(0)
feed = {x: draw.normal(size=(3, STEPS, WIDTH)), n: 7}
for v in tf.trainable_variables():
    print(v.name, v.shape)
print(outputs.shape, memory.shape, grown.shape)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run(usage, feed)[0].round(4))
    for i in range(5):
        _, value = sess.run([train, loss], feed)
        print("%.5f" % value)
    print(
        sess.run(case, feed), sess.run(steps, feed), sess.run(table), sess.run(rows[2])
    )
    print(sess.run(grown), sess.run(power))
    a, b = (sess.run(outputs, {**feed, training: t})[0, 0] for t in (True, False))
    print((a - b).round(4))
