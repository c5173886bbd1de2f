"""tf.keras.backend's convolutions in parts, and normalization by given numbers."""

from headrace import _api as tf
from headrace._load import raw
from headrace.keras import backend_layers as layers
from headrace.keras import loss as losses


def _checked(padding):
    if padding not in ("valid", "same"):
        raise ValueError(f"Invalid padding: {padding}")
    return padding.upper()


def _strides(strides):
    if not isinstance(strides, (tuple, list)):
        raise TypeError(f"`strides` is a tuple of two integers, got {strides!r}")
    return [1, *strides, 1]


def conv2d_transpose(
    x,
    kernel,
    output_shape,
    strides=(1, 1),
    padding="valid",
    data_format=None,
    dilation_rate=(1, 1),
):
    """The transposed convolution of images: to `output_shape`, whose batch may be None, by
    a kernel [height, width, channels of the output, of the input]."""
    shape = output_shape
    if isinstance(shape, (tuple, list)):
        if layers._channels_first(data_format):
            shape = (shape[0], shape[2], shape[3], shape[1])
        shape = tf.stack([tf.shape(x)[0] if n is None else n for n in shape])
    elif layers._channels_first(data_format):
        shape = tf.gather(shape, [0, 2, 3, 1])
    how = {"output_shape": shape, "padding": _checked(padding), "filters": kernel}
    how |= {"strides": list(strides), "dilations": list(dilation_rate)}
    return layers._of_rank(tf.nn.conv2d_transpose, x, data_format, 2, **how)


def depthwise_conv2d(
    x,
    depthwise_kernel,
    strides=(1, 1),
    padding="valid",
    data_format=None,
    dilation_rate=(1, 1),
):
    """The convolution of each channel by kernels [height, width, channels, of each]."""
    how = {"filter": depthwise_kernel, "strides": _strides(strides)}
    how |= {"padding": _checked(padding), "dilations": list(dilation_rate)}
    return layers._of_rank(tf.nn.depthwise_conv2d, x, data_format, 2, **how)


def separable_conv2d(
    x,
    depthwise_kernel,
    pointwise_kernel,
    strides=(1, 1),
    padding="valid",
    data_format=None,
    dilation_rate=(1, 1),
):
    """depthwise_conv2d, then one by a pointwise kernel [1, 1, channels, filters]."""
    how = {"depthwise_filter": depthwise_kernel, "pointwise_filter": pointwise_kernel}
    how |= {"strides": _strides(strides), "padding": _checked(padding)}
    how["dilations"] = list(dilation_rate)
    return layers._of_rank(tf.nn.separable_conv2d, x, data_format, 2, **how)


def _local(inputs, kernel, kernel_size, strides, output_shape, data_format):
    """A convolution whose kernel, [places, numbers of a window, filters], differs from
    place to place."""
    first = layers._channels_first(data_format)
    before = [slice(None)] * (2 if first else 1)
    places = [()]
    for count in output_shape:
        places = [(*place, i) for place in places for i in range(count)]
    windows = []
    for place in places:
        cut = [
            slice(i * step, i * step + size)
            for i, step, size in zip(place, strides, kernel_size)
        ]
        window = inputs[(*before, *cut)]
        windows.append(tf.reshape(window, [tf.shape(inputs)[0], -1]))
    found = tf.einsum("pbf,pfo->bpo", tf.stack(windows), kernel)
    filters = kernel.shape[-1]
    if first:
        found = tf.transpose(found, [0, 2, 1])
        return tf.reshape(found, [-1, filters, *output_shape])
    return tf.reshape(found, [-1, *output_shape, filters])


def local_conv1d(inputs, kernel, kernel_size, strides, data_format=None):
    """The convolution of [batch, steps, channels] with a kernel for each place of the
    output: [places, size * channels, filters]."""
    kernel = tf.convert_to_tensor(kernel)
    places = (kernel.shape[0],)
    return _local(inputs, kernel, kernel_size, strides, places, data_format)


def local_conv2d(inputs, kernel, kernel_size, strides, output_shape, data_format=None):
    """The convolution of images with a kernel for each of output_shape's places: [rows *
    columns, height * width * channels, filters]."""
    kernel = tf.convert_to_tensor(kernel)
    return _local(inputs, kernel, kernel_size, strides, output_shape, data_format)


def resize_volumes(x, depth_factor, height_factor, width_factor, data_format):
    """Volumes made larger by whole factors, each element as often."""
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Invalid data_format: {data_format}")
    begin = 2 if data_format == "channels_first" else 1
    for i, factor in enumerate((depth_factor, height_factor, width_factor)):
        x = tf.repeat(x, factor, axis=begin + i)
    return x


def batch_normalization(x, mean, var, beta, gamma, axis=-1, epsilon=1e-3):
    """(x - mean) / sqrt(var + epsilon) * gamma + beta; vectors of a picture's `axis`, else
    what broadcasts with x. `beta` and `gamma` may be None."""
    x = tf.convert_to_tensor(x)
    given = [
        None if v is None else tf.convert_to_tensor(v, x.dtype)
        for v in (mean, var, beta, gamma)
    ]
    if x.shape.rank == 4 and axis == 1:
        given = [None if v is None else tf.reshape(v, [1, -1, 1, 1]) for v in given]
    return tf.nn.batch_normalization(x, *given, epsilon)


def normalize_batch_in_training(x, gamma, beta, reduction_axes, epsilon=1e-3):
    """(x normalized by its own mean and variance over some axes, mean, variance); of
    images over all but the channels the variance is the estimate by n - 1."""
    x = tf.convert_to_tensor(x)
    if x.shape.rank == 4 and list(reduction_axes) == [0, 1, 2]:
        channels = x.shape[-1]
        gamma = tf.ones(channels, x.dtype) if gamma is None else gamma
        beta = tf.zeros(channels, x.dtype) if beta is None else beta
        given = {"scale": gamma, "offset": beta, "mean": [], "variance": []}
        return tuple(raw.FusedBatchNormV3(x, **given, epsilon=epsilon)[:3])
    mean, variance = tf.nn.moments(x, list(reduction_axes))
    inner = [i for i in range(x.shape.rank) if i not in reduction_axes]
    rows = [x.shape[i] if i in inner else 1 for i in range(x.shape.rank)]
    given = [
        None if v is None else tf.reshape(tf.cast(v, x.dtype), rows)
        for v in (mean, variance, beta, gamma)
    ]
    return tf.nn.batch_normalization(x, *given, epsilon), mean, variance


def binary_focal_crossentropy(
    target,
    output,
    apply_class_balancing=False,
    alpha=0.25,
    gamma=2.0,
    from_logits=False,
):
    """The focal cross-entropy of each element."""
    values = (tf.expand_dims(v, -1) for v in (target, output))
    how = (apply_class_balancing, alpha, gamma, from_logits)
    return losses.binary_focal_crossentropy(*values, *how)


def categorical_focal_crossentropy(
    target, output, alpha=0.25, gamma=2.0, from_logits=False, axis=-1
):
    """The focal cross-entropy of classes along an axis."""
    how = {"from_logits": from_logits, "axis": axis}
    return losses.categorical_focal_crossentropy(target, output, alpha, gamma, **how)
