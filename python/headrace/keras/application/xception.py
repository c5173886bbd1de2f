"""Xception: Chollet (2016), https://arxiv.org/abs/1610.02357."""

from headrace.keras.application.model import architecture

_FILE = "xception_weights_tf_dim_ordering_tf_kernels{top}.h5"


def _separable(net, filters, name, activated=True):
    if activated:
        net.act("relu", name=f"{name}_act")
    net.separable(filters, 3, padding="same", name=name).bn(f"{name}_bn")


def _narrowed(net, block, filters):
    """Two separable convolutions and a pool, beside a convolution of what came in."""
    short = net.fork().conv(filters[1], 1, strides=2, padding="same").bn()
    for i in (1, 2):
        name = f"block{block}_sepconv{i}"
        _separable(net, filters[i - 1], name, block > 2 or i > 1)
    net.max(3, strides=2, padding="same", name=f"block{block}_pool")
    net.x = short.add(net).x


@architecture(299, 71, name="xception", file=_FILE)
def Xception(net, wanted):
    net.common = {"use_bias": False}
    for i, (filters, stride) in enumerate(((32, 2), (64, 1)), 1):
        name = f"block1_conv{i}"
        net.conv(filters, 3, strides=stride, name=name)
        net.bn(f"{name}_bn").act("relu", name=f"{name}_act")
    for block, filters in enumerate((128, 256, 728), 2):
        _narrowed(net, block, (filters, filters))
    for block in range(5, 13):
        before = net.fork()
        for i in (1, 2, 3):
            _separable(net, 728, f"block{block}_sepconv{i}")
        net.x = before.add(net).x
    _narrowed(net, 13, (728, 1024))
    for i, filters in enumerate((1536, 2048), 1):
        name = f"block14_sepconv{i}"
        _separable(net, filters, name, False)
        net.act("relu", name=f"{name}_act")
    return wanted.top(net)
