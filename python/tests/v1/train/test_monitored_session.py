"""Hooks, scaffolds and monitored sessions of tf.compat.v1.train."""

import os

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
train = v1.train


@pytest.fixture
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.fixture
def step(graph):
    """An operation that counts."""
    counter = train.get_or_create_global_step()
    return counter.assign_add(1)


def files(folder):
    return sorted(f for f in os.listdir(folder) if "events" not in f)


def events(folder):
    paths = [f for f in os.listdir(folder) if "events" in f]
    return [e for p in paths for e in train.summary_iterator(os.path.join(folder, p))]


def run_all(session, fetch):
    while not session.should_stop():
        session.run(fetch)


class Recorder(train.SessionRunHook):
    def __init__(self, fetches=None, feeds=None):
        self.calls, self.results = [], []
        self._args = train.SessionRunArgs(fetches, feeds)

    def begin(self):
        self.calls.append("begin")

    def after_create_session(self, session, coord):
        self.calls.append("session")

    def before_run(self, run_context):
        self.calls.append("before")
        return self._args

    def after_run(self, run_context, run_values):
        self.calls.append("after")
        self.results.append(run_values.results)

    def end(self, session):
        self.calls.append("end")


def test_global_step(graph):
    assert train.get_global_step() is None
    step = train.create_global_step()
    assert step.name == "global_step:0" and step.dtype == tf.int64
    assert train.get_global_step() is step
    assert train.get_or_create_global_step() is step
    with pytest.raises(ValueError, match="already exists"):
        train.create_global_step()
    with v1.Session() as session:
        session.run(step.initializer)
        assert train.global_step(session, step) == 0


def test_hooks_are_called_around_runs(step):
    hook = Recorder(fetches={"twice": tf.constant(2) * 2})
    with train.MonitoredSession(hooks=[hook]) as session:
        assert session.run(step) == 1
        assert session.run([step])[0] == 2
    assert hook.calls == ["begin", "session", *["before", "after"] * 2, "end"]
    assert hook.results == [{"twice": 4}] * 2


def test_no_end_after_an_error(step):
    hook = Recorder()
    with pytest.raises(KeyError):
        with train.MonitoredSession(hooks=[hook]):
            raise KeyError("x")
    assert "end" not in hook.calls


def test_the_end_of_input_is_no_error(graph):
    element = v1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
    hook, seen = Recorder(), []
    with train.MonitoredSession(hooks=[hook]) as session:
        while not session.should_stop():
            seen.append(session.run(element))
    assert seen == [0, 1, 2]
    assert hook.calls.count("after") == 3


def test_feeds_of_hooks_and_users(graph):
    a = v1.placeholder(tf.float32, [])
    b = v1.placeholder(tf.float32, [])
    total = a + b
    hook = train.FeedFnHook(lambda: {a: 2.0})
    with train.MonitoredSession(hooks=[hook]) as session:
        assert session.run(total, {b: 3.0}) == 5.0
        with pytest.raises(RuntimeError, match="fed by a SessionRunHook and user"):
            session.run(total, {a: 1.0, b: 3.0})
    with train.MonitoredSession(hooks=[hook, train.FeedFnHook(lambda: {a: 1.0})]) as s:
        with pytest.raises(RuntimeError, match="fed by two hooks"):
            s.run(a)


def test_stops_at_steps(step):
    with train.MonitoredSession(hooks=[train.StopAtStepHook(last_step=3)]) as session:
        run_all(session, step)
        with pytest.raises(RuntimeError, match="after should_stop"):
            session.run(step)
    with pytest.raises(RuntimeError, match="already closed"):
        session.run(step)
    with pytest.raises(ValueError, match="Only one of"):
        train.StopAtStepHook(1, 2)


def test_a_nan_loss_stops(step):
    loss = tf.cast(step, tf.float32) * np.nan
    with pytest.raises(train.NanLossDuringTrainingError, match="NaN loss"):
        with train.MonitoredSession(hooks=[train.NanTensorHook(loss)]) as session:
            session.run(step)
    hook = train.NanTensorHook(loss, fail_on_nan_loss=False)
    with train.MonitoredSession(hooks=[hook]) as session:
        session.run(step)
        assert session.should_stop()


def test_final_operations(step):
    hook = train.FinalOpsHook({"step": train.get_global_step()})
    with train.MonitoredSession(hooks=[hook]) as session:
        session.run(step)
    assert hook.final_ops_values == {"step": 1}


