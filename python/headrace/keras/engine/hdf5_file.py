"""Whole models in HDF5 files of Keras 2's first kind."""

import json

import numpy as np

from headrace.framework.settings import logging
from headrace.keras import serialization
from headrace.keras.engine import hdf5, objects
from headrace.keras.optimizer import registry as optimizers


def first_kind(config):
    """A configuration with layers as Keras 2's first files have them."""
    if isinstance(config, dict):
        if config.get("class_name") == "function":
            return config["config"]
        config = {key: first_kind(value) for key, value in config.items()}
        if isinstance(config.get("layers"), list):
            config["layers"] = [short(row) for row in config["layers"]]
    elif isinstance(config, (list, tuple)):
        config = [first_kind(value) for value in config]
    return config


def short(row):
    if not isinstance(row, dict) or "class_name" not in row:
        return row
    newer = ("module", "build_config", "compile_config")
    row = {k: v for k, v in row.items() if k not in newer}
    registered = row.pop("registered_name", None)
    return {**row, "class_name": registered or row["class_name"]}


def write(model, path, include_optimizer):
    """Writes a functional or sequential model; NotImplementedError for others."""
    if (
        not hasattr(model, "_layer_graph")
        or "get_config" in vars(type(model))
        and not (type(model).__module__.startswith("headrace.keras"))
    ):
        raise NotImplementedError(
            "Saving the model to HDF5 format requires the model to be a Functional "
            "model or a Sequential model. It does not work for subclassed models, "
            "because such models are defined via the body of a Python method, which "
            "isn't safely serializable. Consider saving to the Tensorflow SavedModel "
            'format (by setting save_format="tf") or using `save_weights`.'
        )
    whole = short(first_kind(serialization.serialize(model)))
    compiled = objects.of_compiled(model) if include_optimizer else None
    with hdf5._open(path, "w") as file:
        file.attrs["keras_version"] = hdf5._KERAS_VERSION.encode()
        file.attrs["backend"] = b"tensorflow"
        file.attrs["model_config"] = json.dumps(
            whole, default=objects.jsonable
        ).encode()
        hdf5._write_layers(model, file.create_group("model_weights"))
        if compiled is None:
            return
        training = training_config(model, compiled)
        file.attrs["training_config"] = json.dumps(
            training, default=objects.jsonable
        ).encode()
        if model.optimizer.variables:
            group = file.create_group("optimizer_weights")
            hdf5._write_named(group, model.optimizer.variables)


def training_config(model, compiled):
    optimizer = serialization.serialize(model.optimizer)
    name = optimizer["registered_name"] or optimizer["class_name"]
    if not model.optimizer._is_legacy and optimizer["registered_name"] is None:
        name = f"Custom>{name}"
    config = {"class_name": name, "config": optimizer["config"]}
    names = ("loss", "metrics", "weighted_metrics", "loss_weights")
    told = {k: first_kind(compiled[k]) for k in names}
    return {**told, "optimizer_config": config}


def read(path, custom_objects, compile, safe_mode):
    """The model of a file of write() or tf_keras; ValueError for other files."""
    with hdf5._open(path, "r") as file:
        text = file.attrs.get("model_config")
        if text is None:
            raise ValueError(f"No model config found in the file at {path}.")
        config = json.loads(text)
        training = json.loads(file.attrs.get("training_config", "null"))
        state = []
        if "optimizer_weights" in file:
            state = [np.asarray(x) for x in hdf5._named_data(file["optimizer_weights"])]
    model = objects.model_of(config, custom_objects, safe_mode)
    if model.built:
        hdf5.load(model, path)
    if not compile:
        return model
    if training is None:
        logging.warn(
            "No training configuration found in the save file, so the model was *not* "
            "compiled. Compile it manually."
        )
        return model
    with serialization.CustomObjectScope(custom_objects or {}):
        objects.compile_like(model, compile_config(training))
    if state and model.built:
        restore_optimizer(model.optimizer, state)
    return model


def compile_config(training):
    """The compile_config of a training_config."""
    given = dict(training)
    row = dict(given.pop("optimizer_config"))
    name = row["class_name"].removeprefix("Custom>")
    if name in optimizers._CLASSES:
        legacy = name == row["class_name"] and not (
            row["config"].get("is_legacy_optimizer") is False
        )
        place = "keras.optimizers.legacy" if legacy else "keras.optimizers"
        row.update(class_name=name, module=place)
    config = {**given, "optimizer": row}
    for key in ("metrics", "weighted_metrics"):  # lists of lists for several outputs
        found = config.get(key)
        if isinstance(found, list) and len(found) == 1 and isinstance(found[0], list):
            config[key] = found[0]
    return config


def restore_optimizer(optimizer, state):
    """Gives an optimizer the values of all its variables, as arrays; warns where they do
    not fit it."""
    mine = optimizer.variables
    if [tuple(v.shape.as_list()) for v in mine] == [x.shape for x in state]:
        optimizer.set_weights(state)
        return
    logging.warn(
        "Error in loading the saved optimizer state. As a result, your model is "
        "starting with a freshly initialized optimizer."
    )
