"""Layers that change images at random give tf-keras' images for a seed."""

import headrace as tf
import numpy as np
import pytest
import random_image_cases as cases
import recorded

layers = tf.keras.layers


@pytest.mark.parametrize("name", recorded.names(cases))
def test_as_recorded(name):
    recorded.check(cases, name, tf, rtol=1e-4, atol=2e-2)


def _every(**kwargs):
    return [
        layers.RandomFlip("vertical", **kwargs),
        layers.RandomCrop(3, 4, **kwargs),
        layers.RandomRotation((-0.1, 0.2), "wrap", **kwargs),
        layers.RandomTranslation(0.1, (0.2, 0.3), fill_value=2.0, **kwargs),
        layers.RandomZoom(0.5, interpolation="nearest", **kwargs),
        layers.RandomContrast((0.1, 0.2), **kwargs),
        layers.RandomBrightness(0.3, (0.0, 1.0), **kwargs),
        layers.RandomHeight(0.3, "area", **kwargs),
        layers.RandomWidth((0.1, 0.2), **kwargs),
    ]


@pytest.mark.parametrize(
    "layer", _every(seed=3, name="a"), ids=lambda x: type(x).__name__
)
def test_configurations(layer):
    config = layer.get_config()
    assert config["rng_type"] == "stateful" and config["seed"] == 3
    copy = layers.deserialize(layers.serialize(layer))
    assert copy.get_config() == config
    images = tf.constant(cases.IMAGES)
    for _ in range(2):
        np.testing.assert_array_equal(
            layer(images, training=True), copy(images, training=True)
        )
    assert layer.weights == []


def test_static_shapes():
    for layer in _every():
        for sizes in ((None, None, 3), (6, 7, 3)):
            shape = layer(tf.keras.Input(sizes)).shape
            want = [None, *sizes]
            if isinstance(layer, layers.RandomCrop):
                want[1:3] = 3, 4
            elif isinstance(layer, layers.RandomHeight):
                want[1] = None
            elif isinstance(layer, layers.RandomWidth):
                want[2] = None
            assert shape.as_list() == want, layer


def test_bytes_do_not_wrap_around():
    layer = layers.RandomBrightness((0.5, 0.5), seed=1, dtype="uint8")
    got = layer(np.array([[[0, 100, 200]]], "uint8"), training=True)
    assert got.dtype == tf.uint8 and got.numpy().tolist() == [[[127, 227, 255]]]


def test_only_training_changes_images():
    images = cases.IMAGES
    model = tf.keras.Sequential(
        [
            layers.RandomFlip(seed=1),
            layers.RandomRotation(0.3, seed=2),
            layers.Flatten(),
        ]
    )
    plain = images.reshape(3, -1)
    np.testing.assert_array_equal(model.predict(images, verbose=0), plain)
    np.testing.assert_array_equal(model(images, training=False), plain)
    assert not np.array_equal(model(images, training=True), plain)
    assert not np.array_equal(model(images), plain)
    # a tensor tells as well
    for layer in _every():
        change = tf.function(lambda x, training: layer(x, training=training))
        same = change(images, tf.constant(False))
        np.testing.assert_array_equal(same, layer(images, training=False))
        drawn = change(images, tf.constant(True))
        assert drawn.shape != same.shape or not np.array_equal(drawn, same), layer
    # fit trains, and draws anew in each step
    seen = []

    class Watch(layers.Layer):
        def call(self, inputs):
            tf.py_function(lambda x: seen.append(x.numpy()), [inputs], [])
            return inputs

    model = tf.keras.Sequential(
        [layers.RandomTranslation(0.5, 0.5, seed=1), Watch(), layers.Flatten()]
    )
    model.add(layers.Dense(1))
    model.compile("sgd", "mse")
    model.fit(images, np.zeros(3), epochs=2, verbose=0)
    assert len(seen) == 2 and not np.array_equal(*seen)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: layers.RandomFlip("x"), ValueError, "unknown mode argument x"),
        (lambda: layers.RandomRotation((0.3, 0.2)), ValueError, "negative value"),
        (
            lambda: layers.RandomRotation(0.1, fill_mode="x"),
            NotImplementedError,
            "Unknown `fill_mode` x",
        ),
        (
            lambda: layers.RandomZoom(0.1, interpolation="x"),
            NotImplementedError,
            "Unknown `interpolation` x",
        ),
        (
            lambda: layers.RandomTranslation((-0.2, 1.5), 0.1),
            ValueError,
            "`height_factor` argument must have values between",
        ),
        (
            lambda: layers.RandomTranslation(0.1, (0.3, 0.2)),
            ValueError,
            "`width_factor` cannot have upper bound less",
        ),
        (lambda: layers.RandomZoom(-2.0), ValueError, "values between"),
        (lambda: layers.RandomContrast(1.5), ValueError, "negative values or values"),
        (lambda: layers.RandomBrightness(1.5), ValueError, "in the range"),
        (lambda: layers.RandomBrightness((1, 0, 1)), ValueError, "two numbers"),
        (lambda: layers.RandomBrightness(1, (1,)), ValueError, "`value_range`"),
        (lambda: layers.RandomHeight(-0.1), ValueError, "upper bound"),
        (lambda: layers.RandomWidth((-1.5, 0.2)), ValueError, "larger than -1"),
        (lambda: layers.RandomWidth(0.1, "x"), NotImplementedError, "not recognized"),
        (lambda: layers.RandomFlip(rng_type="stateless"), ValueError, "rng_type"),
        (
            lambda: layers.RandomBrightness(0.1)(tf.ones([3]), training=True),
            ValueError,
            "rank 3 or 4",
        ),
    ],
)
def test_refusals(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


tf.keras.backend.clear_session()  # names that other files' layers get
