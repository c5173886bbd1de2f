"""Convolutions of one to three spatial dimensions, and what they are made of."""

from headrace._load import _headrace, raw
from headrace.framework import conversion
from headrace.framework.name_scopes import composite
from headrace.framework.support import signatures
from headrace.ops import array_ops

CHANNELS_LAST = ("NWC", "NHWC", "NDHWC")  # by the number of dimensions of space


def sizes_of(value, count, channel_index, name):
    """A stride, window or dilation of `count` spatial dimensions, spelt out."""
    if value is None:
        value = [1]
    items = [value] if isinstance(value, int) else list(value)
    if len(items) == 1:
        items = items * count
    if len(items) == count:
        if channel_index == 1:
            return [1, 1] + items
        return [1] + items + [1]
    if len(items) == count + 2:
        return items
    raise ValueError(
        f"{name} should be of length 1, {count} or {count + 2}. Received: "
        f"{name}={value} of length {len(items)}"
    )


def padding_of(padding, n=2):
    """(padding attr, explicit paddings), for n dimensions of space."""
    if isinstance(padding, str):
        return padding, []
    flat = []
    for pair in padding:
        if len(pair) != 2:
            raise ValueError(
                "Each value in explicit padding must be a list/tuple of "
                f"size 2. Received: padding={padding}"
            )
        flat.extend(pair)
    if len(flat) != 2 * (n + 2):
        raise ValueError(
            f"Explicit padding must be a list of {n + 2} pairs. Received: "
            f"padding={padding}"
        )
    return "EXPLICIT", flat


def _tensor(x):
    return x if isinstance(x, _headrace.Tensor) else conversion.convert_to_tensor(x)


def _over_batches(function, x, inner):
    """`function` of x whose dimensions before the last `inner` are one, the batch."""
    x = _tensor(x)
    rank = x.shape.rank
    if rank is None or rank <= inner + 1:
        return function(x)
    shape = array_ops.shape(x)
    out = function(array_ops.reshape(x, array_ops.concat([[-1], shape[-inner:]], 0)))
    back = array_ops.concat([shape[:-inner], array_ops.shape(out)[-inner:]], 0)
    return array_ops.reshape(out, back)


@composite("conv1d")
def conv1d(
    input, filters, stride, padding, data_format="NWC", dilations=None, name=None
):
    """A one-dimensional convolution.

    `input` is [batch..., width, in] (or channels first with data_format "NCW"),
    `filters` [width, in, out]; `stride` and `dilations` are an int or a list of 1 or
    3; padding "SAME" or "VALID".
    """
    first = data_format in ("NCW", "NCHW")
    axis = 2 if first else 1
    wide = {"data_format": "NCHW" if first else "NHWC", "name": name}

    def spread(value):
        items = [value] if isinstance(value, int) else list(value or [1])
        if len(items) == 3:
            items = items[2:] if first else items[1:2]
        return [1, 1, 1, items[0]] if first else [1, 1, items[0], 1]

    def one(x):
        out = raw.Conv2D(
            array_ops.expand_dims(x, axis),
            array_ops.expand_dims(filters, 0),
            strides=spread(stride),
            padding=padding,
            dilations=spread(dilations),
            **wide,
        )
        return array_ops.squeeze(out, [axis])

    return _over_batches(one, input, 2)


def conv2d(
    input, filters, strides, padding, data_format="NHWC", dilations=None, name=None
):
    """A two-dimensional convolution.

    `input` is [batch..., height, width, in] (or channels first with data_format
    "NCHW"), `filters` [height, width, in, out]; `strides` and `dilations` are an int
    or a list of 1, 2 or 4; padding "SAME", "VALID" or four pairs.
    """
    padding, explicit = padding_of(padding)
    data_format = data_format or "NHWC"
    channel = 1 if data_format == "NCHW" else 3

    def one(x):
        return raw.Conv2D(
            x,
            filters,
            strides=sizes_of(strides, 2, channel, "strides"),
            padding=padding,
            explicit_paddings=explicit,
            data_format=data_format,
            dilations=sizes_of(dilations, 2, channel, "dilations"),
            name=name,
        )

    if isinstance(input, _headrace.Tensor) and input._rank() == 4:
        return one(input)
    return _over_batches(one, input, 3)


def conv3d(
    input, filters, strides, padding, data_format="NDHWC", dilations=None, name=None
):
    """A three-dimensional convolution.

    `input` is [batch..., depth, height, width, in] (or channels first with
    data_format "NCDHW"), `filters` [depth, height, width, in, out]; `strides` and
    `dilations` are lists of 5.
    """

    def one(x):
        return raw.Conv3D(
            x,
            filters,
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilations=[1] * 5 if dilations is None else dilations,
            name=name,
        )

    return _over_batches(one, input, 4)


