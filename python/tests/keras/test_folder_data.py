"""Datasets of folders, and split_dataset: orders, texts and sizes are tf_keras 2.21's."""

import os

import numpy as np
import pytest

import headrace as tf

utils = tf.keras.utils


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = str(tmp_path_factory.mktemp("classes"))
    for i in range(12):
        for c in "ab":
            for kind in ("images", "texts", "sounds"):
                os.makedirs(f"{root}/{kind}/{c}", exist_ok=True)
            image = np.full((4, 6, 3), i * 10 + (c == "b"), "uint8")
            sound = np.full((5 + i % 2, 1), i / 16 + (c == "b") / 32, "float32")
            for path, data in (
                (f"images/{c}/{i}.png", tf.io.encode_png(image)),
                (f"texts/{c}/{i}.txt", tf.constant(f"{c}{i}")),
                (f"sounds/{c}/{i}.wav", tf.audio.encode_wav(sound, 8000)),
            ):
                tf.io.write_file(f"{root}/{path}", data)
    return root


def _images(folder, **kwargs):
    return utils.image_dataset_from_directory(
        f"{folder}/images", **{"image_size": (4, 6), "batch_size": 5, **kwargs}
    )


def _first_pixels(dataset):
    return [
        (x.numpy()[:, 0, 0, 0].astype(int).tolist(), y.numpy().tolist())
        for x, y in dataset
    ]


def test_images_in_order_of_names(folder, capsys):
    found = _images(folder, shuffle=False)
    assert capsys.readouterr().out == "Found 24 files belonging to 2 classes.\n"
    assert found.class_names == ["a", "b"]
    assert [os.path.basename(p) for p in found.file_paths[:3]] == [
        "0.png",
        "1.png",
        "10.png",
    ]
    batches = _first_pixels(found)
    assert batches[0] == ([0, 10, 100, 110, 20], [0] * 5)
    assert batches[2] == ([80, 90, 1, 11, 101], [0, 0, 1, 1, 1])
    assert batches[4] == ([61, 71, 81, 91], [1] * 4)
    again = tf.keras.preprocessing.image_dataset_from_directory
    assert again is utils.image_dataset_from_directory


def test_images_are_shuffled_as_by_tf_keras(folder, capsys):
    found = _images(folder, seed=3)
    assert _first_pixels(found)[0] == ([40, 80, 31, 10, 81], [0, 0, 1, 0, 1])
    assert _first_pixels(found)[0] == ([81, 10, 91, 0, 21], [1, 0, 1, 0, 1])
    capsys.readouterr()
    train, rest = _images(folder, seed=3, validation_split=0.25, subset="both")
    assert capsys.readouterr().out.endswith(
        "Using 18 files for training.\nUsing 6 files for validation.\n"
    )
    assert _first_pixels(train)[0] == ([10, 111, 31, 11, 20], [0, 1, 1, 1, 0])
    assert _first_pixels(rest)[1] == ([80], [0])
    rest = _images(
        folder, shuffle=False, validation_split=0.25, subset="validation", seed=3
    )
    assert _first_pixels(rest) == [([41, 51, 61, 71, 81], [1] * 5), ([91], [1])]


def test_labels(folder):
    found = _images(folder, label_mode="categorical", batch_size=None, shuffle=False)
    assert [s.shape.as_list() for s in found.element_spec] == [[4, 6, 3], [2]]
    found = _images(folder, label_mode="binary")
    assert found.element_spec[1] == tf.TensorSpec([None, 1], tf.float32)
    for without in ({"labels": None}, {"label_mode": None}):
        found = _images(folder, color_mode="grayscale", **without)
        assert found.element_spec == tf.TensorSpec([None, 4, 6, 1], tf.float32)
    found = _images(folder, labels=list(range(24)), shuffle=False)
    assert _first_pixels(found)[0][1] == [0, 1, 2, 3, 4]
    found = _images(folder, class_names=["b", "a"], shuffle=False)
    assert _first_pixels(found)[0] == ([0, 10, 100, 110, 20], [1] * 5)
    found = _images(folder, crop_to_aspect_ratio=True, image_size=(3, 3))
    assert next(iter(found))[0].shape == (5, 3, 3, 3)


def test_texts_and_sounds(folder):
    texts = utils.text_dataset_from_directory(
        f"{folder}/texts", shuffle=False, batch_size=5, max_length=2
    )
    x, y = next(iter(texts))
    assert x.numpy().tolist() == [b"a0", b"a1", b"a1", b"a1", b"a2"]
    assert y.numpy().tolist() == [0] * 5

    def sounds(**kwargs):
        return utils.audio_dataset_from_directory(
            f"{folder}/sounds", shuffle=False, batch_size=2, **kwargs
        )

    x, _ = next(iter(sounds()))
    assert x[:, :, 0].numpy().tolist() == [[0] * 6, [0.0625] * 6]
    x, _ = next(iter(sounds(output_sequence_length=3)))
    assert x.shape == (2, 3, 1)
    x, _ = next(iter(sounds(ragged=True)))
    assert x.bounding_shape().numpy().tolist() == [2, 6, 1]
    for bad in ({"sampling_rate": "x"}, {"sampling_rate": 0}):
        with pytest.raises(ValueError, match="`sampling_rate` should"):
            sounds(**bad)
    with pytest.raises(ValueError, match="Cannot set both"):
        sounds(ragged=True, output_sequence_length=3)
    with pytest.raises(NotImplementedError, match="sampling_rate"):
        sounds(sampling_rate=8000)


