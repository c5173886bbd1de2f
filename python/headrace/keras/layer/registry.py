"""Layers and models by name and configuration."""

import pkgutil

from headrace import _names
from headrace.context import late
from headrace.keras import layer, serialization
from headrace.keras.base.base_layer import Layer

_classes = {}


def _all():
    if not _classes:
        found = pkgutil.walk_packages(layer.__path__, f"{layer.__name__}.")
        for module in (
            *(module.name.removeprefix("headrace.") for module in found),
            "keras.base.graph_op_layer",
            "keras.base.op_layer",
            "keras.engine.input_layer",
            "keras.engine.sequential",
            "keras.engine.functional",
        ):
            _classes.update(
                (name, item)
                for name, item in vars(_names.module(module)).items()
                if isinstance(item, type) and issubclass(item, Layer)
            )
        for name in ("DenseFeatures", "SequenceFeatures"):
            _classes[name] = getattr(late, name)
    return _classes


def deserialize(config, custom_objects=None, use_legacy_format=False):
    """The layer of a configuration, of either format."""
    return serialization.deserialize(config, _all(), "layer", custom_objects)


def around(cls, config, custom_objects, *inner):
    """An object of a class whose configuration has those of layers under such names."""
    layers = {
        name: deserialize(config[name], custom_objects)
        for name in inner
        if config.get(name) is not None
    }
    return cls(**{**config, **layers})


serialize = serialization.serializer("layer")
