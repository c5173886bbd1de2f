"""What layers know of the metrics and weights below them, and Keras' own lists of both.

The expected values are tf_keras 2.21's.
"""

import warnings

import pytest

import headrace as tf

K = tf.keras


class Layer(K.layers.Layer):
    def __init__(self):
        super().__init__()
        self.m = K.metrics.Mean(name="c")
        self.ms = [K.metrics.Mean(name="d")]


class Metric(K.metrics.Metric):
    def __init__(self):
        super().__init__()
        self.m = K.metrics.Mean(name="c")
        self.ms = [K.metrics.Mean(name="d")]

    def update_state(self, *args):
        """Nothing is counted."""

    def result(self):
        """Zero."""
        return 0.0


class Model(K.Model):
    def __init__(self):
        super().__init__()
        self.m = K.metrics.Mean(name="c")
        self.ms = [K.metrics.Mean(name="d")]
        self.d = Layer()
        self.x = {"a": [K.metrics.Sum(name="e")]}


@pytest.mark.parametrize(
    "made, metrics, weights",
    [
        (Layer, ["c", "d"], 0),
        (Metric, ["c", "d"], 4),
        (Model, ["c", "d", "e", "c", "d"], 5),
    ],
)
def test_metrics_in_lists_are_metrics_of_the_layer(made, metrics, weights):
    layer = made()
    assert [m.name for m in layer.metrics] == metrics
    assert len(layer.weights) == weights


def test_add_variable_is_add_weight():
    layer = K.layers.Layer()
    with pytest.warns(UserWarning, match="`layer.add_variable` is deprecated"):
        weight = layer.add_variable("a", (2,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.add_weight("b", (3,))
    assert [w.shape.as_list() for w in layer.weights] == [[2], [3]]
    assert layer.weights[0] is weight


def test_lists_of_own_weights_change_the_layer():
    layer = K.layers.Layer()
    layer.add_weight("a", (2,))
    trained, fixed = tf.Variable(1.0), tf.Variable(2.0, trainable=False)
    layer._trainable_weights.append(trained)
    layer._non_trainable_weights.append(fixed)
    layer._non_trainable_weights.append(fixed)
    assert [w.shape.as_list() for w in layer.weights] == [[2], [], []]
    assert len(layer._trainable_weights) == 2
    layer._trainable_weights = []
    assert layer.weights[0] is fixed and len(layer.weights) == 1
    layer.trainable = False
    assert (len(layer._trainable_weights), len(layer.non_trainable_weights)) == (0, 1)


def test_whether_a_model_is_a_graph_of_layers():
    given = K.Sequential([K.layers.Dense(1, input_shape=(2,))])
    assert given._is_graph_network
    for model in (K.Sequential(), K.Model(), K.Sequential([K.layers.Dense(1)])):
        assert not model._is_graph_network


def test_attributes_of_models_may_be_named_network_and_input_specs():
    class Named(K.Model):
        def __init__(self):
            x = K.Input((2,))
            super().__init__(x, K.layers.Dense(3)(x))
            self._network = 4
            self._input_specs = 5

    model = Named()
    assert model(tf.ones([1, 2])).shape == (1, 3)
    assert (model._network, model._input_specs) == (4, 5)


def test_wrappers_build_the_inner_layer():
    class Through(K.layers.Wrapper):
        def call(self, x):
            return self.layer.call(x)

    through = Through(K.layers.Dense(2))
    assert through(tf.ones([1, 3])).shape == (1, 2)
    assert through.layer.built and len(through.weights) == 2


def test_shapes_of_the_calls_of_a_layer():
    layer = K.layers.Dense(2)
    layer(K.Input((3,)))
    layer(K.Input((5, 3)))
    assert layer.get_input_shape_at(0) == (None, 3)
    assert layer.get_output_shape_at(1) == (None, 5, 2)


def _of_graph():
    x = K.Input((3,))
    return K.Model(x, K.layers.Dense(2)(x))


class Own(K.layers.Layer):
    """Keeps its weight in no attribute."""

    def build(self, input_shape):
        self.add_weight("w", (2,))

    def call(self, x):
        return x


@pytest.mark.parametrize(
    "made, count",
    [
        (_of_graph, 2),
        (lambda: K.Sequential([K.layers.Dense(2, input_shape=(3,))]), 2),
        (Own, 1),
    ],
)
def test_modules_find_the_weights_of_the_models_they_hold(made, count):
    module = tf.Module()
    module.net = made()
    module.net(tf.ones([1, 3]))
    assert len(module.trainable_variables) == len(module.variables) == count


def test_modules_find_the_layers_of_a_graph():
    module = tf.Module()
    module.net = _of_graph()
    found = [type(m).__name__ for m in module.submodules]
    assert found == ["Functional", "InputLayer", "Dense"]


def test_what_is_set_on_a_sequential_model_is_none_of_its_layers():
    made = K.Sequential([K.layers.Dense(2, input_shape=(3,))])
    made.m = K.metrics.Mean()
    made.beside = K.layers.Dense(3)
    made.beside.build((None, 2))
    assert len(made.metrics) == 1
    assert len(made.weights) == len(made.variables) == 2
    assert not made.non_trainable_weights
    made.v = tf.Variable(1.0)  # the model's own
    assert len(made.weights) == 3
