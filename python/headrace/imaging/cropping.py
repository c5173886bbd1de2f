"""Parts of images, and images with borders."""

from headrace._load import raw
from headrace.framework import dtypes, name_scopes, tensor
from headrace.imaging import shapes
from headrace.ops import array_ops, elementwise_ops, math_ops
from headrace.ops.faces import add_faces


def crop_to_bounding_box(
    image, offset_height, offset_width, target_height, target_width
):
    """The part of an image that begins at the offsets."""
    with name_scopes.name_scope("crop_to_bounding_box"):
        image = shapes.boxed(shapes.tensor(image))
        rank = image.shape.rank
        height, width = shapes.sizes(image)
        shapes.at_least(offset_width, 0, "offset_width must be >= 0.")
        shapes.at_least(offset_height, 0, "offset_height must be >= 0.")
        shapes.check(target_width > 0, "target_width must be > 0.")
        shapes.check(target_height > 0, "target_height must be > 0.")
        shapes.check(
            width >= target_width + offset_width, "width must be >= target + offset."
        )
        shapes.check(
            height >= target_height + offset_height,
            "height must be >= target + offset.",
        )
        begin = [0] * (rank - 3) + [offset_height, offset_width, 0]
        size = [-1] * (rank - 3) + [target_height, target_width, -1]
        part = array_ops.slice(image, shapes.row(begin), shapes.row(size))
        return shapes.known(part, image, target_height, target_width)


def pad_to_bounding_box(
    image, offset_height, offset_width, target_height, target_width
):
    """An image at the offsets in zeros of a size."""
    with name_scopes.name_scope("pad_to_bounding_box"):
        image = shapes.boxed(shapes.tensor(image))
        rank = image.shape.rank
        height, width = shapes.sizes(image, target_height)
        right = target_width - offset_width - width
        bottom = target_height - offset_height - height
        shapes.at_least(offset_height, 0, "offset_height must be >= 0")
        shapes.at_least(offset_width, 0, "offset_width must be >= 0")
        shapes.at_least(right, 0, "width must be <= target - offset")
        shapes.at_least(bottom, 0, "height must be <= target - offset")
        rows = [[0, 0]] * (rank - 3)
        rows += [[offset_height, bottom], [offset_width, right], [0, 0]]
        if shapes.is_known(offset_height, offset_width, bottom, right):
            return array_ops.pad(image, rows)
        pads = shapes.row([pad for row in rows for pad in row])
        padded = array_ops.pad(image, array_ops.reshape(pads, [rank, 2]))
        return shapes.known(padded, image, target_height, target_width)


def _larger(x, y):
    return max(x, y) if shapes.is_known(x, y) else elementwise_ops.maximum(x, y)


def _smaller(x, y):
    return min(x, y) if shapes.is_known(x, y) else elementwise_ops.minimum(x, y)


def resize_with_crop_or_pad(image, target_height, target_width):
    """The middle of an image, or the image in the middle of zeros."""
    with name_scopes.name_scope("resize_image_with_crop_or_pad"):
        image = shapes.boxed(shapes.tensor(image))
        shapes.check(target_width > 0, "target_width must be > 0.")
        shapes.check(target_height > 0, "target_height must be > 0.")
        height, width = shapes.sizes(image)
        cropped = crop_to_bounding_box(
            image,
            _larger((height - target_height) // 2, 0),
            _larger((width - target_width) // 2, 0),
            _smaller(target_height, height),
            _smaller(target_width, width),
        )
        return pad_to_bounding_box(
            cropped,
            _larger((target_height - height) // 2, 0),
            _larger((target_width - width) // 2, 0),
            target_height,
            target_width,
        )


def central_crop(image, central_fraction):
    """The middle of an image, a fraction of each side."""
    with name_scopes.name_scope("central_crop"):
        image = shapes.tensor(image)
        fraction = central_fraction
        if not tensor.is_tensor(fraction):
            if fraction <= 0 or fraction > 1:
                raise ValueError("central_fraction must be within (0, 1]")
            if fraction == 1:
                return image
        if image.shape.rank is None:
            raise ValueError(
                "`image` should either be a Tensor with rank = 3 or rank = 4. Had rank "
                "= None."
            )
        shapes.not_empty(image)

        def begin(size):
            wide = math_ops.cast(size, dtypes.float64)
            start = (wide - wide * math_ops.cast(fraction, dtypes.float64)) / 2
            if shapes.is_known(size, fraction):
                return int((size - size * fraction) / 2)
            return math_ops.cast(start, dtypes.int32)

        height, width = shapes.sizes(image)
        top, left = begin(height), begin(width)
        return crop_to_bounding_box(
            image, top, left, height - top * 2, width - left * 2
        )


add_faces(
    globals(),
    """
crop_and_resize CropAndResize(image, boxes, box_indices->box_ind, crop_size,
        method='bilinear', extrapolation_value=0.0, name=None)
    Boxes of images, all resized to one size.
extract_patches ExtractImagePatches(images, sizes->ksizes, strides, rates, padding,
        name=None)
    Windows of images as rows of the last dimension.
""",
)


def extract_glimpse(
    input, size, offsets, centered=True, normalized=True, noise="uniform", name=None
):
    """Windows of images around offsets."""
    given = dict(locals())  # the op's arguments
    return raw.ExtractGlimpseV2(**given, uniform_noise=False)