def convolution(
    input,
    filters,
    strides=None,
    padding="VALID",
    data_format=None,
    dilations=None,
    name=None,
):
    """A convolution of one, two or three spatial dimensions: as many as `filters`
    has. `strides` or `dilations`, one of them, may be above 1."""
    filters = _tensor(filters)
    n = _spatial(filters)
    first = data_format is not None and data_format.startswith("NC")
    channel = 1 if first else n + 1
    steps = sizes_of(strides, n, channel, "strides")
    reach = sizes_of(dilations, n, channel, "dilations")
    if max(steps) > 1 and max(reach) > 1:
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. "
            f"Received: strides={strides} and dilation_rate={dilations}"
        )
    function = (conv1d, conv2d, conv3d)[n - 1]
    layout = CHANNELS_LAST[n - 1] if data_format is None else data_format
    return function(input, filters, steps, padding, layout, reach, name)


def _spatial(filters):
    rank = filters.shape.rank
    if rank not in (3, 4, 5):
        raise ValueError(
            "`filters` must have 1, 2 or 3 spatial dimensions and two of channels. "
            f"Received: filters.shape={filters.shape}"
        )
    return rank - 2


def _transposing(data_format):
    """Decorates a transposed convolution with the parameters that all of them have."""
    return signatures.having(
        "input, filters, output_shape, strides, padding='SAME', "
        f"data_format={data_format!r}, dilations=None, name=None"
    )


@_transposing("NWC")
def conv1d_transpose(
    input, filters, output_shape, strides, padding, data_format, dilations, name
):
    """The gradient of conv1d with respect to its input, [batch, width, in]."""
    first = data_format == "NCW"
    axis = 2 if first else 1
    channel = 1 if first else 2

    def spread(value, name):
        items = sizes_of(value, 1, channel, name)
        return items[:axis] + [1] + items[axis:]

    shape = _tensor(output_shape)
    out = conv2d_transpose(
        array_ops.expand_dims(input, axis),
        array_ops.expand_dims(filters, 0),
        array_ops.concat([shape[:axis], [1], shape[axis:]], 0),
        spread(strides, "strides"),
        padding,
        "NCHW" if first else "NHWC",
        spread(dilations, "dilations"),
        name,
    )
    return array_ops.squeeze(out, [axis])


def _backward(op, n, input, filters, output_shape, *, strides, dilations, **given):
    """The op that goes back from a convolution over n dimensions of space."""
    layout = given.pop("data_format") or CHANNELS_LAST[n - 1]
    channel = 1 if layout.startswith("NC") else n + 1
    return getattr(raw, op)(
        output_shape,
        filters,
        input,
        strides=sizes_of(strides, n, channel, "strides"),
        data_format=layout,
        dilations=sizes_of(dilations, n, channel, "dilations"),
        **given,
    )


@_transposing("NHWC")
@composite("conv2d_transpose", ends=True)
def conv2d_transpose(input, filters, output_shape, padding, **given):
    """The gradient of conv2d with respect to its input, of shape `output_shape`;
    `filters` is [height, width, out, in]."""
    given["padding"], given["explicit_paddings"] = padding_of(padding)
    op = "Conv2DBackpropInput"
    return _backward(op, 2, input, filters, output_shape, **given)


@_transposing("NDHWC")
def conv3d_transpose(input, filters, output_shape, **given):
    """The gradient of conv3d with respect to its input, of shape `output_shape`."""
    op = "Conv3DBackpropInputV2"
    return _backward(op, 3, input, filters, output_shape, **given)


@_transposing(None)
def conv_transpose(
    input, filters, output_shape, strides, padding, data_format, dilations, name
):
    """The gradient of tf.nn.convolution with respect to its input."""
    if not isinstance(output_shape, _headrace.Tensor):
        if not hasattr(output_shape, "__len__"):
            raise ValueError(
                "`output_shape` must be a tensor or sized collection. Received: "
                f"output_shape={output_shape}"
            )
        if len(output_shape) not in (3, 4, 5):
            raise ValueError(
                "`output_shape` must be of length 3, 4 or 5. Received: "
                f"output_shape={output_shape} of length {len(output_shape)}."
            )
    filters = _tensor(filters)
    n = _spatial(filters)
    function = (conv1d_transpose, conv2d_transpose, conv3d_transpose)[n - 1]
    layout = CHANNELS_LAST[n - 1] if data_format is None else data_format
    return function(
        input, filters, output_shape, strides, padding, layout, dilations, name
    )


