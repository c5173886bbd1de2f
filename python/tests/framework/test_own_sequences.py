"""Tensors of programs' own sequences. Values are TensorFlow's."""

from unittest import mock

import pytest

import headrace as tf


class Three:
    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def test_items_are_read():
    assert tf.constant(Three(1, 2, 3)).numpy().tolist() == [1, 2, 3]
    found = tf.convert_to_tensor(Three(1, 2), tf.float32)
    assert found.dtype == tf.float32 and found.numpy().tolist() == [1.0, 2.0]
    assert tf.add(Three(1, 2, 3), 1).numpy().tolist() == [2, 3, 4]
    assert tf.convert_to_tensor(mock.MagicMock()).shape == (0,)


def test_what_is_no_sequence_is_refused():
    class Long:
        def __len__(self):
            return 2

    held = Three()
    held.items = [held, held]
    for value in (Long(), mock.Mock(), held):
        with pytest.raises(ValueError):
            tf.constant(value)
