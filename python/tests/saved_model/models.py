"""Models that both libraries write: `models.py FOLDER`, run with TensorFlow, made
tests/golden/saved_models."""

import os
import sys


def plain(tf, folder):
    """Variables in containers, a function of several traces, one with a signature, one
    that loops, a captured constant."""

    class Plain(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable([1.0, 2.0], name="v")
            self.layers = [tf.Variable(3.0), {"k": tf.Variable(4, trainable=False)}]
            self.pair = (tf.Variable("text"), 1)
            self.hidden = tf.constant([5.0, 6.0])

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
        def scaled(self, x):
            return {"y": x * self.v + self.layers[0], "twice": x * 2.0}

        @tf.function
        def chosen(self, x, training=False, *, by=2.0):
            return x * by if training else x + self.hidden

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
        def looped(self, n):
            total = 0.0
            for _ in tf.range(n):
                total += tf.reduce_sum(self.v)
            return total

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
        def count(self, by):
            return self.layers[1]["k"].assign_add(by)

    model = Plain()
    model.chosen(tf.constant(1.0))
    model.chosen(tf.constant(1.0), training=True)
    model.chosen(tf.constant([1.0, 2.0]), training=True, by=tf.constant(3.0))
    signatures = {"serving_default": model.scaled, "looped": model.looped}
    tf.saved_model.save(model, folder, signatures=signatures)


def tables(tf, folder):
    """An asset, a static table of it, a static one of tensors, a mutable one."""
    words = os.path.join(os.path.dirname(folder), "words.txt")
    with open(words, "w", encoding="utf-8") as f:
        f.write("the\ncat\nsat\n")

    class Tables(tf.Module):
        def __init__(self):
            super().__init__()
            self.file = tf.saved_model.Asset(words)
            lines = tf.lookup.TextFileInitializer(
                self.file,
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            )
            self.ids = tf.lookup.StaticHashTable(lines, -1)
            self.names = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer([1, 2], ["one", "two"]), "?"
            )
            self.seen = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def lookup(self, text):
            return self.ids.lookup(text)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
        def name_of(self, n):
            return self.names.lookup(n)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def see(self, text):
            old = self.seen.lookup(text)
            self.seen.insert(text, old + 1)
            return old

    model = Tables()
    model.see(tf.constant(["cat"]))
    tf.saved_model.save(model, folder, signatures=model.lookup)
    os.remove(words)


if __name__ == "__main__":
    import tensorflow

    for write in (plain, tables):
        write(tensorflow, os.path.join(sys.argv[1], write.__name__))
