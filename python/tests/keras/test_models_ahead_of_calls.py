"""What programs do with models and layers before their first call, and in own steps."""

import headrace as tf
import pytest

keras = tf.keras
layers = keras.layers


class OfDict(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, inputs, training=False):
        return self.dense(inputs["a"])


def test_specs_said_before_the_first_call(tmp_path):
    model = OfDict()
    assert model.save_spec() is None
    spec = tf.TensorSpec((None, 3), tf.float32, name="a")
    model._set_save_spec({"a": spec})
    assert model.save_spec() == model.save_spec(False) == ([{"a": spec}], {})
    model._set_save_spec({"a": tf.TensorSpec((None, 4), tf.float32, name="a")})
    x = {"a": tf.ones((5, 3))}
    expected = model(x, training=True)
    assert model.save_spec() == ([{"a": spec}], {})
    tf.saved_model.save(model, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    assert (loaded(x).numpy() == expected.numpy()).all()


def test_specs_of_further_arguments():
    model = OfDict()
    plain = tf.TensorSpec((None, 4))
    rest, named = (tf.TensorSpec((2,)),), {"q": tf.TensorSpec((3,)), "p": 5}
    model._set_save_spec(plain, rest, named)
    one = tf.TensorSpec((None,))
    assert model.save_spec() == ([plain, one], {"q": one})


def test_losses_of_layers_beside_those_of_outputs():
    dense = layers.Dense(2, input_shape=(3,), kernel_initializer="ones")
    model = keras.Sequential([dense])
    model.compile("sgd", "mse", metrics=["mae"])
    assert not model.compiled_loss.built and not model.compiled_metrics.built
    x, y = tf.ones((4, 3)), tf.ones((4, 2))
    penalties = [tf.constant(3.0), tf.constant(0.5)]
    total = model.compiled_loss(y, model(x), regularization_losses=penalties)
    assert total.numpy() == 7.5
    assert model.compiled_loss.built
    assert model.compiled_loss.metrics[0].result().numpy() == 7.5
    assert model.compiled_loss(y, model(x), None, penalties[:1]).numpy() == 7.0
    model.compiled_loss.reset_state()
    assert model.compiled_loss.metrics[0].result().numpy() == 0.0


def test_losses_of_layers_alone():
    model = keras.Sequential([layers.Dense(2, input_shape=(3,))])
    model.compile("sgd")
    x, y = tf.ones((4, 3)), tf.ones((4, 2))
    only = model.compiled_loss(y, model(x), regularization_losses=[tf.constant(3.5)])
    assert only.numpy() == 3.5


class WithWeightsAhead(keras.Model):
    def __init__(self):
        super().__init__(name="m")
        with tf.name_scope(self._name_scope()):
            self.w = self.add_weight("w", (2,))
            self.v = tf.Variable(1.0, name="v")


def test_the_scope_that_a_layer_opens():
    dense = layers.Dense(2, name="d")
    assert dense._name_scope() == "d/"
    with tf.name_scope("a"):
        assert dense._name_scope() == "a/d/"
        with tf.name_scope("b"):
            assert dense._name_scope() == "a/b/d/"
    with tf.Graph().as_default(), tf.name_scope("x"):
        assert dense._name_scope() == "x/d/"
    assert [v.name for v in WithWeightsAhead().weights] == ["m/w:0", "m/v:0"]


def test_layers_built_for_unknown_shapes():
    def message(layer):
        with pytest.raises(ValueError) as caught:
            layer.build(None)
        return str(caught.value)

    assert message(layers.Dense(2)) == (
        "The last dimension of the inputs to a Dense layer should be defined. Found "
        "None. Full input shape received: <unknown>"
    )
    for kind in (layers.BatchNormalization, layers.LayerNormalization):
        text = "Input has undefined rank. Received: input_shape=<unknown>"
        assert message(kind()) == text


@pytest.mark.parametrize(
    "name, shape, form, axis",
    [
        ("GlobalAveragePooling1D", (2, 0, 3), "channels_last", 1),
        ("GlobalMaxPooling1D", (2, 3, 0), "channels_first", 2),
        ("GlobalAveragePooling2D", (2, 0, 0, 8), "channels_last", 1),
        ("GlobalMaxPooling2D", (2, 0, 0, 8), "channels_first", 2),
        ("GlobalMaxPooling3D", (2, 1, 0, 2, 8), "channels_last", 2),
    ],
)
def test_pooling_of_what_has_no_space(name, shape, form, axis):
    layer = getattr(layers, name)(data_format=form)
    with pytest.raises(ValueError) as caught:
        layer(tf.ones(shape))
    assert str(caught.value) == (
        f"Incorrect input shape {list(shape)} with dimension 0 at reduction axis {axis}."
    )


def test_pooling_of_no_samples():
    assert layers.GlobalMaxPooling1D()(tf.ones((0, 2, 3))).shape == (0, 3)


class Unspeakable(layers.Layer):
    """Its configuration cannot be told: it was made with a function."""

    def __init__(self, thing):
        super().__init__()
        self.thing = thing
        self.dense = layers.Dense(2, kernel_initializer="ones")

    def call(self, inputs, training=False):
        return self.thing(self.dense(inputs))


class Speakable(keras.Model):
    def __init__(self):
        super().__init__()
        self.part = Unspeakable(tf.sin)

    def call(self, inputs):
        return self.part(inputs)

    def get_config(self):
        return {"name": self.name}


def test_saved_models_of_layers_without_configuration(tmp_path):
    model = Speakable()
    x = tf.ones((2, 3))
    expected = model(x)
    model.save(str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    assert (loaded(x).numpy() == expected.numpy()).all()
    told = (tmp_path / "m" / "keras_metadata.pb").read_bytes()
    assert b'"class_name": "Unspeakable"' in told
    assert b'"config": {"layer was saved without config": true}' in told
    assert b'"expects_training_arg": false' in told  # of the model


def test_whether_a_class_tells_its_configuration_itself():
    assert layers.Layer.get_config._is_default
    assert not hasattr(Speakable.get_config, "_is_default")
    assert hasattr(Unspeakable.get_config, "_is_default")


def test_weights_that_getters_give():
    seen = {}
    mine = tf.Variable([1.0, 2.0], name="mine")

    def getter(**how):
        seen.update(how)
        return mine

    layer = layers.Layer(name="l")
    assert layer.add_weight(name="q", shape=(2,), getter=getter) is mine
    assert [v.name for v in layer.trainable_weights] == ["mine:0"]
    assert sorted(seen) == [
        *("aggregation", "caching_device", "collections", "constraint", "dtype"),
        *("initializer", "name", "shape", "synchronization", "trainable"),
        "use_resource",
    ]
    assert (seen["name"], seen["shape"], seen["trainable"]) == ("q", (2,), True)
    with pytest.raises(TypeError, match="Unknown keyword argument"):
        layer.add_weight("q", (2,), bogus=1)


def test_whether_weights_that_were_there_train():
    variable = tf.Variable([1.0, 2.0])
    layer = layers.Layer()
    layer.add_weight("q", (2,), trainable=False, getter=lambda **_: variable)
    assert (len(layer.trainable_weights), len(layer.non_trainable_weights)) == (0, 1)
    fixed = tf.Variable([1.0, 2.0], trainable=False)
    layer = layers.Layer()
    layer.add_weight("q", (2,), trainable=True, getter=lambda **_: fixed)
    assert (len(layer.trainable_weights), len(layer.non_trainable_weights)) == (1, 0)


def test_penalties_of_weights_that_were_there():
    variable = tf.Variable([1.0, 2.0])
    layer = layers.Layer()
    layer.add_weight("q", (2,), getter=lambda **_: variable, regularizer=tf.reduce_sum)
    assert [x.numpy() for x in layer.losses] == [3.0]


def test_strategies_of_one_worker():
    one = tf.distribute.OneDeviceStrategy("cpu:0")
    for strategy in (tf.distribute.get_strategy(), one):
        assert strategy.extended._in_multi_worker_mode() is False
