"""Colours in other coordinates."""

from headrace.framework import conversion, dtypes, name_scopes
from headrace.framework.support import signatures
from headrace.imaging import shapes
from headrace.imaging.adjusting import convert_image_dtype
from headrace.ops import array_ops, math_ops
from headrace.ops.faces import add_faces
from headrace.ops.linalg import linalg_ops

add_faces(
    globals(),
    """
rgb_to_hsv RGBToHSV(images, name=None)
hsv_to_rgb HSVToRGB(images, name=None)
""",
)

_TO_YIQ = [
    [0.299, 0.59590059, 0.2115],
    [0.587, -0.27455667, -0.52273617],
    [0.114, -0.32134392, 0.31119955],
]
_FROM_YIQ = [
    [1, 1, 1],
    [0.95598634, -0.27201283, -1.10674021],
    [0.6208248, -0.64720424, 1.70423049],
]
_TO_YUV = [
    [0.299, -0.14714119, 0.61497538],
    [0.587, -0.28886916, -0.51496512],
    [0.114, 0.43601035, -0.10001026],
]
_FROM_YUV = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]


def _by(kernel, name, doc):
    """A function that multiplies the channels of images by a matrix."""

    def convert(images):
        images = shapes.tensor(images)
        matrix = conversion.constant(kernel, images.dtype)
        return math_ops.tensordot(images, matrix, [[images.shape.rank - 1], [0]])

    return signatures.called(convert, name, doc)


rgb_to_yiq = _by(_TO_YIQ, "rgb_to_yiq", "Red, green, blue as luma and chroma of NTSC.")
yiq_to_rgb = _by(
    _FROM_YIQ, "yiq_to_rgb", "Luma and chroma of NTSC as red, green, blue."
)
rgb_to_yuv = _by(_TO_YUV, "rgb_to_yuv", "Red, green, blue as luma and chroma of PAL.")
yuv_to_rgb = _by(_FROM_YUV, "yuv_to_rgb", "Luma and chroma of PAL as red, green, blue.")


def rgb_to_grayscale(images, name=None):
    """The luma of colours, as one channel."""
    with name_scopes.name_scope(name or "rgb_to_grayscale"):
        images = shapes.tensor(images)
        wide = convert_image_dtype(images, dtypes.float32)
        weights = conversion.constant([0.2989, 0.5870, 0.1140])
        if images.shape.rank is None:
            luma = linalg_ops.matvec(wide, weights)
        else:
            luma = math_ops.tensordot(wide, weights, [[-1], [0]])
            luma.set_shape(images.shape[:-1])
        return convert_image_dtype(array_ops.expand_dims(luma, -1), images.dtype)


def grayscale_to_rgb(images, name=None):
    """One channel as three equal ones."""
    with name_scopes.name_scope(name or "grayscale_to_rgb"):
        images = shapes.tensor(images)
        if images.shape.rank is not None and images.shape.rank < 2:
            raise ValueError(
                f"A grayscale image (shape {images.shape}) must be at least "
                "two-dimensional."
            )
        last = images.shape[-1] if images.shape.rank is not None else None
        if last not in (1, None):
            raise ValueError("Last dimension of a grayscale image should be size 1.")
        if images.shape.rank is None:
            ones = array_ops.ones([array_ops.rank(images) - 1], dtypes.int32)
            return array_ops.tile(images, array_ops.concat([ones, [3]], 0))
        images = (
            array_ops.ensure_shape(images, [*images.shape[:-1], 1])
            if last is None
            else images
        )
        return array_ops.tile(images, [1] * (images.shape.rank - 1) + [3])
