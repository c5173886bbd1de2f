"""Whole models in files: configuration, weights, and how they were compiled.

`.keras` is a zip of metadata.json, config.json and model.weights.h5, as tf_keras 2.21
has it; `.h5` an HDF5 file of Keras 2's first kind; anything else a SavedModel.
"""

import datetime
import json
import os
import tempfile
import zipfile

from headrace.context import stack
from headrace.keras import serialization, settings
from headrace.keras.base import graph_copies
from headrace.keras.base.own_variables import Kept
from headrace.keras.engine import folder, hdf5, hdf5_file, objects
from headrace.keras.layer import registry as layers

_VERSION = hdf5._KERAS_VERSION
_CONFIG, _METADATA, _WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
_ASSETS = "assets"


def model_from_config(config, custom_objects=None):
    """A new model, without trained weights, of {class_name, config}.

    ValueError for an unknown class, TypeError for a list.
    """
    if not config:
        raise ValueError(f"Cannot deserialize empty config. Received: config={config}")
    if isinstance(config, list):
        raise TypeError(
            "`model_from_config` expects a dictionary, not a list. Received: "
            f"config={config}. Did you meant to use `Sequential.from_config(config)`?"
        )
    with objects.safety(True):
        return layers.deserialize(config, custom_objects)


def model_from_json(json_string, custom_objects=None):
    """A new model, without trained weights, of what Model.to_json() gave.

    JSONDecodeError, a ValueError, for what is no JSON.
    """
    return model_from_config(json.loads(json_string), custom_objects)


def model_from_yaml(yaml_string, custom_objects=None):
    """RuntimeError: models are no longer read from YAML."""
    raise RuntimeError(
        "Method `model_from_yaml()` has been removed due to security risk of arbitrary "
        "code execution. Please use `Model.to_json()` and `model_from_json()` instead."
    )


# --- .keras ---


def _write_archive(model, path):
    now = datetime.datetime.now().strftime("%Y-%m-%d@%H:%M:%S")
    metadata = {"keras_version": _VERSION, "date_saved": now}
    config = json.dumps(serialization.serialize(model), default=objects.jsonable)
    weights = hdf5.to_bytes(model)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(_METADATA, json.dumps(metadata))
        archive.writestr(_CONFIG, config)
        archive.writestr(_WEIGHTS, weights)
        _write_assets(model, archive)


def _write_assets(model, archive):
    """The files that layers write themselves: assets/PATH OF THE LAYER/..."""
    for (path, *_), layer in hdf5.places_of(model):
        if type(layer).save_assets is Kept.save_assets:
            continue
        with tempfile.TemporaryDirectory() as made:
            layer.save_assets(made)
            for place, _, names in os.walk(made):
                inside = os.path.normpath(
                    os.path.join(path, os.path.relpath(place, made))
                )
                for name in sorted(names):
                    archive.write(
                        os.path.join(place, name), f"{_ASSETS}/{inside}/{name}"
                    )


def _read_assets(model, archive):
    names = [n for n in archive.namelist() if n.startswith(_ASSETS + "/")]
    if not names:
        return
    with tempfile.TemporaryDirectory() as made:
        archive.extractall(made, names)
        for paths, layer in hdf5.places_of(model):
            folders = [os.path.join(made, _ASSETS, path) for path in paths]
            found = next(filter(os.path.isdir, folders), None)
            if found:
                layer.load_assets(found)


def _read_archive(path, custom_objects, compile, safe_mode):
    try:
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read(_CONFIG))
            weights = archive.read(_WEIGHTS)
    except zipfile.BadZipFile as e:
        raise OSError(f"{path} is no .keras file: {e}") from None
    except KeyError as e:
        raise ValueError(f"{path} is no .keras file: {e.args[0]}") from None
    model = objects.model_of(config, custom_objects, safe_mode)
    if compile and config.get("compile_config"):
        with serialization.CustomObjectScope(custom_objects or {}):
            model.compile_from_config(config["compile_config"])
    hdf5.from_bytes(model, weights, path)
    with zipfile.ZipFile(path) as archive:
        _read_assets(model, archive)
    return model


# --- all of them ---


def _kind(path, save_format):
    if save_format == "keras" or (save_format is None and path.endswith(".keras")):
        return "keras"
    if save_format is None:
        return "h5" if hdf5.is_name(path) or not stack.all_v2() else "tf"
    kinds = {"h5": "h5", "hdf5": "h5", "tf": "tf", "tensorflow": "tf"}
    if save_format not in kinds:
        raise ValueError(
            "Unknown `save_format` argument. Expected one of 'keras', 'tf', or 'h5'. "
            f"Received: save_format={save_format}"
        )
    return kinds[save_format]


