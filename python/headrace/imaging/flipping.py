"""Images turned and mirrored."""

from headrace.control_flow import branches
from headrace.framework import dtypes, name_scopes, tensor
from headrace.imaging import shapes
from headrace.ops import array_ops, elementwise_ops, math_ops


def _reversed(image, axis):
    return array_ops.reverse(_checked(image), [axis - 3])


def _checked(image):
    """The image as a tensor: one, a batch, or of unknown rank."""
    image = shapes.not_empty(shapes.tensor(image))
    if (image.shape.rank or 3) > 4:
        raise ValueError(
            f"'image' (shape {image.shape}) must have either 3 or 4 dimensions."
        )
    return image


def flip_left_right(image):
    """The image mirrored along its width."""
    with name_scopes.name_scope("flip_left_right"):
        return _reversed(image, 1)


def flip_up_down(image):
    """The image mirrored along its height."""
    with name_scopes.name_scope("flip_up_down"):
        return _reversed(image, 0)


def transpose(image, name=None):
    """Images, [height, width, channels] or a batch, with rows and columns exchanged."""
    with name_scopes.name_scope(name or "transpose"):
        image = _checked(image)
        if image.shape.rank is None:
            rank = array_ops.rank(image)
            return array_ops.transpose(
                image,
                array_ops.concat(
                    [array_ops.range(rank - 3), [rank - 2, rank - 3, rank - 1]], 0
                ),
            )
        lead = image.shape.rank - 3
        return array_ops.transpose(image, [*range(lead), lead + 1, lead, lead + 2])


def _turned(image, k):
    if k == 0:
        return image
    if k == 1:
        return array_ops.reverse(transpose(image), [-3])
    if k == 2:
        return array_ops.reverse(image, [-3, -2])
    return transpose(array_ops.reverse(image, [-3]))


def rot90(image, k=1, name=None):
    """The image turned k times by 90 degrees, against the clock."""
    with name_scopes.name_scope(name or "rot90"):
        image = _checked(image)
        if not tensor.is_tensor(k):
            return _turned(image, int(k) % 4)
        turns = [lambda i=i: _turned(image, i) for i in range(4)]
        return branches.switch_case(
            elementwise_ops.floormod(math_ops.cast(k, dtypes.int32), 4), turns
        )


def mirrored_at_random(image, axis, uniform):
    """Each image mirrored with probability 1/2; `uniform(shape)` draws."""
    image = _checked(image)

    def one():
        return branches.cond(
            uniform([]) < 0.5,
            lambda: array_ops.reverse(image, [axis - 3]),
            lambda: image,
        )

    if image.shape.rank == 3:
        return one()
    if image.shape.rank is None:
        return branches.cond(
            array_ops.rank(image) > 3, lambda: _each_mirrored(image, axis, uniform), one
        )
    return _each_mirrored(image, axis, uniform)


def _each_mirrored(image, axis, uniform):
    batch = array_ops.shape(image)[0]
    flips = elementwise_ops.round(array_ops.reshape(uniform([batch]), [batch, 1, 1, 1]))
    flips = math_ops.cast(flips, image.dtype)
    return flips * array_ops.reverse(image, [axis - 3]) + (1 - flips) * image
