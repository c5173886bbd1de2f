"""Cells of TensorFlow 1 beyond what they compute (see also ../network_cases.py)."""

import copy

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
cells = v1.nn.rnn_cell
TUPLE = cells.LSTMStateTuple


def wave(*shape, k=1):
    n = int(np.prod(shape))
    return np.sin(np.arange(n) * 0.7 * k + k).reshape(shape).astype("f4")


# Output and state of a wrapped LSTM under one seed, in TensorFlow 2.21.
C = [[0.09096, 0.5641, 0.67992], [0.50333, -0.13917, -0.92117]]
H = [[0.12029, 0.19238, 0.04368], [0.53729, -0.03828, -0.13154]]
OUTPUTS = {
    False: [[0.14033, 0.0, 0.05096], [0.62684, 0.0, 0.0]],
    True: [[0.14033, 0.0, 0.05096], [0.62684, 0.0, -0.15346]],
}


@pytest.mark.parametrize("same", [False, True])
def test_dropout_of_a_seed(same):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(5)
        cell = cells.DropoutWrapper(
            cells.BasicLSTMCell(3),
            0.5,
            0.6,
            0.7,
            variational_recurrent=same,
            input_size=2,
            dtype=tf.float32,
            seed=3,
        )
        state = TUPLE(tf.constant(wave(2, 3)), tf.constant(wave(2, 3)))
        found = cell(tf.constant(wave(2, 2)), state)
        session.run(v1.global_variables_initializer())
        for variable in v1.global_variables():
            variable.load(wave(*variable.shape.as_list(), k=2), session)
        output, state = session.run(found)
    np.testing.assert_allclose(output, OUTPUTS[same], atol=1e-5)
    np.testing.assert_allclose(state.c, C, atol=1e-5)
    np.testing.assert_allclose(state.h, H, atol=1e-5)


def _dropped(cell, visitor, state):
    with tf.Graph().as_default():
        wrapped = cells.DropoutWrapper(
            cell(), state_keep_prob=0.5, dropout_state_filter_visitor=visitor
        )
        state = tf.nest.map_structure(tf.constant, state)
        _, new = wrapped(tf.constant(wave(2, 2)), state)
        return tf.nest.map_structure(lambda t: "dropout" in t.name, new)


def test_what_of_a_state_is_dropped():
    def stacked():
        return cells.MultiRNNCell([cells.BasicLSTMCell(3), cells.GRUCell(2)])

    def memory_alone(part):
        return TUPLE(c=True, h=False) if isinstance(part, TUPLE) else True

    state = (TUPLE(wave(2, 3), wave(2, 3)), wave(2, 2))
    assert _dropped(stacked, None, state) == (TUPLE(False, True), True)
    assert _dropped(stacked, memory_alone, state) == (TUPLE(True, False), True)
    assert _dropped(stacked, lambda _: False, state) == (TUPLE(False, False), False)


def test_wrappers_have_the_cell_and_no_weights_of_their_own():
    inner = cells.GRUCell(3)
    wrapped = cells.DropoutWrapper(inner, input_keep_prob=tf.constant(0.5))
    assert wrapped.wrapped_cell is inner
    assert (wrapped.state_size, wrapped.output_size) == (3, 3)
    with pytest.raises(NotImplementedError, match="dropout_state_filter_visitor"):
        cells.DropoutWrapper(
            inner, dropout_state_filter_visitor=lambda s: True
        ).get_config()
    config = cells.DeviceWrapper(inner, "cpu:0").get_config()
    assert config["device"] == "cpu:0" and config["cell"]["class_name"] == "GRUCell"
    made = cells.DeviceWrapper.from_config({**config, "cell": inner})
    assert made.cell is inner


def test_eager_gradients_through_time():
    cell, x = cells.GRUCell(3), tf.constant(wave(2, 4, 3))
    run = lambda: v1.nn.dynamic_rnn(cell, x, [2, 4], dtype=tf.float32)  # noqa: E731
    run()
    for variable in cell.variables:
        variable.assign(wave(*variable.shape.as_list(), k=2))
    with tf.GradientTape() as tape:
        outputs, _ = run()
        loss = tf.reduce_sum(outputs * outputs)
    found = [
        float(tf.reduce_sum(g)) for g in tape.gradient(loss, cell.trainable_weights)
    ]
    np.testing.assert_allclose(found, [0.394, -2.6301, -0.3531, 0.0678], atol=2e-4)
    np.testing.assert_allclose(outputs[0, :, 0], [0.35607, 0.58831, 0, 0], atol=1e-5)


def test_traced_functions_and_no_steps():
    cell, x = cells.BasicLSTMCell(3), tf.constant(wave(2, 4, 3))
    call = tf.function(lambda x, n: v1.nn.dynamic_rnn(cell, x, n, dtype=tf.float32))
    outputs, state = call(x, [2, 4])
    plain, same = v1.nn.dynamic_rnn(cell, x, [2, 4], dtype=tf.float32)
    np.testing.assert_allclose(outputs, plain, atol=1e-6)
    np.testing.assert_allclose(state.h, same.h, atol=1e-6)
    np.testing.assert_allclose(state.h[0], outputs[0, 1], atol=1e-6)
    nothing, state = v1.nn.dynamic_rnn(cell, x[:, :0], dtype=tf.float32)
    assert nothing.shape == (2, 0, 3) and not np.any(state.h)
    none, _ = v1.nn.dynamic_rnn(cell, x[:0], dtype=tf.float32)
    assert none.shape == (0, 4, 3)


