"""DenseNets: Huang et al. (2016), https://arxiv.org/abs/1608.06993."""

from headrace.keras.application.model import architecture

_GROWTH = 32


def _dense_block(net, name):
    """32 channels more, computed of those that are there."""
    before = net.fork()
    net.bn(f"{name}_0_bn").act("relu", name=f"{name}_0_relu")
    net.conv(4 * _GROWTH, 1, use_bias=False, name=f"{name}_1_conv")
    net.bn(f"{name}_1_bn").act("relu", name=f"{name}_1_relu")
    net.conv(_GROWTH, 3, padding="same", use_bias=False, name=f"{name}_2_conv")
    net.concat(before, name=f"{name}_concat")


def _halve(net, name):
    """Half the channels and half the sides."""
    net.bn(f"{name}_bn").act("relu", name=f"{name}_relu")
    net.conv(net.channels // 2, 1, use_bias=False, name=f"{name}_conv")
    net.average(2, strides=2, name=f"{name}_pool")


def _densenet(layers, counts):
    def body(net, wanted):
        net.norm = {"epsilon": 1.001e-5}
        net.pad(3).conv(64, 7, strides=2, use_bias=False, name="conv1/conv")
        net.bn("conv1/bn").act("relu", name="conv1/relu")
        net.pad(1).max(3, strides=2, name="pool1")
        for i, count in enumerate(counts, 2):
            for j in range(1, count + 1):
                _dense_block(net, f"conv{i}_block{j}")
            if i < 5:
                _halve(net, f"pool{i}")
        net.bn("bn").act("relu", name="relu")
        return wanted.top(net, pools={"avg": "avg_pool", "max": "max_pool"})

    body.__name__, name = f"DenseNet{layers}", f"densenet{layers}"
    file = f"{name}_weights_tf_dim_ordering_tf_kernels{{top}}.h5"
    return architecture(224, name=name, file=file)(body)


DenseNet121 = _densenet(121, (6, 12, 24, 16))
DenseNet169 = _densenet(169, (6, 12, 32, 32))
DenseNet201 = _densenet(201, (6, 12, 48, 32))
