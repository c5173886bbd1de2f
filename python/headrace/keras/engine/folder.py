"""Whole models in SavedModels: what Keras says of them lies in keras_metadata.pb."""

import json
import os

from headrace import _api as tf
from headrace import _protos
from headrace.framework.settings import logging
from headrace.keras import serialization
from headrace.keras.engine import export, hdf5, hdf5_file, objects, whole_config

_METADATA = "keras_metadata.pb"
_MESSAGE = "third_party.tensorflow.python.keras.protobuf.SavedMetadata"
_VARIABLES = os.path.join("variables", "variables")


def write(
    model, path, include_optimizer=True, signatures=None, options=None, save_traces=True
):
    """Writes a folder that both load_model() and tf.saved_model.load read.

    ValueError for a model that was never called, NotImplementedError for one without
    its optimizer or its call.
    """
    if not (include_optimizer and save_traces):
        raise NotImplementedError(
            "Model.save: include_optimizer=False and save_traces=False are not "
            "supported"
        )
    if export.specs_of(model) is None:
        raise ValueError(
            f"Model {model.name} cannot be saved because the input shape is not "
            "available: call it, or build it from inputs, first."
        )
    tf.saved_model.save(model, path, signatures=signatures, options=options)
    told = _metadata_of(model)
    if told is None:
        return
    saved = _protos.message(_MESSAGE)()
    node = saved.nodes.add(
        node_id=0, node_path="root", identifier=_identifier(model), metadata=told
    )
    node.version.producer, node.version.min_consumer = 2, 1
    with open(os.path.join(path, _METADATA), "wb") as f:
        f.write(saved.SerializeToString())


def _identifier(model):
    if isinstance(model, tf.keras.Sequential):
        return "_tf_keras_sequential"
    if hasattr(model, "_network"):
        return "_tf_keras_network"
    return "_tf_keras_model"


def _metadata_of(model):
    """What Keras says of a model, as JSON; None of one without a configuration."""
    try:
        row = hdf5_file.short(hdf5_file.first_kind(serialization.serialize(model)))
        compiled = objects.of_compiled(model)
    except NotImplementedError as e:
        logging.warn(
            "%s is saved without its configuration, which load_model() needs: %s",
            model.name,
            e,
        )
        return None
    told = {
        "name": model.name,
        "trainable": model.trainable,
        "dtype": model.dtype,
        **row,
        "build_input_shape": whole_config.shape_of(model),
        "is_graph_network": getattr(model, "_network", None) is not None,
        "must_restore_from_config": False,
        "keras_version": hdf5._KERAS_VERSION,
        "backend": "tensorflow",
        "model_config": row,
    }
    if compiled is not None:
        told["training_config"] = hdf5_file.training_config(model, compiled)
    return json.dumps(told, default=whole_config.jsonable)


def read(path, custom_objects, compile, safe_mode):
    """The model of a folder of write() or tf_keras, made by its configuration.

    OSError where there is no SavedModel, ValueError where Keras says nothing of it or
    its class is not known.
    """
    if not os.path.exists(os.path.join(path, "saved_model.pb")):
        raise OSError(
            f"SavedModel file does not exist at: {path}{os.path.sep}"
            "{saved_model.pbtxt|saved_model.pb}"
        )
    told = _read_metadata(path)
    row = told.get("model_config") or told
    config = {"class_name": row["class_name"], "config": _plain(row.get("config"))}
    shape = _plain(told.get("build_input_shape"))
    if shape is not None:
        config["build_config"] = {"input_shape": shape}
    try:
        model = whole_config.model_of(config, custom_objects, safe_mode)
    except TypeError as e:
        raise ValueError(
            f"{path}: the model cannot be made by its configuration; give its classes "
            "in custom_objects, or use tf.saved_model.load, which gives its functions "
            f"({e})"
        ) from e
    training = told.get("training_config")
    if compile and training:
        with serialization.CustomObjectScope(custom_objects or {}):
            objects.compile_like(model, hdf5_file.compile_config(_plain(training)))
    status = tf.train.Checkpoint(root=model).read(os.path.join(path, _VARIABLES))
    status.expect_partial()
    return model


def _read_metadata(path):
    """What is said of the root."""
    place = os.path.join(path, _METADATA)
    if not os.path.exists(place):
        raise ValueError(
            f"{path} is a SavedModel of which Keras says nothing ({_METADATA} is "
            "missing): use tf.saved_model.load"
        )
    saved = _protos.message(_MESSAGE)()
    try:
        with open(place, "rb") as f:
            saved.ParseFromString(f.read())
        told = next(
            json.loads(node.metadata) for node in saved.nodes if node.node_id == 0
        )
        told["class_name"]
    except (StopIteration, KeyError, TypeError, ValueError) as e:
        raise ValueError(f"{place} says nothing of a model: {e!r}") from e
    except Exception as e:  # protobuf's DecodeError has no base of Python's
        raise ValueError(f"{place} cannot be read: {e}") from e
    return told


def _plain(value):
    """A configuration without the ways in which tf_keras writes tuples and shapes."""
    if isinstance(value, list):
        return [_plain(x) for x in value]
    if not isinstance(value, dict):
        return value
    if value.get("class_name") in ("__tuple__", "TensorShape") and "items" in value:
        items = value["items"]
        return None if items is None else [_plain(x) for x in items]
    return {k: _plain(v) for k, v in value.items() if k != "shared_object_id"}
