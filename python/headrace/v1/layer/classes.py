"""The layers of tf.compat.v1.layers: those of Keras, with variables by scopes."""

import inspect

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.keras.phase import choose
from headrace.keras.layer import core, noise
from headrace.keras.layer.conv import convolution, depthwise, pooling, transposed
from headrace.v1.layer.base import Layer, takes
from headrace.v1.layer.normalization import BatchNormalization

_WEIGHTS = (
    "{0}_initializer=None, bias_initializer=zeros, {0}_regularizer=None, "
    "bias_regularizer=None, activity_regularizer=None, {0}_constraint=None, "
    "bias_constraint=None"
)
_PARTS = {  # what stands in braces in the rows below
    "learned": "activation=None, use_bias=True, "
    + _WEIGHTS.format("kernel")
    + ", trainable=True, name=None",
    "separable": "depth_multiplier=1, activation=None, use_bias=True, "
    "depthwise_initializer=None, pointwise_initializer=None, bias_initializer=zeros, "
    "depthwise_regularizer=None, pointwise_regularizer=None, bias_regularizer=None, "
    "activity_regularizer=None, depthwise_constraint=None, pointwise_constraint=None, "
    "bias_constraint=None, trainable=True, name=None",
    "one": "filters, kernel_size, strides=1, padding='valid', "
    "data_format='channels_last'",
    "two": "filters, kernel_size, strides=(1, 1), padding='valid', "
    "data_format='channels_last'",
    "three": "filters, kernel_size, strides=(1, 1, 1), padding='valid', "
    "data_format='channels_last'",
    "pool": "pool_size, strides, padding='valid', data_format='channels_last', "
    "name=None",
}
# Class, function, Keras' class (parameters).
_ROWS = """
Dense dense core.Dense(units, {learned})
Conv1D conv1d convolution.Conv1D({one}, dilation_rate=1, {learned})
Conv2D conv2d convolution.Conv2D({two}, dilation_rate=(1, 1), {learned})
Conv3D conv3d convolution.Conv3D({three}, dilation_rate=(1, 1, 1), {learned})
SeparableConv1D separable_conv1d depthwise.SeparableConv1D({one}, dilation_rate=1, {separable})
SeparableConv2D separable_conv2d depthwise.SeparableConv2D({two}, dilation_rate=(1, 1), {separable})
Conv2DTranspose conv2d_transpose transposed.Conv2DTranspose({two}, {learned})
Conv3DTranspose conv3d_transpose transposed.Conv3DTranspose({three}, {learned})
AveragePooling1D average_pooling1d pooling.AveragePooling1D({pool})
AveragePooling2D average_pooling2d pooling.AveragePooling2D({pool})
AveragePooling3D average_pooling3d pooling.AveragePooling3D({pool})
MaxPooling1D max_pooling1d pooling.MaxPooling1D({pool})
MaxPooling2D max_pooling2d pooling.MaxPooling2D({pool})
MaxPooling3D max_pooling3d pooling.MaxPooling3D({pool})
"""


@takes("data_format=None, **kwargs")
class Flatten(core.Flatten, Layer):
    """[batch, everything else]."""


@takes("rate=0.5, noise_shape=None, seed=None, name=None, **kwargs")
class Dropout(noise.Dropout, Layer):
    """Sets a share of the inputs to zero while training."""

    def _next_seed(self):
        return self.seed

    def call(self, inputs, training=False):
        """The inputs, in training some of them 0 and the others larger.

        training: a bool, or a scalar tensor of one.
        """

        def dropped():
            shape = self._get_noise_shape(inputs)
            return tf.nn.dropout(inputs, self.rate, shape, self.seed)

        return choose(training, dropped, lambda: tf.identity(inputs))


def _class(name, base, text):
    of_pools = issubclass(base, pooling._Pooling)

    def _before(self, given):
        if given.get("strides", 1) is None:
            raise ValueError("Argument `strides` must not be None.")

    def build(self, input_shape):
        self._settle_dtype()
        base.build(self, input_shape)

    build.__doc__ = inspect.getdoc(base.build)
    members = {"__doc__": base.__doc__, "__module__": __name__, "build": build}
    if of_pools:
        members["_before"] = _before
    made = type(name, (base, Layer), members)
    return takes(f"{text}, **kwargs")(made)


def _function(name, cls, parameters, training=False):
    """A function that makes a layer and calls it: with the inputs, the parameters of the
    layer and, of layers with variables, `reuse`."""

    def call(inputs, **given):
        scope, how = given["name"], {}
        if training:
            how["training"] = given.pop("training")
        layer = cls(_scope=scope, _reuse=given.pop("reuse", None), **given)
        return layer(inputs, **how)

    doc = (
        f"tf.compat.v1.layers.{cls.__name__} made and called with inputs, a tensor.\n\n"
        "name is that of the variable scope; reuse: whether it has the variables already."
    )
    like = signatures.named(name, doc, __name__)
    return signatures.function_of(like, parameters, call)


def _add_rows():
    for row in _ROWS.strip().split("\n"):
        head, _, text = row[:-1].partition("(")
        name, function, base = head.split(" ")
        text = text.format(**_PARTS)
        made = _class(name, eval(base), text)
        globals()[name] = made
        parameters = signatures.parameters_of(made.__init__)[1:-1]
        if any(p.name == "trainable" for p in parameters):
            parameters.append(signatures.parameter("reuse", None))
        parameters.insert(0, signatures.parameter("inputs"))
        globals()[function] = _function(function, made, parameters)


_add_rows()
dropout = _function(
    "dropout",
    Dropout,
    signatures.from_text(
        "inputs, rate=0.5, noise_shape=None, seed=None, training=False, name=None"
    ),
    training=True,
)
flatten = _function(
    "flatten",
    Flatten,
    signatures.from_text("inputs, name=None, data_format='channels_last'"),
)


def _of_normalization():
    own = {p.name: p for p in signatures.parameters_of(BatchNormalization.__init__)}
    renorm = ["renorm", "renorm_clipping", "renorm_momentum", "fused"]
    late = [*renorm, "virtual_batch_size", "adjustment"]
    first = [n for n in own if n not in (*late, "self", "trainable", "name", "kwargs")]
    new = {"inputs": signatures.parameter("inputs")}
    new["training"] = signatures.parameter("training", False)
    new["reuse"] = signatures.parameter("reuse", None)
    order = ["inputs", *first, "training", "trainable", "name", "reuse", *late]
    return [new.get(name) or own[name] for name in order]


batch_normalization = _function(
    "batch_normalization", BatchNormalization, _of_normalization(), training=True
)
