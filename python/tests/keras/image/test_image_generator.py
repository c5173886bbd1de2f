"""tf.keras.preprocessing.image's changes and batches; values are what tf_keras 2.21
gave (with SciPy and Pillow, which are not needed here)."""

import numpy as np
import pytest

import headrace as tf

I = tf.keras.preprocessing.image
X = np.random.RandomState(0).randint(0, 255, (5, 6, 3)).astype("float32")
MANY = np.random.RandomState(1).rand(7, 5, 6, 3) * 255
AXES = {"row_axis": 0, "col_axis": 1, "channel_axis": 2}


def _check(found, total, *first):
    found = np.asarray(found, "float64")
    np.testing.assert_allclose(found.sum(), total, atol=2e-3)
    np.testing.assert_allclose(found.ravel()[: len(first)], first, atol=2e-3)


@pytest.mark.parametrize(
    "mode, turned, nearest, far",
    [
        ("nearest", (10617.254, 129.384), (8277.0, 193.0), (11544.0, 216.0)),
        ("constant", (6023.527, 129.384), (2645.0, 193.0), (630.0, 7.0)),
        ("reflect", (10739.056, 129.384), (9836.0, 193.0), (11499.0, 57.0)),
        ("wrap", (11362.211, 129.384), (11396.0, 193.0), (10720.5, 202.0)),
    ],
)
def test_affine(mode, turned, nearest, far):
    how = {"fill_mode": mode, "cval": 7.0, **AXES}
    change = I.apply_affine_transform
    many = {"theta": 30, "tx": 1, "ty": 0.5, "shear": 10, "zx": 0.8, "zy": 1.2}
    _check(change(X, **many, **how), *turned)
    _check(change(X, theta=50, tx=3, order=0, **how), *nearest)
    _check(change(X, tx=9, zx=2.5, zy=3, **how), *far)
    first = np.moveaxis(X, 2, 0)
    found = change(first, **many, fill_mode=mode, cval=7.0)
    _check(np.moveaxis(found, 0, 2), *turned)


@pytest.mark.parametrize(
    "change, arguments, expected",
    [
        ("rotation", (40,), (11319.751, 175.644, 50.644)),
        ("shift", (0.3, 0.4), (10949.367, 84.702, 141.282)),
        ("shear", (30,), (11346.233, 174.237, 50.116)),
        ("zoom", ((0.5, 1.5),), (11272.527, 172.0, 47.0, 117.0, 190.984)),
    ],
)
def test_random(change, arguments, expected):
    np.random.seed(3)
    _check(getattr(I, f"random_{change}")(X, *arguments, 0, 1, 2), *expected)


