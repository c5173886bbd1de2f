import subprocess
import sys
import textwrap

import headrace as tf
import pytest

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
    assert (done.returncode, done.stdout) == (143, "")
    path = tf.train.latest_checkpoint(str(tmp_path))
    assert tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE") == 9


def test_what_is_refused(tmp_path):
    checkpoint = tf.train.Checkpoint()
    make = experimental.PreemptionCheckpointHandler
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="`checkpoint_dir` is wanted"
    ):
        make(RESOLVER, checkpoint)
    two = tf.train.ClusterSpec({"worker": ["a:1", "b:2"]})
    two = tf.distribute.cluster_resolver.SimpleClusterResolver(two)
    with pytest.raises(tf.errors.UnimplementedError, match="of several tasks"):
        make(two, checkpoint, str(tmp_path))
    watcher = experimental.PreemptionWatcher()
    assert watcher.preemption_message is None
    with pytest.raises(tf.errors.UnimplementedError, match="block_until_worker_exit"):
        watcher.block_until_worker_exit()
