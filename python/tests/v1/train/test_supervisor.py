"""tf.compat.v1.train.Supervisor and basic_train_loop, as TensorFlow 2.21's."""

import glob
import json
import os
import threading

import pytest

import headrace as tf

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def events(folder):
    """Of each event file the events."""
    paths = sorted(glob.glob(os.path.join(folder, "events*")))
    return [list(v1.train.summary_iterator(path)) for path in paths]


def trained():
    """(the step's tensor, what adds to it)."""
    step = v1.train.get_or_create_global_step()
    return step, v1.assign_add(step, 1)


def test_sessions_are_restored(tmp_path):
    step, more = trained()
    supervisor = v1.train.Supervisor(logdir=str(tmp_path), save_model_secs=0)
    assert supervisor.save_path == str(tmp_path / "model.ckpt")
    assert supervisor.init_op.name == "init" and supervisor.is_chief
    with supervisor.managed_session() as session:
        assert session.run(more) == 1
        supervisor.saver.save(session, supervisor.save_path, global_step=step)
    assert supervisor.should_stop()
    with supervisor.managed_session() as session:
        assert session.run(step) == 1
    assert (tmp_path / "graph.pbtxt").exists()
    with pytest.raises(RuntimeError, match="finalized"):
        tf.constant(1)


def test_events_of_a_session(tmp_path):
    trained()
    v1.summary.scalar("c", 2.0)
    merged = v1.summary.merge_all()
    supervisor = v1.train.Supervisor(logdir=str(tmp_path), summary_op=None)
    with supervisor.managed_session(start_standard_services=False) as session:
        supervisor.summary_computed(session, session.run(merged))
    (found,) = events(tmp_path)
    assert found[0].file_version == "brain.Event:2"
    assert found[1].graph_def and found[2].meta_graph_def
    assert found[3].summary.value[0].simple_value == 2 and found[3].step == 0
    assert found[4].session_log.status == found[4].session_log.STOP
    assert len(found) == 5


def test_services_save_and_write(tmp_path):
    trained()
    v1.summary.scalar("c", 2.0)
    supervisor = v1.train.Supervisor(
        logdir=str(tmp_path), save_model_secs=1, save_summaries_secs=1
    )
    with supervisor.managed_session(start_standard_services=False) as session:
        threads = supervisor.start_standard_services(session)
        assert len(threads) == 3
        supervisor.coord.wait_for_stop(1.5)
    assert v1.train.latest_checkpoint(str(tmp_path)) == f"{tmp_path}/model.ckpt-0"
    kinds = {
        value.tag for e in events(tmp_path)[0] for value in e.summary.value if e.summary
    }
    assert kinds >= {"c", "global_step/sec"}


def test_errors_end_a_session():
    supervisor = v1.train.Supervisor()
    with pytest.raises(ValueError, match="no"), supervisor.managed_session():
        raise ValueError("no")
    with supervisor.managed_session():
        raise tf.errors.OutOfRangeError(None, None, "all is read")
    assert supervisor.should_stop()


def test_queues_and_loops():
    queue = v1.train.range_input_producer(3, shuffle=False)
    row, turns = queue.dequeue(), []
    supervisor = v1.train.Supervisor()
    with supervisor.managed_session() as session:
        assert [session.run(row) for _ in range(4)] == [0, 1, 2, 0]
        looper = supervisor.loop(0.01, turns.append, args=[1])
        while len(turns) < 2:
            supervisor.coord.wait_for_stop(0.01)
        supervisor.request_stop()
        looper.join()


def test_training_loops():
    step, more = trained()
    supervisor = v1.train.Supervisor()
    given = []

    def turn(session, *args, **kwargs):
        given.append((args, kwargs))
        if session.run(more) == 3:
            supervisor.request_stop()

    v1.train.basic_train_loop(supervisor, turn, args=(1,), kwargs={"b": 2})
    assert given == [((1,), {"b": 2})] * 3

    def fail(session):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        v1.train.basic_train_loop(supervisor, fail)


def test_what_is_not_for_all(tmp_path):
    supervisor = v1.train.Supervisor()
    assert supervisor.save_path is supervisor.saver is supervisor.summary_op is None
    with pytest.raises(
        RuntimeError, match="Writing a summary requires a summary writer"
    ):
        supervisor.summary_computed(None, None)
    with tf.Graph().as_default():
        v1.get_variable("v", [1], use_resource=False)
        with pytest.raises(
            ValueError, match="all Variables must have their device set"
        ):
            v1.train.Supervisor(is_chief=False)
    with tf.Graph().as_default(), v1.Session() as session:
        other = v1.train.Supervisor(is_chief=False)
        with pytest.raises(RuntimeError, match="Only chief supervisor can start"):
            other.start_standard_services(session)


def test_not_eager():
    refused = []

    def ask():  # threads begin eager
        with pytest.raises(RuntimeError, match="incompatible with eager execution"):
            v1.train.Supervisor()
        refused.append(True)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert refused


def test_profiles_of_steps(tmp_path):
    step, more = trained()
    x = v1.placeholder(tf.float32, [2, 2], name="x")
    y = tf.matmul(tf.matmul(x, x, name="inner"), x, name="outer")
    hook = v1.train.ProfilerHook(
        save_steps=2, output_dir=str(tmp_path), show_memory=True
    )
    with v1.train.SingularMonitoredSession(hooks=[hook]) as session:
        for _ in range(5):
            session.run([more, y], {x: [[1.0, 2.0], [3.0, 4.0]]})
    names = [f"timeline-{n}.json" for n in (2, 4)]
    assert sorted(p.name for p in tmp_path.glob("timeline*")) == names
    found = json.loads((tmp_path / names[0]).read_text())["traceEvents"]
    ran = {e["args"]["name"] for e in found if e["ph"] == "X"}
    assert {"inner", "outer"} <= ran
    flows = [e for e in found if e.get("cat") == "DataFlow"]
    assert {e["ph"] for e in flows if e["name"] == "inner:0"} == {"s", "t"}
    tags = [e.tagged_run_metadata.tag for e in events(tmp_path)[0]]
    assert [tag for tag in tags if tag] == ["step_2", "step_4"]


def test_wrong_profiles(tmp_path):
    make = v1.train.ProfilerHook
    with pytest.raises(ValueError, match="Either every_secs or every_steps should be"):
        make()
    with pytest.raises(
        ValueError, match="Can not provide both every_secs and every_st"
    ):
        make(save_steps=1, save_secs=1)
    with pytest.raises(RuntimeError, match="should be created to use ProfilerHook."):
        make(save_steps=1, output_dir=str(tmp_path)).begin()