def atrous_conv2d(value, filters, rate, padding, name=None):
    """conv2d with `rate` - 1 places left out between the filter's taps."""
    return conv2d(value, filters, 1, padding, dilations=rate, name=name)


def atrous_conv2d_transpose(value, filters, output_shape, rate, padding, name=None):
    """The gradient of atrous_conv2d with respect to its input."""
    return conv2d_transpose(
        value, filters, output_shape, 1, padding, dilations=rate, name=name
    )


@composite("depthwise", ends=True)
def depthwise_conv2d(
    input, filter, strides, padding, data_format=None, dilations=None, name=None
):
    """A convolution of each channel on its own.

    `input` is [batch, height, width, in] (or channels first with data_format
    "NCHW"), `filter` [height, width, in, multiplier]; `strides` is a list of 4.
    """
    padding, explicit = padding_of(padding)
    data_format = data_format or "NHWC"
    channel = 1 if data_format == "NCHW" else 3
    return raw.DepthwiseConv2dNative(
        input,
        filter,
        strides=strides,
        padding=padding,
        explicit_paddings=explicit,
        data_format=data_format,
        dilations=sizes_of(dilations, 2, channel, "dilations"),
        name=name,
    )


_GRADIENT = (
    "{}, out_backprop, strides, padding, data_format='NHWC', dilations=[1, 1, 1, 1], "
    "name=None"
).format


@signatures.having(_GRADIENT("input, filter_sizes"))
def depthwise_conv2d_backprop_filter(padding, **given):
    """The gradient of a depthwise convolution by its filter, of the shape filter_sizes.

    The other arguments are the convolution's; padding may be a list of 4 pairs.
    """
    padding, explicit = padding_of(padding)
    given.update(padding=padding, explicit_paddings=explicit)
    return raw.DepthwiseConv2dNativeBackpropFilter(**given)


@signatures.having(_GRADIENT("input_sizes, filter"))
def depthwise_conv2d_backprop_input(padding, **given):
    """The gradient of a depthwise convolution by its input, of the shape input_sizes.

    The other arguments are the convolution's; padding may be a list of 4 pairs.
    """
    padding, explicit = padding_of(padding)
    given.update(padding=padding, explicit_paddings=explicit)
    return raw.DepthwiseConv2dNativeBackpropInput(**given)


@composite("separable_conv2d", ends=True)
def separable_conv2d(
    input,
    depthwise_filter,
    pointwise_filter,
    strides,
    padding,
    data_format=None,
    dilations=None,
    name=None,
):
    """A depthwise convolution, then one of 1x1 over the channels."""
    deep = depthwise_conv2d(
        input, depthwise_filter, strides, padding, data_format, dilations
    )
    return conv2d(deep, pointwise_filter, 1, "VALID", data_format, name=name)


def dilation2d(input, filters, strides, padding, data_format, dilations, name=None):
    """The largest sum of window and filter: grey-scale dilation, NHWC only."""
    if data_format != "NHWC":
        raise ValueError(
            "`data_format` values other  than 'NHWC' are not supported. Received: "
            f"data_format={data_format}"
        )
    return raw.Dilation2D(
        input, filters, strides=strides, rates=dilations, padding=padding, name=name
    )


def erosion2d(value, filters, strides, padding, data_format, dilations, name=None):
    """The smallest difference of window and filter: grey-scale erosion."""
    mirrored = array_ops.reverse(filters, [0, 1])
    widest = dilation2d(
        -_tensor(value), mirrored, strides, padding, data_format, dilations
    )
    return raw.Neg(widest, name=name)


@signatures.having(
    "input, filter, strides, padding, explicit_paddings=[], data_format='CHANNELS_LAST', "
    "dilations=[], batch_dims=1, groups=1, name=None"
)
def conv(**given):
    """The Conv operation: a convolution over one, two or three dimensions."""
    return raw.Conv(**given)


_BACKWARD = (
    "input, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, "
    "explicit_paddings=[], data_format='NHWC', dilations=[1, 1, 1, 1], name=None"
)


@signatures.having(_BACKWARD)
def conv2d_backprop_filter_v2(**given):
    """The gradient of a 2-D convolution by its filter, like `filter`."""
    return raw.Conv2DBackpropFilterV2(**given)


@signatures.having(_BACKWARD)
def conv2d_backprop_input_v2(**given):
    """The gradient of a 2-D convolution by its input, like `input`."""
    return raw.Conv2DBackpropInputV2(**given)
