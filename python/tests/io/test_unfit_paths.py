"""Paths that the system would cut, or that it refuses: errors, and nothing written."""

import os

import headrace as tf
import pytest


def _nul_calls(folder):
    path, cut = f"{folder}/a\0b", f"{folder}/sub\0x"
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    data = tf.data.Dataset.range(2)
    yield lambda: tf.io.write_file(path, "x")
    yield lambda: tf.io.read_file(path)
    yield lambda: tf.io.TFRecordWriter(path)
    yield lambda: list(tf.data.TFRecordDataset(path))
    yield lambda: list(tf.data.TextLineDataset(path))
    yield lambda: tf.summary.create_file_writer(cut)
    yield lambda: c.save(path)
    yield lambda: c.write(path)
    yield lambda: c.restore(path)
    yield lambda: tf.train.load_checkpoint(path)
    yield lambda: tf.train.CheckpointManager(c, cut, max_to_keep=1).save()
    yield lambda: data.save(cut)
    yield lambda: tf.data.Dataset.load(cut)
    yield lambda: tf.io.gfile.GFile(path, "w").write("x")
    yield lambda: tf.io.gfile.makedirs(cut)
    yield lambda: list(data.cache(path))
    yield lambda: tf.raw_ops.ImmutableConst(
        dtype=tf.int8, shape=[1], memory_region_name=path
    )


def test_paths_with_nul(tmp_path):
    (tmp_path / "kept").mkdir()
    refused = ValueError, tf.errors.InvalidArgumentError, tf.errors.NotFoundError
    for number, call in enumerate(_nul_calls(tmp_path)):
        with pytest.raises(refused):
            call()
        assert os.listdir(tmp_path) == ["kept"], number


def test_folders_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    data = tf.data.Dataset.range(2)
    for call, error in [
        (lambda: data.save("/proc/no/such"), tf.errors.NotFoundError),
        (lambda: data.save(f"{tmp_path}/file"), tf.errors.FailedPreconditionError),
        (lambda: data.save(f"{tmp_path}/file/x"), tf.errors.FailedPreconditionError),
        (
            lambda: tf.data.Dataset.load(f"{tmp_path}/file"),
            tf.errors.FailedPreconditionError,
        ),
        (
            lambda: tf.io.gfile.makedirs(f"{tmp_path}/file/x"),
            tf.errors.FailedPreconditionError,
        ),
        (
            lambda: tf.io.gfile.makedirs(f"{tmp_path}/" + "d/" * 3000),
            tf.errors.InvalidArgumentError,
        ),
    ]:
        with pytest.raises(error):
            call()
    assert not os.path.exists(f"{tmp_path}/d")
    deep = f"{tmp_path}/" + "e/" * 1500
    tf.io.gfile.makedirs(deep)
    assert tf.io.gfile.isdir(deep)
    os.removedirs(deep)


def test_data_file_deleted(tmp_path):
    c = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0]))
    path = c.save(str(tmp_path / "c"))
    reader = tf.train.load_checkpoint(path)
    os.remove(path + ".data-00000-of-00001")
    with pytest.raises(tf.errors.NotFoundError, match="data-00000-of-00001"):
        reader.get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE")
    with pytest.raises(tf.errors.NotFoundError, match="data-00000-of-00001"):
        c.restore(path)
