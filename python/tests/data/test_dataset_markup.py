"""What notebooks show of datasets."""

import collections

import headrace as tf


def test_components_are_rows():
    pair = collections.namedtuple("Pair", "x y")
    dataset = tf.data.Dataset.from_tensor_slices(
        ({"a": [1, 2], "<b>": ["x", "y"]}, pair([1.0, 2.0], [[True], [False]]))
    )
    shown = dataset._repr_html_()
    for text in (
        "TensorSliceDataset",
        "[0][&#x27;a&#x27;]",
        "[0][&#x27;&lt;b&gt;&#x27;]",
        "[1].y",
        "(1,)",
        "string",
        "2 elements",
    ):
        assert text in shown, text
    assert shown.count("<tr>") == 5


def test_lengths():
    numbers = tf.data.Dataset.range(3)
    assert "infinitely many elements" in numbers.repeat()._repr_html_()
    assert "of unknown length" in numbers.filter(lambda x: x > 1)._repr_html_()
    ragged = tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]]))
    assert "RaggedTensorSpec" in ragged._repr_html_()
    with tf.Graph().as_default():
        assert "of unknown length" in tf.data.Dataset.range(3)._repr_html_()
