"""What a SavedModel holds of objects that say their children themselves, and what is found
as a function. Expected: TensorFlow 2.21."""

import headrace as tf
import numpy as np
import pytest

AutoTrackable = tf.__internal__.tracking.AutoTrackable


class _Saying(AutoTrackable):
    """Its children are no attributes that tracking sees, in SavedModels alone."""

    def __init__(self, **children):
        super().__init__()
        self.__dict__["held"] = children

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        children = super()._trackable_children(save_type, **kwargs)
        return {**children, **self.held} if save_type == "savedmodel" else children


def _reloaded(model, path, **options):
    tf.saved_model.save(model, str(path))
    return tf.saved_model.load(str(path), **options)


def test_children_in_plain_containers_are_saved_with_their_values(tmp_path):
    model = _Saying(
        several=[tf.Variable(1.0), tf.Variable(2.0)],
        named={"k": tf.Variable(3.0)},
        nested={"a": [tf.Variable(4.0)]},
        none=[],
        constant=tf.constant([5.0]),
    )
    assert tf.train.TrackableView(model).children(model) == {}
    loaded = _reloaded(model, tmp_path / "m")
    assert [float(v) for v in loaded.several] == [1.0, 2.0]
    assert float(loaded.named["k"]) == 3.0
    assert float(loaded.nested["a"][0]) == 4.0
    assert list(loaded.none) == []
    np.testing.assert_array_equal(loaded.constant.numpy(), [5.0])


@pytest.mark.parametrize("child", [3, "s", None, {1, 2}])
def test_what_cannot_be_tracked_is_no_child(child, tmp_path):
    model = _Saying(x=child)
    with pytest.raises(ValueError, match="^Cannot convert .* to Trackable"):
        tf.saved_model.save(model, str(tmp_path / "m"))
    with pytest.raises(ValueError, match="^Cannot convert .* to Trackable"):
        tf.train.TrackableView(model).children(model, "savedmodel")


def test_views_may_be_of_saved_models():
    class View(tf.train.TrackableView):
        @classmethod
        def children(cls, obj, save_type="savedmodel", **kwargs):
            return super().children(obj, save_type, **kwargs)

    model = _Saying(several=[tf.Variable(1.0)])
    kinds = [type(x).__name__ for x in View(model).descendants()]
    assert kinds == ["_Saying", "ListWrapper", "ResourceVariable"]


def test_tables_are_resources():
    resource = tf.saved_model.experimental.TrackableResource
    words = tf.constant(["a", "b"])
    numbers = tf.constant([0, 1], tf.int64)
    filled = tf.lookup.KeyValueTensorInitializer(words, numbers)
    tables = [
        tf.lookup.StaticHashTable(filled, -1),
        tf.lookup.StaticVocabularyTable(filled, 1),
        tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0),
        tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, 0, -1, -2),
    ]
    assert all(isinstance(t, resource) for t in tables)
    assert not isinstance(filled, resource)
    assert not isinstance(iter(tf.data.Dataset.range(3)), resource)


def test_attributes_of_resources_are_not_tracked():
    class Counts(tf.saved_model.experimental.TrackableResource):
        def __init__(self):
            super().__init__()
            self.v, self.several = tf.Variable(1.0), [tf.Variable(2.0)]

    counts = Counts()
    assert counts._trackable_children() == {}
    assert type(counts.several) is list


class _Serving(tf.Module):
    """Functions that properties make."""

    def __init__(self):
        super().__init__()
        self.v = tf.Variable(2.0)
        self.made = 0

    @property
    def _default_save_signature(self):
        self.made += 1

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def serve(x):
            return {"doubled": x * self.v}

        return serve

    @property
    def more(self):
        return tf.function(lambda x: x + 1.0).get_concrete_function(
            tf.TensorSpec([], tf.float32)
        )

    @property
    def raising(self):
        raise KeyError("not ready")

    @property
    def variables_of_others(self):
        return [tf.Variable(1.0)]


def test_functions_of_properties_are_saved(tmp_path):
    model = _Serving()
    loaded = _reloaded(model, tmp_path / "m")
    assert model.made == 1
    assert list(loaded.signatures) == ["serving_default"]
    serve = loaded.signatures["serving_default"]
    assert float(serve(tf.constant(3.0))["doubled"]) == 6.0
    assert float(loaded.more(tf.constant(3.0))) == 4.0
    assert not hasattr(loaded, "raising")
    assert not hasattr(loaded, "variables_of_others")


def test_functions_are_found_by_their_aliases(tmp_path):
    model = tf.Module()
    model.v = tf.Variable(2.0)
    model.f = tf.function(lambda x: x * model.v)
    spec = tf.TensorSpec([None], tf.float32)
    model.g = tf.function(lambda x: x + 1.0).get_concrete_function(spec)
    model.f(tf.constant(1.0))
    unused = tf.function(lambda x: x - 1.0)
    unused.get_concrete_function(spec)
    save = tf.saved_model.SaveOptions(
        function_aliases={"times": model.f, "plus": model.g, "minus": unused}
    )
    path = str(tmp_path / "m")
    tf.saved_model.save(model, path, options=save)
    load = tf.saved_model.LoadOptions(experimental_load_function_aliases=True)
    loaded = tf.saved_model.load(path, options=load)
    assert sorted(loaded.function_aliases) == ["plus", "times"]
    assert loaded.function_aliases["times"] is loaded.f
    assert float(loaded.function_aliases["times"](tf.constant(3.0))) == 6.0
    (plus,) = loaded.function_aliases["plus"]
    np.testing.assert_array_equal(plus(tf.constant([1.0])), [2.0])
    assert not hasattr(tf.saved_model.load(path), "function_aliases")


def test_models_without_aliases_have_an_empty_table(tmp_path):
    load = tf.saved_model.LoadOptions(experimental_load_function_aliases=True)
    assert _reloaded(tf.Module(), tmp_path / "m", options=load).function_aliases == {}
    model = tf.Module()
    model.function_aliases = {"x": 1}
    with pytest.raises(ValueError, match="already has an attributed with name"):
        _reloaded(model, tmp_path / "n", options=load)
