"""Cases of test_random_images.py. recorded.py writes their values; it
wants TF_USE_LEGACY_KERAS=1."""

import numpy as np

_RNG = np.random.RandomState(2)
IMAGES = _RNG.uniform(0, 255, (3, 9, 11, 2)).astype("float32")
MODES = ("reflect", "wrap", "constant", "nearest")


def _two_calls(layer, images=IMAGES):
    """Batches draw for each image; the second call draws on."""
    return [layer(images, training=True), layer(images[0], training=True)]


def case_flip(tf):
    make = tf.keras.layers.RandomFlip
    modes = ("horizontal", "vertical", "horizontal_and_vertical")
    return [_two_calls(make(m, seed=s)) for m in modes for s in (1, 2)]


def case_crop(tf):
    make = tf.keras.layers.RandomCrop
    found = [_two_calls(make(4, 5, seed=s)) for s in (1, 2)]
    for size in ((9, 4), (9, 11), (12, 5), (4, 20)):
        layer = make(*size, seed=3)
        found += [_two_calls(layer), layer(IMAGES), layer(IMAGES, training=False)]
    return found


def case_rotation(tf):
    make = tf.keras.layers.RandomRotation
    found = [_two_calls(make(f, seed=4)) for f in (0.3, (0.1, 0.2), (-0.5, -0.4))]
    for mode in MODES:
        found.append(_two_calls(make(0.4, mode, "nearest", seed=5, fill_value=3.0)))
    return found


def case_translation(tf):
    make = tf.keras.layers.RandomTranslation
    found = [
        _two_calls(make(0.3, (-0.1, 0.2), seed=6)),
        _two_calls(make(0, 1.0, seed=6)),
    ]
    for mode in MODES:
        found.append(_two_calls(make(0.4, 0.4, mode, seed=7, fill_value=9)))
    return found


def case_zoom(tf):
    make = tf.keras.layers.RandomZoom
    found = [_two_calls(make(f, seed=8)) for f in (0.3, (0.2, 0.6), (-0.5, -0.3))]
    found.append(_two_calls(make(0.3, (0.1, 0.2), "constant", seed=9)))
    return found


def case_contrast(tf):
    make = tf.keras.layers.RandomContrast
    return [_two_calls(make(f, seed=10)) for f in (0.5, (0.1, 0.9), 0.0)]


def case_brightness(tf):
    make = tf.keras.layers.RandomBrightness
    found = [_two_calls(make(f, seed=11)) for f in (0.5, (-0.9, 0.1), -0.3)]
    layer = make(0.4, (1.0, -1.0), seed=12)
    return [*found, _two_calls(layer, IMAGES / 200 - 0.5)]


def case_sides(tf):
    k = tf.keras.layers
    found = []
    for make in (k.RandomHeight, k.RandomWidth):
        for method in ("bilinear", "nearest", "bicubic", "area"):
            found.append(_two_calls(make((-0.5, 0.4), method, seed=13)))
    return found


def case_dtypes(tf):
    k = tf.keras.layers
    whole = IMAGES.astype("uint8")
    found = []
    for make, arguments in (
        (k.RandomFlip, ()),
        (k.RandomCrop, (3, 3)),
        (k.RandomRotation, (0.3,)),
        (k.RandomContrast, (0.3,)),
        (k.RandomHeight, (0.3,)),
    ):
        for dtype in ("float32", "float64", "uint8"):
            layer = make(*arguments, seed=14, dtype=dtype)
            found += [layer(whole, training=True), layer(whole), layer(IMAGES[0])]
    return found


def case_in_a_traced_function(tf):
    k = tf.keras.layers
    layers = [
        k.RandomFlip(seed=15),
        k.RandomRotation(0.1, seed=16),
        k.RandomZoom(0.2, 0.3, seed=17),
        k.RandomTranslation(0.1, 0.2, seed=18),
        k.RandomContrast(0.3, seed=19),
        k.RandomBrightness(0.2, seed=20),
        k.RandomCrop(5, 6, seed=21),
        k.RandomWidth(0.3, seed=22),
    ]
    for layer in layers:  # streams are made outside
        layer(IMAGES, training=True)

    def change(images):
        for layer in layers:
            images = layer(images, training=True)
        return images

    spec = tf.TensorSpec([None, None, None, 2])
    change = tf.function(change, input_signature=[spec])
    return [change(IMAGES), change(IMAGES[:2, :, 1:])]


def case_seeds_that_nobody_gave(tf):
    tf.keras.utils.set_random_seed(23)
    first, second = tf.keras.layers.RandomFlip(), tf.keras.layers.RandomBrightness(0.5)
    found = [second(IMAGES, training=True), first(IMAGES, training=True)]
    return [*found, *_two_calls(tf.keras.layers.RandomTranslation(0.2, 0.2))]
