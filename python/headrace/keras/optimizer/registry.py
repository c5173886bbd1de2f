"""Optimizers by name and configuration."""

from headrace.context import stack
from headrace.keras import serialization
from headrace.keras.optimizer import current, experimental, legacy, wrapped
from headrace.keras.optimizer.base import BaseOptimizer

_ROOMS = {"legacy": legacy, "experimental": experimental}
_CLASSES = {n: getattr(current, n) for n in current.NAMES}
_CLASSES.update({n.lower(): c for n, c in list(_CLASSES.items())})


def add(name, cls):
    """Makes a class known by name to configurations."""
    _CLASSES[name.lower()] = cls


def _legacy(name):
    """The class of tf.keras.optimizers.legacy of a name, whose case is no matter; None
    where there is none."""
    classes = {n.lower(): c for n, c in vars(legacy).items()}
    found = classes.get(str(name).lower())
    return (
        found if isinstance(found, type) and issubclass(found, BaseOptimizer) else None
    )


def _wants_legacy(kwargs):
    """The only further argument: `use_legacy_optimizer`; TypeError for others."""
    wanted = kwargs.pop("use_legacy_optimizer", False)
    if kwargs:
        raise TypeError(f"Invalid keyword arguments: {kwargs}")
    return wanted


def deserialize(config, custom_objects=None, use_legacy_format=False, **kwargs):
    """The optimizer of a configuration; a class of a room of its own stays there.

    With use_legacy_optimizer=True one of tf.keras.optimizers.legacy, where the
    configuration names no room. TypeError for other keyword arguments.
    """
    wants_legacy = _wants_legacy(kwargs)
    if isinstance(config, dict):
        room = _ROOMS.get(str(config.get("module")).rpartition(".")[2])
        found = getattr(room, str(config.get("class_name")), None)
        if wants_legacy and config.get("module") is None:
            found = _legacy(config.get("class_name"))
        if isinstance(found, type) and issubclass(found, BaseOptimizer):
            return found.from_config(config["config"])
    if isinstance(config, dict) and config.get("class_name", "").lower() in _CLASSES:
        config = {**config, "class_name": config["class_name"].lower()}
    return serialization.deserialize(config, _CLASSES, "optimizer", custom_objects)


def get(identifier, **kwargs):
    """The optimizer of a name, configuration or class; an optimizer as it is.

    With use_legacy_optimizer=True names are those of tf.keras.optimizers.legacy.
    TypeError for other keyword arguments.
    """
    wants_legacy = _wants_legacy(kwargs)
    if isinstance(identifier, (BaseOptimizer, wrapped.TFOptimizer)):
        return identifier
    if wrapped.is_one(identifier):
        return wrapped.TFOptimizer(identifier)
    if isinstance(identifier, str):
        name = identifier.lower()
        if (wants_legacy or stack.plain_graph() is not None) and _legacy(name):
            return _legacy(name)()
        found = serialization.find(
            name if name in _CLASSES else identifier, _CLASSES, "optimizer"
        )
        return found()
    if isinstance(identifier, dict):
        return deserialize(identifier, use_legacy_optimizer=wants_legacy)
    if isinstance(identifier, type) and issubclass(identifier, BaseOptimizer):
        return identifier()
    raise ValueError(f"Could not interpret optimizer identifier: {identifier}")


serialize = serialization.serializer("optimizer")
