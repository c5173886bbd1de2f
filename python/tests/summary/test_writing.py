"""What tf.summary writes, and where: expected values are TensorFlow's."""

import glob
import os

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1
summary = tf.summary


def events(folder):
    """The events of a folder's only file, without the first."""
    (path,) = glob.glob(os.path.join(str(folder), "*tfevents*"))
    return list(v1.train.summary_iterator(path))[1:]


def values(folder):
    return [v for e in events(folder) for v in e.summary.value]


@pytest.fixture
def writer(tmp_path):
    made = summary.create_file_writer(str(tmp_path))
    yield made
    summary.experimental.set_step(None)
    made.close()


@pytest.mark.parametrize(
    "data, buckets, rows",
    [
        ([1.0, 2.0, 2.0, 3.0], 2, [[1, 2, 1], [2, 3, 3]]),
        ([], 2, [[0, 0, 0], [0, 0, 0]]),
        ([3, 3], 3, [[3, 3, 0], [3, 3, 0], [3, 3, 2]]),
        ([1, 2], 2, [[1, 1.5, 1], [1.5, 2, 1]]),
        ([3.0, 1.0], 0, []),
        ([1.0], -1, []),
        ([float("nan"), 1.0], 1, [[np.nan, np.nan, 0]]),
    ],
)
def test_histograms(tmp_path, writer, data, buckets, rows):
    with writer.as_default(step=1):
        assert summary.histogram("h", data, buckets=buckets, description="d")
        summary.histogram("traced", tf.constant(data, tf.float32), buckets=buckets)
    eager, traced = values(tmp_path)
    found = tf.make_ndarray(eager.tensor)
    assert found.dtype == np.float64 and found.shape == (len(rows), 3)
    np.testing.assert_array_equal(found, np.reshape(rows, [-1, 3]))
    assert eager.metadata.plugin_data.plugin_name == "histograms"
    assert eager.metadata.summary_description == "d"
    np.testing.assert_array_equal(tf.make_ndarray(traced.tensor), found)


def test_numbers_and_texts(tmp_path, writer):
    with writer.as_default(step=1):
        with tf.name_scope("sc"):
            assert summary.scalar("s", 1, description="hi")
        summary.text("t", [["a", "b"], ["c", "d"]])
        with pytest.raises(ValueError, match=r"Expected scalar shape, saw shape: \(1,"):
            summary.scalar("x", [1.0])
        with pytest.raises(TypeError, match="must be of type tf.string; got tf.int32"):
            summary.text("x", 3)
    number, text = values(tmp_path)
    # TensorFlow leaves the class of data open.
    assert number.metadata.SerializeToString() == b"\n\t\n\x07scalars\x1a\x02hi"
    assert number.tag == "sc/s" and tf.make_ndarray(number.tensor) == np.float32(1)
    assert tf.make_ndarray(text.tensor).tolist() == [[b"a", b"b"], [b"c", b"d"]]


def test_steps(tmp_path, writer):
    step = tf.Variable(1, dtype=tf.int64)

    @tf.function
    def traced():
        with writer.as_default():
            summary.write("tag", 1.0)

    with writer.as_default(step=1):
        summary.write("tag", 1.0)
        with writer.as_default(step=step):
            step.assign(7)
            traced()
            step.assign(8)
            traced()
        with writer.as_default():
            summary.experimental.set_step(3)
        summary.write("tag", 1.0)
        for wrong in (tf.constant(3), tf.Variable(3), tf.constant(1.5)):
            with pytest.raises(ValueError, match="int64"):
                summary.write("tag", 1.0, step=wrong)
        with pytest.raises(ValueError, match="`step` must be a scalar"):
            summary.write("tag", 1.0, step=tf.constant([1, 2], tf.int64))
    assert summary.experimental.get_step() is None
    with writer.as_default(), pytest.raises(ValueError, match="No step set"):
        summary.write("tag", 1.0)
    assert [e.step for e in events(tmp_path)] == [1, 7, 8, 3]


