"""tf.image.resize and what pads or crops to a size."""

import headrace as tf
from headrace.imaging import cropping, shapes


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
    scale = tf.cast(size, tf.float32) / tf.cast(tf.shape(images)[1:3], tf.float32)
    return tf.raw_ops.ScaleAndTranslate(
        images=images,
        size=size,
        scale=scale,
        translation=tf.zeros([2]),
        kernel_type=kernel,
        antialias=antialias,
    )


def _resizer(method, antialias):
    """The function (images, size) for a method."""
    raw = tf.raw_ops
    if method == ResizeMethod.BILINEAR and not antialias:
        return lambda i, s: raw.ResizeBilinear(
            images=i, size=s, half_pixel_centers=True
        )
    if method == ResizeMethod.BICUBIC and not antialias:
        return lambda i, s: raw.ResizeBicubic(images=i, size=s, half_pixel_centers=True)
    if method == ResizeMethod.NEAREST_NEIGHBOR:
        return lambda i, s: raw.ResizeNearestNeighbor(
            images=i, size=s, half_pixel_centers=True
        )
    if method == ResizeMethod.AREA:
        return lambda i, s: raw.ResizeArea(images=i, size=s)
    smooth = {ResizeMethod.BILINEAR: "triangle", ResizeMethod.BICUBIC: "keyscubic"}
    if method in smooth:
        return lambda i, s: _by_kernel(i, s, smooth[method], True)
    if method in _KERNELS:
        return lambda i, s: _by_kernel(i, s, method, antialias)
    raise ValueError(f"Resize method is not implemented: {method}")


def _kept_aspect(images, size):
    """The largest size within `size` that has the images' aspect."""
    height, width = (tf.cast(s, tf.float64) for s in shapes.sizes(images))
    wanted = tf.cast(size, tf.float64)
    scale = tf.minimum(wanted[0] / height, wanted[1] / width)
    return tf.stack(
        [
            tf.cast(tf.round(scale * height), tf.int32),
            tf.cast(tf.round(scale * width), tf.int32),
        ]
    )


def resize(
    images,
    size,
    method=ResizeMethod.BILINEAR,
    preserve_aspect_ratio=False,
    antialias=False,
    name=None,
):
    """Images resized to (height, width)."""
    with tf.name_scope(name or "resize"):
        images = shapes.tensor(images)
        if images.shape.rank is None:
            raise ValueError("'images' contains no shape.")
        if images.shape.rank not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        try:
            size = tf.convert_to_tensor(size, tf.int32, name="size")
        except (TypeError, ValueError):
            raise ValueError("'size' must be a 1-D int32 Tensor") from None
        if not size.shape.is_compatible_with([2]):
            raise ValueError(
                "'size' must be a 1-D Tensor of 2 elements: new_height, new_width"
            )
        if preserve_aspect_ratio:
            size = _kept_aspect(images, size)
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
    image = shapes.tensor(image)
    for value, text in (
        (target_width, "target_width"),
        (target_height, "target_height"),
    ):
        shapes.check(value > 0, f"{text} must be > 0.")
    height, width = shapes.sizes(image)
    ratio = tf.maximum(
        tf.cast(width, tf.float64) / tf.cast(target_width, tf.float64),
        tf.cast(height, tf.float64) / tf.cast(target_height, tf.float64),
    )

    def scaled(size):
        return tf.cast(tf.floor(tf.cast(size, tf.float64) / ratio), tf.int32)

    new_height, new_width = scaled(height), scaled(width)
    resized = resizer(image, tf.stack([new_height, new_width]))
    top = tf.maximum(0, (target_height - new_height) // 2)
    left = tf.maximum(0, (target_width - new_width) // 2)
    return cropping.pad_to_bounding_box(resized, top, left, target_height, target_width)
