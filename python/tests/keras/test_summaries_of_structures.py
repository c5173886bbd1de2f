"""Model.summary: cells that go on below, structures of outputs, models within models; the
tables of tf_keras 2.21 are in summaries_of_structures.txt, parted by lines of "@"."""

import pathlib

import headrace as tf

K = tf.keras
EXPECTED = pathlib.Path(__file__).with_name("summaries_of_structures.txt")


class Parts(K.layers.Layer):
    def call(self, x):
        return {"a": [x], "b": (x, {"c": x})}


class Two(K.layers.Layer):
    def call(self, x):
        return x, x[0]


def structures():
    i = K.Input((8,), name="an_input_of_a_longer_name")
    two, parts = Two(name="two")(i), Parts(name="parts")(i)
    o = K.layers.Add(name="Decoder-1-FeedForward-Nor")([i, *parts["a"], two[0]])
    o = K.layers.LayerNormalization(name="Decoder-1-FeedForward-Norm")(o)
    return K.Model(i, K.layers.Dense(2, name="one")(o), name="structures")


def models_within():
    inner = [
        K.Input((8,)),
        K.layers.Dense(4, name="q" * 25),
        K.layers.Dense(3, name="d"),
    ]
    inner = K.Sequential(inner, name="inner")
    mid = [
        K.Input((8,)),
        K.layers.Dense(8, name="a"),
        inner,
        K.layers.Dense(2, name="b"),
    ]
    mid = K.Sequential(mid, name="mid")
    return K.Sequential([K.Input((8,)), mid, K.layers.Dense(1, name="c")], name="outer")


def tables():
    lines = []
    for options in {}, {"line_length": 44}, {"positions": [0.2, 0.6, 0.8, 1.0]}:
        structures().summary(print_fn=lines.append, **options)
        lines.append("@")
    models_within().summary(
        expand_nested=True, show_trainable=True, print_fn=lines.append
    )
    return "".join(f"{line}|\n" for line in lines)  # so that no line ends in blanks


def test_summaries():
    assert tables() == EXPECTED.read_text(encoding="utf-8")
