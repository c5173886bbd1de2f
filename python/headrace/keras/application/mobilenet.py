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
    rows = wanted.input_shape[0]
    square = rows == wanted.input_shape[1] and rows in (*_SIZES, 96)
    return rows if square else 224


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
