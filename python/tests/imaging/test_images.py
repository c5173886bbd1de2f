"""tf.image: what is made of several ops."""

import headrace as tf
import numpy as np
import pytest

_random = np.random.RandomState(4)
IMAGES = _random.rand(2, 5, 7, 3).astype("f4")
BYTES = (IMAGES * 255).astype("u1")


def test_resizing_keeps_types_and_ranks():
    image = tf.image
    assert image.resize(BYTES, [3, 4]).dtype == tf.float32
    assert image.resize(BYTES, [3, 4], "nearest").dtype == tf.uint8
    assert image.resize(BYTES[0], [3, 4]).shape == [3, 4, 3]
    assert image.resize(BYTES, [10, 10], preserve_aspect_ratio=True).shape[1:3] == [
        7,
        10,
    ]
    padded = image.resize_with_pad(tf.ones([4, 2, 1]), 8, 8).numpy()
    assert padded.shape == (8, 8, 1) and padded.sum() == 32
    assert (padded[:, :2] == 0).all() and (padded[:, 2:6] == 1).all()


@pytest.mark.parametrize(
    "size, method, text",
    [
        ([3], "bilinear", "must be a 1-D Tensor of 2 elements"),
        (["a", "b"], "bilinear", "'size' must be a 1-D int32 Tensor"),
        ([3, 3], "best", "Resize method is not implemented"),
        ([0, 3], "area", "output dimensions must be positive"),
    ],
)
def test_resizing_refuses(size, method, text):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=text):
        tf.image.resize(IMAGES, size, method)


def test_crops_and_borders():
    image = tf.image
    np.testing.assert_array_equal(
        image.crop_to_bounding_box(IMAGES, 1, 2, 3, 4), IMAGES[:, 1:4, 2:6]
    )
    padded = image.pad_to_bounding_box(IMAGES, 1, 2, 9, 10).numpy()
    np.testing.assert_array_equal(padded[:, 1:6, 2:9], IMAGES)
    assert padded.sum() == pytest.approx(IMAGES.sum(), rel=1e-5)
    both = image.resize_with_crop_or_pad(IMAGES, 3, 9).numpy()
    np.testing.assert_array_equal(both[:, :, 1:8], IMAGES[:, 1:4])
    np.testing.assert_array_equal(image.central_crop(IMAGES, 0.5), IMAGES[:, 1:4, 1:6])
    for bad in ((-1, 0, 2, 2), (4, 0, 2, 2), (0, 0, 0, 2)):
        with pytest.raises(ValueError):
            image.crop_to_bounding_box(IMAGES, *bad)


def test_crops_in_traces_of_unknown_sizes():
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3])])
    def middle(x):
        return tf.image.resize_with_crop_or_pad(tf.image.flip_left_right(x), 3, 9)

    eager = tf.image.resize_with_crop_or_pad(IMAGES[:, :, ::-1], 3, 9)
    np.testing.assert_array_equal(middle(IMAGES), eager)


@pytest.mark.parametrize("k", [-1, 0, 1, 2, 3, 6])
def test_turns(k):
    turned = np.rot90(IMAGES, k, (1, 2))
    np.testing.assert_array_equal(tf.image.rot90(IMAGES, k), turned)
    np.testing.assert_array_equal(tf.image.rot90(IMAGES[0], tf.constant(k)), turned[0])


def test_types_of_pixels():
    convert = tf.image.convert_image_dtype
    np.testing.assert_allclose(convert(BYTES, tf.float32), BYTES / 255.0, rtol=1e-6)
    np.testing.assert_array_equal(convert(convert(BYTES, tf.float32), tf.uint8), BYTES)
    np.testing.assert_array_equal(convert(BYTES, tf.uint16), BYTES.astype("u2") * 256)
    loud = tf.constant([-0.5, 0.5, 2.0])
    assert convert(loud, tf.uint8, saturate=True).numpy().tolist() == [0, 127, 255]


