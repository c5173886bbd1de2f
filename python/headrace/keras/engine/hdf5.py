"""Weights in HDF5 files, as tf_keras and Keras 3 write and read them.

Files that end in `.weights.h5` have a group for each layer, found by the attributes on
the way to it: `layers/dense/vars/0`, and the optimizer's variables as tf_keras lists
them (Keras 3's list, which has the learning rate too, is read). Others have Keras 2's first layout: a group for
each layer of the model, by its name, with the names of its weights in order.
"""

import contextlib
import io

import numpy as np

from headrace import _api as tf
from headrace.framework import data_structures
from headrace.framework.settings import logging
from headrace.keras import settings
from headrace.keras.base.own_variables import Kept, own_of
from headrace.keras.base.tracking import Tracking, unique

_KERAS_VERSION = "2.21.0"  # of tf_keras, whose layout it is


def is_name(path, save_format=None):
    """Whether a file of that name, or format, is HDF5."""
    if save_format is not None:
        return save_format in ("h5", "hdf5")
    return path.endswith((".h5", ".hdf5"))


@contextlib.contextmanager
def _open(path, mode):
    """The file; ImportError where there is no h5py."""
    try:
        import h5py
    except ImportError:
        raise ImportError(
            f"{path}: weights in HDF5 files need the package h5py, which is not "
            "installed. Without it, save_weights and load_weights take names without "
            "the ending .h5: TensorFlow's checkpoints."
        ) from None
    with h5py.File(path, mode) as file:
        yield file


def save(model, path):
    """Writes all weights of a model, in the layout that the name asks for."""
    with _open(path, "w") as file:
        if path.endswith(".weights.h5"):
            _write_paths(model, file)
        else:
            _write_layers(model, file)


def load(model, path, by_name=False, skip_mismatch=False):
    """Reads what save() or Keras wrote into weights that are there.

    `by_name` goes by the names of layers and leaves out those that only one side has;
    with `skip_mismatch` so are layers whose weights have other numbers or shapes, with
    a warning. ValueError for files that do not fit the model.
    """
    with _open(path, "r") as file:
        _load(model, file, path, by_name, skip_mismatch)


def to_bytes(model):
    """All weights and the optimizer's state as a file of names: `.weights.h5`."""
    made = io.BytesIO()
    with _open(made, "w") as file:
        _write_paths(model, file)
    return made.getvalue()


def from_bytes(model, data, path):
    """Reads what to_bytes() gave, or tf_keras wrote; `path` is for messages."""
    with _open(io.BytesIO(data), "r") as file:
        _load(model, file, path)


def _load(model, file, path, by_name=False, skip_mismatch=False):
    state, told = [], []
    if "layer_names" in file.attrs or "model_weights" in file:
        group = file["model_weights"] if "model_weights" in file else file
        found = _read_layers(model, group, by_name, skip_mismatch)
    elif by_name:
        raise ValueError(f"Invalid keyword arguments: by_name, for {path}")
    else:
        found, told = _read_paths(model, file)
        state = _optimizer_state(model, file)
    # everything fits: only now is anything changed
    found = [(w, np.asarray(d)) for w, d in _fitting(found, skip_mismatch)]
    settings.batch_set_value(found + state)
    for layer, group in told:
        layer.load_own_variables(group)
    for layer in model._flatten_layers():
        layer.finalize_state()  # what it computes of its weights


def _fitting(found, skip_mismatch):
    """The pairs of weights and data of (layer's name, weights, data)."""
    pairs = []
    for name, weights, data in found:
        problem = _problem(name, weights, data)
        if problem is None:
            pairs += zip(weights, data)
        elif skip_mismatch:
            logging.warn("Skipping loading of weights for layer %s: %s", name, problem)
        else:
            raise ValueError(problem)
    return pairs


def _problem(name, weights, data):
    if len(weights) != len(data):
        return (
            f"Layer '{name}' expected {len(weights)} variables, but the file has "
            f"{len(data)} for it"
        )
    for weight, values in zip(weights, data):
        if not weight.shape.is_compatible_with(values.shape):
            return (
                f"Shape mismatch in layer '{name}' for weight {weight.name}. Weight "
                f"expects shape {tuple(weight.shape.as_list())}. Received saved weight "
                f"with shape {tuple(values.shape)}"
            )
    return None


# --- a group for each layer of the model ---


def _weights_of(layer):
    return layer.trainable_weights + layer.non_trainable_weights


def _write_layers(model, file):
    layers = model.layers
    file.attrs["layer_names"] = [layer.name.encode() for layer in layers]
    file.attrs["backend"] = b"tensorflow"
    file.attrs["keras_version"] = _KERAS_VERSION.encode()
    for layer in sorted(layers, key=lambda layer: layer.name):
        _write_named(file.create_group(layer.name), _weights_of(layer))
    _write_named(file.create_group("top_level_model_weights"), own_of(model))


def _write_named(group, weights):
    names = []
    for weight in weights:
        name = weight.name
        while name in names:
            name = name.removesuffix(":0") + "_1:0"
        names.append(name)
    group.attrs["weight_names"] = [name.encode() for name in names]
    for name, value in zip(names, settings.batch_get_value(weights)):
        group.create_dataset(name, data=value)


def _texts(values):
    return [v.decode() if isinstance(v, bytes) else str(v) for v in values]


def _named_data(group):
    return [group[name] for name in _attribute(group, "weight_names")]


def _attribute(group, name):
    """A list of texts; long ones lie in pieces: name0, name1, ..."""
    if name in group.attrs:
        return _texts(group.attrs[name])
    found, i = [], 0
    while f"{name}{i}" in group.attrs:
        found += _texts(group.attrs[f"{name}{i}"])
        i += 1
    return found


