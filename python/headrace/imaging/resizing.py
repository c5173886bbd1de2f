"""tf.image.resize and what pads or crops to a size."""

from headrace._load import raw
from headrace.framework import conversion, dtypes, execution, name_scopes
from headrace.imaging import cropping, shapes
from headrace.ops import array_ops, elementwise_ops, math_ops


class ResizeMethod:
    """Ways to resize an image."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


_KERNELS = {
    ResizeMethod.LANCZOS3,
    ResizeMethod.LANCZOS5,
    ResizeMethod.GAUSSIAN,
    ResizeMethod.MITCHELLCUBIC,
}


def _by_kernel(images, size, kernel, antialias):
    scale = math_ops.cast(size, dtypes.float32) / math_ops.cast(
        array_ops.shape(images)[1:3], dtypes.float32
    )
    return raw.ScaleAndTranslate(
        images,
        size,
        scale,
        array_ops.zeros([2]),
        kernel_type=kernel,
        antialias=antialias,
    )


def _resizer(method, antialias):
    """The function (images, size) for a method."""
    if method == ResizeMethod.BILINEAR and not antialias:
        return lambda i, s: raw.ResizeBilinear(i, s, half_pixel_centers=True)
    if method == ResizeMethod.BICUBIC and not antialias:
        return lambda i, s: raw.ResizeBicubic(i, s, half_pixel_centers=True)
    if method == ResizeMethod.NEAREST_NEIGHBOR:
        return lambda i, s: raw.ResizeNearestNeighbor(i, s, half_pixel_centers=True)
    if method == ResizeMethod.AREA:
        return lambda i, s: raw.ResizeArea(i, s)
    smooth = {ResizeMethod.BILINEAR: "triangle", ResizeMethod.BICUBIC: "keyscubic"}
    if method in smooth:
        return lambda i, s: _by_kernel(i, s, smooth[method], True)
    if method in _KERNELS:
        return lambda i, s: _by_kernel(i, s, method, antialias)
    raise ValueError(f"Resize method is not implemented: {method}")


def _kept_aspect(images, size):
    """The largest size within `size` that has the images' aspect."""
    known, limits = shapes.sizes(images), execution.get_static_value(size)
    if limits is not None and shapes.is_known(*known):
        scale = min(limits[0] / known[0], limits[1] / known[1])
        return conversion.constant(
            [int(round(scale * side)) for side in known], dtypes.int32
        )
    height, width = (math_ops.cast(s, dtypes.float64) for s in known)
    wanted = math_ops.cast(size, dtypes.float64)
    scale = elementwise_ops.minimum(wanted[0] / height, wanted[1] / width)
    return array_ops.stack(
        [
            math_ops.cast(elementwise_ops.round(scale * height), dtypes.int32),
            math_ops.cast(elementwise_ops.round(scale * width), dtypes.int32),
        ]
    )


def images_and_size(images, size, preserve_aspect_ratio):
    """Both as tensors, the size in int32. ValueError where they are no such things."""
    images = shapes.tensor(images)
    if images.shape.rank is None:
        raise ValueError("'images' contains no shape.")
    if images.shape.rank not in (3, 4):
        raise ValueError("'images' must have either 3 or 4 dimensions.")
    try:
        size = conversion.convert_to_tensor(size, dtypes.int32, name="size")
    except (TypeError, ValueError):
        raise ValueError("'size' must be a 1-D int32 Tensor") from None
    if not size.shape.is_compatible_with([2]):
        raise ValueError(
            "'size' must be a 1-D Tensor of 2 elements: new_height, new_width"
        )
    return images, _kept_aspect(images, size) if preserve_aspect_ratio else size


def resize(
    images,
    size,
    method=ResizeMethod.BILINEAR,
    preserve_aspect_ratio=False,
    antialias=False,
    name=None,
):
    """Images resized to (height, width)."""
    with name_scopes.name_scope(name or "resize"):
        images, size = images_and_size(images, size, preserve_aspect_ratio)
        resizer = _resizer(method, antialias)
        return shapes.in_batches(lambda i: resizer(i, size), images)


def resize_with_pad(
    image, target_height, target_width, method=ResizeMethod.BILINEAR, antialias=False
):
    """The image resized with its aspect, zeros around it."""
    return resized_with_pad(
        image,
        target_height,
        target_width,
        lambda i, size: resize(i, size, method, False, antialias),
    )


def resized_with_pad(image, target_height, target_width, resizer):
    """resizer(image, size) with the image's aspect, and zeros around it."""
    image = shapes.boxed(shapes.tensor(image))
    for value, text in (
        (target_width, "target_width"),
        (target_height, "target_height"),
    ):
        shapes.check(value > 0, f"{text} must be > 0.")
    height, width = shapes.sizes(image)
    # in float32, as upstream: sizes whose ratio is not exact depend on it
    ratio = elementwise_ops.maximum(
        math_ops.cast(width, dtypes.float32)
        / math_ops.cast(target_width, dtypes.float32),
        math_ops.cast(height, dtypes.float32)
        / math_ops.cast(target_height, dtypes.float32),
    )

    def scaled(size, target):
        """The size in whole pixels, and the zeros before it by the exact one."""
        exact = math_ops.cast(size, dtypes.float32) / ratio
        before = elementwise_ops.floor(
            (math_ops.cast(target, dtypes.float32) - exact) / 2.0
        )
        return math_ops.cast(elementwise_ops.floor(exact), dtypes.int32), math_ops.cast(
            before, dtypes.int32
        )

    new_height, top = scaled(height, target_height)
    new_width, left = scaled(width, target_width)
    resized = resizer(image, array_ops.stack([new_height, new_width]))
    top, left = elementwise_ops.maximum(0, top), elementwise_ops.maximum(0, left)
    return cropping.pad_to_bounding_box(resized, top, left, target_height, target_width)
