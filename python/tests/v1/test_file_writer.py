"""tf.compat.v1.summary.FileWriter: event files, by themselves and by sessions."""

import glob
import os

import pytest

import headrace as tf

v1 = tf.compat.v1


def one(tag="a"):
    made = v1.Summary()
    made.value.add(tag=tag, simple_value=1.0)
    return made


def events(folder):
    found = []
    for path in sorted(glob.glob(os.path.join(str(folder), "*"))):
        found += v1.train.summary_iterator(path)
    return [(e.WhichOneof("what"), e.step) for e in found]


@pytest.mark.parametrize("by_session", [False, True])
def test_writes(tmp_path, by_session):
    with tf.Graph().as_default() as graph, v1.Session() as session:
        given = {"session": session} if by_session else {}
        writer = v1.summary.FileWriter(str(tmp_path), **given)
        assert writer.get_logdir() == str(tmp_path)
        assert writer.event_writer.get_logdir() == str(tmp_path)
        writer.add_graph(graph)
        writer.add_summary(one(), 3)
        writer.add_summary(one().SerializeToString(), 4)
        writer.add_session_log(v1.SessionLog(status=v1.SessionLog.START), 5)
        writer.add_run_metadata(v1.RunMetadata(), "run", 6)
        with pytest.raises(ValueError, match="tag was already used for this event ty"):
            writer.add_run_metadata(v1.RunMetadata(), "run", 7)
        writer.flush()
        wanted = [("file_version", 0), ("graph_def", 0), ("summary", 3), ("summary", 4)]
        wanted += [("session_log", 5), ("tagged_run_metadata", 6)]
        assert events(tmp_path) == wanted
        writer.close()
        writer.close()
        with pytest.warns(
            UserWarning, match="use a closed FileWriter. The operation wi"
        ):
            writer.add_summary(one(), 8)
        with pytest.warns(
            UserWarning, match="unless the FileWriter is explicitly reop"
        ):
            writer.flush()
        assert len(events(tmp_path)) == 6
        writer.reopen()
        writer.add_summary(one(), 9)
        writer.close()
    assert len(os.listdir(tmp_path)) == 2
    assert events(tmp_path)[-1] == ("summary", 9)


def test_writers_of_one_session_and_folder_share_a_file(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        writers = [v1.summary.FileWriter(str(tmp_path), session=session) for _ in "ab"]
        for step, writer in enumerate(writers):
            writer.add_summary(one(), step)
        writers[0].close()
        with pytest.raises(tf.errors.NotFoundError):
            writers[1].flush()
    assert events(tmp_path) == [("file_version", 0), ("summary", 0), ("summary", 1)]


def test_wrong_arguments(tmp_path):
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        v1.summary.FileWriter(str(tmp_path))
    with tf.Graph().as_default():
        writer = v1.summary.FileWriter(str(tmp_path))
        with pytest.raises(
            TypeError, match="must be an instance of `Graph` or the depr"
        ):
            writer.add_graph(3)
        with pytest.raises(TypeError, match="must be type MetaGraphDef, saw type: <cl"):
            writer.add_meta_graph(3)
        with pytest.raises(AttributeError, match="no attribute 'graph'"):
            v1.summary.FileWriter(str(tmp_path), session=3)
        with pytest.raises(
            ValueError, match="to have dtype string, got <dtype: 'int32'"
        ):
            v1.summary.text("t", tf.constant(3))
        with pytest.raises(
            ValueError, match="List argument 'inputs' to 'MergeSummary'"
        ):
            v1.summary.merge([])