def _read_layers(model, file, by_name, skip_mismatch):
    """(name, weights, data) of the layers."""
    names = _attribute(file, "layer_names")
    found = []
    if by_name:
        layers = {layer.name: layer for layer in model.layers}
        for name in names:
            if name in layers and _named_data(file[name]):
                found.append((name, _weights_of(layers[name]), _named_data(file[name])))
    else:
        layers = [layer for layer in model.layers if _weights_of(layer)]
        names = [name for name in names if _named_data(file[name])]
        if len(names) != len(layers):
            raise ValueError(
                "Layer count mismatch when loading weights from file. Model expected "
                f"{len(layers)} layers, found {len(names)} saved layers."
            )
        for name, layer in zip(names, layers):
            found.append((layer.name, _weights_of(layer), _named_data(file[name])))
    top = own_of(model)
    if "top_level_model_weights" in file and (top or not by_name):
        data = _named_data(file["top_level_model_weights"])
        found.append(("top-level model", top, data))
    return found


# --- a group for each layer, by the attributes that lead to it ---


def _keras_3(names):
    return sorted(names, key=lambda name: (name[0] == "_", name))


def _keras_2(names):
    return sorted(names, reverse=True)


def _attributes(layer, public):
    """{name: value} of what may hold layers; `public`: Keras 3's names of them."""
    found = {}
    for name, value in vars(layer).items():
        if name != "_keras" and isinstance(value, (Tracking, *_CONTAINERS)):
            found[layer._keras_3_names.get(name, name) if public else name] = value
    if isinstance(layer, tf.keras.Model):
        found["layers"] = layer.layers
    return found


_CONTAINERS = (list, tuple, dict, set, data_structures._DictMethods)


def _paths(model, order):
    """{layer's id: (path, layer)}: the first way to each layer in that order."""
    found = {}

    def visit(layer, path):
        if id(layer) in found:
            return
        found[id(layer)] = (path, layer)
        children = _attributes(layer, public=order is _keras_3)
        for name in order(children):
            value = children[name]
            inner = f"{path}/{name}" if path else name
            if isinstance(value, Tracking):
                if not getattr(value, "_is_metric", False):
                    visit(value, inner)
            else:
                contain(value, inner)

    def contain(container, path):
        counts = {}
        values = container.values() if hasattr(container, "values") else container
        for value in values:
            if isinstance(value, Tracking) and not getattr(value, "_is_metric", False):
                if id(value) not in found:
                    visit(value, _child(path, type(value).__name__, counts))
            elif isinstance(value, _CONTAINERS):
                contain(value, _child(path, "container", counts))

    visit(model, "")
    return found


def _child(path, class_name, counts):
    name = settings.snake_case(class_name)
    count = counts[name] = counts.get(name, -1) + 1
    return f"{path}/{name}_{count}" if count else f"{path}/{name}"


def _inside(path):
    return f"{path}/vars" if path else "vars"


def _write_paths(model, file):
    """Datasets at Keras 3's paths, which tf_keras finds by links at its own."""
    ours, old = _paths(model, _keras_3), _paths(model, _keras_2)
    written = set()
    for key, (path, layer) in ours.items():
        group = file.require_group(_inside(path))
        group.attrs["name"] = layer.name
        if type(layer).save_own_variables is not Kept.save_own_variables:
            layer.save_own_variables(group)
        else:
            _write_own(layer, group, written)
        link = _inside(old[key][0]) if key in old else _inside(path)
        if link not in file:
            file[link] = group
    counts = {}
    for metric in model.metrics:  # which tf_keras wants of a compiled model
        path = _child("metrics", type(metric).__name__, counts)
        group = file.create_group(_inside(path))
        for i, variable in enumerate(metric.variables):
            group.create_dataset(str(i), data=settings.get_value(variable))
    _write_optimizer(model, file)


def _write_own(layer, group, written):
    for i, weight in enumerate(unique(own_of(layer))):
        if id(weight) not in written:  # shared weights lie where they come first
            written.add(id(weight))
            group.create_dataset(str(i), data=settings.get_value(weight))


def _read_paths(model, file):
    """(name, weights, data) of all layers with weights of their own, and (layer, group)
    of those that read a group themselves."""
    found, told = [], []
    for places, layer in places_of(model):
        groups = [file[_inside(p)] for p in places if _inside(p) in file]
        group = next((g for g in groups if len(g)), None)
        if type(layer).load_own_variables is not Kept.load_own_variables:
            if group is not None:
                told.append((layer, group))
            continue
        weights = unique(own_of(layer))
        if not weights:
            continue
        data = [] if group is None else [group[str(i)] for i in range(len(group))]
        found.append((layer.name, weights, data))
    return found, told


def places_of(model):
    """([the path here, that of tf_keras where it has one], layer) of all layers."""
    ours, old = _paths(model, _keras_3), _paths(model, _keras_2)
    for key, (path, layer) in ours.items():
        yield [path] + ([old[key][0]] if key in old else []), layer


# --- the state of an optimizer, beside the layers ---

_STATE = "optimizer/vars"


def _optimizer_of(model):
    """The optimizer that a model was compiled with, None where it has no list of
    variables as tf_keras' newer ones have."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or getattr(optimizer, "_is_legacy", True):
        return None
    return optimizer


def _write_optimizer(model, file):
    optimizer = _optimizer_of(model)
    if optimizer is not None:
        group = file.create_group(_STATE)
        group.attrs["name"] = optimizer.name
        optimizer.save_own_variables(group)


def _optimizer_state(model, file):
    """(variable, value) of the optimizer."""
    optimizer = _optimizer_of(model)
    if optimizer is None or _STATE not in file:
        return []
    return optimizer._found_in(file[_STATE])
