"""tf.summary writes event files."""

import struct

import pytest

import headrace as tf


def _records(path):
    data = path.read_bytes()
    at = 0
    while at < len(data):
        (n,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12 : at + 12 + n]
        at += 16 + n


def test_scalars(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path / "logs"))
    with writer.as_default(step=5):
        assert bool(tf.summary.scalar("loss", 0.5))
        with tf.name_scope("train"):
            tf.summary.scalar("accuracy", 0.25, step=6)
        with tf.summary.record_if(False):
            assert not bool(tf.summary.scalar("never", 1.0))
    writer.close()
    (path,) = (tmp_path / "logs").iterdir()
    assert path.name.startswith("events.out.tfevents.")
    assert path.name.endswith(".v2")
    first, loss, accuracy = _records(path)
    assert b"brain.Event:2" in first
    assert b"loss" in loss
    assert b"scalars" in loss
    assert struct.pack("<f", 0.5) in loss
    assert b"train/accuracy" in accuracy
    with pytest.raises(RuntimeError, match="already closed"):
        writer.set_as_default()


def test_without_a_writer_or_step(tmp_path):
    assert not bool(tf.summary.scalar("x", 1.0, step=1))
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(), pytest.raises(ValueError, match="No step set"):
        tf.summary.scalar("x", 1.0)


def test_other_kinds(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(step=tf.Variable(1, dtype=tf.int64)):
        tf.summary.text("note", "hello")
        tf.summary.histogram("values", [1.0, 2.0, 2.0, 3.0], buckets=2)
        tf.summary.write("raw", tf.constant([1, 2]), metadata=None)
    (path,) = tmp_path.iterdir()
    assert len(list(_records(path))) == 4
