"""Trains a small residual network (He et al., 2015) on 5,000 digits of MNIST.

    train_images.py --folder F [--epochs N]

F keeps a checkpoint of the last whole epoch, where the program goes on after it was
killed, and what `tensorboard --logdir F` shows. The last line is "test accuracy:
0.9xxx".
"""

import argparse
import os

import headrace as tf

FOLDER = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(FOLDER, "data", "mnist5k.tfrecord.gz")
TRAIN, BATCH = 4000, 50
SEED = 17
FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def parsed(records):
    """A batch of records as images of 0 to 1 and their digits."""
    found = tf.io.parse_example(records, FEATURES)
    pixels = tf.reshape(tf.io.decode_raw(found["image"], tf.uint8), [-1, 28, 28, 1])
    return tf.cast(pixels, tf.float32) / 255.0, found["label"]


def shifted(image, label):
    """The image moved by up to two pixels."""
    y, x = tf.unstack(tf.random.uniform([2], 0, 5, tf.int32))
    padded = tf.pad(image, [[2, 2], [2, 2], [0, 0]])
    return tf.ensure_shape(padded[y : y + 28, x : x + 28], [28, 28, 1]), label


def datasets():
    """What to train on, and every fifth image for testing."""
    records = tf.data.TFRecordDataset(DATA, compression_type="GZIP").enumerate()
    train = records.filter(lambda i, _: i % 5 != 4).map(lambda _, record: record)
    test = records.filter(lambda i, _: i % 5 == 4).map(lambda _, record: record)
    train = train.batch(BATCH).map(parsed).unbatch().cache().shuffle(TRAIN)
    train = train.map(shifted, num_parallel_calls=2).batch(BATCH).prefetch(2)
    return train, test.batch(200).map(parsed)


def convolved(x, filters, size, stride=1):
    layer = tf.keras.layers.Conv2D(
        filters, size, stride, padding="same", use_bias=False
    )
    return tf.keras.layers.BatchNormalization(momentum=0.9)(layer(x))


def block(x, filters, stride):
    """Two convolutions and the way around them."""
    y = tf.keras.layers.ReLU()(convolved(x, filters, 3, stride))
    y = convolved(y, filters, 3)
    if stride > 1:
        x = convolved(x, filters, 1, stride)
    return tf.keras.layers.ReLU()(tf.keras.layers.Add()([x, y]))


def network():
    image = tf.keras.Input([28, 28, 1])
    x = tf.keras.layers.ReLU()(convolved(image, 16, 3))
    for filters, stride in [(16, 1), (32, 2), (64, 2)]:
        x = block(x, filters, stride)
    x = tf.keras.layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(image, tf.keras.layers.Dense(10)(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default="images")
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()

    tf.keras.utils.set_random_seed(SEED)
    train, test = datasets()
    steps = args.epochs * TRAIN // BATCH
    model = network()
    model.compile(
        optimizer=tf.keras.optimizers.Adam(
            tf.keras.optimizers.schedules.CosineDecay(0.004, steps)
        ),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    callbacks = [
        tf.keras.callbacks.BackupAndRestore(
            os.path.join(args.folder, "backup"), delete_checkpoint=False
        ),
        tf.keras.callbacks.TensorBoard(args.folder),
    ]
    model.fit(train, epochs=args.epochs, callbacks=callbacks, verbose=2)

    _, accuracy = model.evaluate(test, verbose=0)
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
