"""Recipes of image and audio ops."""

import numpy as np
from draw import FLOATS

RECIPES = {}


def recipe(ops):
    def register(make):
        RECIPES.update(dict.fromkeys(ops.split(), make))
        return make

    return register


_IMAGES = (*FLOATS, "uint8", "int8", "int16", "uint16", "int32", "int64")


@recipe("ResizeBilinear ResizeBicubic ResizeNearestNeighbor ResizeArea")
def resize(d, op):
    shape = (d.integer(1, 2), d.integer(1, 7), d.integer(1, 7), d.integer(1, 5))
    made = {"images": d.array(d.pick(*_IMAGES), shape)}
    made["size"] = np.asarray([d.integer(1, 11), d.integer(1, 11)], "int32")
    kind = d.pick("align_corners", "half_pixel_centers", None)
    if kind == "half_pixel_centers" and op == "ResizeArea":
        kind = None
    return {**made, kind: True} if kind else made


@recipe("ScaleAndTranslate")
def scale(d, op):
    shape = (d.integer(1, 2), d.integer(1, 7), d.integer(1, 7), d.integer(1, 4))
    made = {"images": d.array("float32", shape)}
    made["size"] = np.asarray([d.integer(1, 9), d.integer(1, 9)], "int32")
    made["scale"] = d.between("float32", (2,), 0.3, 2.5)
    made["translation"] = d.between("float32", (2,), -2, 2)
    kinds = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle")
    made["kernel_type"] = d.pick(*kinds, "keyscubic", "mitchellcubic")
    return {**made, "antialias": d.maybe()}


@recipe("CropAndResize")
def crop(d, op):
    boxes, batch = d.integer(0, 3), d.integer(1, 3)
    shape = (batch, d.integer(2, 6), d.integer(2, 6), d.integer(1, 3))
    made = {"image": d.array(d.pick("float32", "float64", "uint8"), shape)}
    made["boxes"] = d.between("float32", (boxes, 4), -0.3, 1.3)
    made["box_ind"] = d.between("int32", (boxes,), 0, batch - 1)
    made["crop_size"] = np.asarray([d.integer(1, 5), d.integer(1, 5)], "int32")
    made["extrapolation_value"] = d.uniform(-1, 1)
    return {**made, "method": d.pick("bilinear", "nearest")}


@recipe("RGBToHSV HSVToRGB")
def colors(d, op):
    shape = (*d.shape(most=3), 3)
    x = d.between(d.pick(*FLOATS), shape, 0, 1)
    if d.maybe(0.5):  # equal channels, blacks and whites
        x = np.round(x.astype("float64") * 2).astype(x.dtype) / np.asarray(2, x.dtype)
    return {"images": x}


@recipe("AdjustHue AdjustSaturation AdjustContrastv2")
def adjust(d, op):
    shape = (*d.shape(least=2, most=3, empty=0), 3)
    name = {"AdjustHue": "delta", "AdjustSaturation": "scale"}.get(
        op, "contrast_factor"
    )
    amount = np.asarray(d.uniform(0, 1.5), "float32")
    return {
        "images": d.between(d.pick("float32", "float16"), shape, 0, 1),
        name: amount,
    }


@recipe("NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5")
def suppression(d, op):
    count, dtype = d.integer(0, 6), d.pick("float32", "float16")
    corner = d.between(dtype, (count, 2), 0, 1)
    size = d.between(dtype, (count, 2), 0.1, 0.8)
    made = {"boxes": np.concatenate([corner, corner + size], 1)}
    made["scores"] = d.between(dtype, (count,), 0, 1)
    made["max_output_size"] = np.asarray(d.integer(0, 4), "int32")
    made["iou_threshold"] = np.asarray(d.uniform(0, 1), dtype)
    made["score_threshold"] = np.asarray(d.uniform(0, 0.5), dtype)
    if op[-1] == "5":
        made["soft_nms_sigma"] = np.asarray(d.pick(0.0, 0.5), dtype)
    return made if op[-1] == "3" else {**made, "pad_to_max_output_size": d.maybe()}


@recipe("DrawBoundingBoxesV2")
def draw_boxes(d, op):
    made = {"images": d.array("float32", (2, 6, 7, d.pick(3, 4, 1)))}
    low = d.between("float32", (2, 2, 2), 0, 0.5)
    made["boxes"] = np.concatenate([low, low + 0.4], 2).astype("float32")
    made["colors"] = d.between(
        "float32", (d.integer(0, 2), made["images"].shape[-1]), 0, 1
    )
    return made


@recipe("ImageProjectiveTransformV3")
def projective(d, op):
    made = {"images": d.array(d.pick("float32", "float64", "uint8"), (2, 5, 6, 2))}
    base = np.asarray([1, 0, 0, 0, 1, 0, 0, 0], "float32")
    made["transforms"] = base + d.between("float32", (d.pick(1, 2), 8), -0.1, 0.1)
    made["output_shape"] = np.asarray([d.integer(1, 7), d.integer(1, 7)], "int32")
    made["fill_value"] = np.asarray(d.uniform(-1, 1), "float32")
    made["interpolation"] = d.pick("NEAREST", "BILINEAR")
    return {**made, "fill_mode": d.pick("CONSTANT", "REFLECT", "WRAP", "NEAREST")}


@recipe("EncodeWav")
def encode_wav(d, op):
    audio = d.between("float32", (d.integer(1, 9), d.integer(1, 2)), -1.5, 1.5)
    return {"audio": audio, "sample_rate": np.asarray(8000, "int32")}


@recipe("AudioSpectrogram")
def spectrogram(d, op):
    made = {"input": d.array("float32", (d.integer(16, 60), d.integer(1, 2)))}
    made.update(window_size=d.integer(4, 16), stride=d.integer(2, 9))
    return {**made, "magnitude_squared": d.maybe()}


@recipe("EncodePng")
def encode_png(d, op):
    return {"image": d.between("uint8", (d.integer(1, 5), 4, d.integer(1, 4)), 0, 255)}


@recipe("QuantizedResizeBilinear")
def quantized_resize(d, op):
    made = {"images": d.array("float32", (1, 4, 4, 2))}
    made["size"] = np.asarray([d.integer(1, 7), d.integer(1, 7)], "int32")
    made["min"], made["max"] = np.asarray(-1, "float32"), np.asarray(2, "float32")
    return {**made, "half_pixel_centers": d.maybe()}
