"""Layers as packages that stand on Keras use them: values given for weights, layers built
by hand, a `rank` of a program's own. The numbers are tf_keras 2.21's."""

import numpy as np
import pytest

import headrace as tf

K = tf.keras


@pytest.mark.parametrize("traced", [False, True])
def test_given_weights_hold_wherever_the_layer_is_first_called(traced):
    layer = K.layers.Embedding(2, 3, weights=[np.arange(6.0).reshape(2, 3)])
    dense = K.layers.Dense(2, weights=[np.ones((2, 2)), np.ones(2)])
    rows = np.array([[0, 1]])
    if traced:
        found = tf.function(lambda x: layer(x))(tf.constant(rows))
        assert tf.function(lambda x: dense(x))(
            tf.constant([[1.0, 2.0]])
        ).numpy().tolist() == [[4, 4]]
    else:
        x = K.Input((2,))
        found = K.Model(x, layer(x)).predict(rows, verbose=0)
    assert np.array(found).tolist() == [[[0, 1, 2], [3, 4, 5]]]


def test_a_rank_of_the_programs_own():
    class Ensemble(K.layers.Conv2D):
        def __init__(self, rank, **kwargs):
            super().__init__(2, 2, kernel_initializer="ones", **kwargs)
            self.rank = rank

    x = np.arange(9.0, dtype="float32").reshape(1, 3, 3, 1)
    out = Ensemble(1)(x)
    assert out.shape == (1, 2, 2, 2)
    assert out.numpy()[..., 0].tolist() == [[[8, 12], [20, 24]]]


class ByHand(K.layers.Layer):
    """Builds what it holds itself, as its own functions say."""

    def build(self, shape):
        self.norm = K.layers.LayerNormalization(name="norm")
        self.norm.build(shape)
        self.mix = K.layers.Dense(2, activation=_wave, kernel_initializer="ones")
        self.mix.build(shape)
        self.built = True

    def call(self, x):
        return self.mix(self.norm(x))


def _wave(x):
    return tf.cos(x) * 2.0


def test_files_of_layers_that_were_built_by_hand(tmp_path):
    x = K.Input((2,))
    model = K.Model(x, ByHand(name="b")(x))
    given = np.array([[1.0, 3.0], [2.0, 2.0]], "float32")
    expected = model.predict(given, verbose=0)
    assert expected.tolist() == [[2, 2], [2, 2]]
    model.save(tmp_path / "m")
    again = K.models.load_model(tmp_path / "m")
    assert again.predict(given, verbose=0).tolist() == [[2, 2], [2, 2]]
    held = again.get_layer("b")
    assert [w.shape.as_list() for w in held.weights] == [[2], [2], [2, 2], [2]]
    assert type(held.norm) is K.layers.LayerNormalization
    with pytest.raises(ValueError, match="call function was not serialized"):
        held.mix(given)


class Part(K.Model):
    def __init__(self):
        super().__init__()
        self.inner = K.Sequential([K.layers.Dense(2, kernel_initializer="ones")])

    def call(self, x):
        return self.inner(x)


def test_models_of_models_that_are_yet_to_be_built(tmp_path):
    model = K.Sequential([Part(), K.layers.ReLU(), Part()])
    with pytest.raises(ValueError, match="have not yet been created"):
        model.weights  # noqa: B018
    assert model(tf.ones((1, 3))).numpy().tolist() == [[6, 6]]
    path = tf.train.Checkpoint(m=model).save(str(tmp_path / "c"))
    names = [name.rpartition("/.A")[0] for name, _ in tf.train.list_variables(path)]
    assert names[1:5] == [
        f"m/layer_with_weights-{i}/inner/layer_with_weights-0/{name}"
        for i in (0, 1)
        for name in ("bias", "kernel")
    ]
    model.save(tmp_path / "m")
    again = K.models.load_model(tmp_path / "m")
    assert again(tf.ones((1, 3))).numpy().tolist() == [[6, 6]]
    model = K.Sequential([Part()])
    model.add(Part())
    model.compile("sgd", "mse")
    fitted = model.fit(np.ones((2, 3)), np.ones((2, 2)), verbose=0)
    assert fitted.history == {"loss": [25.0]}
    x = K.Input((3,))
    assert K.Model(x, K.Sequential([Part(), Part()])(x)).count_params() == 14


def _norm(name):
    return K.layers.BatchNormalization(name=name, center=False)


class Held(K.Model):
    def __init__(self, hold):
        super().__init__()
        self.first = _norm("f")
        a, b = _norm("a"), _norm("b")
        self.parts = hold(a, b)
        self.last = _norm("l")
        self.order = [a, b, self.first, self.last]

    def call(self, x):
        for layer in self.order:
            x = layer(x)
        return x


@pytest.mark.parametrize(
    "hold, held",
    [
        (lambda a, b: [a, b], "a b a a b b"),
        (lambda a, b: (a, b), "a b a a b b"),
        (lambda a, b: {"y": a, "x": b}, "b a b b a a"),
        (lambda a, b: [[a], {"k": [b]}], "a b a a b b"),
    ],
)
def test_weights_of_containers_are_the_trainable_ones_first(hold, held):
    model = Held(hold)
    model(tf.ones((2, 2)))
    names = [v.name.split("/")[-2] for v in model.weights]
    assert names == ["f"] * 3 + held.split() + ["l"] * 3
    if held.startswith("a") and isinstance(model.parts[0], K.layers.Layer):
        model.parts[0].trainable = False
        names = [v.name.split("/")[-2] for v in model.weights]
        assert names == ["f"] * 3 + "b a a a b b".split() + ["l"] * 3
