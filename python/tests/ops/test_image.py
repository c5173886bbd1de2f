"""Ops on images: values, errors and gradients."""

import colorsys

import headrace as tf
import numpy as np
import pytest
from driver import RECORDED, Row, cases, check

_random = np.random.RandomState(3)


def some(*shape):
    return _random.rand(*shape).round(3).astype("f4")


def size(*values):
    return np.array(values, np.int32)


def nearest(images, sizes):
    """By half pixels."""
    rows, columns = (
        np.floor((np.arange(n) + 0.5) * (m / n)).astype(int)
        for n, m in zip(sizes, images.shape[1:3])
    )
    return images[:, rows][:, :, columns]


def bilinear(images, sizes):
    """By half pixels."""

    def along(x, axis, n):
        at = (np.arange(n) + 0.5) * (x.shape[axis] / n) - 0.5
        low = np.floor(at)
        part = (at - low).reshape([-1 if i == axis else 1 for i in range(4)])
        last = x.shape[axis] - 1
        a = np.take(x, np.clip(low, 0, last).astype(int), axis)
        b = np.take(x, np.clip(low + 1, 0, last).astype(int), axis)
        return a + (b - a) * part

    return along(along(images.astype("f8"), 1, sizes[0]), 2, sizes[1])


def areas(images, sizes):
    """For whole ratios of sizes."""
    b, h, w, c = images.shape
    kh, kw = h // sizes[0], w // sizes[1]
    return images.reshape(b, sizes[0], kh, sizes[1], kw, c).mean((2, 4))


def colors(convert):
    return lambda x: np.array([convert(*p) for p in x.reshape(-1, 3)]).reshape(x.shape)


