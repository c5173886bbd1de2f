"""MobileNets 1 to 3: Howard et al. (2017), https://arxiv.org/abs/1704.04861, Sandler et
al. (2018), https://arxiv.org/abs/1801.04381, Howard et al. (2019),
https://arxiv.org/abs/1905.02244."""

from headrace.framework.settings import logging
from headrace.keras import settings
from headrace.keras.application.model import architecture
from headrace.keras.application.net import correct_pad

_SIZES = (128, 160, 192, 224)


def _side(sizes):
    """What gives the side of images: input_shape's, where there are weights of it."""

    def shape_of(wanted):
        given = wanted.input_shape
        if given is None:
            return 224
        first = settings.image_data_format() == "channels_first"
        rows, columns = given[1:] if first else given[:2]
        return rows if rows == columns and rows in sizes else 224

    return shape_of


def _check_ready(wanted, sizes, alphas):
    """ValueError where there are no weights of ImageNet for what was asked for."""
    if wanted.weights != "imagenet":
        return
    for name, right in (("depth_multiplier", 1), ("dropout", 0.001)):
        if name == "depth_multiplier" and getattr(wanted, name, right) != right:
            raise ValueError(
                "If imagenet weights are being loaded, depth multiplier must be 1. "
                f"Received: depth_multiplier={wanted.depth_multiplier}"
            )
    if wanted.alpha not in alphas:
        listed = ", ".join(f"`{a:.2f}`" for a in alphas)
        raise ValueError(
            "If imagenet weights are being loaded, alpha can be one of "
            f"{listed} only. Received: alpha={wanted.alpha}"
        )
    rows = wanted.input_shape[0]
    if wanted.input_shape[0] != wanted.input_shape[1] or rows not in sizes:
        logging.warn(
            f"`input_shape` is undefined or non-square, or `rows` is not in {sizes}. "
            "Weights for input shape (224, 224) will be loaded as the default."
        )


def _rows(wanted):
    """The side that the names of models and of their ready weights say."""
    rows, columns = wanted.input_shape[:2]
    ready = rows == columns and rows in (*_SIZES, 96)
    return rows if ready or wanted.weights != "imagenet" else 224


_1 = (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)
_1 += ((512, 1),) * 5 + ((1024, 2), (1024, 1))


@architecture(
    224,
    parameters="input_shape=None, alpha=1.0, depth_multiplier=1, dropout=0.001, "
    "include_top=True, weights='imagenet', input_tensor=None, pooling=None, "
    "classes=1000, classifier_activation='softmax', **kwargs",
    name=lambda w: f"mobilenet_{w.alpha:.2f}_{_rows(w)}",
    file=lambda w: "mobilenet_{}_{}_tf{{top}}.h5".format(
        f"{w.alpha:.2f}".replace(".", "_").rstrip("0").rstrip("_"), _rows(w)
    ),
    shape_of=_side(_SIZES),
)
def MobileNet(net, wanted):
    _check_ready(wanted, _SIZES, (0.25, 0.50, 0.75, 1.0))
    net.common = {"use_bias": False, "padding": "same"}
    alpha = wanted.alpha
    net.conv(int(32 * alpha), 3, strides=2, name="conv1")
    net.bn("conv1_bn").relu(6.0, name="conv1_relu")
    for i, (filters, stride) in enumerate(_1, 1):
        how = {}
        if stride == 2:
            net.pad(((0, 1), (0, 1)), name=f"conv_pad_{i}")
            how = {"strides": 2, "padding": "valid"}
        name, depth = f"conv_dw_{i}", wanted.depth_multiplier
        net.depthwise(3, depth_multiplier=depth, name=name, **how)
        net.bn(f"{name}_bn").relu(6.0, name=f"{name}_relu")
        name = f"conv_pw_{i}"
        net.conv(int(filters * alpha), 1, name=name)
        net.bn(f"{name}_bn").relu(6.0, name=f"{name}_relu")
    if not wanted.include_top:
        return wanted.pooled(net)
    net.mean(keepdims=True).drop(wanted.dropout, name="dropout")
    net.conv(wanted.classes, 1, use_bias=True, name="conv_preds")
    net.reshape((wanted.classes,), name="reshape_2")
    return _activate(net, wanted)


def _activate(net, wanted):
    return net.act(wanted.classifier_activation or "linear", name="predictions")


# --- MobileNetV2 ---


