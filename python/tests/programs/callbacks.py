"""Callbacks: own, schedules, early stopping, saving weights, logs."""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(5)
folder = tempfile.mkdtemp()
x = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
y = (x @ [[1.0], [-1.0], [2.0]]).astype("float32")


class Diary(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        print("begin", sorted(self.params))

    def on_epoch_end(self, epoch, logs=None):
        print(epoch, {k: round(float(v), 3) for k, v in sorted(logs.items())})

    def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
            print("batch", batch, sorted(logs))


model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
path = os.path.join(folder, "{epoch:02d}-w")
log = os.path.join(folder, "log.csv")
history = model.fit(
    x,
    y,
    epochs=6,
    batch_size=20,
    shuffle=False,
    verbose=0,
    validation_split=0.2,
    callbacks=[
        Diary(),
        tf.keras.callbacks.LearningRateScheduler(
            lambda epoch, rate: rate * (0.5 if epoch == 2 else 1)
        ),
        tf.keras.callbacks.EarlyStopping(
            "val_loss", min_delta=0.02, patience=1, restore_best_weights=True
        ),
        tf.keras.callbacks.ModelCheckpoint(
            path, save_weights_only=True, save_best_only=True
        ),
        tf.keras.callbacks.CSVLogger(log),
        tf.keras.callbacks.ReduceLROnPlateau("loss", patience=1),
        tf.keras.callbacks.TerminateOnNaN(),
        tf.keras.callbacks.LambdaCallback(
            on_train_end=lambda logs: print("end", sorted(logs))
        ),
    ],
)
print(len(history.epoch), sorted(history.history))
with open(log) as f:
    print(f.readline().strip(), len(f.readlines()))
print(sorted(n for n in os.listdir(folder) if n.endswith(".index")))
model.load_weights(tf.train.latest_checkpoint(folder))
print(np.round(model.evaluate(x, y, verbose=0), 3))
decay = tf.keras.optimizers.schedules.PiecewiseConstantDecay([2, 4], [0.1, 0.05, 0.01])
print([round(float(decay(i)), 3) for i in range(6)])
warm = tf.keras.optimizers.schedules.CosineDecay(
    0.1, 10, warmup_target=0.2, warmup_steps=3
)
print([round(float(warm(i)), 4) for i in (0, 1, 3, 8, 13)])
