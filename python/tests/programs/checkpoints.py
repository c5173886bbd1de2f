"""Training that is saved, goes on elsewhere, and says what does not fit."""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(6)
folder = tempfile.mkdtemp()


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.one, self.two = tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(1)

    def call(self, x):
        return self.two(self.one(x))


x = np.random.default_rng(0).normal(size=(16, 3)).astype("float32")
y = x.sum(1, keepdims=True)


def start():
    net, optimizer = Net(), tf.keras.optimizers.Adam(0.05)
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(4)
    iterator = iter(data)
    kept = tf.train.Checkpoint(
        step=tf.Variable(0), net=net, optimizer=optimizer, iterator=iterator
    )
    return kept, tf.train.CheckpointManager(kept, folder, max_to_keep=2)


def train(kept, steps):
    for _ in range(steps):
        a, b = next(kept.iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(kept.net(a) - b))
        weights = kept.net.trainable_variables
        kept.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        kept.step.assign_add(1)
    return float(loss)


kept, manager = start()
for _ in range(3):
    print("%.4f" % train(kept, 3), os.path.basename(manager.save()))
straight = train(kept, 2)
kept, manager = start()
print(manager.restore_or_initialize() is not None, int(kept.step))
print("%.5f" % abs(train(kept, 2) - straight))
print([os.path.basename(p) for p in manager.checkpoints])
names = [n for n, _ in tf.train.list_variables(manager.latest_checkpoint)]
print([n for n in names if n.startswith("net") and "SLOT" not in n])
print(
    tf.train.load_variable(manager.latest_checkpoint, "step/.ATTRIBUTES/VARIABLE_VALUE")
)
status = tf.train.Checkpoint(net=Net()).restore(manager.latest_checkpoint)
try:
    status.assert_consumed()
except AssertionError:
    print("not consumed")
status.expect_partial()
wide = tf.train.Checkpoint(net=tf.keras.Sequential([tf.keras.layers.Dense(7)]))
module = tf.Module()
module.v, module.parts = (
    tf.Variable([1.0, 2.0]),
    [tf.Variable(3.0), {"k": tf.Variable(4.0)}],
)
path = tf.train.Checkpoint(root=module).write(os.path.join(folder, "module"))
print([n for n, _ in tf.train.list_variables(path)])
module.v.assign([9.0, 9.0])
tf.train.Checkpoint(root=module).read(path).assert_consumed()
print(module.v.numpy())