def _rounded(channels, divisor=8, least=None):
    """The next multiple of divisor, at least nine tenths of channels."""
    new = max(least or divisor, int(channels + divisor / 2) // divisor * divisor)
    return new + divisor if new < 0.9 * channels else new


_2 = [(6, 24, 2, 2), (6, 32, 2, 3), (6, 64, 2, 4), (6, 96, 1, 3), (6, 160, 2, 3)]
_2 += [(6, 320, 1, 1)]  # expansion, filters, stride of the first, blocks


def _inverted(net, number, expansion, filters, stride):
    """More channels, a depthwise convolution, and fewer again."""
    before, name = net.fork(), f"block_{number}_" if number else "expanded_conv_"
    if number:
        net.conv(expansion * net.channels, 1, name=f"{name}expand")
        net.bn(f"{name}expand_BN").relu(6.0, name=f"{name}expand_relu")
    how = {}
    if stride == 2:
        net.pad(correct_pad(net, 3), name=f"{name}pad")
        how = {"strides": 2, "padding": "valid"}
    net.depthwise(3, name=f"{name}depthwise", **how)
    net.bn(f"{name}depthwise_BN").relu(6.0, name=f"{name}depthwise_relu")
    net.conv(filters, 1, name=f"{name}project").bn(f"{name}project_BN")
    if before.channels == filters and stride == 1:
        net.add(before, name=f"{name}add")


@architecture(
    224,
    parameters="input_shape=None, alpha=1.0, include_top=True, weights='imagenet', "
    "input_tensor=None, pooling=None, classes=1000, classifier_activation='softmax', "
    "**kwargs",
    name=lambda w: f"mobilenetv2_{w.alpha:.2f}_{_rows(w)}",
    file=lambda w: (
        "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_"
        f"{w.alpha}_{_rows(w)}{'' if w.include_top else '_no_top'}.h5"
    ),
    shape_of=_side((96, *_SIZES)),
)
def MobileNetV2(net, wanted):
    _check_ready(wanted, (96, *_SIZES), (0.35, 0.50, 0.75, 1.0, 1.3, 1.4))
    net.common = {"use_bias": False, "padding": "same"}
    net.norm, alpha = {"momentum": 0.999}, wanted.alpha
    net.conv(_rounded(32 * alpha), 3, strides=2, name="Conv1")
    net.bn("bn_Conv1").relu(6.0, name="Conv1_relu")
    _inverted(net, 0, 1, _rounded(16 * alpha), 1)
    number = 0
    for expansion, filters, stride, count in _2:
        for i in range(count):
            number += 1
            step = 1 if i else stride
            _inverted(net, number, expansion, _rounded(int(filters * alpha)), step)
    last = _rounded(1280 * alpha) if alpha > 1.0 else 1280
    net.conv(last, 1, padding="valid", name="Conv_1").bn("Conv_1_bn")
    net.relu(6.0, name="out_relu")
    return wanted.top(net, pool=None)


# --- MobileNetV3 ---


def _relu(net):
    return net.relu()


def _hard_sigmoid(net):
    """relu6(x + 3) / 6."""
    return net.then(lambda x: x + 3.0).relu(6.0).then(lambda x: x * (1.0 / 6.0))


def _hard_swish(net):
    """x times its hard sigmoid."""
    before = net.fork()
    return _hard_sigmoid(net).times(before)


def _squeezed(net, ratio, name):
    """Each channel times what all channels' means say."""
    before, filters = net.fork(), net.channels
    name = f"{name}squeeze_excite/"
    net.mean(keepdims=True, name=f"{name}AvgPool")
    net.conv(_rounded(filters * ratio), 1, use_bias=True, name=f"{name}Conv")
    net.relu(name=f"{name}Relu").conv(filters, 1, use_bias=True, name=f"{name}Conv_1")
    _hard_sigmoid(net).times(before, name=f"{name}Mul")


def _inverted_3(net, number, expansion, filters, kernel, stride, ratio, activate):
    before, inner = net.fork(), net.channels
    name = f"expanded_conv_{number}/" if number else "expanded_conv/"
    if number:
        net.conv(_rounded(inner * expansion), 1, name=f"{name}expand")
        activate(net.bn(f"{name}expand/BatchNorm"))
    how = {}
    if stride == 2:
        net.pad(correct_pad(net, kernel), name=f"{name}depthwise/pad")
        how = {"strides": 2, "padding": "valid"}
    net.depthwise(kernel, name=f"{name}depthwise", **how)
    activate(net.bn(f"{name}depthwise/BatchNorm"))
    if ratio:
        _squeezed(net, ratio, name)
    net.conv(filters, 1, name=f"{name}project").bn(f"{name}project/BatchNorm")
    if stride == 1 and inner == filters:
        net.add(before, name=f"{name}Add")


# Expansion, filters, kernel, stride, share of squeezed channels, "s" for hard swish.
_SMALL = [
    *((1, 16, 3, 2, 0.25, "r"), (72 / 16, 24, 3, 2, None, "r")),
    *((88 / 24, 24, 3, 1, None, "r"), (4, 40, 5, 2, 0.25, "s")),
    *((6, 40, 5, 1, 0.25, "s"), (6, 40, 5, 1, 0.25, "s"), (3, 48, 5, 1, 0.25, "s")),
    *((3, 48, 5, 1, 0.25, "s"), (6, 96, 5, 2, 0.25, "s"), (6, 96, 5, 1, 0.25, "s")),
    (6, 96, 5, 1, 0.25, "s"),
]
_LARGE = [
    *((1, 16, 3, 1, None, "r"), (4, 24, 3, 2, None, "r"), (3, 24, 3, 1, None, "r")),
    *((3, 40, 5, 2, 0.25, "r"), (3, 40, 5, 1, 0.25, "r"), (3, 40, 5, 1, 0.25, "r")),
    *((6, 80, 3, 2, None, "s"), (2.5, 80, 3, 1, None, "s"), (2.3, 80, 3, 1, None, "s")),
    *((2.3, 80, 3, 1, None, "s"), (6, 112, 3, 1, 0.25, "s"), (6, 112, 3, 1, 0.25, "s")),
    *((6, 160, 5, 2, 0.25, "s"), (6, 160, 5, 1, 0.25, "s"), (6, 160, 5, 1, 0.25, "s")),
]


def _v3(kind, blocks, last):
    def body(net, wanted):
        _check_v3(wanted)
        alpha, plain = wanted.alpha, wanted.minimalistic
        swish = _relu if plain else _hard_swish
        net.common = {"use_bias": False, "padding": "same"}
        net.norm = {"momentum": 0.999}
        if wanted.include_preprocessing:
            net.rescale(scale=1.0 / 127.5, offset=-1.0)
        net.conv(16, 3, strides=2, name="Conv")
        swish(net.bn("Conv/BatchNorm"))
        for i, (expansion, filters, kernel, stride, ratio, kind) in enumerate(blocks):
            activate = swish if kind == "s" else _relu
            kernel, ratio = (3, None) if plain else (kernel, ratio)
            filters = _rounded(filters * alpha)
            _inverted_3(*(net, i, expansion, filters, kernel, stride, ratio, activate))
        net.conv(_rounded(net.channels * 6), 1, name="Conv_1")
        swish(net.bn("Conv_1/BatchNorm"))
        if not wanted.include_top:
            return wanted.pooled(net, avg="avg_pool", max="max_pool")
        wide = _rounded(last * alpha) if alpha > 1.0 else last
        net.mean(keepdims=True)
        swish(net.conv(wide, 1, use_bias=True, name="Conv_2"))
        if wanted.dropout_rate > 0:
            net.drop(wanted.dropout_rate)
        net.conv(wanted.classes, 1, use_bias=True, name="Logits").flatten()
        return net.act(wanted.classifier_activation or "linear", name="Predictions")

    body.__name__ = f"MobileNetV3{kind.title()}"
    return architecture(
        224,
        parameters="input_shape=None, alpha=1.0, minimalistic=False, include_top=True, "
        "weights='imagenet', input_tensor=None, classes=1000, pooling=None, "
        "dropout_rate=0.2, classifier_activation='softmax', include_preprocessing=True",
        name=f"MobilenetV3{kind}",
        file=lambda w: (
            "weights_mobilenet_v3_"
            f"{kind}{'_minimalistic' if w.minimalistic else ''}_224_{w.alpha}_float"
            f"{'' if w.include_top else '_no_top_v2'}.h5"
        ),
        open_sides=True,
    )(body)


def _check_v3(wanted):
    if wanted.weights != "imagenet":
        return
    if wanted.minimalistic and wanted.alpha != 1.0:
        raise ValueError(
            "If imagenet weights are being loaded, alpha can be one of `1.0` only "
            f"for minimalistic models. Received: alpha={wanted.alpha}"
        )
    if wanted.alpha not in (0.75, 1.0):
        raise ValueError(
            "If imagenet weights are being loaded, alpha can be one of `0.75`, `1.0` "
            f"for non minimalistic models. Received: alpha={wanted.alpha}"
        )


MobileNetV3Small = _v3("small", _SMALL, 1024)
MobileNetV3Large = _v3("large", _LARGE, 1280)
