"""Image files."""

from headrace._load import raw
from headrace.framework import dtypes, name_scopes
from headrace.imaging import adjusting, shapes
from headrace.ops import math_ops, string_ops
from headrace.ops.faces import add_faces
from headrace.ops.random import random_ops, stateless_random_ops

add_faces(
    globals(),
    """
decode_jpeg DecodeJpeg(contents, channels=0, ratio=1, fancy_upscaling=True,
        try_recover_truncated=False, acceptable_fraction=1, dct_method='', name=None)
decode_and_crop_jpeg DecodeAndCropJpeg(contents, crop_window, channels=0, ratio=1,
        fancy_upscaling=True, try_recover_truncated=False, acceptable_fraction=1,
        dct_method='', name=None)
decode_bmp DecodeBmp(contents, channels=0, name=None)
decode_gif DecodeGif(contents, name=None)
decode_webp DecodeWebP(contents, channels=0, dtype=uint8, name=None)
    The frames of a WebP file, [frames, height, width, 3 or 4] of uint8.
encode_jpeg EncodeJpeg(image, format='', quality=95, progressive=False,
        optimize_size=False, chroma_downsampling=True, density_unit='in',
        x_density=300, y_density=300, xmp_metadata='', name=None)
decode_png DecodePng(contents, channels=0, dtype=uint8, name=None)
    The pixels of a PNG file.
extract_jpeg_shape ExtractJpegShape(contents, output_type=int32, name=None)
    Height, width and channels of a JPEG file.
""",
)


def decode_image(
    contents, channels=None, dtype=dtypes.uint8, name=None, expand_animations=True
):
    """The pixels of an image file of any format."""
    dtype = dtypes.as_dtype(dtype)
    direct = dtype in (dtypes.uint8, dtypes.uint16, dtypes.float32)
    made = raw.DecodeImage(
        contents,
        channels=channels or 0,
        dtype=dtype if direct else dtypes.uint16,
        expand_animations=expand_animations,
        name=name,
    )
    return made if direct else adjusting.convert_image_dtype(made, dtype)


def encode_png(image, compression=-1, name=None):
    """Images as PNG files."""
    image = shapes.tensor(image)
    return raw.EncodePng(image, compression=compression, name=name)


def is_jpeg(contents, name=None):
    """Whether the bytes begin as a JPEG file."""
    with name_scopes.name_scope(name or "is_jpeg"):
        return math_ops.equal(string_ops.substr(contents, 0, 3), b"\xff\xd8\xff")


def adjust_jpeg_quality(image, jpeg_quality, dct_method="", name=None):
    """The image as a JPEG file of a quality gives it back."""
    with name_scopes.name_scope(name or "adjust_jpeg_quality"):
        image = shapes.tensor(image)
        channels = image.shape[-1]
        bytes_ = adjusting.convert_image_dtype(image, dtypes.uint8, saturate=True)
        file = raw.EncodeJpegVariableQuality(bytes_, jpeg_quality)
        made = decode_jpeg(file, channels=channels, dct_method=dct_method)
        return adjusting.convert_image_dtype(made, image.dtype, saturate=True)


def _check_qualities(low, high):
    if low < 0 or high < 0 or low > 100 or high > 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if low >= high:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")


def random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed=None):
    """adjust_jpeg_quality by a quality in [min, max)."""
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    quality = random_ops.uniform(
        [], min_jpeg_quality, max_jpeg_quality, seed=seed, dtype=dtypes.int32
    )
    return adjust_jpeg_quality(image, quality)


def stateless_random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed):
    """The same with a seed of two integers."""
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    quality = stateless_random_ops.uniform(
        [], seed, min_jpeg_quality, max_jpeg_quality, dtype=dtypes.int32
    )
    return adjust_jpeg_quality(image, quality)