HALF = {"half_pixel_centers": True}
BOXES = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.8], [-0.3, 0.5, 1.2, 0.1]], "f4")
F4 = ("float32",)
ROWS = [
    Row(
        "ResizeBilinear",
        {"images": some(2, 3, 4, 2), "size": size(5, 3)},
        bilinear,
        HALF,
        dtypes=F4,
        fixed=("size",),
        orders=1,
    ),
    Row(
        "ResizeNearestNeighbor",
        {"images": some(2, 3, 4, 2), "size": size(5, 3)},
        nearest,
        HALF,
        dtypes=("float32", "float64"),
        fixed=("size",),
        orders=1,
    ),
    Row(
        "ResizeBicubic",
        {"images": some(1, 4, 3, 1), "size": size(3, 5)},
        RECORDED,
        HALF,
        dtypes=F4,
        fixed=("size",),
        orders=1,
    ),
    Row(
        "ResizeArea",
        {"images": some(1, 4, 6, 2), "size": size(2, 3)},
        areas,
        dtypes=F4,
        fixed=("size",),
        gradient=(),
    ),
    Row(
        "ScaleAndTranslate",
        {
            "images": some(1, 4, 4, 1),
            "size": size(3, 5),
            "scale": np.array([0.75, 1.25], "f4"),
            "translation": np.array([0.5, -0.25], "f4"),
        },
        RECORDED,
        dtypes=F4,
        fixed=("size", "scale", "translation"),
        gradient=("images",),
        orders=1,
    ),
    Row(
        "CropAndResize",
        {
            "image": some(2, 4, 5, 2),
            "boxes": BOXES,
            "box_ind": size(0, 1, 1),
            "crop_size": size(3, 2),
        },
        RECORDED,
        {"extrapolation_value": 2.0},
        dtypes=F4,
        fixed=("boxes", "box_ind", "crop_size"),
        gradient=("image",),
        orders=1,
    ),
    Row(
        "CropAndResize",
        {
            "image": some(1, 2, 2, 1),
            "boxes": BOXES[:1],
            "box_ind": size(0),
            "crop_size": size(0, 2),
        },
        error="crop dimensions must be positive",
        dtypes=F4,
        fixed=("boxes", "box_ind", "crop_size"),
    ),
    Row(
        "RGBToHSV",
        {"images": some(2, 3, 3)},
        colors(colorsys.rgb_to_hsv),
        dtypes=("float64",),
        orders=1,
    ),
    Row(
        "HSVToRGB",
        {"images": some(2, 3, 3)},
        colors(colorsys.hsv_to_rgb),
        dtypes=("float64",),
        gradient=(),
    ),
    Row(
        "AdjustContrastv2",
        {"images": some(2, 3, 4, 3), "contrast_factor": np.float32(1.5)},
        lambda x, f: (
            (x - x.mean((1, 2), keepdims=True)) * f + x.mean((1, 2), keepdims=True)
        ),
        dtypes=F4,
        fixed=("contrast_factor",),
        gradient=(),
    ),
    Row(
        "AdjustHue",
        {"images": some(3, 4, 3), "delta": np.float32(0.25)},
        lambda x, d: colors(
            lambda *p: colorsys.hsv_to_rgb(
                (colorsys.rgb_to_hsv(*p)[0] + d) % 1, *colorsys.rgb_to_hsv(*p)[1:]
            )
        )(x),
        dtypes=F4,
        fixed=("delta",),
        gradient=(),
    ),
    Row(
        "ImageProjectiveTransformV3",
        {
            "images": some(2, 3, 4, 1),
            "transforms": np.array([[1, 0, 1, 0, 1, -1, 0, 0]], "f4"),
            "output_shape": size(3, 4),
            "fill_value": np.float32(7),
        },
        lambda x, *_: np.pad(
            x[:, :-1, 1:], [(0, 0), (1, 0), (0, 1), (0, 0)], constant_values=7
        ),
        {"interpolation": "BILINEAR"},
        dtypes=("float32", "float64"),
        fixed=("transforms", "output_shape", "fill_value"),
        gradient=(),
    ),
    Row(
        "ExtractGlimpse",
        {
            "input": some(2, 4, 4, 1),
            "size": size(2, 2),
            "offsets": np.array([[0, 0], [0.5, -0.5]], "f4"),
        },
        lambda x, *_: np.stack([x[0, 1:3, 1:3], x[1, 2:4, 0:2]]),
        {"noise": "zero", "uniform_noise": False},
        dtypes=F4,
        fixed=("size", "offsets"),
        gradient=(),
    ),
    Row(
        "DrawBoundingBoxesV2",
        {
            "images": np.zeros((1, 3, 4, 1), "f4"),
            "boxes": np.array([[[0, 0.4, 2, 1]]], "f4"),
            "colors": np.array([[1.0]], "f4"),
        },
        np.array([[0, 1, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]], "f4").reshape(1, 3, 4, 1),
        dtypes=F4,
        gradient=(),
    ),
    Row(
        "NonMaxSuppressionV3",
        {
            "boxes": np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [2, 2, 3, 3]], "f4"),
            "scores": np.array([0.8, 0.9, 0.7], "f4"),
            "max_output_size": np.int32(3),
            "iou_threshold": np.float32(0.5),
            "score_threshold": np.float32(0),
        },
        size(1, 2),
        dtypes=F4,
        fixed=("max_output_size",),
        gradient=(),
    ),
    Row(
        "CombinedNonMaxSuppression",
        {
            "boxes": np.array([[[[0, 0, 1, 1]], [[0, 0.1, 1, 1.1]]]], "f4"),
            "scores": np.array([[[0.9, 0.1], [0.8, 0.5]]], "f4"),
            "max_output_size_per_class": np.int32(2),
            "max_total_size": np.int32(3),
            "iou_threshold": np.float32(0.5),
            "score_threshold": np.float32(0.3),
        },
        (
            np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1], [0, 0, 0, 0]]], "f4"),
            np.array([[0.9, 0.5, 0]], "f4"),
            np.array([[0, 1, 0]], "f4"),
            size(2),
        ),
        dtypes=F4,
        fixed=("max_output_size_per_class", "max_total_size"),
        gradient=(),
    ),
    Row(
        "StatelessSampleDistortedBoundingBox",
        {
            "image_size": size(41, 57, 3),
            "bounding_boxes": np.array([[[0.1, 0.2, 0.5, 0.7]]], "f4"),
            "min_object_covered": np.float32(0.3),
            "seed": size(0, 5),
        },
        RECORDED,
        dtypes=F4,
        fixed=("image_size", "seed"),
        gradient=(),
    ),
]


@pytest.mark.parametrize("row,dtype", cases(ROWS))
def test_row(row, dtype):
    check(row, dtype)


@pytest.mark.parametrize("kind", ["uint8", "int16", "float16", "float64"])
@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic", "area"])
def test_resizing_to_the_same_size_changes_nothing(method, kind):
    x = (some(2, 5, 7, 3) * 100).astype(kind)
    np.testing.assert_allclose(tf.image.resize(x, [5, 7], method), x, atol=1e-4)


def test_hostile_boxes_and_sizes():
    image = tf.constant(some(1, 4, 4, 1))
    for bad in (np.nan, np.inf):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not finite"):
            tf.image.crop_and_resize(image, [[0.0, bad, 1, 1]], [0], [2, 2])
    with pytest.raises(tf.errors.OutOfRangeError):
        tf.image.crop_and_resize(image, [[0.0, 0, 1, 1]], [1], [2, 2])
    far = tf.image.crop_and_resize(image, [[-1e30, -1e30, 1e30, 1e30]], [0], [3, 3])
    assert np.isfinite(far).all()
    drawn = tf.image.draw_bounding_boxes(image, [[[np.nan, 0, 1e30, 1e30]]], None)
    np.testing.assert_array_equal(drawn, image)
    for scale in (1e-30, 1e30):
        made = tf.raw_ops.ScaleAndTranslate(
            images=image, size=[3, 3], scale=[scale, 1.0], translation=[0.0, 0.0]
        )
        assert made.shape == [1, 3, 3, 1]
    with pytest.raises(
        (tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError)
    ):
        tf.image.resize(image, [2**31 - 1, 2**31 - 1])
