"""What the functions of tf.image share: sizes and batches of one."""

import headrace as tf


def tensor(image):
    return tf.convert_to_tensor(image)


def rank_of(image):
    """The static rank, which must be known and 3 or 4."""
    rank = image.shape.rank
    if rank not in (3, 4):
        raise ValueError(
            f"'image' (shape {image.shape}) must have either 3 or 4 dimensions."
        )
    return rank


def sizes(image):
    """(height, width), numbers where they are static, else scalar tensors."""
    static = image.shape.as_list()[-3:-1]
    if None not in static:
        return tuple(static)
    dynamic = tf.shape(image)
    return tuple(
        dynamic[i] if size is None else size for i, size in zip((-3, -2), static)
    )


def known(image, like, height, width):
    """The image, whose static shape is that of `like` but for height and width."""
    sizes = like.shape.as_list()
    sizes[-3:-1] = [tf.get_static_value(n) for n in (height, width)]
    image.set_shape(sizes)
    return image


def in_batches(function, image):
    """function(images of rank 4) for images of rank 3 or 4."""
    if rank_of(image) == 4:
        return function(image)
    return tf.squeeze(function(tf.expand_dims(image, 0)), 0)


def check(condition, message):
    """ValueError(message) where `condition` is known to be false; an assertion
    in graphs otherwise."""
    if isinstance(condition, bool):
        if not condition:
            raise ValueError(message)
        return
    tf.debugging.Assert(condition, [message])


def is_known(*values):
    return not any(tf.is_tensor(v) for v in values)


def at_least(value, low, message):
    check(value >= low, message)
