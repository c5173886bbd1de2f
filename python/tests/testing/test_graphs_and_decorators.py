"""tf.test's assert_equal_graph_def and decorators; texts as TensorFlow 2.21 has them."""

import pytest

import headrace as tf


def _graph(value, name="a", kind=tf.int32):
    with tf.Graph().as_default() as graph:
        tf.identity(tf.constant(value, kind, name=name), name="b")
    return graph.as_graph_def()


def test_equal_graphs():
    same = tf.test.assert_equal_graph_def
    assert same(_graph(1), _graph(1)) is None
    with pytest.raises(AssertionError, match="Node named 'a' has attr 'value' with"):
        same(_graph(1), _graph(2))
    empty = tf.Graph().as_graph_def()
    with pytest.raises(AssertionError, match="Did not find expected node .*node a"):
        same(_graph(1), empty)
    with pytest.raises(AssertionError, match="Found unexpected node .*node a"):
        same(empty, _graph(1))
    changed = _graph(1)
    changed.node[1].op = "Snapshot"
    with pytest.raises(AssertionError, match="Node named 'b' has op 'Snapshot'"):
        same(_graph(1), changed)
    changed = _graph(1)
    changed.node[1].input[0] = "c"
    with pytest.raises(AssertionError, match="Node named 'b' has inputs 'c'"):
        same(_graph(1), changed)
    with pytest.raises(TypeError, match="Expected tf.GraphDef for expected, got int"):
        same(3, empty)
    with pytest.raises(TypeError, match="Expected tf.GraphDef for actual, got str"):
        same(empty, "x")


def test_decorators():
    class Case:
        pass

    assert tf.test.with_eager_op_as_function(Case) is Case
    assert tf.test.with_eager_op_as_function(only_as_function=True)(Case) is Case
    assert tf.test.experimental.sync_devices() is None


def test_intervals_of_checkpoints_begin_where_said(tmp_path):
    step = tf.Variable(5)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step),
        tmp_path,
        max_to_keep=3,
        checkpoint_interval=5,
        step_counter=step,
        last_checkpoint_step=3,
    )
    assert manager.save() is None
    step.assign(8)
    assert manager.save().endswith("ckpt-1")
    assert tf.train.Coordinator is tf.compat.v1.train.Coordinator
