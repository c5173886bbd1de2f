import subprocess
import sys
import textwrap

import headrace as tf
import pytest
import worker_programs

experimental = tf.distribute.experimental
RESOLVER = tf.distribute.cluster_resolver.SimpleClusterResolver(
    tf.train.ClusterSpec({})
)


def handler(folder, **config):
    v = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(v=v)
    told = experimental.TerminationConfig(**config)
    made = experimental.PreemptionCheckpointHandler(RESOLVER, checkpoint, folder, told)
    return v, made


def test_goes_on_where_it_was_told_to_end(tmp_path):
    ended = []
    never = lambda: False  # noqa: E731
    v, made = handler(
        tmp_path, termination_watcher_fn=never, exit_fn=lambda: ended.append(1)
    )
    for i in range(3):
        made.run(v.assign, i + 1)
    assert made.total_run_calls == 3 and not list(tmp_path.iterdir())
    made._tell()
    made.run(v.assign, 10)
    assert ended == [1] and tf.train.latest_checkpoint(str(tmp_path))
    again, made = handler(tmp_path, termination_watcher_fn=never)
    assert again.numpy() == 3 and made.total_run_calls == 3
    made.save_checkpoint_if_preempted()
    assert made.total_run_calls == 4


def test_a_program_that_gets_sigterm(tmp_path):
    program = f"""
    import os, signal
    import headrace as tf
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    v = tf.Variable(7)
    handler = tf.distribute.experimental.PreemptionCheckpointHandler(
        resolver, tf.train.Checkpoint(v=v), {str(tmp_path)!r}
    )
    handler.run(v.assign_add, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    with handler.watch_preemption_scope():
        v.assign_add(1)
    print("not reached")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (42, "")
    path = tf.train.latest_checkpoint(str(tmp_path))
    assert tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE") == 9


# Which of the workers gets the signal, and for how long all may go on.
@pytest.mark.parametrize(("told", "grace"), [(0, 0.0), (1, 0.0), (1, 0.5)])
def test_all_workers_end_behind_the_same_call(tmp_path, monkeypatch, told, grace):
    monkeypatch.setenv("FILES", str(tmp_path))
    monkeypatch.setenv("GRACE", str(grace))
    monkeypatch.setenv("TOLD", str(told))
    saved = 0
    for status in (42, 0):
        found = worker_programs.run("preempted", 2)
        assert [f["status"] for f in found] == [status] * 2
        assert [f["began"] for f in found] == [saved] * 2
        calls = {f["calls"] for f in found}
        assert len(calls) == 1
        if status == 42:
            (saved,) = calls
            assert saved == 5 if grace == 0.0 else 5 < saved < 1000
        monkeypatch.setenv("TOLD", "-1")
    assert found[0]["sum"] == found[1]["sum"] == 2.0 * (saved + 3)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "checkpoint",
        "ckpt-1.data-00000-of-00001",
        "ckpt-1.index",
    ]


def test_what_is_refused(tmp_path):
    checkpoint = tf.train.Checkpoint()
    make = experimental.PreemptionCheckpointHandler
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="`checkpoint_dir` is wanted"
    ):
        make(RESOLVER, checkpoint)
    for jobs, kind, text in (
        (
            {"worker": ["a:1"], "ps": ["b:2"]},
            NotImplementedError,
            "does not support usage with tf.distribute.experimental.ParameterServerStr",
        ),
        ({"ps": ["b:2"]}, NotImplementedError, "ParameterServerStrategy"),
        ({"worker": ["a:1", "b:2"]}, ValueError, "which one this is"),
    ):
        spec = tf.train.ClusterSpec(jobs)
        several = tf.distribute.cluster_resolver.SimpleClusterResolver(spec)
        with pytest.raises(kind, match=text):
            make(several, checkpoint, str(tmp_path))
    watcher = experimental.PreemptionWatcher()
    assert watcher.preemption_message is None
    with pytest.raises(tf.errors.UnimplementedError, match="block_until_worker_exit"):
        watcher.block_until_worker_exit()