def test_colours():
    np.random.seed(3)
    _check(I.random_channel_shift(X, 40, 2), 11655.553, 176.064, 51.064, 121.064)
    _check(I.apply_channel_shift(X, 40, 2), 14581.0, 212.0, 87.0)
    np.random.seed(3)
    _check(I.random_brightness(X, (0.5, 1.5)), 11745.0, 180.0, 48.0, 121.0)
    _check(I.apply_brightness_shift(X, 0.5), 5608.0, 86.0, 23.0, 58.0)
    _check(I.apply_brightness_shift(X, 1.7, scale=False), 15921.0, 255.0, 79.0)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: I.random_zoom(X, (0.5,), 0, 1, 2), ValueError, "two floats"),
        (
            lambda: I.apply_affine_transform(X, row_axis=2, channel_axis=2),
            ValueError,
            "must be distinct",
        ),
        (
            lambda: I.apply_affine_transform(X, theta=3, fill_mode="foo", **AXES),
            RuntimeError,
            "boundary mode not supported",
        ),
        (
            lambda: I.apply_affine_transform(X, theta=3, order=3, **AXES),
            NotImplementedError,
            "splines of order 3",
        ),
        (lambda: I.ImageDataGenerator(zoom_range="a"), ValueError, "zoom_range"),
        (lambda: I.ImageDataGenerator(data_format="foo"), ValueError, "data_format"),
        (lambda: I.ImageDataGenerator(validation_split=2), ValueError, "strictly"),
        (lambda: I.ImageDataGenerator(brightness_range=3), ValueError, "brightness_"),
        (lambda: I.ImageDataGenerator().flow(MANY[0]), ValueError, "rank 4"),
        (lambda: I.ImageDataGenerator().fit(MANY[0]), ValueError, "rank 4"),
        (
            lambda: I.ImageDataGenerator().flow(MANY, np.arange(3)),
            ValueError,
            r"x.shape = \(7, 5, 6, 3\), y.shape = \(3,\)",
        ),
        (
            lambda: I.ImageDataGenerator().flow(MANY, subset="foo"),
            ValueError,
            "Invalid subset name",
        ),
        (lambda: I.ImageDataGenerator().flow_from_dataframe(3), TypeError, "pandas"),
        (lambda: I.ImageDataGenerator().flow(MANY)[3], ValueError, "has length 1"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_random_transform():
    many = I.ImageDataGenerator(
        rotation_range=30,
        width_shift_range=0.2,
        height_shift_range=[-1, 0, 2],
        shear_range=10,
        zoom_range=0.3,
        channel_shift_range=20,
        horizontal_flip=True,
        vertical_flip=True,
        fill_mode="reflect",
    )
    found = many.get_random_transform((5, 6, 3), seed=5)
    expected = {"theta": -16.68041, "tx": 0, "ty": -0.32703, "shear": 9.5889}
    expected |= {"zx": 0.75389, "zy": 0.93804, "channel_shift_intensity": 19.63284}
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5)
    assert found["flip_horizontal"] and found["flip_vertical"]
    assert found["brightness"] is None
    _check(many.random_transform(X, seed=5), 12928.925, 91.515, 130.384, 144.926)
    _check(many.apply_transform(X, {"theta": 10, "flip_horizontal": True}), 11360.589)
    changes = {"channel_shift_intensity": 5, "brightness": 0.7}
    _check(many.apply_transform(X, changes), 8173.0, 123.0, 36.0, 85.0)
    other = I.ImageDataGenerator(
        width_shift_range=2,
        height_shift_range=1.5,
        brightness_range=(0.5, 1.5),
        zoom_range=[0.9, 1.1],
    )
    found = other.get_random_transform((5, 6, 3), seed=7)
    np.testing.assert_allclose(found["tx"], -1.27108, atol=1e-5)
    assert found["ty"] == -1
    _check(other.random_transform(X, seed=7), 11390.0, 172.0, 47.0, 117.0)


def test_flow():
    y = np.arange(7)
    batches = I.ImageDataGenerator().flow(MANY, y, batch_size=3, seed=2)
    found = [next(batches) for _ in range(4)]
    labels = [b[1].tolist() for b in found]
    assert labels == [[4, 1, 3], [2, 6, 5], [0], [6, 2, 4]]
    _check(found[0][0], 34062.286, 76.563, 36.466, 229.834)
    turning = I.ImageDataGenerator(rotation_range=20, horizontal_flip=True)
    x, labels = next(turning.flow(MANY, y, batch_size=3, seed=9))
    assert labels.tolist() == [5, 1, 2]
    _check(x, 35340.734, 119.268, 95.156, 232.006)
    halves = I.ImageDataGenerator(rescale=1 / 255.0)
    _check(next(halves.flow(MANY, batch_size=4, shuffle=False)), 184.28, 0.417, 0.72)
    plain = I.ImageDataGenerator().flow(MANY, batch_size=3)
    assert len(plain) == 3 and plain[2].shape == (1, 5, 6, 3)
    weighted = I.ImageDataGenerator().flow(MANY, y, sample_weight=y, batch_size=2)
    assert [len(part) for part in next(weighted)] == [2, 2, 2]
    (x, more), _ = next(I.ImageDataGenerator().flow((MANY, y), y, batch_size=2))
    assert (x.shape, more.shape) == ((2, 5, 6, 3), (2,))
    split = I.ImageDataGenerator(validation_split=0.3)
    labels = np.array([0, 1] * 3 + [0])
    assert len(split.flow(MANY, labels, subset="validation")[0][1]) == 2
    with pytest.raises(ValueError, match="different number of classes"):
        split.flow(MANY, y, subset="training")


