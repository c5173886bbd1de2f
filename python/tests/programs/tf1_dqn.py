"""TensorFlow 1's way: Q-learning with a target network and a memory of what happened."""

import collections
import random

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
random.seed(0)
draw = np.random.RandomState(0)
STATES, ACTIONS, GAMMA = 6, 2, 0.9


class Corridor:
    """Steps left and right; the right end pays."""

    def reset(self):
        self.at = 2
        return self.seen()

    def seen(self):
        return np.eye(STATES)[self.at]

    def step(self, action):
        self.at = max(0, min(STATES - 1, self.at + (1 if action else -1)))
        done = self.at in (0, STATES - 1)
        return self.seen(), float(self.at == STATES - 1), done


class QNetwork:
    def __init__(self, name):
        self.name = name
        with tf.variable_scope(name):
            self.s = tf.placeholder(tf.float32, [None, STATES], name="s")
            net = self._dense(self.s, 8, "l1", tf.nn.relu, 1)
            self.q = self._dense(net, ACTIONS, "l2", None, 2)
        self.variables = tf.get_collection(
            tf.GraphKeys.GLOBAL_VARIABLES, scope=name + "/"
        )

    def _dense(self, x, units, name, activation, seed):
        with tf.variable_scope(name):
            w = tf.get_variable(
                "w",
                [int(x.shape[1]), units],
                initializer=tf.random_normal_initializer(0.0, 0.3, seed=seed),
            )
            b = tf.get_variable("b", [units], initializer=tf.constant_initializer(0.1))
            out = tf.matmul(x, w) + b
        return activation(out) if activation else out


online, target = QNetwork("online"), QNetwork("target")
actions = tf.placeholder(tf.int32, [None], name="actions")
q_target = tf.placeholder(tf.float32, [None], name="q_target")
with tf.variable_scope("loss"):
    chosen = tf.reduce_sum(online.q * tf.one_hot(actions, ACTIONS), axis=1)
    gathered = tf.gather_nd(
        online.q, tf.stack([tf.range(tf.shape(actions)[0]), actions], axis=1)
    )
    td_error = tf.abs(q_target - chosen)
    clipped = tf.where(td_error < 1.0, 0.5 * tf.square(td_error), td_error - 0.5)
    loss = tf.reduce_mean(clipped)
with tf.variable_scope("train"):
    optimizer = tf.train.RMSPropOptimizer(0.01, decay=0.95, momentum=0.0, epsilon=0.01)
    gradients = optimizer.compute_gradients(loss, online.variables)
    gradients = [(tf.clip_by_norm(g, 1.0), v) for g, v in gradients]
    train_op = optimizer.apply_gradients(gradients)
with tf.name_scope("copy"):
    copy = [t.assign(o) for t, o in zip(target.variables, online.variables)]
    soft = tf.group(
        *[
            t.assign(0.9 * t + 0.1 * o)
            for t, o in zip(target.variables, online.variables)
        ]
    )

for v in tf.global_variables():
    print(v.name, v.shape)
memory = collections.deque(maxlen=200)
env = Corridor()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(copy)
    print(
        np.allclose(
            *sess.run([online.q, target.q], {online.s: np.eye(6), target.s: np.eye(6)})
        )
    )
    print(sess.run(online.q, {online.s: np.eye(6)[:2]}).round(4))
    steps, told = 0, []
    for episode in range(25):
        state, done = env.reset(), False
        while not done:
            if draw.rand() < 0.5:
                action = draw.randint(ACTIONS)
            else:
                action = int(np.argmax(sess.run(online.q, {online.s: state[None]})))
            after, reward, done = env.step(action)
            memory.append((state, action, reward, after, done))
            state = after
            steps += 1
            if len(memory) < 16:
                continue
            rows = random.sample(memory, 16)
            s, a, r, s2, d = (np.array(x) for x in zip(*rows))
            best = sess.run(target.q, {target.s: s2}).max(1)
            feed = {online.s: s, actions: a, q_target: r + GAMMA * best * (1 - d)}
            _, value = sess.run([train_op, loss], feed)
            told.append(value)
            if steps % 10 == 0:
                sess.run(soft)
    print(steps, len(memory), *("%.4f" % x for x in told[:4]))
    print(sess.run([chosen, gathered], feed)[0].round(2)[:3])
    sess.run(copy)
    q = sess.run(target.q, {target.s: np.eye(6)})
    print((q[1:5, 1] > q[1:5, 0]).all(), q.shape)
