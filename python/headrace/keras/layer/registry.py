"""Layers and models by name and configuration."""

from headrace import _names
from headrace.context import late
from headrace.keras import serialization
from headrace.keras.engine.base_layer import Layer

_MODULES = (
    "layer.core",
    "layer.noise",
    "layer.einsum_dense",
    "layer.locally_connected",
    "layer.conv_lstm",
    "layer.spectral_normalization",
    "layer.lambdas",
    "layer.advanced_activation",
    "layer.convolution",
    "layer.transposed",
    "layer.depthwise",
    "layer.pooling",
    "layer.normalization",
    "layer.embedding",
    "layer.merge",
    "layer.recurrent",
    "layer.cells",
    "layer.wrappers",
    "layer.adapting",
    "layer.encoding",
    "layer.hashing",
    "layer.image_sizes",
    "layer.random_images",
    "layer.index_lookup",
    "layer.text_vectorization",
    "layer.attention",
    "layer.padding",
    "engine.input_layer",
    "engine.sequential",
    "engine.functional",
    "engine.model",
)
_classes = {}


def _all():
    if not _classes:
        for module in _MODULES:
            found = vars(_names.module("keras." + module))
            _classes.update(
                (n, c)
                for n, c in found.items()
                if isinstance(c, type) and issubclass(c, Layer)
            )
        for name in ("DenseFeatures", "SequenceFeatures"):
            _classes[name] = getattr(late, name)
    return _classes


def deserialize(config, custom_objects=None):
    """The layer of a configuration."""
    return serialization.deserialize(config, _all(), "layer", custom_objects)


serialize = serialization.serialize