def may_write(path, overwrite):
    """Whether a file may be written: asks on the terminal where it is there already."""
    if overwrite or not os.path.exists(path):
        return True
    answer = input(f"[WARNING] {path} already exists - overwrite? [y/n]")
    return answer.strip().lower() == "y"


def save_model(model, filepath, overwrite=True, save_format=None, **kwargs):
    """Writes a whole model: a `.keras` file, an HDF5 file (`.h5`), else a SavedModel.

    In TensorFlow 1's ways (disable_v2_behavior) HDF5 is what it writes unless told. Without
    `overwrite` it asks before it replaces a file. Further arguments are
    include_optimizer and save_traces (HDF5, SavedModel), signatures and options
    (SavedModel). ValueError for other
    formats and for arguments that a format has not, ImportError without h5py.
    """
    path = os.fspath(filepath)
    kind = _kind(path, save_format)
    if kind == "keras":
        if not path.endswith(".keras"):
            raise ValueError(
                "Invalid `filepath` argument: expected a `.keras` extension. Received: "
                f"filepath={path}"
            )
        if kwargs:
            raise ValueError(
                "The following argument(s) are not supported with the native TF-Keras "
                f"format: {list(kwargs)}"
            )
    if not may_write(path, overwrite):
        return
    if kind == "keras":
        _write_archive(model, path)
    elif kind == "h5":
        include = kwargs.pop("include_optimizer", True)
        kwargs.pop("save_traces", None)  # files of this kind have none
        _only(kwargs, "signatures", "options", "save_traces")
        model._assert_weights_created()
        hdf5_file.write(model, path, include)
    elif stack.plain_graph() is not None:
        copy = _outside_of_graphs(model)
        with stack.entering(None):
            folder.write(copy, path, **kwargs)
    else:
        folder.write(model, path, **kwargs)


def _outside_of_graphs(model):
    """A model like one in a graph, its optimizer included, with the values that Keras'
    session has, in code that runs at once. ValueError for one that was never called."""
    compiled = objects.of_compiled(model)
    if compiled is not None:
        training = hdf5_file.training_config(model, compiled)
        state = settings.batch_get_value(model.optimizer.variables)
    if hasattr(model, "_layer_graph"):
        made = _configured(model)
    else:
        made = graph_copies.copy_of(model)
    with stack.entering(None):
        if compiled is not None:
            objects.compile_like(made, hdf5_file.compile_config(training))
            if state:
                hdf5_file.restore_optimizer(made.optimizer, state)
    return made


def _configured(model):
    """Such a model by the configuration of one of layers that are connected."""
    values, config = settings.batch_get_value(model.weights), model.get_config()
    shape = model.inputs and model.inputs[0].shape
    classes = {type(layer).__name__: type(layer) for layer in model._flatten_layers()}
    with stack.entering(None), serialization.CustomObjectScope(classes):
        made = type(model).from_config(config)
        if not made.built:
            made.build(shape)
        made.set_weights(values)
    return made


def _only(given, *names):
    """TypeError for arguments of other names; ValueError for those that have a value
    where the format takes none."""
    for name, value in given.items():
        if name not in names:
            raise TypeError(f"save_model: unexpected argument {name}")
        if value is not None and value is not True:
            raise ValueError(f"HDF5 files of models take no {name}")


def load_model(filepath, custom_objects=None, compile=True, safe_mode=True, **kwargs):
    """The model that save_model() or tf_keras wrote, with its weights.

    Compiled as it was, with the optimizer's state, unless `compile` is False.
    `custom_objects` are classes and functions by name. OSError where there is no such
    file, or one of another kind, ValueError for configurations of models that are not
    known and, with `safe_mode`, of lambdas.
    """
    if kwargs.pop("options", None) is not None:
        raise NotImplementedError("load_model: options")
    if kwargs:
        raise TypeError(f"load_model: unexpected arguments {sorted(kwargs)}")
    if not isinstance(filepath, (str, os.PathLike)):
        raise OSError(
            "Unable to load model. Filepath is not an hdf5 file (or h5py is not "
            f"available) or SavedModel. Received: filepath={filepath}"
        )
    path = os.fspath(filepath)
    if not os.path.exists(path):
        raise OSError(f"No file or directory found at {path}")
    if os.path.isdir(path):
        return folder.read(path, custom_objects, compile, safe_mode)
    if path.endswith(".keras"):
        return _read_archive(path, custom_objects, compile, safe_mode)
    return hdf5_file.read(path, custom_objects, compile, safe_mode)
