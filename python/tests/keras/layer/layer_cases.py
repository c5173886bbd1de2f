"""Layers, weights and values that tests/golden/keras/layers.npz keeps.

Written anew by a Python that has TensorFlow 2.21 and tf-keras:
`TF_USE_LEGACY_KERAS=1 python layer_cases.py`.
"""

import numpy as np

_RNG = np.random.RandomState(3)
STEPS = _RNG.randn(2, 5, 4).astype("float32")
IMAGE = _RNG.randn(2, 6, 7, 4).astype("float32")
VOLUME = _RNG.randn(1, 4, 3, 5, 2).astype("float32")
MOVES = _RNG.randn(2, 3, 5, 2).astype("float32")
FILMS = _RNG.randn(2, 3, 4, 5, 2).astype("float32")
VOLUMES = _RNG.randn(1, 2, 3, 3, 4, 2).astype("float32")
MASK = np.array([[1, 0, 1], [0, 1, 1]], bool)
FIRST = {"data_format": "channels_first"}


def layers(k):
    """{name: (layer, input, arguments of its call)}."""
    return {
        "conv1d_transpose": (k.Conv1DTranspose(3, 3, 2), STEPS),
        "conv1d_transpose_same": (k.Conv1DTranspose(3, 3, 2, "same"), STEPS),
        "conv1d_transpose_more": (k.Conv1DTranspose(3, 3, 2, "same", 1), STEPS),
        "conv1d_transpose_valid": (
            k.Conv1DTranspose(3, 2, 3, output_padding=2, activation="relu"),
            STEPS,
        ),
        "conv2d_transpose": (
            k.Conv2DTranspose(3, (3, 5), 2, "same", (0, 1)),
            IMAGE,
        ),
        "conv3d_transpose": (k.Conv3DTranspose(3, (2, 3, 2), 2), VOLUME),
        "conv3d_transpose_same": (
            k.Conv3DTranspose(2, 3, (1, 2, 1), "same", use_bias=False),
            VOLUME,
        ),
        "depthwise1d": (k.DepthwiseConv1D(2), STEPS),
        "depthwise1d_same": (
            k.DepthwiseConv1D(3, 2, "same", depth_multiplier=2, activation="tanh"),
            STEPS,
        ),
        "depthwise1d_dilated": (k.DepthwiseConv1D(2, dilation_rate=2), STEPS),
        "separable1d": (k.SeparableConv1D(3, 2), STEPS),
        "separable1d_causal": (
            k.SeparableConv1D(3, 2, 1, "causal", dilation_rate=2, depth_multiplier=2),
            STEPS,
        ),
        "separable1d_same": (k.SeparableConv1D(3, 3, 2, "same"), STEPS),
        "separable2d": (k.SeparableConv2D(3, 2, 2, depth_multiplier=2), IMAGE),
        "conv_lstm1d": (k.ConvLSTM1D(3, 2, padding="same"), MOVES),
        "conv_lstm1d_all": (
            k.ConvLSTM1D(
                2, 3, return_sequences=True, return_state=True, go_backwards=True
            ),
            MOVES,
        ),
        "conv_lstm1d_masked": (
            k.ConvLSTM1D(2, 3, strides=2, return_sequences=True),
            MOVES,
            {"mask": MASK},
        ),
        "conv_lstm2d": (
            k.ConvLSTM2D(3, (2, 3), strides=(2, 1), unit_forget_bias=False),
            FILMS,
        ),
        "conv_lstm2d_dilated": (
            k.ConvLSTM2D(
                2,
                2,
                padding="same",
                dilation_rate=2,
                use_bias=False,
                recurrent_activation="sigmoid",
            ),
            FILMS,
        ),
        "conv_lstm3d": (k.ConvLSTM3D(2, 2, return_sequences=True), VOLUMES),
        "padding3d": (k.ZeroPadding3D((1, (0, 2), 1)), VOLUME),
        "padding3d_first": (k.ZeroPadding3D(2, **FIRST), VOLUME),
        "cropping1d": (k.Cropping1D((1, 2)), STEPS),
        "cropping2d": (k.Cropping2D(((1, 2), (0, 3))), IMAGE),
        "cropping3d": (k.Cropping3D(((1, 0), (0, 1), (2, 1))), VOLUME),
        "upsampling2d_bilinear": (k.UpSampling2D(2, interpolation="bilinear"), IMAGE),
        "upsampling2d_bicubic": (
            k.UpSampling2D((3, 2), interpolation="bicubic"),
            IMAGE,
        ),
        "upsampling2d_first": (
            k.UpSampling2D((2, 3), "channels_first", "lanczos3"),
            IMAGE,
        ),
        "upsampling3d": (k.UpSampling3D((2, 1, 3)), VOLUME),
        "einsum_dense": (k.EinsumDense("abc,cd->abd", (None, 6), bias_axes="d"), STEPS),
        "einsum_dense_left": (
            k.EinsumDense("...x,xyz->...yz", (2, 3), "relu", "yz"),
            IMAGE,
        ),
        "einsum_dense_right": (
            k.EinsumDense("ab...,bc->ac...", 3, bias_axes="c"),
            IMAGE,
        ),
        "locally1d": (k.LocallyConnected1D(3, 2, 2), STEPS),
        "locally2d": (k.LocallyConnected2D(3, (2, 3), (2, 1), activation="elu"), IMAGE),
        "spectral": (
            k.SpectralNormalization(k.Conv2D(3, 2), power_iterations=3),
            IMAGE,
            {"training": True},
        ),
        "identity": (k.Identity(), STEPS),
        "spatial_dropout3d": (k.SpatialDropout3D(0.5), VOLUME),
        "gaussian_dropout": (
            k.GaussianDropout(0.5, seed=3),
            STEPS,
            {"training": True},
        ),
        "alpha_dropout": (k.AlphaDropout(0.5, seed=3), STEPS, {"training": True}),
    }


