"""How images change, and how much two of them differ."""

import headrace as tf
from headrace.framework.errors import InvalidArgumentError
from headrace.imaging import shapes
from headrace.imaging.adjusting import convert_image_dtype


def image_gradients(image):
    """(dy, dx): differences of neighbouring pixels, zeros at the end."""
    image = shapes.tensor(image)
    if image.shape.rank != 4:
        raise ValueError(
            "image_gradients expects a 4D tensor [batch_size, h, w, d], not "
            f"{image.shape}."
        )
    dy = tf.pad(image[:, 1:] - image[:, :-1], [[0, 0], [0, 1], [0, 0], [0, 0]])
    dx = tf.pad(image[:, :, 1:] - image[:, :, :-1], [[0, 0], [0, 0], [0, 1], [0, 0]])
    return dy, dx


def sobel_edges(image):
    """Sobel's edges of each channel: [..., 2] of dy and dx."""
    image = shapes.tensor(image)
    if image.shape.rank is not None and image.shape.rank != 4:
        raise InvalidArgumentError(
            None, None, f"sobel_edges takes images of rank 4, got shape {image.shape}"
        )
    down = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]
    right = [list(row) for row in zip(*down)]
    kernel = tf.transpose(tf.constant([down, right], tf.float32), [1, 2, 0])
    channels = image.shape[-1]
    filters = tf.tile(tf.expand_dims(kernel, 2), [1, 1, channels, 1])
    padded = tf.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    made = tf.nn.depthwise_conv2d(padded, filters, [1, 1, 1, 1], "VALID")
    return tf.reshape(made, tf.concat([tf.shape(image), [2]], 0))


def total_variation(images, name=None):
    """The sum of the differences of neighbouring pixels of each image."""
    with tf.name_scope(name or "total_variation"):
        images = shapes.tensor(images)
        rank = images.shape.rank
        if rank not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        down = images[..., 1:, :, :] - images[..., :-1, :, :]
        right = images[..., 1:, :] - images[..., :-1, :]
        axes = None if rank == 3 else [1, 2, 3]
        return tf.reduce_sum(tf.abs(down), axes) + tf.reduce_sum(tf.abs(right), axes)


def _in_float(a, b, max_val):
    a, b = shapes.tensor(a), shapes.tensor(b)
    max_val = convert_image_dtype(tf.cast(max_val, a.dtype), tf.float32)
    return (
        convert_image_dtype(a, tf.float32),
        convert_image_dtype(b, tf.float32),
        max_val,
    )


def _images(a, b):
    """Both as tensors; ValueError where one is known to have fewer dimensions than an
    image."""
    a, b = shapes.tensor(a), shapes.tensor(b)
    for image in (a, b):
        image.shape.with_rank_at_least(3)
    return a, b


def _same_shapes(a, b):
    tf.debugging.assert_equal(tf.shape(a)[-3:], tf.shape(b)[-3:])


def psnr(a, b, max_val, name=None):
    """The peak of the signal over the noise between two images, in decibels."""
    with tf.name_scope(name or "PSNR"):
        a, b, max_val = _in_float(a, b, max_val)
        _same_shapes(a, b)
        error = tf.reduce_mean(tf.math.squared_difference(a, b), [-3, -2, -1])
        ten = tf.math.log(10.0)
        return 20 * tf.math.log(max_val) / ten - 10 / ten * tf.math.log(error)


def _gauss(size, sigma):
    """A window of Gaussian weights whose sum is 1, [size, size, 1, 1]."""
    at = tf.range(size, dtype=tf.float32) - (size - 1) / 2.0
    weight = tf.square(at) * (-0.5 / sigma**2)
    both = weight[None, :] + weight[:, None]
    flat = tf.nn.softmax(tf.reshape(both, [1, -1]))
    return tf.reshape(flat, [size, size, 1, 1])


def _ssim_parts(x, y, max_val, window, k1, k2):
    """(similarity, its part of contrast and structure), a value a channel."""
    channels = x.shape[-1]
    filters = tf.tile(window, [1, 1, channels, 1])

    def mean(v):
        rows = tf.reshape(v, tf.concat([[-1], tf.shape(v)[-3:]], 0))
        made = tf.nn.depthwise_conv2d(rows, filters, [1, 1, 1, 1], "VALID")
        return tf.reshape(made, tf.concat([tf.shape(v)[:-3], tf.shape(made)[1:]], 0))

    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean_x, mean_y = mean(x), mean(y)
    product = mean_x * mean_y * 2
    squares = tf.square(mean_x) + tf.square(mean_y)
    luminance = (product + c1) / (squares + c1)
    joint, own = mean(x * y) * 2, mean(tf.square(x) + tf.square(y))
    contrast = (joint - product + c2) / (own - squares + c2)
    return luminance * contrast, contrast


def ssim(
    img1,
    img2,
    max_val,
    filter_size=11,
    filter_sigma=1.5,
    k1=0.01,
    k2=0.03,
    return_index_map=False,
):
    """The structural similarity of images."""
    with tf.name_scope("SSIM"):
        img1, img2, max_val = _in_float(*_images(img1, img2), max_val)
        _same_shapes(img1, img2)
        window = _gauss(filter_size, filter_sigma)
        similar, _ = _ssim_parts(img1, img2, max_val, window, k1, k2)
        axes = [-1] if return_index_map else [-3, -2, -1]
        return tf.reduce_mean(similar, axes)


def _halved(image):
    """Means of 2 x 2 pixels; odd sizes repeat their last row or column."""
    rows = tf.reshape(image, tf.concat([[-1], tf.shape(image)[-3:]], 0))
    sizes = tf.shape(rows)
    odd = sizes[1:3] % 2
    zero = tf.zeros([2], tf.int32)
    more = tf.stack([zero, tf.stack([0, odd[0]]), tf.stack([0, odd[1]]), zero])
    padded = tf.pad(rows, more, mode="SYMMETRIC")
    made = tf.nn.avg_pool2d(padded, 2, 2, "VALID")
    return tf.reshape(made, tf.concat([tf.shape(image)[:-3], tf.shape(made)[1:]], 0))


def ssim_multiscale(
    img1,
    img2,
    max_val,
    power_factors=(0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size=11,
    filter_sigma=1.5,
    k1=0.01,
    k2=0.03,
):
    """The structural similarity over several scales."""
    with tf.name_scope("MS-SSIM"):
        img1, img2, max_val = _in_float(*_images(img1, img2), max_val)
        _same_shapes(img1, img2)
        window = _gauss(filter_size, filter_sigma)
        parts = []
        for scale in range(len(power_factors)):
            if scale > 0:
                img1, img2 = _halved(img1), _halved(img2)
            both = _ssim_parts(img1, img2, max_val, window, k1, k2)
            last = scale == len(power_factors) - 1
            parts.append(tf.nn.relu(tf.reduce_mean(both[0 if last else 1], [-3, -2])))
        stacked = tf.stack(parts, -1)
        product = tf.reduce_prod(
            stacked ** tf.constant(power_factors, stacked.dtype), [-1]
        )
        return tf.reduce_mean(product, [-1])
