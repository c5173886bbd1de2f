"""How images change, and how much two of them differ."""

from headrace.context.errors import InvalidArgumentError
from headrace.framework import conversion, dtypes, name_scopes
from headrace.imaging import shapes
from headrace.imaging.adjusting import convert_image_dtype
from headrace.ops import array_ops, check_ops, elementwise_ops, math_ops, reduction_ops
from headrace.ops.nn import convolution_ops, nn_ops


def image_gradients(image):
    """(dy, dx): differences of neighbouring pixels, zeros at the end."""
    image = shapes.tensor(image)
    if image.shape.rank != 4:
        raise ValueError(
            "image_gradients expects a 4D tensor [batch_size, h, w, d], not "
            f"{image.shape}."
        )
    dy = array_ops.pad(image[:, 1:] - image[:, :-1], [[0, 0], [0, 1], [0, 0], [0, 0]])
    dx = array_ops.pad(
        image[:, :, 1:] - image[:, :, :-1], [[0, 0], [0, 0], [0, 1], [0, 0]]
    )
    return dy, dx


def sobel_edges(image):
    """Sobel's edges of each channel: [..., 2] of dy and dx."""
    image = shapes.tensor(image)
    if image.shape.rank is not None and image.shape.rank != 4:
        raise InvalidArgumentError._of(
            f"sobel_edges takes images of rank 4, got shape {image.shape}"
        )
    down = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]
    right = [list(row) for row in zip(*down)]
    kernel = array_ops.transpose(
        conversion.constant([down, right], dtypes.float32), [1, 2, 0]
    )
    channels = _channels(image)
    filters = array_ops.tile(array_ops.expand_dims(kernel, 2), [1, 1, channels, 1])
    padded = array_ops.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    made = convolution_ops.depthwise_conv2d(padded, filters, [1, 1, 1, 1], "VALID")
    return array_ops.reshape(made, array_ops.concat([array_ops.shape(image), [2]], 0))


def total_variation(images, name=None):
    """The sum of the differences of neighbouring pixels of each image."""
    with name_scopes.name_scope(name or "total_variation"):
        images = shapes.tensor(images)
        rank = images.shape.rank
        if rank not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        down = images[..., 1:, :, :] - images[..., :-1, :, :]
        right = images[..., 1:, :] - images[..., :-1, :]
        axes = None if rank == 3 else [1, 2, 3]
        return reduction_ops.reduce_sum(
            elementwise_ops.abs(down), axes
        ) + reduction_ops.reduce_sum(elementwise_ops.abs(right), axes)


def _in_float(a, b, max_val):
    a, b = shapes.tensor(a), shapes.tensor(b)
    max_val = convert_image_dtype(math_ops.cast(max_val, a.dtype), dtypes.float32)
    return (
        convert_image_dtype(a, dtypes.float32),
        convert_image_dtype(b, dtypes.float32),
        max_val,
    )


def _check_sizes(a, b):
    """That two images have the same sizes, and their batches fit: ValueError by what
    is known of their shapes, an assertion where that is not all."""
    one, other = a.shape, b.shape
    one.with_rank_at_least(3)[-3:].assert_is_compatible_with(
        other.with_rank_at_least(3)[-3:]
    )
    if None not in (one.rank, other.rank):
        for m, n in zip(one.as_list()[-4::-1], other.as_list()[-4::-1]):
            if None not in (m, n) and 1 not in (m, n) and m != n:
                raise ValueError(f"Two images are not compatible: {one} and {other}")
    if not (one.is_fully_defined() and other.is_fully_defined()):
        both = [array_ops.shape(a), array_ops.shape(b)]
        fit = elementwise_ops.greater_equal(array_ops.size(both[0]), 3)
        check_ops.Assert(fit, both, 10)
        fit = math_ops.equal(both[0][-3:], both[1][-3:])
        check_ops.Assert(reduction_ops.reduce_all(fit), both, 10)


def _check_window(image, size):
    """That a window lies within the image."""
    shape = array_ops.shape(image)
    fits = elementwise_ops.greater_equal(shape[-3:-1], size)
    check_ops.Assert(reduction_ops.reduce_all(fits), [shape, size], 8)


def _channels(image):
    """How many channels an image has: a number where that is static."""
    size = image.shape[-1]
    return array_ops.shape(image)[-1] if size is None else size


