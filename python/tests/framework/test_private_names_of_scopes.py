"""Names of scopes that begin with an underscore: eager code may have them, also classes of
modules, the outermost scope of a graph may not. Expected: TensorFlow 2.21."""

import headrace as tf
import pytest


class _Private(tf.Module):
    def __init__(self):
        super().__init__()
        with self.name_scope:
            self.v = tf.Variable(1.0, name="v")


def test_modules_of_private_classes():
    assert _Private().name == "__private"
    assert _Private().v.name == "__private/v:0"


@pytest.mark.parametrize("name", ["_x", "a b", "/a", "-x", "_x/y"])
def test_scopes_of_eager_code_and_of_graphs(name):
    with tf.name_scope(name) as scope:
        assert scope == f"{name}/"
        assert tf.Variable(1.0, name="w").name == f"{name}/w:0"
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="is not a valid root scope name"):
            with tf.name_scope(name):
                pass


def test_scopes_within_others():
    with tf.Graph().as_default(), tf.name_scope("o"):
        with tf.name_scope("_x") as scope:
            assert scope == "o/_x/"
        with tf.name_scope("_/") as scope:
            assert scope == "_/"
        with pytest.raises(ValueError, match="'a b' is not a valid scope name"):
            with tf.name_scope("a b"):
                pass
        with pytest.raises(ValueError, match="'a b/' is not a valid scope name"):
            with tf.name_scope("a b/"):
                pass
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="'_/' is not a valid root scope name"):
            with tf.name_scope("_/"):
                pass