def test_adjustments():
    image = tf.image
    brighter = image.adjust_brightness(BYTES, 0.5).numpy()
    assert (brighter >= BYTES).all() and brighter.max() == 255
    np.testing.assert_allclose(
        image.adjust_gamma(IMAGES, 2.0, 0.5), 0.5 * IMAGES**2, rtol=1e-5
    )
    gray = image.adjust_saturation(IMAGES, 0.0).numpy()
    np.testing.assert_allclose(gray.max(-1), gray.min(-1), atol=1e-6)
    np.testing.assert_allclose(image.adjust_hue(IMAGES, 1.0), IMAGES, atol=1e-5)
    standard = image.per_image_standardization(IMAGES).numpy()
    np.testing.assert_allclose(standard.mean((1, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(standard.std((1, 2, 3)), 1, atol=1e-4)
    back = image.yuv_to_rgb(image.rgb_to_yuv(IMAGES))
    np.testing.assert_allclose(back, IMAGES, atol=1e-4)
    back = image.yiq_to_rgb(image.rgb_to_yiq(IMAGES))
    np.testing.assert_allclose(back, IMAGES, atol=1e-4)


def test_random_changes_repeat_with_their_seeds():
    for name, arguments in {
        "flip_left_right": (),
        "flip_up_down": (),
        "brightness": (0.3,),
        "contrast": (0.5, 1.5),
        "hue": (0.2,),
        "saturation": (0.5, 1.5),
        "crop": ([2, 3, 3, 3],),
    }.items():
        stateless = getattr(tf.image, f"stateless_random_{name}")
        one = stateless(IMAGES, *arguments, [1, 2])
        np.testing.assert_array_equal(stateless(IMAGES, *arguments, [1, 2]), one)
        tf.random.set_seed(7)
        drawn = getattr(tf.image, f"random_{name}")
        first = drawn(IMAGES, *arguments, seed=3)
        tf.random.set_seed(7)
        np.testing.assert_array_equal(drawn(IMAGES, *arguments, seed=3), first)
    with pytest.raises(ValueError, match="upper must be > lower"):
        tf.image.random_contrast(IMAGES, 1.0, 1.0)


def test_likeness():
    noisy = np.clip(IMAGES + 0.1, 0, 1)
    error = ((IMAGES - noisy) ** 2).mean((1, 2, 3))
    np.testing.assert_allclose(
        tf.image.psnr(IMAGES, noisy, 1.0), -10 * np.log10(error), rtol=1e-4
    )
    large = _random.rand(1, 30, 33, 2).astype("f4")
    np.testing.assert_allclose(tf.image.ssim(large, large, 1.0), [1], atol=1e-5)
    assert float(tf.image.ssim(large, large[:, ::-1], 1.0)[0]) < 0.5
    np.testing.assert_allclose(
        tf.image.ssim_multiscale(large, large, 1.0, (0.5, 0.5)), [1], atol=1e-5
    )
    dy, dx = tf.image.image_gradients(IMAGES)
    np.testing.assert_allclose(dy[:, :-1], np.diff(IMAGES, axis=1), atol=1e-6)
    np.testing.assert_allclose(dx[:, :, :-1], np.diff(IMAGES, axis=2), atol=1e-6)
    variation = np.abs(np.diff(IMAGES, axis=1)).sum((1, 2, 3))
    variation += np.abs(np.diff(IMAGES, axis=2)).sum((1, 2, 3))
    np.testing.assert_allclose(tf.image.total_variation(IMAGES), variation, rtol=1e-5)


def test_suppression_of_batches():
    boxes = tf.constant([[[0.0, 0, 1, 1], [0, 0.1, 1, 1.1], [2, 2, 3, 3]]] * 2)
    scores = tf.constant([[0.9, 0.8, 0.7], [0.1, 0.2, 0.3]])
    chosen, count = tf.image.non_max_suppression_padded(
        boxes, scores, 3, pad_to_max_output_size=True
    )
    assert chosen.numpy().tolist() == [[0, 2, 0], [2, 1, 0]]
    assert count.numpy().tolist() == [2, 2]


# (height, width), target, and the first and last row and column with the image
@pytest.mark.parametrize(
    "sizes, target, place",
    [
        ((427, 640), (50, 80), (0, 49, 2, 75)),
        ((73, 25), (58, 37), (0, 56, 8, 26)),
        ((56, 54), (68, 23), (22, 44, 0, 22)),
        ((32, 78), (85, 59), (30, 53, 0, 58)),
    ],
)
def test_padding_of_sizes_that_are_not_whole(sizes, target, place):
    found = tf.image.resize_with_pad(tf.ones((*sizes, 1)), *target)[..., 0].numpy()
    rows, columns = np.flatnonzero(found.any(1)), np.flatnonzero(found.any(0))
    assert (rows[0], rows[-1], columns[0], columns[-1]) == place


@pytest.mark.parametrize("name", ["psnr", "ssim", "ssim_multiscale"])
def test_likeness_of_sizes(name):
    compare = getattr(tf.image, name)
    images = _random.rand(2, 12, 12, 3).astype("f4")
    with pytest.raises(ValueError, match=r"\(12, 12, 3\) and \(12, 12, 1\)"):
        compare(images, images[..., :1], 1.0)
    if name == "ssim_multiscale":  # later scales are smaller than the window
        with pytest.raises(tf.errors.InvalidArgumentError, match="2, 6, 6, 3\n11"):
            compare(images, images, 1.0)
        return
    unknown = tf.function(
        lambda a, b: compare(a, b, 1.0), input_signature=[tf.TensorSpec(None)] * 2
    )
    other = images * 0.9
    np.testing.assert_allclose(
        unknown(images, other), compare(images, other, 1.0), rtol=1e-5
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[12 12 3\] \[12 12 1"):
        unknown(images[0], images[0, :, :, :1])
    if name == "ssim":
        match = r"\[12 12\] \[12 12\]"
        with pytest.raises(tf.errors.InvalidArgumentError, match=match):
            unknown(images[0, ..., 0], images[0, ..., 0])
        with pytest.raises(ValueError, match="Two images are not compatible"):
            compare(images, images[[0, 1, 1]], 1.0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="2, 12, 12, 3\n15"):
            compare(images, images, 1.0, filter_size=15)


@pytest.mark.parametrize(
    "call", [tf.image.flip_left_right, tf.image.per_image_standardization]
)
def test_images_whose_rank_is_found_late(call):
    traced = tf.function(call, input_signature=[tf.TensorSpec(None)])
    image = _random.rand(3, 4, 2).astype("f4")
    np.testing.assert_allclose(traced(image), call(image), rtol=1e-5)
    text = "'image.*' must be at least three-dimensional"
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        traced(image[0])