def test_conditions(tmp_path, writer):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def traced(step):
        with writer.as_default(), summary.record_if(step % 2 == 0):
            return summary.should_record_summaries(), summary.write("t", 1, step=step)

    for step in range(4):
        found, written = traced(step)
        assert bool(found) == bool(written) == (step % 2 == 0)
    flag = tf.Variable(False)
    with writer.as_default(step=9), summary.record_if(flag):
        assert not summary.write("t", 1) and not summary.should_record_summaries()
        flag.assign(True)
        assert summary.write("t", 1) and summary.should_record_summaries()
        with summary.record_if(lambda: False):
            assert not summary.experimental.write_raw_pb(b"")
        with summary.record_if("x"), pytest.raises(TypeError, match="bool"):
            summary.should_record_summaries()
    assert [e.step for e in events(tmp_path)] == [0, 2, 9]
    with summary.record_if(True):
        assert not summary.should_record_summaries()  # there is no writer


def test_protos(tmp_path, writer):
    protos = [v1.Summary() for _ in range(2)]
    for i, proto in enumerate(protos):
        for _ in range(i + 1):
            proto.value.add(tag=f"t{i}", simple_value=i)
    data = [p.SerializeToString() for p in protos]
    with writer.as_default(step=4):
        assert summary.experimental.write_raw_pb(data)
        assert summary.experimental.write_raw_pb(tf.constant(data[0]), step=5)
        with pytest.raises(tf.errors.DataLossError, match="Bad tf.compat.v1.Summary"):
            summary.experimental.write_raw_pb("notaproto")
    both, one = events(tmp_path)  # several are one event
    assert [v.tag for v in both.summary.value] == ["t0", "t1", "t1"]
    assert one.summary == protos[0] and (both.step, one.step) == (4, 5)


@pytest.mark.parametrize(
    "name, tag, scope",
    [
        ("f?o", "q/f?o", "q/fo/"),
        ("???", "q/???", "q/summary/"),
        ("a b:c", "q/a b:c", "q/abc/"),
        ("with/slash", "q/with/slash", "q/with/slash/"),
        (None, "q/summary", "q/summary/"),
    ],
)
def test_scopes(name, tag, scope):
    with tf.name_scope("q"):
        with summary.experimental.summary_scope(name) as found:
            assert found == (tag, scope)
    with tf.Graph().as_default(), tf.name_scope("q"):
        for _ in range(2):  # tags are not made unique
            with summary.experimental.summary_scope(name) as (found, _):
                assert found == tag


def test_names_of_operations(writer):
    @tf.function
    def f():
        nowhere = summary.write("tag", 42, step=12, name="nowhere")
        with writer.as_default():
            written = summary.write("tag", 42, step=12, name="there")
        return nowhere.name, written.name

    scopes = [x.numpy().decode().split("/")[0] for x in f()]
    assert scopes == ["nowhere", "there"]


def test_sessions(tmp_path):
    with tf.Graph().as_default() as graph:
        writer = summary.create_file_writer(str(tmp_path))
        step = v1.get_variable("step", [], tf.int64, v1.zeros_initializer())
        with writer.as_default(step=step):
            write = summary.write("tag", 1.0)
            raw = summary.experimental.write_raw_pb(b"", step=1)
            with summary.record_if(False):
                none = summary.write("tag", 1.0)
            assert v1.summary.all_v2_summary_ops() == [write, raw, none]
            with pytest.raises(ValueError, match="Argument `session must be passed"):
                v1.summary.initialize()
            with v1.Session() as session:
                session.run(step.initializer)
                v1.summary.initialize(graph=graph)
                assert session.run([write, raw, none]) == [True, True, False]
                session.run(step.assign_add(5))
                session.run(write)
                session.run(summary.flush())
                session.run(writer.close())
        with pytest.raises(RuntimeError, match="No default .*SummaryWriter found"):
            v1.summary.initialize()
    found = events(tmp_path)
    assert [(e.WhichOneof("what"), e.step) for e in found] == [
        ("graph_def", 0),
        ("summary", 0),
        ("summary", 1),
        ("summary", 5),
    ]
    assert v1.summary.initialize() is None and v1.summary.all_v2_summary_ops() is None
