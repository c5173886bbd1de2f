"""Ranks that models take: the layers say what they need, as in tf_keras."""

import headrace as tf
import numpy as np
import pytest

L, Sequential = tf.keras.layers, tf.keras.Sequential


def ids(*shape):
    return tf.ones(shape, tf.int32)


def test_embeddings_take_ids_of_any_rank():
    model = Sequential([L.Embedding(5, 3), L.Dense(2)])
    for shape in ((4,), (2, 3), (2, 3, 4)):
        assert model(ids(*shape)).shape == (*shape, 2)
    assert model.predict(np.ones(8, "i4"), verbose=0).shape == (8, 2)
    model.compile("sgd", "mse")
    model.fit(np.ones(8, "i4"), np.ones((8, 2), "f"), verbose=0)
    tower = Sequential([L.StringLookup(vocabulary=["a"]), L.Embedding(3, 2)])
    assert tower(tf.constant(["a", "b"])).shape == (2, 2)
    with pytest.raises(ValueError, match="expected shape=.None, 3., found"):
        Sequential([L.Embedding(5, 3, input_length=3)])(ids(4, 5))


def test_models_check_sizes_not_ranks():
    x = L.Input((3,))
    model = tf.keras.Model(x, L.Activation("relu")(x))
    assert model(tf.ones([3])).shape == (3,)
    for shape in ((2, 4), (2, 4, 3)):
        with pytest.raises(ValueError, match="expected shape=.None, 3., found"):
            model(tf.ones(shape))
    with pytest.raises(ValueError, match="expected min_ndim=2, found ndim=1"):
        Sequential([L.Input((3,)), L.Dense(2)])(tf.ones([3]))


def test_inferred_inputs_may_change():
    model = Sequential([L.Dense(2)])
    assert model(tf.ones([2, 3])).shape == (2, 2)
    assert model(tf.ones([2, 4, 3])).shape == (2, 4, 2)
    plain = Sequential([L.Activation("relu")])
    for shape in ((2, 3), (2, 4), (2, 4, 5)):
        assert plain(tf.ones(shape)).shape == shape


def test_layers_are_shown_by_name():
    dense = L.Dense(2, name="out")
    assert repr(dense) == "<Dense name=out, built=False>"
    dense.build((None, 3))
    assert repr([dense]) == "[<Dense name=out, built=True>]"
    assert repr(L.Layer.__new__(L.Layer)) == "<Layer name=None, built=False>"


def test_models_take_an_input_spec_of_their_own():
    x = L.Input((3,))
    inner = Sequential([L.Input((3,)), L.Dense(2)])
    for model in (tf.keras.Model(x, L.Dense(2)(x)), inner):
        assert model.input_spec[0].shape == (None, 3)
        model.input_spec = L.InputSpec(ndim=3)
        assert model.input_spec.ndim == 3
        with pytest.raises(ValueError, match="expected ndim=3, found ndim=2"):
            model(tf.ones([2, 3]))


def test_steps_that_a_layer_is_applied_to():
    def layer():
        return L.TimeDistributed(L.Dense(2), name="td")

    for shape in ((3,), (3, 2)):
        with pytest.raises(ValueError, match="at least 3 dimensions, received: "):
            layer()(np.ones(shape, np.float32))
    with pytest.raises(ValueError, match="Please initialize `TimeDistributed` layer"):
        L.TimeDistributed(3)
    made = layer()
    made(np.ones([3, 2, 2], np.float32))
    assert repr(made.input_spec) == "InputSpec(shape=(None, None, 2), ndim=3)"
    with pytest.raises(ValueError, match=r"expected shape=\(None, None, 2\), found"):
        made(np.ones([3, 2, 3], np.float32))
    rows = tf.ragged.constant([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]], ragged_rank=1)
    found = made(rows)
    np.testing.assert_array_equal(found.values, made.layer(rows.values))
    assert found.shape.as_list() == [2, None, 2]
