"""TensorFlow 1's way: policy gradients, gradients held back and fed again."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(2)
draw = np.random.RandomState(2)
D, H, GAMMA = 4, 6, 0.95


class Balance:
    """A point that is to stay near zero: pushes left and right."""

    def reset(self):
        self.x = draw.uniform(-0.5, 0.5, D)
        self.t = 0
        return self.x

    def step(self, action):
        push = 0.4 if action else -0.4
        self.x = 0.9 * self.x + np.roll(self.x, 1) * 0.1
        self.x[0] += push + draw.normal() * 0.05
        self.t += 1
        return self.x, float(abs(self.x[0]) < 1), self.t >= 12


observations = tf.placeholder(tf.float32, [None, D], name="input_x")
W1 = tf.get_variable("W1", shape=[D, H], initializer=tf.glorot_uniform_initializer())
layer1 = tf.nn.relu(tf.matmul(observations, W1))
W2 = tf.get_variable("W2", shape=[H, 1], initializer=tf.glorot_uniform_initializer())
score = tf.matmul(layer1, W2)
probability = tf.nn.sigmoid(score)
tvars = tf.trainable_variables()
input_y = tf.placeholder(tf.float32, [None, 1], name="input_y")
advantages = tf.placeholder(tf.float32, name="reward_signal")
loglik = tf.log(
    input_y * (input_y - probability) + (1 - input_y) * (input_y + probability)
)
loss = -tf.reduce_mean(loglik * advantages)
newGrads = tf.gradients(loss, tvars)
adam = tf.train.AdamOptimizer(learning_rate=0.05)
W1Grad = tf.placeholder(tf.float32, name="batch_grad1")
W2Grad = tf.placeholder(tf.float32, name="batch_grad2")
updateGrads = adam.apply_gradients(zip([W1Grad, W2Grad], tvars))
logits = tf.concat([tf.zeros_like(score), score], 1)
sampled = tf.multinomial(logits, 3, seed=8)
entropy = tf.reduce_mean(
    tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.nn.softmax(logits), logits=logits
    )
)


def discount_rewards(r):
    discounted, running = np.zeros_like(r), 0
    for t in reversed(range(r.size)):
        running = running * GAMMA + r[t]
        discounted[t] = running
    return discounted


env = Balance()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run(W1).round(4)[0], sess.run(W2).round(4).ravel())
    buffer = [np.zeros_like(g) for g in sess.run(tvars)]
    for episode in range(12):
        observation, done = env.reset(), False
        xs, ys, rewards = [], [], []
        while not done:
            x = np.reshape(observation, [1, D])
            p = sess.run(probability, feed_dict={observations: x})
            action = 1 if draw.uniform() < p else 0
            xs.append(x)
            ys.append(1 - action)
            observation, reward, done = env.step(action)
            rewards.append(reward)
        epx, epy = np.vstack(xs), np.vstack(ys)
        epr = discount_rewards(np.vstack(rewards))
        epr = (epr - epr.mean()) / (epr.std() + 1e-8)
        feed = {observations: epx, input_y: epy, advantages: epr}
        grads, value = sess.run([newGrads, loss], feed)
        for ix, grad in enumerate(grads):
            buffer[ix] += grad
        if episode % 4 == 3:
            sess.run(updateGrads, {W1Grad: buffer[0], W2Grad: buffer[1]})
            norms = ["%.4f" % np.linalg.norm(g) for g in buffer]
            print(episode, sum(rewards), "%.4f" % value, *norms)
            buffer = [g * 0 for g in buffer]
    x = draw.normal(size=(5, D))
    for _ in range(2):
        print(sess.run(sampled, {observations: x}).ravel())
    print("%.5f" % sess.run(entropy, {observations: x}))
    print(sess.run(tvars[0]).round(3)[0])
