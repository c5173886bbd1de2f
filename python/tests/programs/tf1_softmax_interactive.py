"""TensorFlow 1's way: softmax regression in an InteractiveSession, as in MNIST's tutorial."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


class DataSet:
    """Digits of 8 by 8, as tensorflow.examples.tutorials.mnist gave them."""

    def __init__(self, rows, seed):
        draw = np.random.RandomState(seed)
        shapes = np.random.RandomState(42).rand(10, 64) > 0.6
        digits = draw.randint(0, 10, rows)
        self.images = (shapes[digits] * 0.8 + draw.rand(rows, 64) * 0.4).astype("f4")
        self.labels = np.eye(10, dtype="f4")[digits]
        self._at = 0

    def next_batch(self, size):
        if self._at + size > len(self.images):
            self._at = 0
        self._at += size
        return (
            self.images[self._at - size : self._at],
            self.labels[self._at - size : self._at],
        )


train_set, test_set = DataSet(500, 0), DataSet(200, 1)
sess = tf.InteractiveSession()
x = tf.placeholder(tf.float32, shape=[None, 64])
y_ = tf.placeholder(tf.float32, shape=[None, 10])
W = tf.Variable(tf.zeros([64, 10]))
b = tf.Variable(tf.zeros([10]))
tf.global_variables_initializer().run()
y = tf.matmul(x, W) + b
cross_entropy = tf.reduce_mean(
    tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y)
)
train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)
correct_prediction = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))

for i in range(60):
    batch_xs, batch_ys = train_set.next_batch(50)
    train_step.run(feed_dict={x: batch_xs, y_: batch_ys})
    if i % 20 == 0:
        value = cross_entropy.eval(feed_dict={x: batch_xs, y_: batch_ys})
        print("step %d, loss %.4f" % (i, value))
print("accuracy %.3f" % accuracy.eval({x: test_set.images, y_: test_set.labels}))
print(np.round(sess.run(W).sum(0), 3), np.round(b.eval(), 3))
weights, biases = sess.run([W, b])
probabilities = sess.run(tf.nn.softmax(y), {x: test_set.images[:2]})
print(np.round(probabilities, 3))
print(tf.nn.in_top_k(probabilities, [0, 1], 3).eval().dtype)
print(W, b.op.type, train_step.type, y.op.inputs[0].name)
confusion = tf.confusion_matrix(tf.argmax(y_, 1), tf.argmax(y, 1), num_classes=10)
print(confusion.eval({x: test_set.images, y_: test_set.labels}).trace())
try:
    accuracy.eval({x: test_set.images})
except tf.errors.InvalidArgumentError as error:
    print(error.message.splitlines()[0])
try:
    sess.run(y, {x: np.zeros([2, 63])})
except ValueError as error:
    print(error)
try:
    sess.run(tf.Variable(1.0))
except tf.errors.FailedPreconditionError as error:
    print(type(error).__name__)
sess.close()
try:
    b.eval()
except ValueError as error:
    print(error)
