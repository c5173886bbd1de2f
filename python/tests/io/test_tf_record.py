"""Record and event files."""

import json
import os

import headrace as tf
import pytest

GOLDEN = os.path.join(os.path.dirname(__file__), "../../../tests/golden/records")
RECORDS = [b"", b"a", b"hello world", bytes(range(256)), b"x" * 70000]
RECORDS += ["ünïcode".encode(), b"\0" * 5]
FORMATS = {"plain": None, "gzip": "GZIP", "zlib": "ZLIB"}
iterate = tf.compat.v1.python_io.tf_record_iterator


@pytest.mark.parametrize("name", FORMATS)
def test_files_of_tensorflow(name):
    assert list(iterate(f"{GOLDEN}/{name}.tfrecord", FORMATS[name])) == RECORDS


@pytest.mark.parametrize("name", FORMATS)
def test_written_and_read(name, tmp_path):
    path = tmp_path / "r"
    options = tf.io.TFRecordOptions(FORMATS[name])
    with tf.io.TFRecordWriter(path, options) as writer:
        for record in RECORDS:
            writer.write(record)
        writer.flush()
    assert list(iterate(path, options)) == RECORDS
    if name == "plain":
        with open(f"{GOLDEN}/plain.tfrecord", "rb") as golden:
            assert path.read_bytes() == golden.read()


def test_zlib_options(tmp_path):
    sizes = {}
    for level in (0, 9):
        options = tf.io.TFRecordOptions(
            "GZIP", compression_level=level, window_bits=31, mem_level=1
        )
        with tf.io.TFRecordWriter(str(tmp_path / "r"), options) as writer:
            writer.write("x" * 10000)
        sizes[level] = (tmp_path / "r").stat().st_size
        assert list(iterate(tmp_path / "r", "GZIP")) == [b"x" * 10000]
    assert sizes[9] < 200 and sizes[0] > 10000
    bad = tf.io.TFRecordOptions("GZIP", compression_level=19)
    with pytest.raises(tf.errors.InvalidArgumentError, match="level of 19"):
        tf.io.TFRecordWriter(str(tmp_path / "r"), bad)


def test_errors(tmp_path):
    with pytest.raises(ValueError, match='Not a valid compression_type: "foo"'):
        tf.io.TFRecordOptions("foo")
    with pytest.raises(tf.errors.NotFoundError):
        tf.io.TFRecordWriter(str(tmp_path / "no" / "r"))
    writer = tf.io.TFRecordWriter(str(tmp_path / "r"))
    with pytest.raises(TypeError):
        writer.write(3)
    writer.close()
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="Writer is closed"):
        writer.write(b"b")


def test_cut_and_damaged(tmp_path):
    path = tmp_path / "r"
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"x" * 100)
        writer.write(b"y" * 100)
    whole = path.read_bytes()
    path.write_bytes(whole[:-110])  # within the second header
    assert list(iterate(path)) == [b"x" * 100]
    path.write_bytes(whole[:-50])
    with pytest.raises(tf.errors.DataLossError, match="truncated record at 116"):
        list(iterate(path))
    path.write_bytes(whole[:40] + b"?" + whole[41:])
    with pytest.raises(tf.errors.DataLossError, match="corrupted record at 0"):
        list(iterate(path))


@pytest.mark.parametrize("name", ["events_v1", "events_v2"])
def test_events(name):
    with open(f"{GOLDEN}/events.json") as f:
        facts = json.load(f)[name]
    events = list(tf.compat.v1.train.summary_iterator(f"{GOLDEN}/{name}.tfevents"))
    assert [e.step for e in events] == [f["step"] for f in facts]
    for event, fact in zip(events, facts):
        tags = [v.tag for v in event.summary.value]
        assert tags == [v["tag"] for v in fact.get("values", [])]
