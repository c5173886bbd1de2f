"""Layers and models by name and configuration."""

import importlib
import pkgutil

from headrace.keras import serialization

_classes = {}


def _all():
    if not _classes:
        from headrace.keras import layer
        from headrace.keras.engine import functional, input_layer, sequential
        from headrace.keras.engine.base_layer import Layer

        rooms = [input_layer, sequential, functional]
        for found in pkgutil.iter_modules(layer.__path__, f"{layer.__name__}."):
            rooms.append(importlib.import_module(found.name))
        for room in rooms:
            _classes.update(
                (name, item)
                for name, item in vars(room).items()
                if isinstance(item, type) and issubclass(item, Layer)
            )
    return _classes


def deserialize(config, custom_objects=None):
    """The layer of a configuration."""
    return serialization.deserialize(config, _all(), "layer", custom_objects)


serialize = serialization.serialize
