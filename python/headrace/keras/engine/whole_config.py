"""Models as configurations, with how they were compiled and built."""

from headrace import _api as tf
from headrace.keras import serialization
from headrace.keras.base.base_layer import Layer
from headrace.keras.engine import objects


def shape_of(model):
    """The shape of the input, or of each; None where the model was never called."""
    network = getattr(model, "_network", None)
    if network is not None:
        shapes = [x.shape.as_list() for x in network.flat_inputs]
        return shapes[0] if len(shapes) == 1 else shapes
    shape = model._keras.seen_shape
    if isinstance(shape, tf.TensorShape):
        return shape.as_list()
    return shape


def of_whole(model):
    """The configuration of a model, with its input's shape and how it was compiled."""
    config = serialization.serialize(model)
    shape = shape_of(model)
    if shape is not None:
        config["build_config"] = {"input_shape": shape}
    compiled = objects.of_compiled(model)
    if compiled is not None:
        config["compile_config"] = compiled
    return config


def model_of(config, custom_objects, safe_mode):
    """The model of a configuration, built where this says a shape."""
    if not isinstance(config, dict) or "class_name" not in config:
        raise ValueError(f"The configuration is no model's: {str(config)[:200]}")
    model = objects.deserialize_keras_object(config, custom_objects, safe_mode)
    if not isinstance(model, Layer):
        raise ValueError(f"The configuration is of {type(model)}, not of a model")
    shape = (config.get("build_config") or {}).get("input_shape")
    if shape is not None and not model.built:
        model.build(_tuples(shape))
    return model


def _tuples(shape):
    if isinstance(shape, dict):
        return {key: _tuples(value) for key, value in shape.items()}
    if any(isinstance(x, (list, dict)) for x in shape):
        return [_tuples(x) for x in shape]
    return tuple(shape)


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
    raise TypeError(f"{value!r} of {type(value)} cannot be written as JSON")
