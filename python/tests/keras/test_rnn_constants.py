"""Recurrent layers whose cells take constants; states by position. Values are
TensorFlow's."""

import numpy as np
import pytest

import headrace as tf

L = tf.keras.layers
X, S, C = tf.ones((2, 4, 3)), tf.ones((2, 2)), tf.ones((2, 5))


class Cell(L.Layer):
    """Adds the sum of its constants to its state at each step."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = self.state_size = units

    def build(self, shape):
        initial = tf.keras.initializers.Constant(0.1)
        self.k = self.add_weight(name="k", shape=(3, self.units), initializer=initial)

    def call(self, x, states, constants):
        assert isinstance(constants, tuple)
        total = tf.reduce_sum(constants[0], 1, keepdims=True)
        h = tf.matmul(x, self.k) + states[0] * 0.5 + total
        return h, [h]

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def values(tensor):
    return np.asarray(tensor).tolist()


@pytest.mark.parametrize("unroll", [False, True])
def test_constants_come_by_name_by_position_or_last_in_a_list(unroll):
    layer = L.RNN(Cell(2), unroll=unroll)
    assert values(layer(X, constants=C)) == [[9.9375, 9.9375]] * 2
    for given in (layer(X, constants=[C], initial_state=S), layer(X, S, C)):
        np.testing.assert_allclose(given, np.full((2, 2), 10.0), rtol=1e-6)
    np.testing.assert_allclose(layer([X, S, C]), np.full((2, 2), 10.0), rtol=1e-6)
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool)
    masked = layer(X, S, C, mask=mask)
    np.testing.assert_allclose(masked, [[8.2, 8.2], [10.0, 10.0]], rtol=1e-6)
    np.testing.assert_allclose(
        tf.function(lambda x, c: layer(x, constants=c))(X, C), [[9.9375] * 2] * 2
    )
    with pytest.raises(AssertionError):
        layer([X, S], constants=C)


def test_a_model_with_states_and_constants_is_made_again_of_its_configuration():
    x, s, c = L.Input((4, 3)), L.Input((2,)), L.Input((5,))
    layer = L.RNN(Cell(2), return_sequences=True)
    model = tf.keras.Model([x, s, c], layer(x, initial_state=s, constants=c))
    data = [X.numpy(), S.numpy(), C.numpy()]
    expected = np.broadcast_to(np.array([5.8, 8.2, 9.4, 10.0])[:, None], (2, 4, 2))
    np.testing.assert_allclose(model.predict(data, verbose=0), expected, rtol=1e-6)
    assert layer.get_config()["num_constants"] == 1
    again = tf.keras.Model.from_config(model.get_config(), {"Cell": Cell})
    again.set_weights(model.get_weights())
    np.testing.assert_allclose(again.predict(data, verbose=0), expected, rtol=1e-6)
    # As TensorFlow writes such a node: a list, the constants last.
    listed = L.RNN.from_config(layer.get_config(), {"Cell": Cell})
    assert listed([x, s, c]).shape.as_list() == [None, 4, 2]


def test_cells_without_constants_refuse_them_and_stacks_hand_them_on():
    with pytest.raises(ValueError, match="RNN cell .* does not support constants"):
        L.RNN(L.SimpleRNNCell(2))(X, constants=C)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        L.RNN(Cell(2))(X)
    with pytest.raises(TypeError, match="unexpected keyword argument 'constants'"):
        L.LSTM(2)(X, constants=C)
    assert L.RNN([Cell(2), L.SimpleRNNCell(2)])(X, constants=C).shape == (2, 2)


def test_both_directions_get_constants_and_halves_of_the_states():
    layer = L.Bidirectional(L.RNN(Cell(2)))
    assert values(layer(X, constants=C)) == [[9.9375] * 4] * 2
    assert layer.get_config()["num_constants"] == 1
    plain = {"kernel_initializer": "ones", "recurrent_initializer": "zeros"}
    layer = L.Bidirectional(L.SimpleRNN(2, **plain))
    for given in (layer(X, [S, S]), layer([X, S, S])):
        np.testing.assert_allclose(given, np.full((2, 4), 0.9950547), rtol=1e-6)
    with pytest.raises(ValueError, match="should be a list containing the states"):
        layer(X, initial_state=S)
    with pytest.raises(ValueError, match="a mix of TF-Keras tensors and non-Keras"):
        layer(X, [S, L.Input((2,))])


def test_states_come_by_position():
    plain = {"kernel_initializer": "ones", "recurrent_initializer": "zeros"}
    given = L.LSTM(2, **plain)(X, [S, S])
    np.testing.assert_allclose(given, np.full((2, 2), 0.9523893), rtol=1e-6)
    given = L.GRU(2, **plain)(X, S)
    np.testing.assert_allclose(given, np.full((2, 2), 0.9991265), rtol=1e-6)