def test_lengths_that_are_not_the_batch_are_refused_at_the_run():
    with tf.Graph().as_default(), v1.Session() as session:
        lengths = v1.placeholder(tf.int32, [None])
        x = tf.constant(wave(2, 4, 3))
        out, _ = v1.nn.dynamic_rnn(cells.GRUCell(3), x, lengths, dtype=tf.float32)
        session.run(v1.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape for"):
            session.run(out, {lengths: [1, 2, 3]})
        found = session.run(
            out, {lengths: [-1, 9]}
        )  # beyond what there is: no step, all
        assert not np.any(found[0]) and np.all(found[1] != 0)


def test_copies_and_configurations_of_cells():
    cell = cells.LSTMCell(3, num_proj=2, use_peepholes=True)
    assert copy.deepcopy(cell).state_size == TUPLE(3, 2)
    assert cells.LSTMCell.from_config(cell.get_config()).output_size == 2
    config = cells.BasicRNNCell(3, "relu", name="n").get_config()
    assert config == {
        "name": "n",
        "trainable": True,
        "dtype": None,
        "num_units": 3,
        "activation": "relu",
        "reuse": None,
    }


def test_checkpoints_of_stacked_cells(tmp_path):
    inner = cells.DropoutWrapper(cells.BasicLSTMCell(2), 0.5)
    cell = cells.MultiRNNCell([cells.GRUCell(2), inner])
    cell(tf.ones([1, 3]), cell.zero_state(1, tf.float32))
    path = tf.train.Checkpoint(cell=cell).save(str(tmp_path / "c"))
    names = {name.partition("/.")[0] for name, _ in tf.train.list_variables(path)}
    assert {
        "cell/cell-0/gates.Skernel",
        "cell/cell-0/candidate.Sbias",
        "cell/cell-1/cell/kernel",
    } <= names


def test_wrappers_of_keras_cells():
    keras = tf.keras.layers
    x, state = tf.constant(wave(2, 3)), [tf.zeros([2, 3])] * 2
    inner = keras.LSTMCell(3)
    wrapped = tf.nn.RNNCellResidualWrapper(inner)
    output, new = wrapped(x, state)
    assert [v.name for v in wrapped.weights][:1] == ["residual_wrapper/kernel:0"]
    plain, _ = inner(x, state)
    np.testing.assert_allclose(output, plain + x, atol=1e-6)
    assert len(new) == 2
    assert keras.RNN(wrapped)(tf.ones([2, 4, 3])).shape == (2, 3)
    config = tf.nn.RNNCellDropoutWrapper(keras.GRUCell(3), 0.5, seed=3).get_config()
    made = tf.nn.RNNCellDropoutWrapper.from_config(config)
    assert made.get_config()["input_keep_prob"] == 0.5 and made.cell.units == 3
    on_device = tf.nn.RNNCellDeviceWrapper(keras.GRUCell(3), "/cpu:0")
    assert on_device(x, state[0])[0].shape == (2, 3)
    with pytest.raises(TypeError, match="device"):
        tf.nn.RNNCellDeviceWrapper(keras.GRUCell(3))
    with pytest.raises(AttributeError, match="'int' object has no attribute 'call'"):
        tf.nn.RNNCellDropoutWrapper(3)


def test_cells_of_both_kinds_in_the_others_loops():
    keras, x = tf.keras.layers, tf.ones([2, 4, 3])
    assert keras.RNN(cells.GRUCell(3))(x).shape == (2, 3)
    outputs, state = v1.nn.dynamic_rnn(keras.LSTMCell(3), x, dtype=tf.float32)
    assert outputs.shape == (2, 4, 3) and [s.shape for s in state] == [(2, 3)] * 2
    stacked = keras.StackedRNNCells([keras.LSTMCell(3), keras.GRUCell(2)])
    assert v1.nn.dynamic_rnn(stacked, x, dtype=tf.float32)[0].shape == (2, 4, 2)


def test_an_initializer_is_for_kernels():
    ones = tf.ones_initializer()
    with tf.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("s", initializer=ones):
            cell = cells.LSTMCell(2, initializer=ones, use_peepholes=True)
            cell(tf.ones([1, 2]), cell.zero_state(1, tf.float32))
        session.run(v1.global_variables_initializer())
        values = {v.op.name: session.run(v) for v in v1.global_variables()}
        assert {n.rpartition("/")[2] for n, v in values.items() if v.all()} == {
            "kernel",
            "w_f_diag",
            "w_i_diag",
            "w_o_diag",
        }
        assert not values["s/lstm_cell/bias"].any()
