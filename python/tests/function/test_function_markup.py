"""What notebooks show of traced functions."""

import headrace as tf


def test_traces_are_rows():
    @tf.function
    def f(x, training=True):
        return x + 1

    assert "not traced yet" in f._repr_html_()
    f(tf.constant(1))
    f(tf.constant([1.0, 2.0]), training=False)
    shown = f._repr_html_()
    assert "tf.function f" in shown and shown.count("<tr>") == 3
    assert "TensorSpec(shape=(2,), dtype=tf.float32" in shown and "-&gt;" in shown
