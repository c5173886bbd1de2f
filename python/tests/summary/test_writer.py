"""Summary writers: their files, their lives, saved models."""

import glob
import os

import pytest

import headrace as tf

summary = tf.summary


def files(folder):
    return sorted(glob.glob(os.path.join(str(folder), "*tfevents*")))


def steps(path):
    return [e.step for e in tf.compat.v1.train.summary_iterator(path)][1:]


def test_files_of_one_second_differ(tmp_path):
    writers = [summary.create_file_writer(tmp_path) for _ in range(5)]
    assert len(files(tmp_path)) == 5
    for number, writer in enumerate(writers):
        with writer.as_default(step=number):
            summary.scalar("x", 1.0)
    assert sorted(steps(p) for p in files(tmp_path)) == [[i] for i in range(5)]
    assert all(p.endswith(".v2") for p in files(tmp_path))
    with tf.Graph().as_default():
        writer = summary.create_file_writer(str(tmp_path / "g"), filename_suffix=".x")
        with tf.compat.v1.Session() as session:
            for _ in range(5):
                session.run(writer.init())
                session.run(writer.close())
    assert len(files(tmp_path / "g")) == 5 and files(tmp_path / "g")[0].endswith(".x")


def test_waits_and_flushes(tmp_path):
    writer = summary.create_file_writer(str(tmp_path), max_queue=1)
    (path,) = files(tmp_path)
    with writer.as_default(step=1):
        summary.scalar("x", 1.0)
        assert steps(path) == []
        summary.scalar("x", 1.0)
        assert steps(path) == [1, 1]
        summary.scalar("x", 1.0)
        summary.flush()
        assert len(steps(path)) == 3
        summary.scalar("x", 1.0)
    assert len(steps(path)) == 4  # the end of the block flushes
    with pytest.raises(ValueError, match=r"Invalid argument to flush\(\): \(\)"):
        summary.flush(writer=())


def test_closed_writers(tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    assert writer.init() is None and writer.flush() is None
    writer.close()
    writer.close()
    writer.flush()
    for use in (writer.init, writer.set_as_default, writer.as_default().__enter__):
        with pytest.raises(RuntimeError, match="SummaryWriter .* is already closed"):
            use()


def test_the_file_ends_with_the_writer(tmp_path):
    def is_open():
        links = glob.glob("/proc/self/fd/*")
        return any(os.path.realpath(x).startswith(str(tmp_path)) for x in links)

    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default(step=1):
        summary.scalar("x", 1.0)
    assert is_open() or not os.path.isdir("/proc/self/fd")
    del writer
    assert not is_open()


def test_no_writer_is_transparent(tmp_path):
    assert isinstance(summary.create_file_writer(None), summary.SummaryWriter)
    writer, nowhere = (
        summary.create_file_writer(str(tmp_path)),
        summary.create_noop_writer(),
    )
    nowhere.init()
    with writer.as_default(step=1):
        with nowhere.as_default(step=2):
            assert summary.write("x", 1)
        nowhere.set_as_default()
        assert summary.write("x", 1)
    nowhere.flush()
    nowhere.close()
    with nowhere.as_default():
        assert not summary.write("x", 1)
    assert steps(*files(tmp_path)) == [1, 1]


def test_made_in_functions(tmp_path):
    made = []

    @tf.function
    def f():
        if not made:
            made.append(summary.create_file_writer(str(tmp_path)))
        with made[0].as_default():
            summary.write("x", 1, step=1)

    f()
    f()
    assert steps(*files(tmp_path)) == [1, 1]

    @tf.function
    def of_its_own():
        with summary.create_file_writer(str(tmp_path)).as_default():
            pass

    with pytest.raises(tf.errors.NotFoundError, match="does not exist"):
        of_its_own()


def test_wrong_arguments(tmp_path):
    with tf.Graph().as_default():
        folder = tf.constant(str(tmp_path))
    with pytest.raises(
        ValueError, match="Invalid graph Tensor argument 'logdir=Tensor"
    ):
        summary.create_file_writer(folder)
    with pytest.raises(TypeError, match="Cannot convert 5 to EagerTensor of dtype str"):
        summary.create_file_writer(5)
    with pytest.raises(
        TypeError, match="Cannot convert 'x' to EagerTensor of dtype in"
    ):
        summary.create_file_writer(str(tmp_path), max_queue="x")
    with pytest.raises(tf.errors.InvalidArgumentError, match="logdir must be a scalar"):
        summary.create_file_writer(["a", "b"])
    with pytest.raises(NotImplementedError, match="experimental_mesh"):
        summary.create_file_writer(str(tmp_path), experimental_mesh=object())


class Model(tf.Module):
    def __init__(self, logdir):
        self._writer = summary.create_file_writer(logdir, experimental_trackable=True)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def train(self, step):
        with self._writer.as_default():
            summary.write("tag", "foo", step=step)
        return tf.constant(0)


def test_saved_models_begin_files_of_their_own(tmp_path):
    logs, path = str(tmp_path / "logs"), str(tmp_path / "model")
    model = Model(logs)
    tf.saved_model.save(model, path, signatures={"train": model.train})
    for number in (1, 3):
        loaded = tf.saved_model.load(path)
        loaded.train(number)
        loaded.train(number + 1)
    assert sorted(steps(p) for p in files(logs)) == [[], [1, 2], [3, 4]]
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        found = v1.saved_model.load(session, ["serve"], path).signature_def["train"]
        (given,), (gives,) = found.inputs.values(), found.outputs.values()
        session.run(gives.name, {given.name: 5})
    assert sorted(steps(p) for p in files(logs)) == [[], [1, 2], [3, 4], [5]]


def test_iterators_go_on_where_a_file_grew(tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    found = tf.compat.v1.train.summary_iterator(*files(tmp_path))
    assert next(found).file_version == "brain.Event:2"
    for step in (1, 2):
        with pytest.raises(StopIteration):
            next(found)
        with writer.as_default(step=step):
            summary.scalar("x", 1.0)
        assert next(found).step == step


def test_writers_of_handles(tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    other = summary.SummaryWriter(writer._resource)  # what versions before had
    with other.as_default(step=4):
        summary.scalar("x", 1.0)
    assert steps(*files(tmp_path)) == [4]
    with pytest.raises(NotImplementedError, match="has nothing to write to"):
        summary.SummaryWriter().flush()
