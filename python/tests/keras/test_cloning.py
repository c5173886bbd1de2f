"""clone_model, and configurations of classes of the user's; as tf_keras 2.21 has them."""

import pytest

import headrace as tf

K = tf.keras


class Scale(K.layers.Layer):
    """Registered nowhere."""

    def build(self, shape):
        self.w = self.add_weight("w", shape[-1:], initializer="ones")

    def call(self, x):
        return x * self.w


class Wide(K.layers.Layer):
    """Has no configuration that makes it again."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def call(self, x):
        return x

    def get_config(self):
        raise NotImplementedError


class Trained(K.Model):
    """A functional model with a step of its own."""


class Takes(K.Model):
    def __init__(self, units, **kwargs):
        x = K.Input((2,))
        super().__init__(x, K.layers.Dense(units)(x), **kwargs)


class Called(K.Model):
    def __init__(self, units=1, **kwargs):
        super().__init__(**kwargs)
        self.dense = K.layers.Dense(units)

    def call(self, x):
        return self.dense(x)

    def get_config(self):
        return {"units": 3}


def shared(cls=K.Model):
    x = K.Input((2,), name="x")
    dense = K.layers.Dense(2, name="dense")
    return cls(x, Scale(name="scale")(dense(dense(x))), name="model")


def test_layers_are_new_and_shared_as_before():
    model = shared()
    clone = K.models.clone_model(model)
    assert [x.name for x in clone.layers] == ["x", "dense", "scale"]
    assert all(a is not b for a, b in zip(clone.layers, model.layers))
    assert [w.name for w in clone.weights] == [w.name for w in model.weights]
    clone.set_weights(model.get_weights())
    x = tf.constant([[1.0, 2.0]])
    assert clone(x).numpy().tolist() == model(x).numpy().tolist()
    assert clone.name == "model" and clone.optimizer is None


def test_functions_choose_the_layers():
    model, seen = shared(), []

    def other(layer):
        seen.append(layer.name)
        return type(layer).from_config(
            {**layer.get_config(), "name": "new_" + layer.name}
        )

    clone = K.models.clone_model(model, clone_function=other)
    assert seen == ["dense", "scale"]
    assert [x.name for x in clone.layers] == ["x", "new_dense", "new_scale"]
    same = K.models.clone_model(model, clone_function=lambda layer: layer)
    assert same.layers[0] is not model.layers[0]
    assert same.layers[1:] == model.layers[1:]
    x = K.Input((3,))
    wide = K.Model(x, Wide(3, name="wide")(x))
    again = K.models.clone_model(wide, clone_function=lambda w: Wide(w.units, name="w"))
    assert again.layers[1].units == 3
    with pytest.raises(NotImplementedError):
        K.models.clone_model(wide)


def test_models_within_models():
    x = K.Input((2,))
    inner = K.Model(x, Scale(name="deep")(x), name="inner")
    y = K.Input((2,))
    outer = K.Model(y, inner(inner(y)))
    clone = K.models.clone_model(outer)
    assert clone.layers[1] is not inner
    assert [w.name for w in clone.weights] == ["deep/w:0"]
    seen = []
    K.models.clone_model(outer, clone_function=lambda x: seen.append(x.name) or x)
    assert seen == ["inner"]


def test_inputs():
    model = shared()
    clone = K.models.clone_model(model, input_tensors=[K.Input((2,), batch_size=5)])
    assert clone.input_shape == (5, 2) and clone.output_shape == (5, 2)
    assert K.models.clone_model(model, input_tensors=[tf.ones([4, 2])]).input_shape == (
        4,
        2,
    )
    a, b = K.Input((2,), name="a"), K.Input((2,), name="b")
    two = K.Model({"a": a, "b": b}, [K.layers.Add()([a, b]), a * 2.0])
    clone = K.models.clone_model(two, input_tensors=[K.Input((2,), batch_size=3)])
    assert [x.shape.as_list() for x in clone.outputs] == [[3, 2], [3, 2]]
    made = K.models.clone_model(two)({"a": tf.ones([1, 2]), "b": tf.ones([1, 2])})
    assert [x.numpy().tolist() for x in made] == [[[2.0, 2.0]], [[2.0, 2.0]]]


@pytest.mark.parametrize(
    "model, kind, with_function",
    [
        (lambda: shared(Trained), "Trained", "Trained"),
        (lambda: Takes(3), "Functional", "Functional"),
        (lambda: Called(), "Called", None),
    ],
)
def test_classes_of_models(model, kind, with_function):
    assert type(K.models.clone_model(model())).__name__ == kind
    if with_function:
        made = K.models.clone_model(model(), clone_function=lambda layer: layer)
        assert type(made).__name__ == with_function
        return
    assert K.models.clone_model(model()).dense.units == 3
    with pytest.raises(
        ValueError, match="only supported for Sequential models or Func"
    ):
        K.models.clone_model(model(), clone_function=lambda layer: layer)


def test_sequential():
    class Own(K.Sequential):
        """Clones are plain ones."""

    model = Own([K.layers.Dense(2, input_shape=(3,)), Scale()], name="seq")
    clone = K.models.clone_model(model)
    assert type(clone) is K.Sequential and clone.name == "seq" and clone.built
    asked = K.models.clone_model(model, input_tensors=K.Input((3,), batch_size=7))
    assert asked.input_shape == (7, 3)
    with pytest.raises(ValueError, match="we expect at most one tensor"):
        K.models.clone_model(model, input_tensors=[K.Input((3,)), K.Input((3,))])
    open_one = K.Sequential([K.layers.Dense(2)])
    assert not K.models.clone_model(open_one).built
    assert K.models.clone_model(open_one, input_tensors=[K.Input((3,))]).built


def test_bad_functions():
    with pytest.raises(
        ValueError, match="Expected `layer_fn` argument to be a callable"
    ):
        K.models.clone_model(shared(), clone_function=3)
    with pytest.raises(TypeError):
        K.models.clone_model(shared(), clone_function=lambda layer: None)


def test_configurations_name_classes_and_what_they_were_built_for():
    rows = {row["name"]: row for row in shared().get_config()["layers"]}
    assert rows["scale"]["registered_name"] == "Scale"
    assert rows["scale"]["module"] == __name__
    assert rows["scale"]["build_config"] == {"input_shape": (None, 2)}
    assert rows["dense"]["registered_name"] is None
    assert "build_config" not in rows["x"]

    @K.utils.register_keras_serializable("pack")
    class Known(Scale):
        pass

    assert K.layers.serialize(Known())["registered_name"] == "pack>Known"


def test_functional_classes_of_the_user_have_configurations():
    model = shared(Trained)
    with K.utils.custom_object_scope({"Scale": Scale}):
        again = Trained.from_config(model.get_config())
    assert isinstance(again, Trained) and len(again.layers) == 3


def test_compile_and_build_configurations():
    def mine(a, b):
        return tf.reduce_mean(a - b)

    model = shared()
    assert model.get_build_config() == {"input_shape": (None, 2)}
    assert model.get_compile_config() is None
    model.compile("sgd", mine, ["mae"], loss_weights=[2.0])
    config = model.get_compile_config()
    assert config["loss"]["config"] == "mine" and config["metrics"] == ["mae"]
    model.compile("sgd", "mse")
    again = K.models.clone_model(model)
    again.compile_from_config(model.get_compile_config())
    assert type(again.optimizer).__name__ == "SGD" and again.loss == "mse"
    dense = K.layers.Dense(2)
    dense.build_from_config({"input_shape": [None, 3]})
    assert dense.kernel.shape == [3, 2]


def test_values_of_configurations():
    serialize = K.saving.serialize_keras_object
    for value, plain in (
        (tf.float32, "float32"),
        (tf.TensorShape([1, None]), [1, None]),
        ((1, {"a": 2}), (1, {"a": 2})),
        (b"q", {"class_name": "__bytes__", "config": {"value": "q"}}),
    ):
        assert serialize(value) == plain
    made = serialize(tf.constant([1.0]))
    assert made == {
        "class_name": "__tensor__",
        "config": {"value": [1.0], "dtype": "float32"},
    }
    assert K.saving.deserialize_keras_object(made).numpy().tolist() == [1.0]
    with pytest.raises(TypeError, match="must implement the `get_config"):
        serialize(slice(1, 2))
    assert K.activations.serialize(tf.nn.relu) == "relu"


def test_functions_of_the_user_are_activations():
    def bent(x):
        return x * 2.0

    config = K.layers.Dense(1, activation=bent).get_config()
    assert config["activation"]["config"] == "bent"
    with K.utils.custom_object_scope({"bent": bent}):
        assert K.layers.Dense.from_config(config).activation is bent
