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


def gradients(tf, folder):
    """Gradients of the program's own: one that reads what was computed on the way, one
    of a variable, each also by way of a call."""

    @tf.custom_gradient
    def steep(x, z):
        return x * x, lambda dy: (dy * x * 10.0, dy * z)

    class Gradients(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(2.0, name="v")

        def scaled(self, x):
            @tf.custom_gradient
            def by_variable(x):
                def backward(dy, variables=None):
                    return dy * self.v * 3.0, [tf.reduce_sum(dy * x) * 5.0]

                return x * self.v, backward

            return by_variable(x)

        @tf.function(input_signature=[tf.TensorSpec([None])])
        def f(self, x):
            h = x * 3.0
            return self.scaled(steep(h, h + 1.0))

        @tf.function(input_signature=[tf.TensorSpec([None])])
        def called(self, x):
            return self.f(x) * 2.0

    tf.saved_model.save(Gradients(), folder)


def session(tf, folder):
    """Two graphs of TensorFlow 1: one with a resource and a reference variable, a table
    of an asset and a main op, another of the same variables."""
    v1 = tf.compat.v1
    words = os.path.join(os.path.dirname(folder), "colours.txt")
    with open(words, "w", encoding="utf-8") as f:
        f.write("red\ngreen\nblue\n")

    def variables():
        v = v1.get_variable(
            "scope/v", initializer=[10.0, 20.0, 30.0], use_resource=True
        )
        shift = v1.get_variable("shift", initializer=1.0, use_resource=False)
        return v, shift

    def signature(inputs, outputs):
        return v1.saved_model.predict_signature_def(inputs, outputs)

    builder = v1.saved_model.Builder(folder)
    with tf.Graph().as_default(), v1.Session() as sess:
        v, shift = variables()
        local = v1.get_local_variable("local", initializer=0.0, use_resource=True)
        path = tf.constant(words, name="path")
        lines = tf.lookup.TextFileInitializer(
            path,
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        table = tf.lookup.StaticHashTable(lines, -1)
        text = v1.placeholder(tf.string, [None], name="text")
        x = v1.placeholder_with_default([1.0], [None], name="x")
        score = tf.gather(v, tf.maximum(table.lookup(text), 0), name="score")
        steps = v1.while_loop(
            lambda i, total: i < 3, lambda i, total: (i + 1, total * 2.0), [0, x]
        )[1]
        sess.run([v1.global_variables_initializer(), v1.tables_initializer()])
        prepared = tf.group(v1.tables_initializer(), v1.assign(local, 100.0))
        builder.add_meta_graph_and_variables(
            sess,
            ["serve"],
            {
                "serving_default": signature(
                    {"text": text}, {"ids": table.lookup(text), "score": score}
                ),
                "steps": signature({"a b": x}, {"y": steps + shift + local}),
            },
            assets_collection=[path],
            main_op=prepared,
            strip_default_attrs=True,
        )
    with tf.Graph().as_default(), v1.Session():
        v, _ = variables()
        x = v1.placeholder(tf.float32, [3], name="x")
        builder.add_meta_graph(
            ["train", "gpu"], {"step": signature({"x": x}, {"y": x + v})}
        )
    builder.save()
    os.remove(words)


if __name__ == "__main__":
    import tensorflow

    for write in (plain, tables, gradients, session):
        write(tensorflow, os.path.join(sys.argv[1], write.__name__))
