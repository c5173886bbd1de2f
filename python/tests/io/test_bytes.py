"""Strings as numbers and as base 64."""

import headrace as tf
import numpy as np
import pytest


def test_decode_raw():
    text = tf.constant([["ab", "cd"]])
    pairs = tf.io.decode_raw(text, tf.uint16)
    np.testing.assert_array_equal(pairs, [[[0x6261], [0x6463]]])
    swapped = tf.io.decode_raw(text, tf.uint16, little_endian=False)
    np.testing.assert_array_equal(swapped, [[[0x6162], [0x6364]]])
    np.testing.assert_array_equal(tf.io.decode_raw("é", tf.uint8), [0xC3, 0xA9])


def test_decode_raw_to_one_length():
    found = tf.io.decode_raw(["abc", ""], tf.uint8, fixed_length=2)
    np.testing.assert_array_equal(found, [[97, 98], [0, 0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="multiple of the size"):
        tf.io.decode_raw("abcd", tf.uint16, fixed_length=3)


def test_decode_raw_of_two_lengths():
    with pytest.raises(tf.errors.InvalidArgumentError, match="all be the same size"):
        tf.io.decode_raw(["ab", "c"], tf.int8)


def test_decode_raw_v1():
    np.testing.assert_array_equal(
        tf.compat.v1.decode_raw(bytes=b"\1\2", out_type=tf.int8), [1, 2]
    )
    with pytest.raises(ValueError, match="both"):
        tf.compat.v1.decode_raw(b"", tf.int8, bytes=b"")


def test_base64():
    assert tf.io.encode_base64(["a?"]).numpy()[0] == b"YT8"
    assert tf.io.encode_base64("a?", pad=True) == b"YT8="
    assert tf.io.decode_base64("YT8=") == b"a?"
