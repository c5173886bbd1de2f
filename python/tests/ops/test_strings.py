"""Strings."""

import headrace as tf


def test_reduce_join_over_all_dimensions():
    reduce_join = tf.strings.reduce_join
    rows = [["abc", "123"], ["def", "456"]]
    assert reduce_join(rows).numpy() == b"abc123def456"
    assert reduce_join(rows, axis=[0, 1]).numpy() == b"abcdef123456"
    assert reduce_join(rows, axis=0, separator="-").numpy().tolist() == [
        b"abc-def",
        b"123-456",
    ]
