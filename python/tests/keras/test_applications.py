"""tf.keras.applications: what tf_keras 2.21 has (application_cases.py says how)."""

import json

import application_cases
import numpy as np
import pytest

import headrace as tf

networks = tf.keras.applications
with open(application_cases.GOLDEN) as _file:
    _GOLDEN = json.load(_file)
_QUICK = (
    "MobileNet",
    "MobileNetV2",
    "MobileNetV3Small",
    "EfficientNetB0",
    "RegNetY002",
)
_QUICK += ("ConvNeXtTiny",)


def _rows(table, quick):
    return [
        pytest.param(name, marks=() if name in quick else pytest.mark.slow)
        for name in sorted(table)
    ]


@pytest.mark.parametrize("name", _rows(_GOLDEN["networks"], _QUICK))
def test_networks(name):
    tf.keras.backend.clear_session()
    model = getattr(networks, name)(weights=None)
    assert application_cases.facts(model) == _GOLDEN["networks"][name]


@pytest.mark.parametrize("name", _rows(_GOLDEN["outputs"], ("MobileNet", "RegNetX002")))
def test_outputs(name):
    found, expected = application_cases.output(tf, name), _GOLDEN["outputs"][name]
    # A share is e to what the layers give, so that an error grows with these.
    close = 1e-5 * (1 + np.ptp(np.log(np.maximum(expected, 1e-30))))
    np.testing.assert_allclose(found, expected, rtol=10 * close, atol=1e-9)


def test_all_families_are_there():
    families = [n for n in dir(networks) if n[0].islower()]
    assert len(families) == 19
    for name in families:
        found = getattr(networks, name)
        assert callable(found.preprocess_input) and callable(found.decode_predictions)


def test_without_tops():
    model = networks.MobileNet(weights=None, include_top=False, alpha=0.25)
    assert model.output_shape == (None, None, None, 256)
    assert model.name == "mobilenet_0.25_None"
    pooled = networks.MobileNet(
        weights=None, include_top=False, alpha=0.25, pooling="avg"
    )
    assert pooled.output_shape == (None, 256)
    x = tf.keras.Input((48, 48, 3))
    inner = tf.keras.layers.Rescaling(2.0)(x)
    model = networks.MobileNet(
        weights=None, include_top=False, alpha=0.25, input_tensor=inner
    )
    assert [layer.name for layer in model.layers][1:3] == ["rescaling", "conv1"]
    assert model.input.shape.as_list() == [None, 48, 48, 3]


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"weights": "foo"}, "`weights` argument should be either `None`"),
        ({"weights": "imagenet", "classes": 10}, "`classes` should be 1000"),
        ({"weights": "imagenet"}, "vgg16_weights_tf_dim_ordering_tf_kernels.h5"),
        ({"weights": "imagenet", "include_top": False}, "tf_kernels_notop.h5"),
        ({"weights": "imagenet", "input_shape": (224, 200, 3)}, "`input_shape` should"),
        ({"input_shape": (31, 31, 3), "include_top": False}, "at least 32x32"),
        ({"input_shape": (64, 64)}, "must be a tuple of three integers"),
        ({"input_shape": (None, None, 3)}, "specify a static `input_shape`"),
    ],
)
def test_bad_arguments(arguments, text, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ValueError, match=text):
        networks.VGG16(**{"weights": None, **arguments})


def test_weights_of_files(tmp_path, monkeypatch):
    pytest.importorskip("h5py")
    how = {"alpha": 0.25, "input_shape": (128, 128, 3)}
    model = networks.MobileNet(weights=None, **how)
    path = str(tmp_path / "m.h5")
    model.save_weights(path)
    again = networks.MobileNet(weights=path, **how)
    np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])
    with pytest.raises(ValueError, match="`None` and `softmax` activations"):
        networks.MobileNetV2(weights=path, classifier_activation="relu")


def test_preprocess_input():
    image = np.random.RandomState(0).rand(1, 2, 2, 3) * 255
    expected = {
        "vgg16": [49.7657, 65.5943, 16.2674, 60.764],
        "xception": [0.0976, 0.4304, 0.2055, 0.0898],
        "densenet": [0.2787, 1.1571, 0.8745, 0.2615],
        "regnet": [139.9474, 182.3733, 153.7047, 138.9452],
    }
    for name, values in expected.items():
        preprocess = getattr(networks, name).preprocess_input
        tensor = tf.constant(image, tf.float32)
        for x in (image.copy(), tensor):
            found = np.asarray(preprocess(x)).ravel()[:4]
            np.testing.assert_allclose(found, values, atol=2e-4)
        whole = preprocess(image.astype("uint8"))
        assert whole.dtype == (np.uint8 if name == "regnet" else np.float32)
    with pytest.raises(ValueError, match="Expected mode to be one of"):
        networks.imagenet_utils.preprocess_input(image, mode="foo")
    with pytest.raises(ValueError, match="Expected data_format to be one of"):
        networks.vgg16.preprocess_input(image, data_format="foo")


def test_decode_predictions(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    decode = networks.vgg16.decode_predictions
    for shape in ((2, 10), (1000,)):
        with pytest.raises(ValueError, match="expects a batch of predictions"):
            decode(np.zeros(shape))
    with pytest.raises(ValueError, match="imagenet_class_index.json"):
        decode(np.zeros((1, 1000)))
    folder = tmp_path / ".keras" / "models"
    folder.mkdir(parents=True)
    names = {str(i): [f"n{i}", f"class {i}"] for i in range(1000)}
    (folder / "imagenet_class_index.json").write_text(json.dumps(names))
    shares = np.zeros((1, 1000))
    shares[0, [7, 3]] = 0.7, 0.2
    assert decode(shares, top=2) == [[("n7", "class 7", 0.7), ("n3", "class 3", 0.2)]]
