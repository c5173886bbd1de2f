"""InceptionV3: Szegedy et al. (2015), https://arxiv.org/abs/1512.00567; and
Inception-ResNet-v2: Szegedy et al. (2016), https://arxiv.org/abs/1602.07261."""

from headrace import _api as tf
from headrace.keras.application.model import COMMON, architecture

# A branch is a row of convolutions: filters, size, and "/2" for steps of 2 without
# padding; "avg" and "max" are pools.


def _cbr(net, filters, size, stride=1, padding="same", name=None):
    """A convolution, batch normalization, relu."""
    net.conv(
        *(filters, size), strides=stride, padding=padding, use_bias=False, name=name
    )
    net.bn(f"{name}_bn" if name else None, scale=False)
    net.act("relu", name=f"{name}_ac" if name else None)
    return net


def _branch(net, row):
    net = net.fork()
    for item in row:
        if item == "avg":
            net.average(3, strides=1, padding="same")
        elif item == "max":
            net.max(3, strides=2)
        elif item[-1] == "/2":
            _cbr(net, *item[:2], stride=2, padding="valid")
        else:
            _cbr(net, *item)
    return net


def _mixed(net, *rows, name=None):
    """Branches side by side."""
    *branches, last = [_branch(net, row) for row in rows]
    net.x = last.concat(*branches, name=name).x
    return net


def _begin(net):
    _cbr(net, 32, 3, 2, "valid")
    _cbr(net, 32, 3, padding="valid")
    _cbr(net, 64, 3).max(3, strides=2)
    _cbr(net, 80, 1, padding="valid")
    _cbr(net, 192, 3, padding="valid").max(3, strides=2)


def _forked(net, row, split, name=None):
    """A branch whose end is two convolutions side by side."""
    net = _branch(net, row)
    ends = [_branch(net, [(384, size)]) for size in split]
    return ends[1].concat(ends[0], name=name)


@architecture(
    *(299, 75),
    name="inception_v3",
    file="{name}_weights_tf_dim_ordering_tf_kernels{top}.h5",
)
def InceptionV3(net, wanted):
    _begin(net)
    for i, pooled in enumerate((32, 64, 64)):
        rows = [(64, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)]
        _mixed(net, *rows, ["avg", (pooled, 1)], name=f"mixed{i}")
    rows = [(384, 3, "/2")], [(64, 1), (96, 3), (96, 3, "/2")], ["max"]
    _mixed(net, *rows, name="mixed3")
    tall, wide = (7, 1), (1, 7)
    for i, n in enumerate((128, 160, 160, 192), 4):
        two = [(n, 1), (n, wide), (192, tall)]
        four = [(n, 1), (n, tall), (n, wide), (n, tall), (192, wide)]
        _mixed(net, [(192, 1)], two, four, ["avg", (192, 1)], name=f"mixed{i}")
    rows = [(192, 1), (320, 3, "/2")], [(192, 1), (192, wide), (192, tall)]
    rows[1].append((192, 3, "/2"))
    _mixed(net, *rows, ["max"], name="mixed8")
    for i in range(2):
        one, sides = _branch(net, [(320, 1)]), ((1, 3), (3, 1))
        three = _forked(net, [(384, 1)], sides, f"mixed9_{i}")
        double = _forked(net, [(448, 1), (384, 3)], sides)
        last = _branch(net, ["avg", (192, 1)])
        net.x = last.concat(one, three, double, name=f"mixed{9 + i}").x
    return wanted.top(net)


class CustomScaleLayer(tf.keras.layers.Layer):
    """The first of two inputs, and the second, scaled, added."""

    def __init__(self, scale, **kwargs):
        super().__init__(**kwargs)
        self.scale = scale

    def call(self, inputs):
        """inputs[0] + scale * inputs[1]."""
        return inputs[0] + inputs[1] * self.scale

    def get_config(self):
        """Adds the scale."""
        return {"scale": self.scale, **super().get_config()}


_RESIDUAL = {  # rows of a block's branches, and its channels
    "block35": ([(32, 1)], [(32, 1), (32, 3)], [(32, 1), (48, 3), (64, 3)]),
    "block17": ([(192, 1)], [(128, 1), (160, (1, 7)), (192, (7, 1))]),
    "block8": ([(192, 1)], [(192, 1), (224, (1, 3)), (256, (3, 1))]),
}


def _residual(net, kind, number, scale, activated=True):
    name = f"{kind}_{number}"
    mixed = _mixed(net.fork(), *_RESIDUAL[kind], name=f"{name}_mixed")
    mixed.conv(net.channels, 1, padding="same", name=f"{name}_conv")
    net.x = CustomScaleLayer(scale)([net.x, mixed.x])
    if activated:
        net.act("relu", name=f"{name}_ac")


@architecture(
    *(299, 75, COMMON + ", **kwargs"),
    name="inception_resnet_v2",
    file="{name}_weights_tf_dim_ordering_tf_kernels{top}.h5",
)
def InceptionResNetV2(net, wanted):
    _begin(net)
    rows = [(96, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)]
    _mixed(net, *rows, ["avg", (64, 1)], name="mixed_5b")
    for i in range(1, 11):
        _residual(net, "block35", i, 0.17)
    rows = [(384, 3, "/2")], [(256, 1), (256, 3), (384, 3, "/2")]
    _mixed(net, *rows, ["max"], name="mixed_6a")
    for i in range(1, 21):
        _residual(net, "block17", i, 0.1)
    rows = [(256, 1), (384, 3, "/2")], [(256, 1), (288, 3, "/2")]
    _mixed(net, *rows, [(256, 1), (288, 3), (320, 3, "/2")], ["max"], name="mixed_7a")
    for i in range(1, 10):
        _residual(net, "block8", i, 0.2)
    _residual(net, "block8", 10, 1.0, activated=False)
    return wanted.top(_cbr(net, 1536, 1, name="conv_7b"))
