"""EfficientNets: Tan and Le (2019), https://arxiv.org/abs/1905.11946, and (2021),
https://arxiv.org/abs/2104.00298."""

import math

from headrace.keras import initializer as initializers
from headrace.keras.application.model import COMMON, architecture
from headrace.keras.application.net import axis, correct_pad

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_DROP_CONNECT = 0.2


def fan_out(scale, distribution):
    """An initializer by how many outputs a weight has."""
    return initializers.VarianceScaling(scale, "fan_out", distribution)


def _rounded(filters, width, divisor=8):
    """filters * width as a multiple of divisor, at least nine tenths of it."""
    filters *= width
    new = max(divisor, int(filters + divisor / 2) // divisor * divisor)
    return int(new + divisor if new < 0.9 * filters else new)


def _conv_options():
    initial = fan_out(2.0, "truncated_normal")
    return {"use_bias": False, "padding": "same", "kernel_initializer": initial}


def _squeezed(net, filters, name):
    """Each channel times what all channels' means say."""
    before, channels = net.fork(), net.channels
    shape = (1, 1, channels) if axis() == 3 else (channels, 1, 1)
    net.mean(name=f"{name}se_squeeze").reshape(shape, name=f"{name}se_reshape")
    how = {"use_bias": True}
    net.conv(filters, 1, activation="swish", name=f"{name}se_reduce", **how)
    net.conv(channels, 1, activation="sigmoid", name=f"{name}se_expand", **how)
    net.times(before, name=f"{name}se_excite")


def _skip(net, before, drop, name):
    """The block's input added, the block itself sometimes dropped as a whole."""
    if drop > 0:
        net.drop(drop, noise_shape=(None, 1, 1, 1), name=f"{name}drop")
    net.x = before.add(net, name=f"{name}add").x


def _top(net, wanted, width, dropout, **dense):
    net.conv(_rounded(1280, width), 1, name="top_conv")
    net.bn("top_bn").act("swish", name="top_activation")
    dense["kernel_initializer"] = fan_out(1 / 3, "uniform")
    pools = {"avg": "avg_pool", "max": "max_pool"}
    drop = lambda net: net.drop(dropout, name="top_dropout")
    return wanted.top(net, drop if dropout > 0 else None, pools, **dense)


# --- the first ---

# Kernel, repeats, filters, expansion, stride.
_BLOCKS = [(3, 1, 16, 1, 1), (3, 2, 24, 6, 2), (5, 2, 40, 6, 2), (3, 3, 80, 6, 2)]
_BLOCKS += [(5, 3, 112, 6, 1), (5, 4, 192, 6, 2), (3, 1, 320, 6, 1)]


def _block(net, kernel, filters, expansion, stride, drop, name):
    """More channels, a depthwise convolution, squeezing, and fewer channels again."""
    before, inner = net.fork(), net.channels
    if expansion != 1:
        net.conv(inner * expansion, 1, name=f"{name}expand_conv")
        net.bn(f"{name}expand_bn").act("swish", name=f"{name}expand_activation")
    how = {"padding": "same"}
    if stride == 2:
        net.pad(correct_pad(net, kernel), name=f"{name}dwconv_pad")
        how = {"padding": "valid", "strides": 2}
    initial = fan_out(2.0, "truncated_normal")
    how = {**how, "use_bias": False, "depthwise_initializer": initial}
    net.depthwise(kernel, name=f"{name}dwconv", **how)
    net.bn(f"{name}bn").act("swish", name=f"{name}activation")
    _squeezed(net, max(1, int(inner * 0.25)), name)
    net.conv(filters, 1, name=f"{name}project_conv").bn(f"{name}project_bn")
    if stride == 1 and inner == filters:
        _skip(net, before, drop, name)


def _efficientnet(number, width, depth, size, dropout):
    def body(net, wanted):
        net.rescale(1.0 / 255.0).normalize(axis=axis())
        if wanted.weights == "imagenet":
            # The ready weights expect a division by the root of the deviation.
            net.rescale([1.0 / math.sqrt(d) for d in DEVIATION])
        net.pad(correct_pad(net, 3), name="stem_conv_pad")
        net.common = _conv_options()
        filters = _rounded(32, width)
        net.conv(filters, 3, strides=2, padding="valid", name="stem_conv")
        net.bn("stem_bn").act("swish", name="stem_activation")
        counts = [math.ceil(depth * b[1]) for b in _BLOCKS]
        done = 0
        for i, (kernel, _, filters, expansion, stride) in enumerate(_BLOCKS):
            for j in range(counts[i]):
                drop = _DROP_CONNECT * done / sum(counts)
                how = (_rounded(filters, width), expansion, 1 if j else stride, drop)
                _block(net, kernel, *how, f"block{i + 1}{chr(j + 97)}_")
                done += 1
        return _top(net, wanted, width, dropout)

    body.__name__, name = f"EfficientNetB{number}", f"efficientnetb{number}"
    takes = COMMON + ", **kwargs"
    return architecture(size, 32, takes, name, name + "{top}.h5")(body)


EfficientNetB0 = _efficientnet(0, 1.0, 1.0, 224, 0.2)
EfficientNetB1 = _efficientnet(1, 1.0, 1.1, 240, 0.2)
EfficientNetB2 = _efficientnet(2, 1.1, 1.2, 260, 0.3)
EfficientNetB3 = _efficientnet(3, 1.2, 1.4, 300, 0.3)
EfficientNetB4 = _efficientnet(4, 1.4, 1.8, 380, 0.4)
EfficientNetB5 = _efficientnet(5, 1.6, 2.2, 456, 0.4)
EfficientNetB6 = _efficientnet(6, 1.8, 2.6, 528, 0.5)
EfficientNetB7 = _efficientnet(7, 2.0, 3.1, 600, 0.5)

# --- the second ---

# Repeats, filters of input and output, expansion, stride, whether convolutions are
# fused, else squeezed.
_SECOND = {
    "b": [(1, 32, 16, 1, 1, True), (2, 16, 32, 4, 2, True), (2, 32, 48, 4, 2, True)],
    "s": [(2, 24, 24, 1, 1, True), (4, 24, 48, 4, 2, True), (4, 48, 64, 4, 2, True)],
    "m": [(3, 24, 24, 1, 1, True), (5, 24, 48, 4, 2, True), (5, 48, 80, 4, 2, True)],
    "l": [(4, 32, 32, 1, 1, True), (7, 32, 64, 4, 2, True), (7, 64, 96, 4, 2, True)],
}
for _kind, _rows in {
    "b": [(3, 48, 96, 4, 2), (5, 96, 112, 6, 1), (8, 112, 192, 6, 2)],
    "s": [(6, 64, 128, 4, 2), (9, 128, 160, 6, 1), (15, 160, 256, 6, 2)],
    "m": [(7, 80, 160, 4, 2), (14, 160, 176, 6, 1), (18, 176, 304, 6, 2)]
    + [(5, 304, 512, 6, 1)],
    "l": [(10, 96, 192, 4, 2), (19, 192, 224, 6, 1), (25, 224, 384, 6, 2)]
    + [(7, 384, 640, 6, 1)],
}.items():
    _SECOND[_kind] += [(*row, False) for row in _rows]


def _block_2(net, filters, expansion, stride, drop, fused, name):
    before, inner = net.fork(), net.channels
    if expansion != 1:
        how = (3, stride) if fused else (1, 1)
        net.conv(inner * expansion, how[0], strides=how[1], name=f"{name}expand_conv")
        net.bn(f"{name}expand_bn").act("swish", name=f"{name}expand_activation")
    if not fused:
        options = _conv_options()
        initial = options.pop("kernel_initializer")
        options["depthwise_initializer"] = initial
        net.depthwise(3, strides=stride, name=f"{name}dwconv2", **options)
        net.bn(f"{name}bn").act("swish", name=f"{name}activation")
        _squeezed(net, max(1, int(inner * 0.25)), name)
    first = fused and expansion == 1
    how = (3, stride) if first else (1, 1)
    net.conv(filters, how[0], strides=how[1], name=f"{name}project_conv")
    net.bn(f"{name}project_bn")
    if first:
        net.act("swish", name=f"{name}project_activation")
    if stride == 1 and inner == filters:
        _skip(net, before, drop, name)


def _efficientnet_v2(kind, size, width=1.0, depth=1.0):
    rows = _SECOND[kind[0]]

    def body(net, wanted):
        if wanted.include_preprocessing and kind[0] == "b":
            net.rescale(1.0 / 255)
            net.normalize(axis=axis(), mean=MEAN, variance=[d**2 for d in DEVIATION])
        elif wanted.include_preprocessing:
            net.rescale(scale=1.0 / 128.0, offset=-1)
        net.common, net.norm = _conv_options(), {"momentum": 0.9}
        net.conv(_rounded(rows[0][1], width), 3, strides=2, name="stem_conv")
        net.bn("stem_bn").act("swish", name="stem_activation")
        counts = [math.ceil(depth * row[0]) for row in rows]
        done = 0
        for i, (_, _, filters, expansion, stride, fused) in enumerate(rows):
            for j in range(counts[i]):
                drop = _DROP_CONNECT * done / sum(row[0] for row in rows)
                how = (_rounded(filters, width), expansion, 1 if j else stride, drop)
                _block_2(net, *how, fused, f"block{i + 1}{chr(j + 97)}_")
                done += 1
        bias = initializers.Constant(0)
        return _top(net, wanted, width, 0.2, bias_initializer=bias)

    body.__name__, name = f"EfficientNetV2{kind.upper()}", f"efficientnetv2-{kind}"
    takes = COMMON + ", include_preprocessing=True"
    return architecture(size, 32, takes, name, name + "{top}.h5")(body)


EfficientNetV2B0 = _efficientnet_v2("b0", 224)
EfficientNetV2B1 = _efficientnet_v2("b1", 240, 1.0, 1.1)
EfficientNetV2B2 = _efficientnet_v2("b2", 260, 1.1, 1.2)
EfficientNetV2B3 = _efficientnet_v2("b3", 300, 1.2, 1.4)
EfficientNetV2S = _efficientnet_v2("s", 384)
EfficientNetV2M = _efficientnet_v2("m", 480)
EfficientNetV2L = _efficientnet_v2("l", 480)
