"""TrackableView and CheckpointView."""

import headrace as tf
import pytest


def test_views(tmp_path):
    v = tf.Variable(1.0)
    c = tf.train.Checkpoint(v=v, l=[tf.Variable(2.0)])
    path = c.write(str(tmp_path / "c"))
    view = tf.train.CheckpointView(path)
    names = view.children(0)
    assert sorted(names) == ["l", "v"]
    assert view.descendants()[0] == 0 and len(view.descendants()) == 4
    assert view.match(c)[names["v"]] is v
    more = tf.Variable(3.0)
    other = tf.train.Checkpoint(v=v, more=more)
    matched, nodes, ours = view.diff(other)
    assert set(matched) == {0, names["v"]}
    assert names["l"] in nodes and ours == [more] or ours[0] is more
    live = tf.train.TrackableView(c)
    assert live.root is c and live.children(c)["v"] is v
    assert len(live.descendants()) == 4


def test_name_based(tmp_path):
    prefix = str(tmp_path / "n")
    tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=["a"], shape_and_slices=[""], tensors=[[1.0]]
    )
    with pytest.raises(ValueError, match="does not appear to be object-based"):
        tf.train.CheckpointView(prefix)


def test_one_node_for_two_objects_is_warned_of(tmp_path, caplog):
    saved = tf.Module()
    saved.a = saved.b = tf.Module()
    path = tf.train.Checkpoint(saved).save(tmp_path / "c")
    other = tf.Module()
    other.a, other.b = tf.Module(), tf.Module()
    with caplog.at_level("WARNING"):
        found = tf.train.CheckpointView(path).match(other)
    assert found == {0: other, 1: other.a}
    assert "Inconsistent references when matching the checkpoint" in caplog.text
