"""TensorFlow 1's way: attention over time by while_loop and TensorArrays, a scan, a map."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
UNITS, STEPS = 6, 5
keys = tf.placeholder(tf.float32, [None, None, UNITS], name="keys")
start = tf.placeholder(tf.float32, [None, UNITS], name="start")
goal = tf.placeholder(tf.float32, [None, STEPS, UNITS], name="goal")
init = tf.random_normal_initializer(stddev=0.4, seed=2)


def attend(query):
    with tf.variable_scope("attention", reuse=tf.AUTO_REUSE, initializer=init):
        w1 = tf.get_variable("w1", [UNITS, UNITS])
        w2 = tf.get_variable("w2", [UNITS, UNITS])
        v = tf.get_variable("v", [UNITS, 1])
    seen = tf.tensordot(keys, w1, [[2], [0]])
    scores = tf.tensordot(tf.tanh(seen + tf.matmul(query, w2)[:, None]), v, 1)
    weights = tf.nn.softmax(tf.squeeze(scores, 2))
    return tf.einsum("bt,btd->bd", weights, keys), weights


def body(time, query, outputs, weights):
    context, weight = attend(query)
    with tf.variable_scope("step", reuse=tf.AUTO_REUSE, initializer=init):
        query = tf.layers.dense(tf.concat([query, context], 1), UNITS, tf.tanh)
    return time + 1, query, outputs.write(time, query), weights.write(time, weight)


arrays = [tf.TensorArray(tf.float32, STEPS, name=n) for n in ("outputs", "weights")]
_, last, outputs, weights = tf.while_loop(
    lambda time, *_: time < STEPS,
    body,
    [tf.constant(0), start, *arrays],
    parallel_iterations=4,
    swap_memory=True,
)
outputs = tf.transpose(outputs.stack(), [1, 0, 2])
weights = tf.transpose(weights.stack(), [1, 0, 2])
loss = tf.losses.mean_squared_error(goal, outputs)
optimizer = tf.train.AdamOptimizer(0.01)
grads_and_vars = optimizer.compute_gradients(loss)
capped = [(tf.clip_by_value(g, -0.5, 0.5), v) for g, v in grads_and_vars]
train = optimizer.apply_gradients(capped)
norms = [tf.norm(g) for g, _ in grads_and_vars]
running = tf.scan(lambda a, x: 0.9 * a + 0.1 * x, tf.transpose(outputs, [1, 0, 2]))
pairs = tf.map_fn(
    lambda ab: (tf.reduce_max(ab[0]), tf.argmax(ab[1])),
    (outputs[:, -1], weights[:, -1]),
    dtype=(tf.float32, tf.int64),
)
total = tf.foldl(lambda a, x: a + x, tf.range(5))
respect = tf.gradients(loss, start)[0]

draw = np.random.RandomState(0)
feed = {
    keys: draw.normal(size=[4, 7, UNITS]),
    start: draw.normal(size=[4, UNITS]),
    goal: np.tanh(draw.normal(size=[4, STEPS, UNITS])),
}
print(outputs.shape, weights.shape, last.shape, running.shape)
for v in tf.trainable_variables():
    print(v.name, v.shape)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(np.round(sess.run(weights, feed)[0], 4))
    print(*("%.5f" % n for n in sess.run(norms, feed)))
    for i in range(30):
        _, value = sess.run([train, loss], feed)
        if i % 10 == 0:
            print(i, "%.4f" % value)
    print(np.round(sess.run(running, feed)[-1, 0], 3))
    top, where = sess.run(pairs, feed)
    print(np.round(top, 3), where, sess.run(total))
    print(np.round(sess.run(respect, feed)[0], 4))
    short = {**feed, keys: feed[keys][:, :2]}
    print(sess.run(weights, short).sum(-1).round(3).min())
