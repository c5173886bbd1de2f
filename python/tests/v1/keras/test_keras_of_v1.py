"""tf.compat.v1.keras: the names of tf.keras, and what TensorFlow 1 has otherwise.
Values are tf_keras 2.21's."""

import numpy as np
import pytest

import headrace as tf

k = tf.compat.v1.keras
INPUTS = np.linspace(-1, 1, 12).reshape(1, 3, 4).astype("float32")


def test_names_are_those_of_keras():
    assert k.layers.Dense is tf.keras.layers.Dense
    assert k.Model is tf.keras.Model
    assert k.optimizers.Adam is tf.keras.optimizers.legacy.Adam
    assert k.losses.cosine is k.metrics.cosine_proximity
    assert k.losses.cosine is tf.keras.losses.cosine_similarity
    assert not hasattr(k.optimizers, "AdamW")
    assert not hasattr(k.activations, "gelu")
    from headrace.compat.v1.keras.backend import get_session

    assert get_session is k.backend.get_session


@pytest.mark.parametrize(
    "layer, expected, shapes",
    [
        ("GRU", 0.32168999, [[4, 6], [2, 6], [6]]),
        ("LSTM", 0.93536001, [[4, 8], [2, 8], [8]]),
    ],
)
def test_recurrent_layers_have_hard_gates(layer, expected, shapes):
    made = getattr(k.layers, layer)(
        2,
        kernel_initializer=k.initializers.Constant(0.25),
        recurrent_initializer="ones",
        bias_initializer="ones",
    )
    np.testing.assert_allclose(made(INPUTS), [[expected, expected]], atol=1e-5)
    assert [w.shape.as_list() for w in made.weights] == shapes
    config = made.get_config()
    assert config["recurrent_activation"] == "hard_sigmoid"
    assert config["implementation"] == 1
    assert config.get("reset_after", False) is False
    again = type(made).from_config(config)
    assert again.cell.recurrent_activation is tf.keras.activations.hard_sigmoid


def test_recurrent_layers_refuse():
    for layer in (k.layers.GRU, k.layers.LSTMCell):
        with pytest.raises(ValueError, match="expected a positive integer, got -1"):
            layer(-1)
    assert k.layers.GRUCell(2, "tanh", "sigmoid").recurrent_activation is (
        tf.keras.activations.sigmoid
    )


def test_batch_normalization():
    layer = k.layers.BatchNormalization(fused=False)
    np.testing.assert_allclose(layer(INPUTS), INPUTS / np.sqrt(1.001), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="renorm not supported"):
        k.layers.BatchNormalization(renorm=True)
    with pytest.raises(TypeError, match="'Keyword argument not understood:', 'fuse'"):
        k.layers.BatchNormalization(fuse=1)


@pytest.mark.parametrize(
    "name, deviation, largest",
    [
        ("normal", 0.05, 0.3),
        ("uniform", 0.029, 0.05),
        ("truncated_normal", 0.044, 0.1),
        ("he_normal", 0.1, 0.23),
        ("he_uniform", 0.1, 0.18),
        ("lecun_normal", 0.071, 0.17),
        ("lecun_uniform", 0.071, 0.13),
    ],
)
def test_initializers(name, deviation, largest):
    drawn = getattr(k.initializers, name)(seed=3)((200, 100)).numpy()
    assert drawn.dtype == np.float32
    assert drawn.std() == pytest.approx(deviation, rel=0.03)
    assert abs(drawn).max() <= largest


def test_configs_of_initializers():
    assert k.initializers.RandomUniform().get_config() == {
        "minval": -0.05,
        "maxval": 0.05,
        "seed": None,
        "dtype": "float32",
    }
    assert k.initializers.he_normal(7).get_config() == {"seed": 7}
    assert k.initializers.Identity().get_config() == {"gain": 1.0, "dtype": "float32"}
    two = k.initializers.identity(2.0)((2, 3))
    assert two.numpy().tolist() == [[2, 0, 0], [0, 2, 0]]
    with pytest.raises(ValueError, match=r"Received shape=\(2,\)"):
        k.initializers.identity()((2,))
    with pytest.raises(ValueError, match="int32"):
        k.initializers.Identity(dtype="int32")


def test_keras_has_a_session():
    with tf.Graph().as_default() as graph:
        layer = k.layers.Dense(2, kernel_initializer="ones")
        y = layer(tf.ones([1, 3]))
        other = tf.compat.v1.get_variable("other", [2])
        session = k.backend.get_session()
        assert session.graph is graph
        assert session.run(y).tolist() == [[3, 3]]
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(other)
        session.run(layer.kernel.assign_add(tf.ones([3, 2])))
        z = k.layers.Dense(2, kernel_initializer="ones")(y)
        assert k.backend.get_session([z]) is session
        assert session.run(z).tolist() == [[12, 12]]  # what has a value keeps it
        with tf.compat.v1.Session() as entered:
            assert k.backend.get_session() is entered
            assert entered.run(z).tolist() == [[6, 6]]
        mine = tf.compat.v1.Session()
        k.backend.set_session(mine)
        assert k.backend.get_session() is mine
        k.backend.set_session(None)
        assert k.backend.get_session() is not mine
    with tf.Graph().as_default() as graph:
        assert k.backend.get_session().graph is graph


def test_programs_may_initialize_variables_themselves():
    switch = k.backend.manual_variable_initialization
    assert switch is tf.keras.backend.manual_variable_initialization
    try:
        switch(True)
        with tf.Graph().as_default():
            v = k.backend.variable(3.0)
            session = k.backend.get_session()
            with pytest.raises(tf.errors.FailedPreconditionError):
                session.run(v)
            session.run(tf.compat.v1.global_variables_initializer())
            assert k.backend.get_session().run(v) == 3.0
        switch(0)
        with tf.Graph().as_default():
            v = k.backend.variable(4.0)
            assert k.backend.get_session().run(v) == 4.0
    finally:
        switch(False)
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    assert dense(tf.ones([1, 2])).numpy() == [[2.0]]
