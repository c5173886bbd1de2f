"""What objects ask of those who save them."""

import headrace as tf
import pytest
from headrace.framework.trackable import AutoTrackable, Trackable
from headrace.v1.saved.loader import parse_saved_model


def test_a_graph_that_is_marked(tmp_path):
    @tf.function(input_signature=[])
    def inner():
        tf.compat.v1.get_default_graph().mark_as_unsaveable("for a reason")
        return 1

    model = tf.Module()
    model.f = tf.function(lambda: inner(), input_signature=[])
    with pytest.raises(ValueError, match="for a reason"):
        tf.saved_model.save(model, str(tmp_path))
    assert not model.f.get_concrete_function().graph.saveable


class Before(AutoTrackable):
    """Is made after `first`."""

    first = None

    def _deserialization_dependencies(self, children):
        return {"first": self.first}


def test_dependencies_are_saved_and_have_no_circles(tmp_path):
    root = Before()
    root.first = tf.Variable(1.0)
    tf.saved_model.save(root, str(tmp_path))
    object.__setattr__(root, "first", tf.Variable(1.0))
    with pytest.raises(ValueError, match="Found an untracked dependency"):
        tf.saved_model.save(root, str(tmp_path))
    one, other = Before(), Before()
    one.first, other.first = other, one
    with pytest.raises(ValueError, match="dependency cycle in the saved Trackable"):
        tf.saved_model.save(one, str(tmp_path))


class Wrapper(Trackable):
    """Stands for a variable."""

    _should_act_as_resource_variable = True

    def __init__(self, value):
        self.value = tf.Variable(value)

    def _serialize_to_tensors(self):
        return self.value._serialize_to_tensors()

    def _restore_from_tensors(self, restored_tensors):
        return self.value._restore_from_tensors(restored_tensors)

    def _export_to_saved_model_graph(self, object_map, tensor_map, options, **kwargs):
        return self.value._export_to_saved_model_graph(object_map, tensor_map, options)


def test_an_object_that_acts_as_a_variable(tmp_path):
    model = tf.Module()
    model.v = Wrapper(15.0)
    model.f = tf.function(lambda: model.v.value + 1.0, input_signature=[])
    tf.saved_model.save(model, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert isinstance(loaded.v, tf.Variable)
    assert loaded.v.numpy() == 15
    loaded.v.assign(2.0)
    assert loaded.f().numpy() == 3


def test_children_of_a_saved_model(tmp_path):
    class Asked(AutoTrackable):
        def _trackable_children(self, save_type="checkpoint", **kwargs):
            children = super()._trackable_children(save_type, **kwargs)
            if save_type == "savedmodel":
                children["more"] = self.hidden[0]
            return children

    model = Asked()
    object.__setattr__(model, "hidden", [tf.Variable(3.0)])
    tf.saved_model.save(model, str(tmp_path))
    names = [
        c.local_name
        for c in parse_saved_model(str(tmp_path))
        .meta_graphs[0]
        .object_graph_def.nodes[0]
        .children
    ]
    assert "more" in names