def psnr(a, b, max_val, name=None):
    """The peak of the signal over the noise between two images, in decibels."""
    with name_scopes.name_scope(name or "PSNR"):
        a, b, max_val = _in_float(a, b, max_val)
        error = reduction_ops.reduce_mean(
            elementwise_ops.squared_difference(a, b), [-3, -2, -1]
        )
        _check_sizes(a, b)
        ten = elementwise_ops.log(10.0)
        return 20 * elementwise_ops.log(max_val) / ten - 10 / ten * elementwise_ops.log(
            error
        )


def _gauss(size, sigma):
    """A window of Gaussian weights whose sum is 1, [size, size, 1, 1]."""
    at = array_ops.range(size, dtype=dtypes.float32) - (size - 1) / 2.0
    weight = elementwise_ops.square(at) * (-0.5 / sigma**2)
    both = weight[None, :] + weight[:, None]
    flat = nn_ops.softmax(array_ops.reshape(both, [1, -1]))
    return array_ops.reshape(flat, [size, size, 1, 1])


def _of_batch(function, images):
    """`function`, which takes [batch, h, w, channels], of images [..., h, w, channels]."""
    shape = array_ops.shape(images)
    rows = array_ops.reshape(images, array_ops.concat([[-1], shape[-3:]], 0))
    made = function(rows)
    back = array_ops.concat([shape[:-3], array_ops.shape(made)[1:]], 0)
    return array_ops.reshape(made, back)


def _ssim_parts(x, y, max_val, window, k1, k2):
    """(similarity, its part of contrast and structure), a value a channel."""
    channels = _channels(x)
    filters = array_ops.tile(window, [1, 1, channels, 1])

    def window_means(rows):
        return convolution_ops.depthwise_conv2d(rows, filters, [1, 1, 1, 1], "VALID")

    def mean(v):
        return _of_batch(window_means, v)

    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean_x, mean_y = mean(x), mean(y)
    product = mean_x * mean_y * 2
    squares = elementwise_ops.square(mean_x) + elementwise_ops.square(mean_y)
    luminance = (product + c1) / (squares + c1)
    joint, own = (
        mean(x * y) * 2,
        mean(elementwise_ops.square(x) + elementwise_ops.square(y)),
    )
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
    with name_scopes.name_scope("SSIM"):
        img1, img2 = shapes.tensor(img1), shapes.tensor(img2)
        _check_sizes(img1, img2)
        img1, img2, max_val = _in_float(img1, img2, max_val)
        _check_window(img1, filter_size)
        window = _gauss(filter_size, filter_sigma)
        similar, _ = _ssim_parts(img1, img2, max_val, window, k1, k2)
        axes = [-1] if return_index_map else [-3, -2, -1]
        return reduction_ops.reduce_mean(similar, axes)


def _halved(rows):
    """Means of 2 x 2 pixels; odd sizes repeat their last row or column."""
    sizes = array_ops.shape(rows)
    odd = sizes[1:3] % 2
    zero = array_ops.zeros([2], dtypes.int32)
    more = array_ops.stack(
        [zero, array_ops.stack([0, odd[0]]), array_ops.stack([0, odd[1]]), zero]
    )
    padded = array_ops.pad(rows, more, mode="SYMMETRIC")
    return nn_ops.avg_pool2d(padded, 2, 2, "VALID")


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
    with name_scopes.name_scope("MS-SSIM"):
        img1, img2 = shapes.tensor(img1), shapes.tensor(img2)
        _check_sizes(img1, img2)
        img1, img2, max_val = _in_float(img1, img2, max_val)
        window = _gauss(filter_size, filter_sigma)
        parts = []
        for scale in range(len(power_factors)):
            if scale > 0:
                img1, img2 = (_of_batch(_halved, image) for image in (img1, img2))
            _check_window(img1, filter_size)
            both = _ssim_parts(img1, img2, max_val, window, k1, k2)
            last = scale == len(power_factors) - 1
            parts.append(
                nn_ops.relu(reduction_ops.reduce_mean(both[0 if last else 1], [-3, -2]))
            )
        stacked = array_ops.stack(parts, -1)
        product = reduction_ops.reduce_prod(
            stacked ** conversion.constant(power_factors, stacked.dtype), [-1]
        )
        return reduction_ops.reduce_mean(product, [-1])
