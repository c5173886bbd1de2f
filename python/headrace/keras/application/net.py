"""A network in the making: chains of layers with branches."""

from headrace import _api as tf
from headrace.keras import settings

_LAYERS = {  # by the method that adds one
    "conv": tf.keras.layers.Conv2D,
    "depthwise": tf.keras.layers.DepthwiseConv2D,
    "separable": tf.keras.layers.SeparableConv2D,
    "act": tf.keras.layers.Activation,
    "relu": tf.keras.layers.ReLU,
    "pad": tf.keras.layers.ZeroPadding2D,
    "crop": tf.keras.layers.Cropping2D,
    "max": tf.keras.layers.MaxPooling2D,
    "average": tf.keras.layers.AveragePooling2D,
    "mean": tf.keras.layers.GlobalAveragePooling2D,
    "largest": tf.keras.layers.GlobalMaxPooling2D,
    "dense": tf.keras.layers.Dense,
    "drop": tf.keras.layers.Dropout,
    "flatten": tf.keras.layers.Flatten,
    "reshape": tf.keras.layers.Reshape,
    "rescale": tf.keras.layers.Rescaling,
    "normalize": tf.keras.layers.Normalization,
    "ln": tf.keras.layers.LayerNormalization,
}


def axis():
    """Where images have their channels."""
    return 3 if settings.image_data_format() == "channels_last" else 1


class Net:
    """A chain of layers: `x` is what the last of them gave.

    `net.conv(64, 3, name="c")` puts a Conv2D behind it, and so on for the kinds in
    _LAYERS; each returns the net. `common` are arguments of its convolutions, `norm` of
    its batch normalizations.
    """

    def __init__(self, x, common=None, norm=None):
        self.x, self.common, self.norm = x, common or {}, norm or {}

    def fork(self, x=None):
        """Another chain that begins where this one is, or at x."""
        return Net(self.x if x is None else x, self.common, self.norm)

    def then(self, layer):
        """The layer, or function of a tensor, behind the last."""
        self.x = layer(self.x)
        return self

    def __getattr__(self, kind):
        if kind not in _LAYERS:
            raise AttributeError(kind)
        cls = _LAYERS[kind]
        common = self.common if kind in ("conv", "depthwise", "separable") else {}
        if kind == "depthwise":  # it has another name for it
            common = {k: v for k, v in common.items() if k != "kernel_initializer"}

        def add(*args, name=None, **more):
            return self.then(cls(*args, name=name, **{**common, **more}))

        return add

    def bn(self, name=None, **more):
        """Batch normalization of the channels."""
        make = tf.keras.layers.BatchNormalization
        return self.then(make(axis=axis(), name=name, **{**self.norm, **more}))

    def add(self, *others, name=None):
        """The sum of other nets or tensors and this one, which comes last."""
        return self._join(tf.keras.layers.Add(name=name), others)

    def times(self, *others, name=None):
        """The product, as add()."""
        return self._join(tf.keras.layers.Multiply(name=name), others)

    def concat(self, *others, name=None, along=None):
        """The channels of other nets or tensors, then of this one."""
        along = axis() if along is None else along
        return self._join(tf.keras.layers.Concatenate(axis=along, name=name), others)

    def _join(self, layer, others):
        self.x = layer([*(getattr(other, "x", other) for other in others), self.x])
        return self

    @property
    def channels(self):
        """How many channels there are."""
        return self.x.shape[axis()]


def correct_pad(net, kernel):
    """The padding before a convolution with steps of 2, so that "valid" fits."""
    start = 2 if axis() == 1 else 1
    sides = net.x.shape[start : start + 2]
    odd = [1 if n is None else 1 - n % 2 for n in sides]
    half = kernel // 2
    return tuple((half - o, half) for o in odd)
