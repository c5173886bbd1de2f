"""What the functions of tf.image share: sizes and batches of one."""

from headrace.framework import conversion, dtypes, execution, tensor_shape
from headrace.framework.tensor import is_tensor
from headrace.ops import array_ops, check_ops, math_ops


def tensor(image):
    return conversion.convert_to_tensor(image)


def boxed(image):
    """An image or a batch of them whose rank is known: where it is not, an image."""
    if image.shape.rank is None:
        image = array_ops.identity(image)
        image.set_shape([None] * 3)
    if image.shape.rank not in (3, 4):
        raise ValueError(
            f"'image' (shape {image.shape}) must have either 3 or 4 dimensions."
        )
    return not_empty(image)


def not_empty(image):
    """The image; ValueError where an image is known to hold nothing, or to be no
    image, an assertion where its rank is not known."""
    shape = image.shape
    if shape.rank is None:
        check_ops.assert_greater_equal(
            array_ops.rank(image), 3, "'image' must be at least three-dimensional."
        )
        return image
    if shape.rank < 3:
        raise ValueError(f"'image' (shape {shape}) must be at least three-dimensional.")
    if 0 in shape.as_list()[-3:]:
        whole = shape if shape.rank > 3 else tensor_shape.TensorShape([1, *shape])
        raise ValueError(f"inner 3 dims of 'image.shape' must be > 0: {whole}")
    return image


def row(values):
    """A vector of numbers and scalar tensors, all of the tensors' dtype."""
    kinds = {v.dtype for v in values if is_tensor(v)}
    if len(kinds) > 1:
        return array_ops.stack([math_ops.cast(v, dtypes.int64) for v in values])
    return array_ops.stack([conversion.convert_to_tensor(v, *kinds) for v in values])


def sizes(image, like=None):
    """(height, width), numbers where they are static, else scalar tensors, of the
    dtype of `like` where that is a tensor."""
    static = image.shape.as_list()[-3:-1]
    if None not in static:
        return tuple(static)
    dynamic = array_ops.shape(image, like.dtype if is_tensor(like) else dtypes.int32)
    return tuple(
        dynamic[i] if size is None else size for i, size in zip((-3, -2), static)
    )


def known(image, like, height, width):
    """The image, whose static shape is that of `like` but for height and width."""
    sizes = like.shape.as_list()
    sizes[-3:-1] = [execution.get_static_value(n) for n in (height, width)]
    image.set_shape(sizes)
    return image


def in_batches(function, image):
    """function(images of rank 4) for images of rank 3 or 4."""
    if image.shape.rank == 4:
        return function(image)
    return array_ops.squeeze(function(array_ops.expand_dims(image, 0)), 0)


def check(condition, message):
    """ValueError(message) where `condition` is known to be false; an assertion
    in graphs otherwise."""
    if isinstance(condition, bool):
        if not condition:
            raise ValueError(message)
        return
    check_ops.Assert(condition, [message])


def is_known(*values):
    return not any(is_tensor(v) for v in values)


def at_least(value, low, message):
    check(value >= low, message)
