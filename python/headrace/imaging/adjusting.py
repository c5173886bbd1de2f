"""Brightness, contrast, hue, saturation and the types of pixels."""

from headrace._load import raw
from headrace.framework import dtypes, execution, name_scopes, tensor
from headrace.imaging import shapes
from headrace.ops import array_ops, check_ops, elementwise_ops, math_ops, reduction_ops


def convert_image_dtype(image, dtype, saturate=False, name=None):
    """Pixels of another type: floating ones are in [0, 1], integers have all their
    range."""
    image = shapes.tensor(image)
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating and not dtype.is_integer:
        raise AttributeError("dtype must be either floating point or integer")
    if not image.dtype.is_floating and not image.dtype.is_integer:
        raise AttributeError("image dtype must be either floating point or integer")
    if dtype == image.dtype:
        return array_ops.identity(image, name=name)
    cast = elementwise_ops.saturate_cast if saturate else math_ops.cast
    with name_scopes.name_scope(name or "convert_image") as scope:
        if image.dtype.is_integer and dtype.is_integer:
            return _between_integers(image, dtype, saturate)
        if image.dtype.is_floating and dtype.is_floating:
            return math_ops.cast(image, dtype)
        if image.dtype.is_integer:
            scale = 1.0 / image.dtype.max
            return math_ops.multiply(math_ops.cast(image, dtype), scale, scope)
        return cast(image * (dtype.max + 0.5), dtype)


def _between_integers(image, dtype, saturate):
    cast = elementwise_ops.saturate_cast if saturate else math_ops.cast
    if image.dtype.max > dtype.max:
        return cast(image // ((image.dtype.max + 1) // (dtype.max + 1)), dtype)
    return cast(image, dtype) * ((dtype.max + 1) // (image.dtype.max + 1))


def _in_float(image, change, keep=(dtypes.float16, dtypes.float32)):
    """change(floating image), back in the image's own type."""
    image = shapes.tensor(image)
    if image.dtype in keep:
        return change(image)
    changed = change(convert_image_dtype(image, dtypes.float32))
    return convert_image_dtype(changed, image.dtype, saturate=True)


def adjust_brightness(image, delta):
    """The image with `delta`, a part of the range, added."""
    with name_scopes.name_scope("adjust_brightness"):
        return _in_float(image, lambda x: x + math_ops.cast(delta, x.dtype))


def adjust_contrast(images, contrast_factor):
    """Distances from the mean of each channel, scaled."""
    with name_scopes.name_scope("adjust_contrast"):
        return _in_float(images, lambda x: raw.AdjustContrastv2(x, contrast_factor))


def adjust_gamma(image, gamma=1, gain=1):
    """gain * image ** gamma."""
    with name_scopes.name_scope("adjust_gamma"):
        if not tensor.is_tensor(gamma) and gamma < 0:
            raise ValueError("Gamma should be a non-negative real number.")
        if tensor.is_tensor(gamma):
            check_ops.assert_non_negative(
                gamma, "Gamma should be a non-negative real number."
            )
        keep = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bfloat16)
        return _in_float(image, lambda x: gain * x**gamma, keep)


def adjust_hue(image, delta, name=None):
    """Colours with their hue turned by a part of the circle."""
    with name_scopes.name_scope(name or "adjust_hue"):
        known = execution.get_static_value(delta)
        if known is not None and not -1 <= known <= 1:
            raise ValueError("delta must be in the interval [-1, 1]")
        return _in_float(image, lambda x: raw.AdjustHue(x, delta))


def adjust_saturation(image, saturation_factor, name=None):
    """Colours with their saturation scaled."""
    with name_scopes.name_scope(name or "adjust_saturation"):
        return _in_float(image, lambda x: raw.AdjustSaturation(x, saturation_factor))


def per_image_standardization(image):
    """Each image with mean 0 and variance 1."""
    with name_scopes.name_scope("per_image_standardization"):
        image = shapes.tensor(image)
        if image.shape.rank is not None and image.shape.rank < 3:
            raise ValueError(
                f"'image' (shape {image.shape}) must be at least three-dimensional."
            )
        shapes.not_empty(image)
        image = math_ops.cast(image, dtypes.float32)
        axes = [-1, -2, -3]
        count = reduction_ops.reduce_prod(array_ops.shape(image)[-3:])
        mean = reduction_ops.reduce_mean(image, axes, keepdims=True)
        spread = reduction_ops.reduce_std(image, axes, keepdims=True)
        least = elementwise_ops.rsqrt(math_ops.cast(count, image.dtype))
        return (image - mean) / elementwise_ops.maximum(spread, least)
