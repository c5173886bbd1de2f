"""ConvNeXt: Liu et al. (2022), https://arxiv.org/abs/2201.03545."""

from headrace import _api as tf
from headrace.keras.application.model import COMMON, architecture
from headrace.keras.application.net import axis

_EPSILON = 1e-6
_MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
_VARIANCE = [(0.229 * 255) ** 2, (0.224 * 255) ** 2, (0.225 * 255) ** 2]


class LayerScale(tf.keras.layers.Layer):
    """Inputs times a weight each channel, at first `init_values`."""

    def __init__(self, init_values, projection_dim, **kwargs):
        super().__init__(**kwargs)
        self.init_values, self.projection_dim = init_values, projection_dim

    def build(self, input_shape):
        """Makes gamma, [projection_dim]."""
        initial = tf.keras.initializers.Constant(self.init_values)
        self.gamma = self.add_weight("gamma", (self.projection_dim,), None, initial)
        self.built = True

    def call(self, x):
        """x * gamma."""
        return x * self.gamma

    def get_config(self):
        """Adds init_values and projection_dim."""
        own = {"init_values": self.init_values, "projection_dim": self.projection_dim}
        return {**super().get_config(), **own}


def _patches(net, filters, size, name, norm, conv, first=False):
    """A convolution without overlaps, ahead of it or behind it a normalization, as one
    Sequential."""
    parts = [tf.keras.layers.Conv2D(filters, size, strides=size, name=conv)]
    normalization = tf.keras.layers.LayerNormalization(epsilon=_EPSILON, name=norm)
    parts.insert(int(first), normalization)
    net.then(tf.keras.Sequential(parts, name=name))


def _block(net, name):
    before, filters = net.fork(), net.channels
    how = {"padding": "same", "groups": filters, "name": f"{name}_depthwise_conv"}
    net.conv(filters, 7, **how).ln(epsilon=_EPSILON, name=f"{name}_layernorm")
    net.dense(4 * filters, name=f"{name}_pointwise_conv_1")
    net.act("gelu", name=f"{name}_gelu").dense(filters, name=f"{name}_pointwise_conv_2")
    net.then(LayerScale(1e-6, filters, name=f"{name}_layer_scale"))
    net.act("linear", name=f"{name}_identity").then(lambda x: before.x + x)


def _convnext(kind, depths, widths):
    def body(net, wanted):
        name = wanted.model_name
        if wanted.include_preprocessing:
            how = {"mean": _MEAN, "variance": _VARIANCE}
            if axis() == 1:
                how = {k: [[[x]] for x in v] for k, v in how.items()}
            net.normalize(**how, name=f"{name}_prestem_normalization")
        stem = f"{name}_stem"
        _patches(net, widths[0], 4, stem, f"{stem}_layernorm", f"{stem}_conv", True)
        for i, (depth, width) in enumerate(zip(depths, widths)):
            if i:
                names = [
                    f"{name}_downsampling_{part}_{i - 1}"
                    for part in ("block", "layernorm", "conv")
                ]
                _patches(net, width, 2, *names)
            for j in range(depth):
                _block(net, f"{name}_stage_{i}_block_{j}")
        if not wanted.include_top:
            return wanted.pooled(net).ln(epsilon=_EPSILON)
        net.mean(name=f"{name}_head_gap")
        net.ln(epsilon=_EPSILON, name=f"{name}_head_layernorm")
        return wanted.classify(net, f"{name}_head_dense")

    body.__name__, name = f"ConvNeXt{kind}", f"convnext_{kind.lower()}"
    takes = COMMON.replace("top=True,", "top=True, include_preprocessing=True,")
    takes = f"model_name='{name}', {takes}"
    file = name + "{top}.h5"
    return architecture(224, 32, takes, lambda w: w.model_name, file)(body)


ConvNeXtTiny = _convnext("Tiny", (3, 3, 9, 3), (96, 192, 384, 768))
ConvNeXtSmall = _convnext("Small", (3, 3, 27, 3), (96, 192, 384, 768))
ConvNeXtBase = _convnext("Base", (3, 3, 27, 3), (128, 256, 512, 1024))
ConvNeXtLarge = _convnext("Large", (3, 3, 27, 3), (192, 384, 768, 1536))
ConvNeXtXLarge = _convnext("XLarge", (3, 3, 27, 3), (256, 512, 1024, 2048))
