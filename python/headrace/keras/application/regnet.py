"""RegNets: Radosavovic et al. (2020), https://arxiv.org/abs/2003.13678."""

from headrace.keras import settings
from headrace.keras.application.model import COMMON, architecture

_TABLE = """
X002 1 1 4 7 24 56 152 368 8
X004 1 2 7 12 32 64 160 384 16
X006 1 3 5 7 48 96 240 528 24
X008 1 3 7 5 64 128 288 672 16
X016 2 4 10 2 72 168 408 912 24
X032 2 6 15 2 96 192 432 1008 48
X040 2 5 14 2 80 240 560 1360 40
X064 2 4 10 1 168 392 784 1624 56
X080 2 5 15 1 80 240 720 1920 120
X120 2 5 11 1 224 448 896 2240 112
X160 2 6 13 1 256 512 896 2048 128
X320 2 7 13 1 336 672 1344 2520 168
Y002 1 1 4 7 24 56 152 368 8
Y004 1 3 6 6 48 104 208 440 8
Y006 1 3 7 4 48 112 256 608 16
Y008 1 3 8 2 64 128 320 768 16
Y016 2 6 17 2 48 120 336 888 24
Y032 2 5 13 1 72 216 576 1512 24
Y040 2 6 12 2 128 192 512 1088 64
Y064 2 7 14 2 144 288 576 1296 72
Y080 2 4 10 1 168 448 896 2016 56
Y120 2 5 11 1 224 448 896 2240 112
Y160 2 4 11 1 224 448 1232 3024 112
Y320 2 5 12 1 232 696 1392 3712 232
"""  # name, four depths, four widths, channels of a group


def _squeezed(net, filters, name):
    """Each channel times what all channels' means say."""
    before, channels = net.fork(), net.channels
    name, how = f"{name}_squeeze_and_excite", {"use_bias": True}
    net.mean(keepdims=True, name=f"{name}_gap")
    net.conv(filters, 1, activation="relu", name=f"{name}_squeeze", **how)
    net.conv(channels, 1, activation="sigmoid", name=f"{name}_excite", **how)
    net.then(lambda x: x * before.x)


def _block(net, filters, groups, stride, squeezes, name):
    short, inner = net.fork(), net.channels
    if inner != filters or stride > 1:
        short.conv(filters, 1, strides=stride, name=f"{name}_skip_1x1")
        short.bn(f"{name}_skip_bn")
    net.conv(filters, 1, name=f"{name}_conv_1x1_1")
    net.bn(f"{name}_conv_1x1_1_bn").relu(name=f"{name}_conv_1x1_1_relu")
    how = {"strides": stride, "groups": groups, "padding": "same"}
    net.conv(filters, 3, name=f"{name}_conv_3x3", **how)
    net.bn(f"{name}_conv_3x3_bn").relu(name=f"{name}_conv_3x3_relu")
    if squeezes:
        _squeezed(net, int(inner * 0.25), name)
    net.conv(filters, 1, name=f"{name}_conv_1x1_2").bn(f"{name}_conv_1x1_2_bn")
    net.then(lambda x: x + short.x).relu(name=f"{name}_exit_relu")


def _regnet(kind, *numbers):
    depths, widths, group = numbers[:4], numbers[4:8], numbers[8]

    def body(net, wanted):
        name = wanted.model_name
        if wanted.include_preprocessing:
            net.rescale(scale=1.0 / 255.0, name=f"{name}_prestem_rescaling")
        net.common = {"use_bias": False, "kernel_initializer": "he_normal"}
        net.norm = {"momentum": 0.9, "epsilon": 1e-5}
        net.conv(32, 3, strides=2, padding="same", name=f"{name}_stem_conv")
        net.bn(f"{name}_stem_bn").relu(name=f"{name}_stem_relu")
        for i, (depth, width) in enumerate(zip(depths, widths)):
            for j in range(depth):
                how = (width, width // group, 1 if j else 2, kind[0] == "Y")
                _block(net, *how, f"{name}_Stage_{i}_{kind[0]}Block_{j}")
        if not wanted.include_top:
            return wanted.pooled(net)
        number = settings.get_uid("head")
        net.mean(name=f"{number}_head_gap")
        # tf_keras' classifiers have no activation here, whatever they are told.
        return net.dense(wanted.classes, name=f"{number}head_dense")

    body.__name__, name = f"RegNet{kind}", f"regnet{kind.lower()}"
    takes = COMMON.replace("top=True,", "top=True, include_preprocessing=True,")
    takes = f"model_name='{name}', {takes}"
    file = name + "{top}.h5"
    return architecture(224, 32, takes, lambda w: w.model_name, file)(body)


for _row in _TABLE.strip().split("\n"):
    _name, *_numbers = _row.split()
    globals()[f"RegNet{_name}"] = _regnet(_name, *map(int, _numbers))
