"""Layers give tf-keras' values, weights and configurations (see layer_cases.py)."""

import json
import pathlib

import headrace as tf
import layer_cases as cases
import numpy as np
import pytest

GOLDEN = pathlib.Path(__file__).parents[4] / "tests/golden/keras/layers.npz"
NAMES = list(cases.layers(tf.keras.layers))
tf.keras.backend.clear_session()  # names that other files' layers get


@pytest.fixture(scope="module")
def golden():
    file = np.load(GOLDEN)
    return file, json.loads(bytes(file["texts"]))


@pytest.mark.parametrize("name", NAMES)
def test_layer(golden, name):
    arrays, texts = golden
    found = cases.rows(tf, name)
    for key, value in found.items():
        full = f"{name}:{key}"
        if not isinstance(value, np.ndarray):
            assert value == texts[full], key
            continue
        assert value.dtype == arrays[full].dtype
        assert value.shape == arrays[full].shape
        np.testing.assert_allclose(value, arrays[full], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_from_config_and_traced(name):
    layer, x, *_ = cases.layers(tf.keras.layers)[name]
    layer(x)
    copy = type(layer).from_config(layer.get_config())
    copy(x)
    assert copy.get_config() == layer.get_config()
    copy.set_weights(layer.get_weights())
    want = tf.nest.flatten(layer(x))
    unknown = [None] * (1 if "locally" in name or "einsum" in name else x.ndim - 1)
    spec = tf.TensorSpec([*unknown, *x.shape[len(unknown) :]], tf.float32)
    if "first" in name:
        spec = tf.TensorSpec(x.shape, tf.float32)
    traced = tf.nest.flatten(tf.function(copy, input_signature=[spec])(x))
    for a, b in zip(want, traced, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_names_of_classes():
    tf.keras.backend.clear_session()
    for name, want in (
        ("ConvLSTM1D", "conv_lstm1d"),
        ("XLNet2Big", "xl_net2_big"),
        ("GPT2Model", "gpt2_model"),
        ("B2Net", "b2_net"),
    ):
        assert type(name, (tf.keras.layers.Layer,), {})().name == want


def test_ring_kernels():
    for size, want in ((4, [15, 5, 5, 15]), (5, [18, 12, 6, 12, 18])):
        kernel = tf.reshape(tf.range(float(size**2)), [size, size, 1, 1])
        found = tf.keras.constraints.RadialConstraint()(kernel)
        assert np.diag(found[:, :, 0, 0]).tolist() == want
    with pytest.raises(ValueError, match="must have rank 4"):
        tf.keras.constraints.RadialConstraint()(tf.ones([2, 2]))


def test_errors():
    layers = tf.keras.layers
    for make, text in (
        (lambda: layers.Conv2D(2, 2, 2, dilation_rate=2), "not supported in conjunct"),
        (lambda: layers.DepthwiseConv1D(2, padding="causal"), "Causal padding is only"),
        (lambda: layers.Conv1DTranspose(2, 2, 2, output_padding=2), "Strides must be"),
        (lambda: layers.Conv1DTranspose(2, 2)(tf.ones([1, 2, 2, 2])), "ndim=3|rank 3"),
        (
            lambda: layers.LocallyConnected1D(2, 2, padding="same"),
            "Invalid border mode",
        ),
        (lambda: layers.Cropping2D(3)(tf.ones([1, 5, 4, 1])), "must be greater than"),
        (lambda: layers.EinsumDense("a,b", 4)(tf.ones([2])), "Invalid einsum equation"),
        (lambda: layers.SpectralNormalization(layers.ReLU())(tf.ones([2])), "kernel"),
    ):
        with pytest.raises(ValueError, match=text):
            make()
    with pytest.raises(TypeError, match="Unrolling is not possible"):
        layers.ConvLSTM1D(3, 2, unroll=True)


def test_conv_lstm_keeps_states_and_learns():
    layers = tf.keras.layers
    x = np.random.RandomState(0).randn(2, 3, 5, 2).astype("float32")
    layer = layers.ConvLSTM1D(3, 2, stateful=True)
    first = layer(x).numpy()
    assert [s.shape for s in layer.states] == [(2, 4, 3)] * 2
    assert np.abs(layer(x) - first).max() > 1e-4
    layer.reset_states()
    np.testing.assert_allclose(layer(x), first)
    model = tf.keras.Sequential(
        [
            layers.ConvLSTM1D(4, 2, input_shape=(3, 5, 2), dropout=0.1),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(0.05), "mse")
    history = model.fit(x, np.ones([2, 1]), epochs=30, verbose=0).history["loss"]
    assert history[-1] < history[0] / 2
