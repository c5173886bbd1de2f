"""Trains a small convolutional network on scanned digits.

    train_digits.py --folder F [--steps N]   trains; goes on where F's newest
                                             checkpoint stopped
    train_digits.py --folder F --evaluate    restores it and tests only

Kill it at any moment and start it again: the weights end as if nothing had
happened, bit for bit, because a checkpoint holds the model, the optimizer and the
place in the data. The last line is "test accuracy: 0.9xxx"; `tensorboard --logdir F`
shows the loss. train_digits.cc is the same program in C++; each restores what the
other has saved.
"""

import argparse
import os

import headrace as tf

SEED, SAVE_EVERY = 17, 50
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.bin")


def rows(path, test):
    """Rows of 64 pixels (0 to 16) and the digit; every fifth is for testing."""
    records = tf.data.FixedLengthRecordDataset([path], 65).enumerate()
    return records.filter(lambda i, row: tf.equal(i % 5 >= 4, test))


def batches(dataset, size):
    """Batches of images [n, 8, 8, 1], 0 to 1, and digits."""

    def decode(_, row):
        pixels, digits = tf.split(tf.io.decode_raw(row, tf.uint8), [64, 1], axis=1)
        images = tf.reshape(tf.cast(pixels, tf.float32) / 16, [-1, 8, 8, 1])
        return images, digits

    return dataset.batch(size).map(decode)


def make_model():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPool2D(),
            layers.Flatten(),
            layers.Dense(64, "relu"),
            layers.Dense(10),
        ]
    )


def train(model, optimizer, data, manager, steps):
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    mean = tf.keras.metrics.Mean()

    @tf.function
    def update(images, digits):
        with tf.GradientTape() as tape:
            loss = loss_of(digits, model(images, training=True))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        mean.update_state(loss)

    with tf.summary.create_file_writer(manager.directory).as_default():
        for done in range(int(optimizer.iterations) + 1, steps + 1):
            update(*next(data))
            if done % SAVE_EVERY == 0 or done == steps:
                loss = float(mean.result())
                mean.reset_state()
                tf.summary.scalar("loss", loss, step=done)
                manager.save()
                print(f"\rstep {done}/{steps}  loss {loss:.4f} ", end="", flush=True)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default="digits")
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--steps", type=int, default=1350)
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()

    tf.keras.utils.set_random_seed(SEED)
    model, optimizer = make_model(), tf.keras.optimizers.Adam(0.001)
    training = rows(args.data, test=False).shuffle(2000, seed=SEED)
    data = iter(batches(training.repeat(), 32))
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, batches=data)
    manager = tf.train.CheckpointManager(checkpoint, args.folder, max_to_keep=3)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).expect_partial()
        print("restored", manager.latest_checkpoint)
    elif args.evaluate:
        parser.error(f"no checkpoint in {args.folder}")
    if not args.evaluate:
        train(model, optimizer, data, manager, args.steps)

    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    for images, digits in batches(rows(args.data, test=True), 500):
        accuracy.update_state(digits, model(images))
    print(f"test accuracy: {float(accuracy.result()):.4f}")


if __name__ == "__main__":
    main()
