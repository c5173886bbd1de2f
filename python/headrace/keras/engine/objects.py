"""Any object of Keras as a configuration, and back: what files of whole models hold."""

import contextlib

from headrace import _api as tf
from headrace import _names
from headrace.framework.settings import logging
from headrace.keras import serialization
from headrace.keras.base.base_layer import Layer
from headrace.keras.optimizer.wrapped import TFOptimizer

# Where the classes of a configuration's "module" are known by name.
_ROOMS = {
    "tf_keras.src.engine.functional": "keras.layer.registry",
    "tf_keras.src.engine.base_layer": "keras.layer.registry",
    "tf_keras.src.layers.core.tf_op_layer": "keras.layer.registry",
    "keras": "keras.layer.registry",
    "keras.experimental": "keras.premade.linear",
    "keras.utils": "keras.premade.feature_space",
    "keras.layers": "keras.layer.registry",
    "keras.optimizers": "keras.optimizer.registry",
    "keras.optimizers.legacy": "keras.optimizer.registry",
    "keras.optimizers.experimental": "keras.optimizer.registry",
    "keras.optimizers.schedules": "keras.optimizer.schedule",
    "tf_keras.src.mixed_precision.loss_scale_optimizer": "keras.optimizer.registry",
    "keras.mixed_precision": "keras.policy",
    "keras.losses": "keras.loss",
    "keras.metrics": "keras.metric.registry",
    "keras.initializers": "keras.initializer",
    "keras.regularizers": "keras.regularizer",
    "keras.constraints": "keras.constraint",
    "keras.activations": "keras.activation",
}
# What compile() is told, in the order of files.
COMPILED = ("optimizer", "loss", "metrics", "loss_weights", "weighted_metrics")
COMPILED += ("run_eagerly", "steps_per_execution", "jit_compile")


def deserialize_keras_object(config, custom_objects=None, safe_mode=True, **kwargs):
    """What serialize_keras_object() made a configuration of.

    With `safe_mode` ValueError for Lambda layers, whose code comes from the
    configuration; ValueError or TypeError for configurations of nothing known.
    """
    module_objects = kwargs.pop("module_objects", None) or {}
    kwargs.pop("printable_module_name", None)
    if kwargs:
        raise TypeError(f"Unexpected arguments: {sorted(kwargs)}")
    scope = serialization.CustomObjectScope(module_objects, custom_objects or {})
    with scope, safety(safe_mode):
        return _object(config)


@contextlib.contextmanager
def safety(on):
    """Within, code of configurations is refused, or run."""
    before = serialization.set_safe_mode(on)
    try:
        yield
    finally:
        serialization.set_safe_mode(before)


def _object(config):
    if isinstance(config, (list, tuple)):
        return [_object(x) for x in config]
    if not isinstance(config, dict):
        return config
    if "class_name" not in config or "config" not in config:
        return {key: _object(value) for key, value in config.items()}
    name, inner = config["class_name"], config["config"]
    if isinstance(inner, dict) and isinstance(inner.get("fn"), (str, dict)):
        fn = inner["fn"]  # of a mean of a function's values
        fn = function(fn) if isinstance(fn, str) else _object(fn)
        config = {**config, "config": {**inner, "fn": fn}}
    if name == "function":
        return function(inner)
    if name == "__bytes__":
        return inner["value"].encode("utf-8")
    if name == "__tensor__":
        return tf.constant(inner["value"], inner["dtype"])
    if name == "__tuple__":
        return tuple(_object(x) for x in config.get("items", inner))
    room = _ROOMS.get(config.get("module"))
    if room is not None:
        return _names.module(room).deserialize(config)
    known = serialization.get_custom_objects()
    if name not in known and config.get("registered_name") not in known:
        for room in dict.fromkeys(_ROOMS.values()):
            try:
                return _names.module(room).deserialize(config)
            except ValueError as e:
                if not str(e).startswith("Unknown "):
                    raise
        raise TypeError(
            f"Could not locate class '{name}'. Make sure custom classes are decorated "
            "with `@keras.saving.register_keras_serializable()`. Full object config: "
            f"{config}"
        )
    return serialization.deserialize(config, {}, "object")


def _placed(config, argument):
    """A configuration that says of what kind its objects are, as older files do not."""
    kind = "keras.losses" if argument == "loss" else "keras.metrics"
    if isinstance(config, list):
        return [_placed(x, argument) for x in config]
    if not isinstance(config, dict) or argument == "optimizer":
        return config
    if "class_name" in config and "config" in config:
        return {"module": kind, **config}
    return {key: _placed(value, argument) for key, value in config.items()}


def function(name):
    """The function of a name: a custom object, a loss, metric or activation."""
    tables = [serialization.get_custom_objects()]
    for room, table in (
        ("keras.loss", "NAMES"),
        ("keras.metric.registry", "NAMES"),
        ("keras.activation", "_NAMES"),
    ):
        tables.append(getattr(_names.module(room), table))
    for table in tables:
        if name in table:
            return table[name]
    raise TypeError(f"Could not locate function '{name}'.")


# --- what a model was compiled with ---


def of_compiled(model):
    """The arguments of compile() as a configuration; None where it was not called."""
    given = model._keras.compiled_with
    if given is None or "optimizer" not in given:
        return None
    if isinstance(model.optimizer, TFOptimizer):
        logging.warning(
            "Optimizers of tf.compat.v1.train tell nothing of themselves: the model is "
            "saved without its optimizer. Compile it again after loading it, or use "
            "one of tf.keras.optimizers."
        )
        return None
    found = {name: serialization.serialize(given[name]) for name in COMPILED}
    if not isinstance(given["optimizer"], str):  # its rate may have changed since
        found["optimizer"] = serialization.serialize(model.optimizer)
    return found


def compile_like(model, config):
    """Compiles the model as a configuration of of_compiled() or of tf_keras says, and
    makes the optimizer's variables."""
    if not isinstance(config, dict):
        raise ValueError(f"compile_config is no dict: {config}")
    given = {k: _object(_placed(v, k)) for k, v in config.items() if k in COMPILED}
    model.compile(**given)
    if model.built and model.optimizer is not None:
        model.optimizer.build(model.trainable_variables)


def model_of(config, custom_objects, safe_mode):
    """The model of a configuration, built where this says a shape."""
    if not isinstance(config, dict) or "class_name" not in config:
        raise ValueError(f"The configuration is no model's: {str(config)[:200]}")
    model = deserialize_keras_object(config, custom_objects, safe_mode)
    if not isinstance(model, Layer):
        raise ValueError(f"The configuration is of {type(model)}, not of a model")
    built = config.get("build_config")
    if built and not model.built:
        model.build_from_config(built)
    return model


def jsonable(value):
    """What json.dumps makes of values that are not JSON's."""
    if isinstance(value, tf.TensorShape):
        return value.as_list()
    if value is Ellipsis:
        return {"class_name": "__ellipsis__"}
    if isinstance(value, tf.DType):
        return value.name
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "get_config") and not isinstance(value, type):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    if callable(value):
        return value.__name__
    raise TypeError(f"{value!r} of {type(value)} cannot be written as JSON")
