"""Trains a small convolutional network on scanned digits.

    train_digits.py --folder F [--steps N]   trains; goes on where F's newest
                                             checkpoint stopped
    train_digits.py --folder F --evaluate    restores it and tests only

Kill it at any moment and start it again: the weights end as if nothing had
happened, bit for bit. The last line is "test accuracy: 0.9xxx"; `tensorboard
--logdir F` shows the loss.

train_digits.cc is the same program in C++. Each restores what the other has
saved: the object graph of a checkpoint is

    step                                  int64, training steps done
    model/{conv1,conv2,hidden,output}/{kernel,bias}
    optimizer/step                        int64, updates done
    optimizer/m/I, optimizer/v/I          Adam's moments, I counting the model's
                                          variables in the order above
"""

import argparse
import os

import numpy as np

import headrace as tf

BATCH = 32
STEPS = 1350
SAVE_EVERY = 50
SEED = 17
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.bin")


def load(path):
    """(images, labels) to train on, and every fifth scan for testing."""
    rows = np.fromfile(path, np.uint8).reshape(-1, 65)
    images = (rows[:, :64] / np.float32(16)).astype(np.float32).reshape(-1, 8, 8, 1)
    labels = rows[:, 64].astype(np.int32)
    test = np.arange(len(rows)) % 5 == 4
    return (images[~test], labels[~test]), (images[test], labels[test])


class Layer(tf.Module):
    """A kernel and a bias."""

    def __init__(self, shape, seed):
        super().__init__()
        deviation = np.sqrt(2.0 / np.prod(shape[:-1])).astype(np.float32)
        normal = tf.random.stateless_normal(shape, [seed, 0])
        self.kernel = tf.Variable(normal * deviation, name="kernel")
        self.bias = tf.Variable(tf.zeros(shape[-1:]), name="bias")


class Model(tf.Module):
    """Two convolutions, pooling, two dense layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = Layer([3, 3, 1, 16], 1)
        self.conv2 = Layer([3, 3, 16, 32], 2)
        self.hidden = Layer([4 * 4 * 32, 64], 3)
        self.output = Layer([64, 10], 4)

    def __call__(self, images):
        x = images
        for layer in (self.conv1, self.conv2):
            x = tf.nn.conv2d(x, layer.kernel, strides=1, padding="SAME")
            x = tf.nn.relu(tf.nn.bias_add(x, layer.bias))
        x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")
        x = tf.reshape(x, [-1, 4 * 4 * 32])
        x = tf.nn.relu(tf.nn.bias_add(x @ self.hidden.kernel, self.hidden.bias))
        return tf.nn.bias_add(x @ self.output.kernel, self.output.bias)

    def weights(self):
        layers = (self.conv1, self.conv2, self.hidden, self.output)
        return [v for layer in layers for v in (layer.kernel, layer.bias)]


class Adam(tf.Module):
    """Adam (Kingma and Ba, 2015) over a fixed list of variables."""

    RATE, BETA_1, BETA_2, EPSILON = 0.001, 0.9, 0.999, 1e-7

    def __init__(self, variables):
        super().__init__()
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self.m = [self._moment(v, "m") for v in variables]
        self.v = [self._moment(v, "v") for v in variables]

    @staticmethod
    def _moment(variable, name):
        return tf.Variable(tf.zeros_like(variable), trainable=False, name=name)

    def apply(self, gradients, variables):
        self.step.assign_add(1)
        t = tf.cast(self.step, tf.float32)
        powers = tf.pow(self.BETA_1, t), tf.pow(self.BETA_2, t)
        for g, x, m, v in zip(gradients, variables, self.m, self.v):
            tf.raw_ops.ResourceApplyAdam(
                var=x.handle,
                m=m.handle,
                v=v.handle,
                beta1_power=powers[0],
                beta2_power=powers[1],
                lr=self.RATE,
                beta1=self.BETA_1,
                beta2=self.BETA_2,
                epsilon=self.EPSILON,
                grad=g,
            )


def batches(data, first, last):
    """The batches of steps [first, last). The order of an epoch depends on its number
    alone, so that a run that goes on sees the batches it would have seen."""
    images, labels = data
    per_epoch = len(labels) // BATCH
    order = None
    for step in range(first, last):
        epoch, place = divmod(step, per_epoch)
        if order is None or place == 0:
            order = tf.random.experimental.stateless_shuffle(
                tf.range(len(labels)), [SEED, epoch]
            ).numpy()
        rows = order[place * BATCH : (place + 1) * BATCH]
        yield tf.constant(images[rows]), tf.constant(labels[rows])


def accuracy(model, data):
    images, labels = data
    found = tf.argmax(model(tf.constant(images)), axis=1).numpy()
    return float(np.mean(found == labels))


def train(model, optimizer, step, manager, data, steps):
    weights = model.weights()

    @tf.function
    def update(images, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(
                    labels=labels, logits=model(images)
                )
            )
        optimizer.apply(tape.gradient(loss, weights), weights)
        step.assign_add(1)
        return loss

    summaries = tf.summary.create_file_writer(manager.directory)
    first = int(step)
    for done, batch in enumerate(batches(data, first, steps), first + 1):
        loss = update(*batch)
        if done % SAVE_EVERY == 0 or done == steps:
            with summaries.as_default():
                tf.summary.scalar("loss", loss, step=done)
            summaries.flush()
            manager.save()
            print(f"\rstep {done}/{steps}  loss {float(loss):.4f} ", end="", flush=True)
    summaries.close()
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default="digits")
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()

    training, testing = load(args.data)
    model = Model()
    optimizer = Adam(model.weights())
    step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
    checkpoint = tf.train.Checkpoint(step=step, model=model, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, args.folder, max_to_keep=3)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).assert_consumed()
        print("restored", manager.latest_checkpoint)
    elif args.evaluate:
        parser.error(f"no checkpoint in {args.folder}")
    if not args.evaluate:
        train(model, optimizer, step, manager, training, args.steps)
    print(f"test accuracy: {accuracy(model, testing):.4f}")


if __name__ == "__main__":
    main()