def test_fit_and_standardize():
    generator = I.ImageDataGenerator(
        featurewise_center=True, featurewise_std_normalization=True
    )
    generator.fit(MANY)
    _check(generator.mean, 385.014, 125.239, 135.431, 124.344)
    _check(generator.std, 223.636, 72.216, 76.63, 74.79)
    _check(generator.standardize(MANY[0].copy()), -5.488, -0.262, 0.63, -1.662)
    white = I.ImageDataGenerator(zca_whitening=True)
    small = MANY[:, :2, :2]
    white.fit(small)
    _check(white.standardize(small[0].copy()), -2.625, -0.753, 0.154, -0.995)
    own = I.ImageDataGenerator(
        samplewise_center=True, samplewise_std_normalization=True
    )
    _check(own.standardize(MANY[0].copy()), 0.0, -0.235, 0.795, -1.651)
    more = I.ImageDataGenerator(featurewise_center=True, rotation_range=10)
    more.fit(MANY, augment=True, rounds=2, seed=4)
    _check(more.mean, 385.048, 125.49, 135.419, 124.14)


def test_model_fits_batches():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Flatten(input_shape=(5, 6, 3)),
            tf.keras.layers.Dense(1, kernel_initializer="zeros"),
        ]
    )
    model.compile("sgd", "mse")
    batches = I.ImageDataGenerator(rescale=1 / 255.0).flow(
        MANY, np.ones([7, 1]), batch_size=3, seed=1
    )
    history = model.fit(batches, epochs=2, verbose=0).history
    assert len(history["loss"]) == 2 and history["loss"][1] < history["loss"][0]


def test_directories(tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    for name, count in (("a", 3), ("b", 2)):
        (tmp_path / name / "s").mkdir(parents=True)
        for i in range(count):
            values = (np.random.RandomState(i).rand(8, 9, 3) * 255).astype("uint8")
            image.fromarray(values).save(tmp_path / name / f"{i}.png")
    (tmp_path / "a" / "x.txt").write_text("x")
    found = I.ImageDataGenerator().flow_from_directory(
        tmp_path, target_size=(6, 7), batch_size=4, seed=1, class_mode="sparse"
    )
    assert capsys.readouterr().out == "Found 5 images belonging to 2 classes.\n"
    assert found.class_indices == {"a": 0, "b": 1}
    x, labels = next(found)
    assert x.shape == (4, 6, 7, 3) and set(labels) <= {0.0, 1.0}


class _Table(dict):
    """As much of a pandas.DataFrame as is asked for."""

    columns = property(list)


def test_folders_without_pillow_and_tables(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.png").write_bytes(b"")
    make = I.ImageDataGenerator(validation_split=0.5)
    found = make.flow_from_directory(tmp_path)
    assert (found.n, found.filenames) == (2, ["a/0.png", "b/0.png"])
    assert found.labels.tolist() == [0, 1]
    with pytest.raises(ValueError, match="Invalid class_mode: foo"):
        make.flow_from_directory(tmp_path, class_mode="foo")
    with pytest.raises(ValueError, match="Invalid color mode"):
        make.flow_from_directory(tmp_path, color_mode="foo")
    with pytest.raises(ValueError, match="Invalid subset name: foo"):
        make.flow_from_directory(tmp_path, subset="foo")
    table = _Table(filename=["a/0.png", "b/0.png", "none.png"])
    table["class"] = ["x", "y", "y"]
    rows = make.flow_from_dataframe(table, tmp_path, class_mode="sparse")
    assert (rows.n, rows.labels, rows.class_indices) == (2, [0, 1], {"x": 0, "y": 1})
