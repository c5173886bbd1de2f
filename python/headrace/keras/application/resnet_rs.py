"""ResNet-RS: Bello et al. (2021), https://arxiv.org/abs/2103.07579."""

from headrace.keras.application.efficientnet import DEVIATION, MEAN, fan_out
from headrace.keras.application.model import architecture
from headrace.keras.application.net import axis

_TAKES = (
    "include_top=True, weights='imagenet', classes=1000, input_shape=None, "
    "input_tensor=None, pooling=None, classifier_activation='softmax', "
    "include_preprocessing=True"
)
_FILTERS = (64, 128, 256, 512)


def _conv(net, filters, kernel, stride, name):
    """A convolution whose padding does not depend on the size of images."""
    how = {"strides": stride, "name": name}
    if stride > 1:
        return net.pad(kernel // 2).conv(filters, kernel, padding="valid", **how)
    return net.conv(filters, kernel, padding="same", **how)


def _squeezed(net, filters, name):
    """Each channel times what all channels' means say."""
    inside, channels = net.fork(), net.channels
    shape = (1, 1, channels) if axis() == 3 else (channels, 1, 1)
    how = {"use_bias": True, "padding": "same"}
    inside.mean(name=f"{name}se_squeeze").reshape(shape, name=f"{name}se_reshape")
    inside.conv(filters, 1, activation="relu", name=f"{name}se_reduce", **how)
    inside.conv(channels, 1, activation="sigmoid", name=f"{name}se_expand", **how)
    net.x = inside.times(net, name=f"{name}se_excite").x


def _block(net, filters, stride, widens, drop, name):
    short = net.fork()
    if widens:
        if stride == 2:
            how = {"strides": 2, "padding": "same"}
            short.average(2, name=f"{name}__projection_pooling", **how)
        _conv(short, 4 * filters, 1, 1, f"{name}__projection_conv")
        short.bn(f"{name}__projection_batch_norm")
    _conv(net, filters, 1, 1, f"{name}__conv_1").bn(f"{name}_batch_norm_1")
    net.act("relu", name=f"{name}__act_1")
    _conv(net, filters, 3, stride, f"{name}__conv_2").bn(f"{name}__batch_norm_2")
    net.act("relu", name=f"{name}__act_2")
    _conv(net, 4 * filters, 1, 1, f"{name}__conv_3").bn(f"{name}__batch_norm_3")
    _squeezed(net, filters, f"{name}__se_")
    if drop:
        net.drop(drop, noise_shape=(None, 1, 1, 1), name=f"{name}__drop")
    net.x = short.add(net).x
    net.act("relu", name=f"{name}__output_act")


def _begin(net):
    for i, (filters, stride) in enumerate(((32, 2), (32, 1), (64, 1), (64, 2)), 1):
        _conv(net, filters, 3, stride, f"stem_1_stem_conv_{i}")
        net.bn(f"stem_1_stem_batch_norm_{i}").act("relu", name=f"stem_1_stem_act_{i}")


def _resnet_rs(depth, counts, connect=0.1, dropout=0.25):
    def body(net, wanted):
        if wanted.include_preprocessing:
            variance = [d**2 for d in DEVIATION]
            net.rescale(scale=1.0 / 255).normalize(
                mean=MEAN, variance=variance, axis=axis()
            )
        initial = fan_out(2.0, "truncated_normal")
        net.common = {"use_bias": False, "kernel_initializer": initial}
        net.norm = {"momentum": 0.0, "epsilon": 1e-5}
        _begin(net)
        for i, (filters, count) in enumerate(zip(_FILTERS, counts), 2):
            drop = connect * i / 5
            for j in range(count):
                stride = 2 if i > 2 and j == 0 else 1
                name = f"BlockGroup{i}__block_{j}"
                _block(net, filters, stride, j == 0, drop, name)
        before = lambda net: net.drop(dropout, name="top_dropout")
        return wanted.top(net, before, {"avg": "avg_pool", "max": "max_pool"})

    body.__name__, name = f"ResNetRS{depth}", f"resnet-rs-{depth}"
    return architecture(224, 32, _TAKES, name, name + "{top}.h5")(body)


ResNetRS50 = _resnet_rs(50, (3, 4, 6, 3), 0.0)
ResNetRS101 = _resnet_rs(101, (3, 4, 23, 3), 0.0)
ResNetRS152 = _resnet_rs(152, (3, 8, 36, 3), 0.0)
ResNetRS200 = _resnet_rs(200, (3, 24, 36, 3))
ResNetRS270 = _resnet_rs(270, (4, 29, 53, 4))
ResNetRS350 = _resnet_rs(350, (4, 36, 72, 4), 0.1, 0.4)
ResNetRS420 = _resnet_rs(420, (4, 44, 87, 4), 0.1, 0.4)
