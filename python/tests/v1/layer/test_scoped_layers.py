"""Layers of TensorFlow 1 beyond what they compute: scopes, styles, updates, checkpoints."""

import copy

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
layers = v1.layers


def wave(*shape, k=1):
    n = int(np.prod(shape))
    return np.sin(np.arange(n) * 0.7 * k + k).reshape(shape).astype("f4")


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_eagerly_layers_keep_their_variables():
    kept = layers.Dense(2)
    first = kept(tf.ones([2, 3]))
    assert [v.name for v in kept.weights] == [
        f"{kept.scope_name}/kernel:0",
        f"{kept.scope_name}/bias:0",
    ]
    np.testing.assert_array_equal(first, kept(tf.ones([2, 3])))
    other = layers.dense(tf.ones([2, 3]), 2)  # with variables of its own
    assert not np.array_equal(first, other)
    with pytest.raises(RuntimeError, match="Layer.graph not supported"):
        kept.graph  # noqa: B018


def test_eager_normalization_moves_the_averages():
    layer = layers.BatchNormalization(momentum=0.5)
    x = tf.constant(wave(4, 3))
    y = layer(x, training=True)
    np.testing.assert_allclose(y[0], [0.88139, 0.99428, 0.74818], atol=1e-4)
    np.testing.assert_allclose(
        layer.moving_mean, [0.10625, 0.12441, 0.08406], atol=1e-4
    )
    np.testing.assert_allclose(
        layer.moving_variance, [0.75411, 0.77859, 0.72942], atol=1e-4
    )
    np.testing.assert_allclose(layer(x)[0], [0.84608, 0.98223, 0.69199], atol=1e-4)
    assert layer.updates == []


def test_layers_in_traced_functions():
    layer = layers.Dense(2, activation=tf.nn.relu)
    call = tf.function(lambda x: layer(x))
    x = tf.constant(wave(3, 4))
    np.testing.assert_allclose(call(x), layer(x), atol=1e-6)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(call(x))
    assert [g.shape for g in tape.gradient(y, layer.trainable_weights)] == [
        (4, 2),
        (2,),
    ]


def test_penalties_eagerly():
    layer = layers.Dense(2, kernel_regularizer=lambda w: tf.reduce_sum(w * 0 + 1.0))
    layer(tf.ones([1, 3]))
    assert [float(loss) for loss in layer.losses] == [6.0]


def test_updates_and_losses_by_what_they_depend_on(graph):
    x = v1.placeholder(tf.float32, [None, 3])
    norm = layers.BatchNormalization()
    y = norm(x, training=True)
    dense = layers.Dense(
        2, kernel_regularizer=tf.reduce_sum, activity_regularizer=tf.reduce_sum
    )
    dense(y)
    names = [u.name for u in norm.updates]
    assert names == [
        "batch_normalization/AssignMovingAvg/AssignSubVariableOp",
        "batch_normalization/AssignMovingAvg_1/AssignSubVariableOp",
    ]
    assert norm.get_updates_for(x) == norm.updates
    assert norm.get_updates_for(None) == []
    (active,) = dense.get_losses_for(y)
    (of_weights,) = dense.get_losses_for(None)
    assert active.name == "dense/ActivityRegularizer/truediv:0"
    assert {active.name, of_weights.name} == {loss.name for loss in dense.losses}
    assert dense.graph is graph
    norm.trainable = False
    assert norm.updates == []


def test_names_in_keras_style(graph):
    x = tf.ones([2, 3])
    with layers.experimental.keras_style_scope():
        one, two, other = (
            layers.Dense(3, name="a"),
            layers.Dense(3, name="a"),
            layers.Dense(2),
        )
        with pytest.raises(ValueError, match="reuse argument not allowed when keras"):
            layers.Dense(2, _reuse=True)
    found = [layer(x).name for layer in (one, two, other)]
    assert found == ["a/BiasAdd:0", "a_1/BiasAdd:0", "dense_1/BiasAdd:0"]
    with v1.variable_scope("zz"), layers.experimental.keras_style_scope():
        assert layers.Dense(2)(x).name == "zz/dense_2/BiasAdd:0"
    assert [v.name for v in v1.global_variables()][2::2] == [
        "a_1/kernel:0",
        "dense_1/kernel:0",
        "zz/dense_2/kernel:0",
    ]
    assert layers.dense(x, 2, name="b").name == "b/BiasAdd:0"  # the usual style again


class Own(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, shape):
        ones, zeros = v1.ones_initializer(), v1.zeros_initializer()
        self.k = self.add_weight("k", [int(shape[-1]), self.units], initializer=ones)
        self.c = self.add_variable(
            "c", [], dtype=tf.int32, initializer=zeros, trainable=False
        )
        super().build(shape)

    def call(self, x, training=False):
        return tf.matmul(x, self.k) + (1.0 if training else 0.0)


def test_own_layers_share_by_scope(graph):
    one = Own(2)
    assert one(tf.ones([1, 3]), training=True).name == "own/add:0"
    assert [v.op.name for v in one.weights] == ["own/k", "own/c"]
    assert [v.op.name for v in one.trainable_weights] == ["own/k"]
    assert (one.name, one.count_params(), one.dtype) == ("own_1", 7, "float32")
    other = Own(2, _reuse=True, _scope="own")
    assert other(tf.ones([1, 3])).name == "own_1/add:0"
    assert other.k is one.k
    assert len(v1.global_variables()) == 2


