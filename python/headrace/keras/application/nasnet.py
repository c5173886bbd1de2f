"""NASNet: Zoph et al. (2017), https://arxiv.org/abs/1707.07012."""

from headrace.keras.application.model import architecture
from headrace.keras.application.net import axis, correct_pad

_TAKES = (
    "input_shape=None, include_top=True, weights='imagenet', input_tensor=None, "
    "pooling=None, classes=1000, classifier_activation='softmax'"
)


def _separable(net, filters, kernel, name, stride=1):
    """Two separable convolutions, each ahead of it a relu and behind it a normalization;
    another chain than the net."""
    net = net.fork().act("relu")
    how = {"strides": stride, "padding": "same"}
    if stride == 2:
        net.pad(correct_pad(net, kernel), name=f"separable_conv_1_pad_{name}")
        how["padding"] = "valid"
    for i in (1, 2):
        net.separable(filters, kernel, name=f"separable_conv_{i}_{name}", **how)
        net.bn(f"separable_conv_{i}_bn_{name}")
        if i == 1:
            net.act("relu")
        how = {"padding": "same"}
    return net


def _adjusted(before, net, filters, name):
    """What the cell before last gave, with the sides and channels that are wanted."""
    if before is None:
        return net.fork()
    sides = slice(1, 3) if axis() == 3 else slice(2, 4)
    before = before.fork()
    if tuple(before.x.shape[sides]) != tuple(net.x.shape[sides]):
        before.act("relu", name=f"adjust_relu_1_{name}")
        halves = []
        for i in (1, 2):
            half = before.fork()
            if i == 2:  # the other pixels
                half.pad(((0, 1), (0, 1))).crop(((1, 0), (1, 0)))
            half.average(1, strides=2, name=f"adjust_avg_pool_{i}_{name}")
            half.conv(filters // 2, 1, padding="same", name=f"adjust_conv_{i}_{name}")
            halves.append(half)
        halves[1].concat(halves[0], along=-1 if axis() == 3 else 1)
        return halves[1].bn(f"adjust_bn_{name}")
    if before.channels != filters:
        before.act("relu").conv(
            filters, 1, padding="same", name=f"adjust_conv_projection_{name}"
        )
        before.bn(f"adjust_bn_{name}")
    return before


def _begin(net, before, filters, kind, name):
    """The two inputs of a cell, with as many channels."""
    before = _adjusted(before, net, filters, name)
    here = (
        net.fork()
        .act("relu")
        .conv(filters, 1, padding="same", name=f"{kind}_conv_1_{name}")
    )
    return before, here.bn(f"{kind}_bn_1_{name}")


def _normal(net, before, filters, name):
    p, h = _begin(net, before, filters, "normal", name)
    parts = [p]

    def sum_of(a, b, i):
        parts.append(b.fork().add(a, name=f"normal_add_{i}_{name}"))

    def smooth(of, place):
        how = {"strides": 1, "padding": "same", "name": f"normal_{place}_{name}"}
        return of.fork().average(3, **how)

    def sep(of, kernel, place):
        return _separable(of, filters, kernel, f"normal_{place}_{name}")

    sum_of(sep(h, 5, "left1"), sep(p, 3, "right1"), 1)
    sum_of(sep(p, 5, "left2"), sep(p, 3, "right2"), 2)
    sum_of(smooth(h, "left3"), p, 3)
    sum_of(smooth(p, "left4"), smooth(p, "right4"), 4)
    sum_of(sep(h, 3, "left5"), h, 5)
    return _joined(parts, f"normal_concat_{name}"), net


def _joined(parts, name):
    *first, last = parts
    return last.fork().concat(*first, name=name, along=-1 if axis() == 3 else 1)


def _reduction(net, before, filters, name):
    p, h = _begin(net, before, filters, "reduction", name)
    wide = h.fork().pad(correct_pad(h, 3), name=f"reduction_pad_1_{name}")

    def sep(of, kernel, place, stride=2):
        return _separable(of, filters, kernel, f"reduction_{place}_{name}", stride)

    def pool(kind, place):
        how = {"strides": 2, "name": f"reduction_{place}_{name}"}
        return getattr(wide.fork(), kind)(3, **how)

    x1 = sep(h, 5, "left1")
    x1 = sep(p, 7, "right1").add(x1, name=f"reduction_add_1_{name}")
    x2 = pool("max", "left2")
    x2 = sep(p, 7, "right2").add(x2, name=f"reduction_add_2_{name}")
    x3 = pool("average", "left3")
    x3 = sep(p, 5, "right3").add(x3, name=f"reduction_add3_{name}")
    how = {"strides": 1, "padding": "same", "name": f"reduction_left4_{name}"}
    x4 = x1.fork().average(3, **how).add(x2)
    x5 = sep(x1, 3, "left4", 1)
    x5 = pool("max", "right5").add(x5, name=f"reduction_add4_{name}")
    return _joined([x2, x3, x4, x5], f"reduction_concat_{name}"), net


def _nasnet(kind, size, penultimate, blocks, stem, skips):
    def body(net, wanted):
        net.common = {"use_bias": False, "kernel_initializer": "he_normal"}
        net.norm, filters = {"momentum": 0.9997}, penultimate // 24
        net.conv(stem, 3, strides=2, name="stem_conv1").bn("stem_bn1")
        net, before = _reduction(net, None, filters // 4, "stem_1")
        net, before = _reduction(net, before, filters // 2, "stem_2")
        for stage in range(3):
            first = stage * blocks + 1 if stage else 0
            if stage:
                name = f"reduce_{stage * blocks}"
                net, seen = _reduction(net, before, filters * 2**stage, name)
                before = before if skips else seen
            for i in range(blocks):
                net, before = _normal(net, before, filters * 2**stage, str(first + i))
        return wanted.top(net.act("relu"), pool=None)

    body.__name__ = f"NASNet{kind.title()}"
    file = lambda w: f"nasnet_{kind}{'' if w.include_top else '_no_top'}.h5"
    return architecture(size, 32, _TAKES, "NASNet", file)(body)


NASNetMobile = _nasnet("mobile", 224, 1056, 4, 32, False)
NASNetLarge = _nasnet("large", 331, 4032, 6, 96, True)