def test_logs_tensors(step, caplog, monkeypatch):
    monkeypatch.setattr(tf.get_logger(), "propagate", True)
    half = tf.cast(step, tf.float32) / 2
    hooks = [
        train.LoggingTensorHook({"half": half, "step": step}, every_n_iter=2),
        train.LoggingTensorHook([half], at_end=True, formatter=lambda v: f"{len(v)}!"),
    ]
    with caplog.at_level("INFO"), train.MonitoredSession(hooks=hooks) as session:
        for _ in range(3):
            session.run(step)
    lines = [r.getMessage() for r in caplog.records]
    assert "half = 0.5, step = 1" in lines
    assert any(x.startswith("half = 1.5, step = 3 (") for x in lines)
    assert "1!" in lines


def test_training_sessions_save_and_go_on(tmp_path):
    folder = str(tmp_path / "t")
    for first, last in ((0, 3), (3, 5)):
        with tf.Graph().as_default():
            step = train.get_or_create_global_step().assign_add(1)
            v1.summary.scalar("square", tf.cast(step, tf.float32) ** 2)
            with train.MonitoredTrainingSession(
                checkpoint_dir=folder,
                save_checkpoint_steps=2,
                save_summaries_steps=1,
                log_step_count_steps=1,
                hooks=[train.StopAtStepHook(last_step=last)],
            ) as session:
                assert session.run(train.get_global_step()) == first
                run_all(session, step)
    assert tf.train.latest_checkpoint(folder) == os.path.join(folder, "model.ckpt-5")
    assert tf.train.load_variable(folder, "global_step") == 5
    found = files(folder)
    assert {"checkpoint", "graph.pbtxt", "model.ckpt-5.meta"} <= set(found)
    values = {
        (v.tag, e.step): v.simple_value for e in events(folder) for v in e.summary.value
    }
    assert values["square", 5] == 25.0
    assert any(tag == "global_step/sec" for tag, _ in values)


def test_listeners(step, tmp_path):
    calls = []

    class Listener(train.CheckpointSaverListener):
        def begin(self):
            calls.append("begin")

        def before_save(self, session, global_step_value):
            calls.append(("before", int(global_step_value)))

        def after_save(self, session, global_step_value):
            calls.append(("after", int(global_step_value)))
            return global_step_value == 2

        def end(self, session, global_step_value):
            calls.append(("end", int(global_step_value)))

    hook = train.CheckpointSaverHook(tmp_path, save_steps=2, listeners=[Listener()])
    with train.MonitoredSession(hooks=[hook]) as session:
        run_all(session, step)
    assert calls == [
        "begin",
        ("before", 0),
        ("after", 0),
        ("before", 2),
        ("after", 2),
        ("end", 2),
    ]
    with pytest.raises(ValueError, match="both saver and scaffold"):
        train.CheckpointSaverHook(
            tmp_path, save_steps=1, saver=1, scaffold=train.Scaffold()
        )


def test_summaries_by_a_hook(step, tmp_path):
    summary = v1.summary.histogram("spread", tf.constant([1.0, 2.0, 3.0]))
    hook = train.SummarySaverHook(save_steps=2, output_dir=tmp_path, summary_op=summary)
    with train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(3):
            session.run(step)
    found = [(e.step, v.histo) for e in events(tmp_path) for v in e.summary.value]
    assert [s for s, _ in found] == [1, 3]
    histogram = found[0][1]
    assert (histogram.min, histogram.max, histogram.num) == (1, 3, 3)
    assert (histogram.sum, histogram.sum_squares) == (6, 14)
    assert sum(histogram.bucket) == 3


def test_scaffolds(graph):
    v = v1.get_variable("v", initializer=1.0)
    done = []
    scaffold = train.Scaffold(
        init_fn=lambda s, session: done.append(session.run(v)),
        local_init_op=v.assign(5.0).op,
    )
    creator = train.ChiefSessionCreator(scaffold)
    with train.MonitoredSession(creator) as session:
        assert session.run(v) == 5.0
        assert graph.finalized
        assert scaffold.saver is not None and scaffold.init_op.type == "NoOp"
    assert done == [1.0]
    assert not graph.finalized


def test_a_graph_that_is_not_ready(graph):
    v1.get_variable("v", initializer=1.0)
    creator = train.ChiefSessionCreator(train.Scaffold(init_op=tf.no_op()))
    with pytest.raises(RuntimeError, match="Variables not initialized: v"):
        train.MonitoredSession(creator)


class Losing(train.SessionRunHook):
    """Loses the session behind its first run."""

    lost = 0

    def after_run(self, run_context, run_values):
        if not self.lost:
            self.lost = 1
            raise tf.errors.AbortedError(None, None, "gone")


def test_lost_sessions_outside_of_their_graph_s_scope_are_made_anew():
    with tf.Graph().as_default():
        step = train.get_or_create_global_step().assign_add(1)
        session = train.MonitoredSession(hooks=[Losing()])
    assert session.run(step) == 1  # the second session's first
    session.close()


