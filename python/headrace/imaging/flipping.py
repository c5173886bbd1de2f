"""Images turned and mirrored."""

import headrace as tf
from headrace.imaging import shapes


def _reversed(image, axis):
    return tf.reverse(_checked(image), [axis - 3])


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
    with tf.name_scope("flip_left_right"):
        return _reversed(image, 1)


def flip_up_down(image):
    """The image mirrored along its height."""
    with tf.name_scope("flip_up_down"):
        return _reversed(image, 0)


def transpose(image, name=None):
    """Rows as columns."""
    with tf.name_scope(name or "transpose"):
        image = _checked(image)
        if image.shape.rank is None:
            rank = tf.rank(image)
            return tf.transpose(
                image,
                tf.concat([tf.range(rank - 3), [rank - 2, rank - 3, rank - 1]], 0),
            )
        lead = image.shape.rank - 3
        return tf.transpose(image, [*range(lead), lead + 1, lead, lead + 2])


def _turned(image, k):
    if k == 0:
        return image
    if k == 1:
        return tf.reverse(transpose(image), [-3])
    if k == 2:
        return tf.reverse(image, [-3, -2])
    return transpose(tf.reverse(image, [-3]))


def rot90(image, k=1, name=None):
    """The image turned k times by 90 degrees, against the clock."""
    with tf.name_scope(name or "rot90"):
        image = _checked(image)
        if not tf.is_tensor(k):
            return _turned(image, int(k) % 4)
        turns = [lambda i=i: _turned(image, i) for i in range(4)]
        return tf.switch_case(tf.math.floormod(tf.cast(k, tf.int32), 4), turns)


def mirrored_at_random(image, axis, uniform):
    """Each image mirrored with probability 1/2; `uniform(shape)` draws."""
    image = _checked(image)

    def one():
        return tf.cond(
            uniform([]) < 0.5, lambda: tf.reverse(image, [axis - 3]), lambda: image
        )

    if image.shape.rank == 3:
        return one()
    if image.shape.rank is None:
        return tf.cond(
            tf.rank(image) > 3, lambda: _each_mirrored(image, axis, uniform), one
        )
    return _each_mirrored(image, axis, uniform)


def _each_mirrored(image, axis, uniform):
    batch = tf.shape(image)[0]
    flips = tf.round(tf.reshape(uniform([batch]), [batch, 1, 1, 1]))
    flips = tf.cast(flips, image.dtype)
    return flips * tf.reverse(image, [axis - 3]) + (1 - flips) * image
