"""Images as arrays and files: load_img and its kin. By Pillow where it is wanted."""

import io
import os
import pathlib

import numpy as np

from headrace.keras import settings

_SAMPLERS = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")


def _pillow():
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "Images as PIL objects need the package Pillow, which is not installed. "
            "tf.io.decode_image reads files without it."
        ) from None
    return Image


def array_to_img(x, data_format=None, scale=True, dtype=None):
    """A PIL image of an array [height, width, 1, 3 or 4]; with `scale` its values are
    stretched to 0..255. ValueError for other shapes.
    """
    image = _pillow()
    x = np.asarray(x, dtype=dtype or settings.floatx())
    if x.ndim != 3:
        raise ValueError(
            "Expected image array to have rank 3 (single image). Got array with shape: "
            f"{x.shape}"
        )
    if _first(data_format):
        x = x.transpose(1, 2, 0)
    if scale:
        x = x - np.min(x)
        most = np.max(x)
        x = (x / most if most else x) * 255
    channels = x.shape[2]
    if channels == 1:
        if np.max(x) > 255:  # more than bytes hold
            return image.fromarray(x[:, :, 0].astype("int32"), "I")
        return image.fromarray(x[:, :, 0].astype("uint8"), "L")
    if channels not in (3, 4):
        raise ValueError(f"Unsupported channel number: {channels}")
    return image.fromarray(x.astype("uint8"), "RGB" if channels == 3 else "RGBA")


def img_to_array(img, data_format=None, dtype=None):
    """A float array [height, width, channels] of a PIL image or of an array."""
    x = np.asarray(img, dtype=dtype or settings.floatx())
    if x.ndim == 2:
        x = x[:, :, None]
    elif x.ndim == 3:
        if _first(data_format):
            x = x.transpose(2, 0, 1)
        return x
    else:
        raise ValueError(f"Unsupported image shape: {x.shape}")
    return x.transpose(2, 0, 1) if _first(data_format) else x


def _first(data_format):
    data_format = data_format or settings.image_data_format()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Invalid data_format: {data_format}")
    return data_format == "channels_first"


def load_img(
    path,
    grayscale=False,
    color_mode="rgb",
    target_size=None,
    interpolation="nearest",
    keep_aspect_ratio=False,
):
    """A PIL image of a file, in "grayscale", "rgb" or "rgba", resized to `target_size`
    (height, width). With `keep_aspect_ratio` the middle of it is cut out.
    """
    image = _pillow()
    if isinstance(path, io.BytesIO):
        found = image.open(path)
    elif isinstance(path, (str, bytes, pathlib.Path, os.PathLike)):
        with open(path, "rb") as f:
            found = image.open(io.BytesIO(f.read()))
    else:
        raise TypeError(
            "path should be path-like or io.BytesIO, not " + str(type(path))
        )
    color_mode = "grayscale" if grayscale else color_mode
    modes = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}
    if color_mode not in modes:
        raise ValueError('color_mode must be "grayscale", "rgb", or "rgba"')
    deep = ("L", "I;16", "I")
    if found.mode not in (deep if color_mode == "grayscale" else (modes[color_mode],)):
        found = found.convert(modes[color_mode])
    if target_size is None:
        return found
    height, width = target_size
    if interpolation not in _SAMPLERS:
        raise ValueError(
            f"Invalid interpolation method {interpolation} specified. Supported methods "
            f"are {', '.join(_SAMPLERS)}"
        )
    sampler = getattr(image.Resampling, interpolation.upper())
    if not keep_aspect_ratio:
        return (
            found
            if found.size == (width, height)
            else found.resize((width, height), sampler)
        )
    own_width, own_height = found.size
    cut_height = min(own_height, own_width * height // width)
    cut_width = min(own_width, own_height * width // height)
    left, top = (own_width - cut_width) // 2, (own_height - cut_height) // 2
    box = [left, top, left + cut_width, top + cut_height]
    return found.resize((width, height), sampler, box=box)


def save_img(path, x, data_format=None, file_format=None, scale=True, **kwargs):
    """Writes an array as an image file, of the kind that the name or `file_format`
    says; `kwargs` go to Pillow's save().
    """
    img = array_to_img(x, data_format=data_format, scale=scale)
    if img.mode == "RGBA" and file_format in ("jpg", "jpeg"):
        img = img.convert("RGB")
    img.save(path, format=file_format, **kwargs)