def test_getters_and_partitioners_of_scopes(graph):
    seen = []

    def getter(make, name, *args, **kwargs):
        seen.append(name)
        return make(name, *args, **kwargs)

    with v1.variable_scope("a", custom_getter=getter):
        layers.dense(tf.ones([1, 2]), 3)
    assert seen == ["a/dense/kernel", "a/dense/bias"]
    with v1.variable_scope("b", partitioner=v1.fixed_size_partitioner(2)):
        y = layers.dense(tf.ones([1, 4]), 3)
    names = [v.op.name for v in v1.global_variables("b/")]
    assert names == [
        *(f"b/dense/kernel/part_{i}" for i in range(2)),
        *(f"b/dense/bias/part_{i}" for i in range(2)),
    ]
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(y).shape == (1, 3)


def test_variables_by_reference(graph):
    with v1.variable_scope("a", use_resource=False):
        y = layers.conv2d(tf.ones([1, 5, 5, 2]), 4, 3)
        y = layers.batch_normalization(y, training=True)
    updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2
    assert all(v.op.type == "VariableV2" for v in v1.global_variables())
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run([y, *updates])
        mean = session.run(v1.global_variables()[4])
    assert mean.shape == (4,) and np.any(mean != 0)


def test_copies_that_are_not_yet_used(graph):
    layer = layers.Dense(3)
    other = copy.deepcopy(layer)
    layer(tf.ones([2, 4]))
    other(tf.ones([2, 4]))
    assert [v.op.name for v in v1.global_variables()][::2] == [
        "dense/kernel",
        "dense_1/kernel",
    ]


def test_layers_that_are_built_by_hand(graph):
    for layer, shape in (
        (layers.Dense(2), [None, 3]),
        (layers.Conv1D(2, 3), [None, 5, 3]),
        (layers.BatchNormalization(), [None, 3]),
        (v1.nn.rnn_cell.BasicLSTMCell(2), [None, 3]),
    ):
        layer.build(tf.TensorShape(shape))
        assert layer.built and layer.dtype == "float32"
        assert layer.weights[0].op.name.startswith(layer.scope_name + "/")


def test_configurations_make_layers():
    config = layers.Conv2D(3, 2, name="q").get_config()
    assert config["dtype"] is None and config["kernel_size"] == (2, 2)
    made = layers.Conv2D.from_config(config)
    assert (made.name, made.filters) == ("q", 3)
    assert layers.BatchNormalization().get_config()["axis"] == -1


def test_checkpoints_of_objects_know_weights_by_name(tmp_path):
    layer = layers.Dense(2)
    layer(tf.ones([1, 3]))
    path = tf.train.Checkpoint(layer=layer).save(str(tmp_path / "c"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE" in names
    other = layers.Dense(2)
    tf.train.Checkpoint(layer=other).restore(path)
    other(tf.ones([1, 3]))  # what waits arrives with the variables
    np.testing.assert_array_equal(layer.kernel, other.kernel)


def test_dropout_of_a_seed(graph):
    v1.set_random_seed(5)
    ones = tf.ones([3, 4])
    whole = layers.dropout(ones, 0.4, seed=2, training=True)
    rows = layers.dropout(ones, 0.4, noise_shape=[3, 1], seed=2, training=True)
    off = layers.dropout(ones, training=v1.placeholder_with_default(False, []))
    with v1.Session() as session:
        whole, rows, off = session.run([whole, rows, off])
    kept = [[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 1]]
    np.testing.assert_allclose(whole, np.array(kept) / 0.6, rtol=1e-6)
    np.testing.assert_allclose(rows, np.array([[0], [0], [1]]) / 0.6 * np.ones(4))
    np.testing.assert_array_equal(off, np.ones([3, 4]))


def test_a_reopened_scope_names_anew_and_an_object_keeps_counts(graph):
    with v1.variable_scope("s") as scope:
        layers.dense(tf.ones([1, 2]), 2)
        with v1.variable_scope(None, default_name="inner"):
            pass
    with v1.variable_scope("s", reuse=True):
        with v1.variable_scope(None, default_name="inner") as inner:
            assert inner.name == "s/inner"
    with v1.variable_scope(scope, reuse=True):
        with v1.variable_scope(scope) as again:
            assert not again.reuse
    assert len(v1.global_variables()) == 2


def test_regularizers_run_in_the_layer_s_name_scope(graph):
    def named(x):
        return tf.reduce_sum(x, name="reg")

    def renaming(getter, name, **given):
        return getter(name.replace("kernel", "weights"), **given)

    with v1.variable_scope("a", custom_getter=renaming):
        layers.dense(tf.ones([2, 2]), 3, kernel_regularizer=named, name="d")
    with v1.variable_scope("q", partitioner=v1.fixed_size_partitioner(2)):
        layers.dense(tf.ones([2, 2]), 3, kernel_regularizer=named, name="d")
    with v1.variable_scope("w"), v1.name_scope("nn"):
        layers.conv2d(tf.ones([1, 4, 4, 1]), 2, 2, kernel_regularizer=named)
    losses = v1.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)
    assert [loss.op.name for loss in losses] == [
        "a/d/kernel/Regularizer/reg",
        "q/d/kernel/Regularizer/reg",
        "q/d/kernel/Regularizer_1/reg",
        "w/nn/conv2d/kernel/Regularizer/reg",
    ]