@pytest.mark.parametrize(
    "given, text",
    [
        ({"labels": "x"}, "`labels` argument should be a list/tuple"),
        ({"labels": [1, 2]}, "len\\(labels\\) is 2 while we found 24 files"),
        ({"label_mode": "x"}, '"binary", or None. Received: label_mode=x'),
        ({"color_mode": "x"}, "Received: color_mode=x"),
        ({"image_size": 5}, "'size' must be a 1-D Tensor of 2 elements"),
        ({"validation_split": 2, "subset": "training"}, "between 0 and 1, received: 2"),
        ({"validation_split": 0.1}, "must be set, and inversely"),
        ({"subset": "training"}, "must be set, and inversely"),
        ({"validation_split": 0.1, "subset": "x"}, '"both", received: x'),
        ({"validation_split": 0.1, "subset": "training"}, "must provide a `seed`"),
        ({"class_names": ["a"]}, "Expected: \\['a', 'b'\\], but received: \\['a'\\]"),
        ({"labels": [0] * 24, "class_names": ["a"]}, "only pass `class_names` if"),
        ({"labels": [0] * 24, "label_mode": "binary"}, "exactly 2 class_names"),
    ],
)
def test_bad_arguments(folder, given, text):
    with pytest.raises(ValueError, match=text):
        _images(folder, **given)


def test_bad_folders(folder, tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="Could not find directory"):
        utils.image_dataset_from_directory(str(tmp_path / "no"))
    with pytest.raises(ValueError, match="No text files found in directory"):
        utils.text_dataset_from_directory(f"{folder}/images")
    with pytest.raises(NotImplementedError, match="for `interpolation`: x"):
        _images(folder, interpolation="x")
    with pytest.raises(TypeError, match="Unknown keywords argument"):
        _images(folder, nope=1)


def _lists(parts):
    return [[np.array(x).tolist() for x in part] for part in parts]


@pytest.mark.parametrize(
    "given, left, right",
    [
        ({"left_size": 0.8}, range(8), (8, 9)),
        ({"right_size": 0.35}, range(6), range(6, 10)),
        ({"left_size": 0.29}, range(3), range(3, 10)),
        ({"left_size": 0.55, "right_size": 3}, range(6), (7, 8, 9)),
        (
            {"left_size": 2, "right_size": 3, "shuffle": True, "seed": 1},
            (6, 8),
            (4, 1, 2),
        ),
    ],
)
def test_split_dataset(given, left, right):
    found = utils.split_dataset(np.arange(10), **given)
    assert _lists(found) == [list(left), list(right)]


def test_split_batches_and_structures():
    rows = tf.data.Dataset.from_tensor_slices({"a": [1, 2, 3], "b": [4, 5, 6]})
    left, right = utils.split_dataset(rows.batch(2), left_size=1)
    assert [x["b"].numpy().tolist() for x in left] == [[4]]
    assert [x["b"].numpy().tolist() for x in right] == [[5, 6]]
    pairs = utils.split_dataset((np.arange(3), np.ones((3, 2))), left_size=1)
    assert pairs[1].element_spec[1].shape == (2,)
    assert len(list(pairs[1])) == 2


@pytest.mark.parametrize(
    "given, error, text",
    [
        ({}, ValueError, "At least one of"),
        ({"left_size": 1.5}, ValueError, "positive integer smaller than 10"),
        ({"left_size": 11}, ValueError, "Received: left_size=11"),
        ({"right_size": 0}, ValueError, "Received: right_size=0"),
        ({"left_size": "a"}, TypeError, "Invalid `left_size` Type"),
        ({"left_size": True}, TypeError, "<class 'bool'>"),
        ({"left_size": 0.9, "right_size": 0.9}, ValueError, "greater than 1"),
        ({"left_size": 6, "right_size": 6}, ValueError, "should be smaller than"),
        ({"left_size": 0.01}, ValueError, "left side dataset split will be empty"),
    ],
)
def test_split_refuses_sizes(given, error, text):
    with pytest.raises(error, match=text):
        utils.split_dataset(np.arange(10), **given)


def test_split_refuses_data():
    for data, error, text in (
        (5, TypeError, "must be either"),
        ([[1, 2]], ValueError, "Expected a list of `numpy.ndarray`"),
        (np.arange(0), ValueError, "Received an empty Dataset"),
        ((np.arange(3), np.arange(4)), ValueError, "found at index 1"),
        ((np.float32(1), np.array(2)), ValueError, "Expected a tuple"),
        (tf.data.Dataset.range(2).repeat(), ValueError, "infinite"),
    ):
        with pytest.raises(error, match=text):
            utils.split_dataset(data, left_size=1)