def fill(layer):
    """Weights that a formula gives."""
    rng = np.random.RandomState(5)
    layer.set_weights(
        [rng.uniform(-0.5, 0.5, w.shape).astype("float32") for w in layer.weights]
    )


def _plain(value):
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def rows(tf, name):
    """What a case gives: {key: array or plain value}."""
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(7)
    layer, x, *call = layers(tf.keras.layers)[name]
    call = call[0] if call else {}
    arguments = {k: tf.constant(v) if k == "mask" else v for k, v in call.items()}
    layer(x, **arguments)
    fill(layer)
    outputs = layer(x, **arguments)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    found = {f"output{i}": np.asarray(o) for i, o in enumerate(outputs)}
    found["weights"] = [
        [w.name, list(w.shape), bool(w.trainable)] for w in layer.weights
    ]
    found["config"] = _plain(layer.get_config())
    if name == "spectral":
        found["config"]["layer"].pop("build_config", None)
    if "einsum" in name:  # upstream's has the batch of the first call
        return found
    shape = layer.compute_output_shape((None, *x.shape[1:]))
    first = shape[0] if isinstance(shape, list) else shape
    found["shape"] = list(first)
    return found


def main():
    import json
    import pathlib

    import tensorflow as tf

    arrays, texts = {}, {}
    for name in layers(tf.keras.layers):
        for key, value in rows(tf, name).items():
            if isinstance(value, np.ndarray):
                arrays[f"{name}:{key}"] = value
            else:
                texts[f"{name}:{key}"] = value
    arrays["texts"] = np.frombuffer(json.dumps(texts).encode(), np.uint8)
    folder = pathlib.Path(__file__).parents[4] / "tests/golden/keras"
    np.savez_compressed(folder / "layers.npz", **arrays)


if __name__ == "__main__":
    main()
