"""What the functions of tf.keras.applications share: inputs, tops, weights, names."""

import os

from headrace import _api as tf
from headrace.framework.settings import logging
from headrace.framework.support import signatures
from headrace.keras import activation as activations
from headrace.keras import settings
from headrace.keras.application.net import Net

COMMON = (
    "include_top=True, weights='imagenet', input_tensor=None, input_shape=None, "
    "pooling=None, classes=1000, classifier_activation='softmax'"
)


class Wanted:
    """What a function of an architecture was asked for.

    Attributes: those of its parameters, and `name`.
    """

    def __init__(self, given):
        self.__dict__.update(given)

    def top(self, net, before=None, pools=None, pool="avg_pool", **dense):
        """The end of most networks: a mean and a classifier, or the pooling that was
        asked for, whose layers are named by `pools`. `before` adds what comes between
        the two, `dense` are more arguments of the classifier."""
        if not self.include_top:
            return self.pooled(net, **(pools or {}))
        net.mean(name=pool)
        if before is not None:
            before(net)
        return self.classify(net, **dense)

    def classify(self, net, name="predictions", **dense):
        """The classifier alone."""
        kind = getattr(self, "classifier_activation", "softmax")
        check_activation(kind, self.weights)
        return net.dense(self.classes, activation=kind, name=name, **dense)

    def pooled(self, net, **names):
        """The pooling that was asked for of a net without a top."""
        if self.pooling == "avg":
            net.mean(name=names.get("avg"))
        elif self.pooling == "max":
            net.largest(name=names.get("max"))
        return net


def check_activation(given, weights):
    """ValueError for an activation that ready weights do not go with."""
    if weights is None:
        return
    if activations.get(given) not in (activations.softmax, activations.linear):
        raise ValueError(
            "Only `None` and `softmax` activations are allowed for the "
            "`classifier_activation` argument when using pretrained weights, with "
            f"`include_top=True`; Received: classifier_activation={given}"
        )


def architecture(
    size,
    least=32,
    parameters=COMMON,
    name=None,
    file=None,
    shape_of=None,
    open_sides=False,
):
    """Decorates body(net, wanted), which adds layers: a public function of `parameters`.

    `size` is the side of images without an input_shape, `least` the smallest one.
    `name` is the model's, or what gives it of the Wanted; `file` names the weights of
    ImageNet, `{top}` in it is "" or "_notop". `shape_of` gives the side by the Wanted.
    With `open_sides` a network with a top takes images of any size.
    """

    def decorate(body):
        def build(**given):
            wanted = Wanted({**given, **given.pop("kwargs", {})})
            wanted.name = name or body.__name__
            _check_weights(wanted)
            side = size if shape_of is None else shape_of(wanted)
            shape = input_shape_of(wanted, side, least, open_sides)
            return _build(body, wanted, shape, file)

        listed = signatures.from_text(parameters)
        like = signatures.named(body.__name__, _DOC.format(name=body.__name__))
        made = signatures.function_of(like, listed, build)
        made.__module__ = body.__module__
        return made

    return decorate


_DOC = """{name}, a model of images.

    `weights` is None for random ones, or the path of a file; those of ImageNet, which is
    the default, must lie in ~/.keras/models, as they are not downloaded. Without
    include_top it has no classifier, and `pooling`, "avg" or "max", says whether the last
    feature maps become one number each. ValueError for shapes and activations that do
    not go with that.
    """


def _build(body, wanted, shape, file):
    tensor = wanted.input_tensor
    x = tf.keras.Input(shape=shape) if tensor is None else tensor
    if not tf.keras.backend.is_keras_tensor(x):
        x = tf.keras.Input(tensor=x, shape=shape)
    inputs = x if tensor is None else tf.keras.utils.get_source_inputs(x)
    wanted.input_shape = shape
    if callable(wanted.name):
        wanted.name = wanted.name(wanted)
    net = body(Net(x), wanted)
    model = tf.keras.Model(inputs, net.x, name=wanted.name)
    if wanted.weights is not None:
        _load(model, wanted, file)
    return model


def _check_weights(wanted):
    weights = wanted.weights
    if not (weights in ("imagenet", None) or os.path.exists(weights)):
        raise ValueError(
            "The `weights` argument should be either `None` (random initialization), "
            "`imagenet` (pre-training on ImageNet), or the path to the weights file to "
            f"be loaded. Received: weights={weights}"
        )
    if weights == "imagenet" and wanted.include_top and wanted.classes != 1000:
        raise ValueError(
            'If using `weights` as `"imagenet"` with `include_top` as true, `classes` '
            f"should be 1000. Received: classes={wanted.classes}"
        )


def input_shape_of(wanted, size, least, open_sides):
    """The shape of one image: input_shape, checked, or the usual one."""
    given, first = wanted.input_shape, settings.image_data_format() == "channels_first"
    pretrained = wanted.weights == "imagenet"
    needed = wanted.include_top and not open_sides
    channels = 3
    if not pretrained and given and len(given) == 3:
        channels = given[0] if first else given[-1]
        if channels not in (1, 3):
            logging.warn(
                "This model usually expects 1 or 3 input channels. However, it was "
                f"passed an input_shape with {channels} input channels."
            )
    default = (channels, size, size) if first else (size, size, channels)
    if pretrained and needed:
        if given is not None and tuple(given) != default:
            raise ValueError(
                "When setting `include_top=True` and loading `imagenet` weights, "
                f"`input_shape` should be {default}.  Received: input_shape={given}"
            )
        return default
    if not given:
        sizes = (channels, None, None) if first else (None, None, channels)
        return default if needed else sizes
    if len(given) != 3:
        raise ValueError("`input_shape` must be a tuple of three integers.")
    if pretrained and channels != 3 or pretrained and given[0 if first else -1] != 3:
        raise ValueError(
            f"The input must have 3 channels; Received `input_shape={given}`"
        )
    sides = given[1:] if first else given[:2]
    if any(n is not None and n < least for n in sides):
        raise ValueError(
            f"Input size must be at least {least}x{least}; Received: input_shape={given}"
        )
    if needed and None in given:
        raise ValueError(
            "If `include_top` is True, you should specify a static `input_shape`. "
            f"Received: input_shape={given}"
        )
    return tuple(given)


def _load(model, wanted, file):
    """The weights of a file: that of a path, or of ImageNet in Keras' cache."""
    path = wanted.weights
    if path == "imagenet":
        name = file(wanted) if callable(file) else file
        top = "" if wanted.include_top else "_notop"
        name = name.format(top=top, name=wanted.name)
        path = os.path.join(os.path.expanduser("~"), ".keras", "models", name)
        if not os.path.exists(path):
            raise ValueError(
                f"{wanted.name}: weights='imagenet' are not downloaded. Put {name} of "
                f"https://storage.googleapis.com/tensorflow/keras-applications into "
                f"{os.path.dirname(path)}, or give its path as `weights`, or None for "
                "random weights"
            )
    model.load_weights(path)
