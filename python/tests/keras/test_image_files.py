"""Images as arrays and files, and files in the cache."""

import numpy as np
import pytest

import headrace as tf

U = tf.keras.utils
RAMP = np.linspace(0, 9, 6 * 8 * 3).reshape(6, 8, 3)


def test_arrays():
    assert U.img_to_array(np.ones((3, 4))).shape == (3, 4, 1)
    found = U.img_to_array(RAMP, data_format="channels_first", dtype="float64")
    np.testing.assert_array_equal(found, RAMP.transpose(2, 0, 1))
    with pytest.raises(ValueError, match="Unsupported image shape"):
        U.img_to_array(np.ones(3))


def test_images(tmp_path):
    pytest.importorskip("PIL")
    path = tmp_path / "x.png"
    U.save_img(path, RAMP)
    image = U.load_img(path, target_size=(4, 4), keep_aspect_ratio=True)
    assert image.size == (4, 4) and image.mode == "RGB"
    np.testing.assert_array_equal(
        U.img_to_array(U.load_img(path)), (RAMP / 9 * 255).astype("u1")
    )
    assert U.img_to_array(U.load_img(path, color_mode="grayscale")).shape == (6, 8, 1)
    with pytest.raises(ValueError, match="Unsupported channel number: 2"):
        U.array_to_img(RAMP[..., :2])
