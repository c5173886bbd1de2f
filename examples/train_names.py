"""Trains a character LSTM that tells the language of a surname.

    train_names.py --folder F [--epochs N]

F keeps a checkpoint of the last whole epoch: killed at any moment and started
again, the program goes on there. The last line is "test accuracy: 0.xxxx".

Letters are the bytes of a name's UTF-8, from "<", its start, to ">", its end; 0 is
what shorter names of a batch are filled up with, and masked.
"""

import argparse
import os

import headrace as tf

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "surnames.txt")
LANGUAGES = (
    "Croatian Dutch Finnish French German Irish Italian Polish Slovak Spanish".split()
)
NAMES, BATCH = 7631, 32  # to train on
SEED = 17


def example(line):
    """(the letters of the name, the number of its language)"""
    fields = tf.strings.split(line, "\t")
    letters = tf.io.decode_raw("<" + fields[1] + ">", tf.uint8)
    return tf.cast(letters, tf.int32), tf.argmax(fields[0] == LANGUAGES)


def datasets():
    """What to train on, and every fifth name for testing."""
    lines = tf.data.TextLineDataset(DATA).enumerate()
    train = lines.filter(lambda i, _: i % 5 != 4).map(lambda _, line: example(line))
    test = lines.filter(lambda i, _: i % 5 == 4).map(lambda _, line: example(line))
    train = (
        train.cache()
        .shuffle(NAMES)
        .bucket_by_sequence_length(
            lambda letters, _: tf.size(letters),
            bucket_boundaries=[8, 10, 12, 16],
            bucket_batch_sizes=[BATCH] * 5,
        )
    )
    return train.prefetch(2), test.padded_batch(256)


def network():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Embedding(256, 32, mask_zero=True),
            layers.Bidirectional(layers.LSTM(64)),
            layers.Dropout(0.3),
            layers.Dense(len(LANGUAGES)),
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default="names")
    parser.add_argument("--epochs", type=int, default=15)
    args = parser.parse_args()

    tf.keras.utils.set_random_seed(SEED)
    train, test = datasets()
    model = network()
    steps = args.epochs * NAMES // BATCH
    model.compile(
        optimizer=tf.keras.optimizers.Adam(
            tf.keras.optimizers.schedules.CosineDecay(0.006, steps)
        ),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    backup = tf.keras.callbacks.BackupAndRestore(args.folder, delete_checkpoint=False)
    model.fit(train, epochs=args.epochs, callbacks=[backup], verbose=2)

    _, accuracy = model.evaluate(test, verbose=0)
    print(f"test accuracy: {accuracy:.4f}")


if __name__ == "__main__":
    main()
