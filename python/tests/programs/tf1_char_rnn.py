"""TensorFlow 1's way: a language model of characters, its state fed back, a rate assigned."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
text = "the quick brown fox jumps over the lazy dog. " * 12
chars = sorted(set(text))
vocab = {c: i for i, c in enumerate(chars)}
BATCH, STEPS = 4, 10


class Model:
    def __init__(self, training=True, size=16, layers=2):
        self.batch = BATCH if training else 1
        steps = STEPS if training else 1
        cells = []
        for _ in range(layers):
            cell = tf.nn.rnn_cell.LSTMCell(size, state_is_tuple=True)
            if training:
                cell = tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=0.9, seed=9)
            cells.append(cell)
        self.cell = tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=True)
        self.input_data = tf.placeholder(tf.int32, [self.batch, steps])
        self.targets = tf.placeholder(tf.int32, [self.batch, steps])
        self.initial_state = self.cell.zero_state(self.batch, tf.float32)
        initializer = tf.random_uniform_initializer(-0.3, 0.3, seed=4)
        with tf.variable_scope("rnnlm", initializer=initializer):
            softmax_w = tf.get_variable("softmax_w", [size, len(chars)])
            softmax_b = tf.get_variable("softmax_b", [len(chars)])
            with tf.device("/cpu:0"):
                embedding = tf.get_variable("embedding", [len(chars), size])
                inputs = tf.nn.embedding_lookup(embedding, self.input_data)
            inputs = [tf.squeeze(x, [1]) for x in tf.split(inputs, steps, 1)]
            outputs, self.final_state = tf.nn.static_rnn(
                self.cell, inputs, self.initial_state, scope="rnnlm"
            )
        output = tf.reshape(tf.concat(outputs, 1), [-1, size])
        self.logits = tf.matmul(output, softmax_w) + softmax_b
        self.probs = tf.nn.softmax(self.logits)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.reshape(self.targets, [-1]), logits=self.logits
        )
        self.cost = tf.reduce_sum(loss) / self.batch / steps
        if not training:
            return
        self.lr = tf.Variable(0.0, trainable=False)
        tvars = tf.trainable_variables()
        grads, self.norm = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), 1.0)
        optimizer = tf.train.AdamOptimizer(self.lr)
        self.train_op = optimizer.apply_gradients(zip(grads, tvars))


ids = np.array([vocab[c] for c in text])
ids = ids[: BATCH * STEPS * (len(ids) // (BATCH * STEPS))]
xdata, ydata = ids.reshape(BATCH, -1), np.roll(ids, -1).reshape(BATCH, -1)
path = os.path.join(tempfile.mkdtemp(), "model.ckpt")
with tf.Graph().as_default():
    model = Model()
    print([(v.op.name, v.shape.as_list()) for v in tf.trainable_variables()])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        saver = tf.train.Saver(tf.trainable_variables(), max_to_keep=1)
        for epoch in range(4):
            sess.run(tf.assign(model.lr, 0.05 * 0.9**epoch))
            state = sess.run(model.initial_state)
            for b in range(xdata.shape[1] // STEPS):
                span = slice(b * STEPS, (b + 1) * STEPS)
                feed = {model.input_data: xdata[:, span], model.targets: ydata[:, span]}
                for i, (c, h) in enumerate(model.initial_state):
                    feed[c], feed[h] = state[i].c, state[i].h
                fetches = [model.cost, model.norm, model.final_state, model.train_op]
                cost, norm, state, _ = sess.run(fetches, feed)
                if epoch == 0 and b < 3:
                    print(b, "%.3f %.3f" % (cost, norm))
            print("epoch", epoch, cost < 3.2, type(state[0]).__name__)
        print(saver.save(sess, path, global_step=3)[-12:])
with tf.Graph().as_default():
    model = Model(training=False)
    with tf.Session() as sess:
        saver = tf.train.Saver(tf.global_variables())
        checkpoint = tf.train.get_checkpoint_state(os.path.dirname(path))
        saver.restore(sess, checkpoint.model_checkpoint_path)
        state = sess.run(model.cell.zero_state(1, tf.float32))
        for char in "the ":
            feed = {model.input_data: [[vocab[char]]], model.initial_state: state}
            probs, state = sess.run([model.probs, model.final_state], feed)
        print(
            probs.shape,
            "%.3f" % probs.sum(),
            len(checkpoint.all_model_checkpoint_paths),
        )
    print(sess.graph.get_operations()[0].name)
