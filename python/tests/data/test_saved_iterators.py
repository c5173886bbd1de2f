"""Iterators in checkpoints: the exact place, damage, and other datasets."""

import headrace as tf
import pytest


def _dataset():
    return tf.data.Dataset.range(20).shuffle(6, seed=1).batch(3).prefetch(2)


def _values(it):
    return [x.numpy().tolist() for x in it]


def test_an_iterator_goes_on_where_it_was(tmp_path):
    it = iter(_dataset())
    for _ in range(3):
        next(it)
    path = tf.train.Checkpoint(it=it).write(str(tmp_path / "c"))
    rest = _values(it)
    again = iter(_dataset())
    next(again)
    tf.train.Checkpoint(it=again).read(path).assert_consumed()
    assert _values(again) == rest
    stored = dict(tf.train.list_variables(path))
    assert "it/.ATTRIBUTES/ITERATOR_STATE" in stored


def test_strings_and_nests(tmp_path):
    d = tf.data.Dataset.from_tensor_slices({"a": ["x", "yy", "zzz"], "b": [1, 2, 3]})
    it = iter(d.shuffle(3, seed=4))
    next(it)
    path = tf.train.Checkpoint(it=it).write(str(tmp_path / "c"))
    rest = [e["a"].numpy() for e in it]
    again = iter(d.shuffle(3, seed=4))
    tf.train.Checkpoint(it=again).read(path)
    assert [e["a"].numpy() for e in again] == rest


def test_a_cut_state_is_an_error(tmp_path):
    it = iter(_dataset())
    next(it)
    path = tf.train.Checkpoint(it=it).write(str(tmp_path / "c"))
    data = tmp_path / "c.data-00000-of-00001"
    whole = data.read_bytes()
    for at in range(0, len(whole), 97):
        flipped = bytearray(whole)
        flipped[at] ^= 0x5A
        data.write_bytes(bytes(flipped))
        again = iter(_dataset())
        with pytest.raises((tf.errors.DataLossError, ValueError)):
            tf.train.Checkpoint(it=again).read(path).assert_consumed()