def test_lost_sessions_are_made_anew(step):
    with train.MonitoredSession(hooks=[Losing()]) as session:
        assert session.run(step) == 1  # the second session's first
    with pytest.raises(tf.errors.AbortedError):
        with train.SingularMonitoredSession(hooks=[Losing()]) as session:
            session.run(step)


def test_step_functions(step):
    with train.SingularMonitoredSession() as session:
        assert session.raw_session().run(step) == 1
        assert (
            session.run_step_fn(lambda step_context: step_context.session.run(step))
            == 2
        )

        def stop(step_context):
            step_context.run_with_hooks(step)
            step_context.request_stop()

        with pytest.raises(ValueError, match="step_context"):
            session.run_step_fn(lambda x: x)
        session.run_step_fn(stop)
        raise AssertionError("request_stop leaves the block")


def test_coordinators():
    coordinator = train.Coordinator()
    turns = []
    looper = train.LooperThread.loop(coordinator, 0.001, lambda: turns.append(1))
    while len(turns) < 3:
        pass
    coordinator.request_stop()
    coordinator.join([looper])
    assert coordinator.should_stop() and coordinator.joined

    coordinator = train.Coordinator()
    with coordinator.stop_on_exception():
        raise KeyError("lost")
    with pytest.raises(KeyError, match="lost"):
        coordinator.join()


def test_summaries_are_messages(graph):
    with v1.Session() as session:
        one = v1.summary.scalar("a b", tf.constant(2.0))
        both = v1.summary.merge([one, v1.summary.scalar("c", tf.constant(3))])
        message = v1.Summary.FromString(session.run(both))
        assert [(v.tag, v.simple_value) for v in message.value] == [
            ("a_b", 2.0),
            ("c", 3.0),
        ]
        assert v1.summary.merge_all() is not None
        twice = v1.summary.merge([one, one])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Duplicate tag a_b"):
            session.run(twice)
        bad = v1.summary.histogram("h", tf.constant(np.nan))
        with pytest.raises(tf.errors.InvalidArgumentError, match="Nan in summary"):
            session.run(bad)


def test_init_from_checkpoint(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("old/w", initializer=[1.0, 2.0])
        session.run(v1.global_variables_initializer())
        path = train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("new/w", initializer=[0.0, 0.0])
        train.init_from_checkpoint(str(tmp_path), {"old/": "new/"})
        session.run(v1.global_variables_initializer())
        assert session.run(w).tolist() == [1, 2]
        with pytest.raises(ValueError, match="not found in"):
            train.init_from_checkpoint(path, {"missing": w})


def test_variables_are_keys_in_graphs(graph, caplog):
    from headrace.framework.settings.logging import get_logger

    get_logger().propagate = True
    w, other = v1.get_variable("w", initializer=1.0), v1.get_variable("u", [])
    assert w == w and w != other and w in [other, w] and {w: 1}[w] == 1
    hooks = [
        train.LoggingTensorHook({"z": w, "a": w * 3.0}, every_n_iter=1),
        train.LoggingTensorHook([w], every_n_iter=1),
    ]
    with train.SingularMonitoredSession(hooks) as session:
        assert session.run(w, feed_dict={w: 5.0}) == 5.0
    assert "a = 3.0, z = 5.0" in caplog.text
    assert "<tf.Variable 'w:0' shape=() dtype=float32> = 5.0" in caplog.text


def test_saver_makes_its_folder_but_none_above(graph, tmp_path):
    v1.get_variable("w", initializer=1.0)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        path = str(tmp_path / "made" / "c")
        assert train.Saver().save(session, path) == path
        for deep in (tmp_path / "no" / "such" / "c", tmp_path / "made/c.index" / "c"):
            with pytest.raises(ValueError, match="Parent directory of .* can't save"):
                train.Saver().save(session, str(deep))


def test_summaries_come_every_so_many_steps_by_reference_too(tmp_path):
    v1.disable_resource_variables()
    try:
        with tf.Graph().as_default():
            v = v1.get_variable("v", initializer=0.0)
            v1.summary.scalar("v", v)
            step = train.get_or_create_global_step()
            both = tf.group(v.assign_add(1.0), step.assign_add(1))
            with train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path),
                save_summaries_steps=4,
                save_checkpoint_steps=100,
                log_step_count_steps=None,
            ) as session:
                for _ in range(10):
                    session.run(both)
    finally:
        v1.enable_resource_variables()
    (name,) = tmp_path.glob("events*")
    steps = [e.step for e in train.summary_iterator(str(name)) if e.summary.value]
    assert steps == [1, 5, 9]  # as of TensorFlow 2.21
