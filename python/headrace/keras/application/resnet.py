"""ResNets of both kinds: He et al. (2015), https://arxiv.org/abs/1512.03385, and (2016),
https://arxiv.org/abs/1603.05027."""

from headrace.keras.application.model import COMMON, architecture

_BN = {"epsilon": 1.001e-5}
_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # filters, stride


def _begin(net, activated):
    net.norm = _BN
    net.pad(3, name="conv1_pad").conv(64, 7, strides=2, name="conv1_conv")
    if activated:
        net.bn("conv1_bn").act("relu", name="conv1_relu")
    net.pad(1, name="pool1_pad").max(3, strides=2, name="pool1_pool")


def _block(net, filters, stride, name, widens):
    """Three convolutions beside the input, which is widened by a fourth."""
    short = net.fork()
    if widens:
        short.conv(4 * filters, 1, strides=stride, name=f"{name}_0_conv")
        short.bn(f"{name}_0_bn")
    net.conv(filters, 1, strides=stride, name=f"{name}_1_conv")
    net.bn(f"{name}_1_bn").act("relu", name=f"{name}_1_relu")
    net.conv(filters, 3, padding="same", name=f"{name}_2_conv")
    net.bn(f"{name}_2_bn").act("relu", name=f"{name}_2_relu")
    net.conv(4 * filters, 1, name=f"{name}_3_conv").bn(f"{name}_3_bn")
    net.add(short, name=f"{name}_add").act("relu", name=f"{name}_out")


def _block_2(net, filters, stride, name, widens):
    """The same with the activations ahead of the convolutions."""
    short = net.fork()
    net.bn(f"{name}_preact_bn").act("relu", name=f"{name}_preact_relu")
    if widens:
        short = net.fork().conv(4 * filters, 1, strides=stride, name=f"{name}_0_conv")
    elif stride > 1:
        short.max(1, strides=stride)
    net.conv(filters, 1, use_bias=False, name=f"{name}_1_conv")
    net.bn(f"{name}_1_bn").act("relu", name=f"{name}_1_relu")
    net.pad(1, name=f"{name}_2_pad")
    net.conv(filters, 3, strides=stride, use_bias=False, name=f"{name}_2_conv")
    net.bn(f"{name}_2_bn").act("relu", name=f"{name}_2_relu")
    net.conv(4 * filters, 1, name=f"{name}_3_conv").add(short, name=f"{name}_out")


def _stages(net, counts):
    for i, ((filters, stride), count) in enumerate(zip(_STAGES, counts), 2):
        for j in range(1, count + 1):
            first = j == 1
            _block(net, filters, stride if first else 1, f"conv{i}_block{j}", first)


def _stages_2(net, counts):
    strides = (2, 2, 2, 1)
    for i, ((filters, _), stride, count) in enumerate(zip(_STAGES, strides, counts), 2):
        for j in range(1, count + 1):
            step = stride if j == count else 1
            _block_2(net, filters, step, f"conv{i}_block{j}", j == 1)
    net.bn("post_bn").act("relu", name="post_relu")


def _resnet(name, counts, second=False):
    public = name.replace("resnet", "ResNet").replace("v2", "V2")

    def body(net, wanted):
        _begin(net, not second)
        (_stages_2 if second else _stages)(net, counts)
        return wanted.top(net, pools={"avg": "avg_pool", "max": "max_pool"})

    body.__name__ = public
    file = f"{name}_weights_tf_dim_ordering_tf_kernels{{top}}.h5"
    takes = COMMON
    if not second:
        takes = takes.replace("classifier_activation='softmax'", "**kwargs")
    return architecture(224, parameters=takes, name=name, file=file)(body)


ResNet50 = _resnet("resnet50", (3, 4, 6, 3))
ResNet101 = _resnet("resnet101", (3, 4, 23, 3))
ResNet152 = _resnet("resnet152", (3, 8, 36, 3))
ResNet50V2 = _resnet("resnet50v2", (3, 4, 6, 3), True)
ResNet101V2 = _resnet("resnet101v2", (3, 4, 23, 3), True)
ResNet152V2 = _resnet("resnet152v2", (3, 8, 36, 3), True)
