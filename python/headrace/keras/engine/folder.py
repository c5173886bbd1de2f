"""Whole models in SavedModels: what Keras says of them lies in keras_metadata.pb."""

import contextlib
import json
import os

from headrace import _api as tf
from headrace import _protos
from headrace.context import stack, strategies
from headrace.framework import data_structures
from headrace.framework.settings import logging
from headrace.framework.trackable import node_of, other_node, owner_of
from headrace.keras import serialization, settings
from headrace.keras.base.tracking import Tracking
from headrace.keras.engine import export, hdf5, hdf5_file, objects, revived
from headrace.keras.layer import registry as layers

_METADATA = "keras_metadata.pb"
_MESSAGE = "third_party.tensorflow.python.keras.protobuf.SavedMetadata"
_VARIABLES = os.path.join("variables", "variables")


def write(
    model, path, include_optimizer=True, signatures=None, options=None, save_traces=True
):
    """Writes a folder that both load_model() and tf.saved_model.load read.

    Without `include_optimizer` it knows no optimizer, nor how the model was compiled;
    without `save_traces` it has no functions, so that load_model() alone reads it.
    ValueError for a model that was never called.
    """
    if export.specs_of(model) is None:
        raise ValueError(
            f"Model {model.name} cannot be saved because the input shape is not "
            "available: call it, or build it from inputs, first."
        )
    listing = _listing(model) if include_optimizer else _without_optimizer(model)
    traces = contextlib.nullcontext() if save_traces else _without_traces(model)
    # Functions read the first copies of variables, whose values are those of all then.
    first = contextlib.nullcontext()
    if model._keras.strategy is not None:
        first = strategies.entering(strategies.Mode(model._keras.strategy, copy=0))
    with (
        first,
        listing,
        traces,
        _with_metrics(model),
        _with_functions(model, save_traces),
    ):
        tf.saved_model.save(model, path, signatures=signatures, options=options)
    told = _metadata_of(model, include_optimizer)
    if told is None:
        return
    saved = _protos.message(_MESSAGE)()
    for number, place, found in _nodes(model, path):
        identifier = type(found)._saved_identifier
        row = told if found is model else _metadata_of_part(found)
        node = saved.nodes.add(
            node_id=number, node_path=place, identifier=identifier, metadata=row
        )
        node.version.producer, node.version.min_consumer = 2, 1
    with open(os.path.join(path, _METADATA), "wb") as f:
        f.write(saved.SerializeToString())


@contextlib.contextmanager
def _without_optimizer(model):
    """Within, the model's optimizer is not saved."""
    node, optimizer = node_of(model), model.optimizer
    is_held = optimizer is not None and "optimizer" in dict(node.attached())
    if is_held:
        node.detach("optimizer")
    try:
        yield
    finally:
        if is_held:
            node.attach("optimizer", node_of(optimizer))


@contextlib.contextmanager
def _without_traces(model):
    """Within, the model has no functions for SavedModels."""
    model._keras.has_traces = False
    try:
        yield
    finally:
        model._keras.has_traces = True


@contextlib.contextmanager
def _with_metrics(model):
    """Within, the values of metrics of layers' calls are saved, too."""
    held = []
    try:
        for layer in model._flatten_layers():
            for name, child in Tracking._model_children(layer).items():
                node_of(layer).attach(name, node_of(child))
                held.append((layer, name))
        yield
    finally:
        for layer, name in held:
            node_of(layer).detach(name)


@contextlib.contextmanager
def _with_functions(model, save_traces):
    """Within, layers of classes of the program's are saved with their functions, of
    which load_model() makes layers where it does not know the classes."""
    layers_ = [x for x in model._flatten_layers() if save_traces and revived.is_own(x)]
    try:
        for layer in layers_:
            layer._keras.functions = revived.functions_of(layer)
        yield
    finally:
        for layer in layers_:
            layer._keras.functions = {}


@contextlib.contextmanager
def _listing(model):
    """Within, the model's optimizer is saved with lists in place of slots, if it is of
    those since Keras 2.11: tf_keras reads no other files of these."""
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    if optimizer is None or optimizer._is_legacy or not optimizer.variables:
        yield
        return
    names = ("_variables", "_iterations", "_learning_rate", "loss_scale")
    names += tuple(optimizer._slot_lists.values())
    known = {name: owner_of(node) for name, node in node_of(optimizer).attached()}
    children = {name: known[name] for name in names if known.get(name) is not None}
    optimizer._saved_identifier = "experimentalOptimizer"
    try:
        with other_node(optimizer, model, "optimizer", children):
            yield
    finally:
        del optimizer._saved_identifier


def _nodes(model, path):
    """(number, place, object) of the layers and metrics of the SavedModel just written,
    by their numbers in its graph of objects."""
    saved = _protos.message("tensorflow.SavedModel")()
    with open(os.path.join(path, "saved_model.pb"), "rb") as f:
        saved.ParseFromString(f.read())
    nodes = saved.meta_graphs[0].object_graph_def.nodes
    found, queue = {0: ("root", model)}, [0]
    while queue:
        number = queue.pop(0)
        place, thing = found[number]
        below = dict(node_of(thing).attached())
        for child in nodes[number].children:
            node = below.get(child.local_name)
            owner = None if node is None else owner_of(node)
            if child.node_id in found:
                continue
            if _is_told_of(owner) or _is_container(owner):
                found[child.node_id] = (f"{place}.{child.local_name}", owner)
                queue.append(child.node_id)
        if isinstance(thing, tf.keras.layers.Layer):
            for child, metric in _metrics_of(thing, nodes, number):
                found[child] = (
                    f"{place}.keras_api.layer_metrics.{metric.name}",
                    metric,
                )
    return [(n, *found[n]) for n in sorted(found) if not _is_container(found[n][1])]


def _metrics_of(thing, nodes, number):
    """(number, metric) of the metrics of a layer's calls."""
    for name in ("keras_api", "layer_metrics"):
        number = {c.local_name: c.node_id for c in nodes[number].children}.get(name)
        if number is None:
            return []
    numbers = {c.local_name: c.node_id for c in nodes[number].children}
    return [(numbers[m.name], m) for m in thing._keras.metrics]


def _shapes(shapes):
    """Shapes as tf_keras writes them into JSON."""
    if isinstance(shapes, tf.TensorShape):
        sizes = None if shapes.rank is None else shapes.as_list()
        return {"class_name": "TensorShape", "items": sizes}
    if isinstance(shapes, dict):
        return {name: _shapes(shape) for name, shape in shapes.items()}
    return shapes and [_shapes(shape) for shape in shapes]


def _is_container(thing):
    kinds = (data_structures.ListWrapper, data_structures._DictMethods)
    return isinstance(thing, kinds)


def _is_told_of(thing):
    return isinstance(thing, (tf.keras.layers.Layer, tf.keras.metrics.Metric))


_WITHOUT_CONFIG = {"layer was saved without config": True}  # tf_keras' words


def _metadata_of_part(part):
    """What Keras says of a layer or metric of a model, as JSON."""
    try:
        row = hdf5_file.short(hdf5_file.first_kind(serialization.serialize(part)))
    except NotImplementedError:  # a layer that cannot say how it is made
        row = {"class_name": type(part).__name__, "config": _WITHOUT_CONFIG}
    told = {"name": part.name, "dtype": part.dtype, **row}
    if isinstance(part, tf.keras.layers.Layer):
        told = {**told, **_of_any_layer(part)}
    return json.dumps(told, default=objects.jsonable)


def _of_any_layer(part):
    """What rows of layers and models have in common."""
    return {
        "trainable": part.trainable,
        "expects_training_arg": part._first_call().has_training,
        "batch_input_shape": part._keras.batch_input_shape,
        "stateful": part.stateful,
        "must_restore_from_config": False,
        "preserve_input_structure_in_config": False,
        "autocast": part._autocast,
        "build_input_shape": _shapes(part._keras.seen_shape)
        or (part.get_build_config() or {}).get("input_shape"),
    }


def _metadata_of(model, include_optimizer=True):
    """What Keras says of a model, as JSON; None of one without a configuration."""
    try:
        row = hdf5_file.short(hdf5_file.first_kind(serialization.serialize(model)))
        compiled = objects.of_compiled(model) if include_optimizer else None
    except NotImplementedError as e:
        logging.warn(
            "%s is saved without its configuration, which load_model() needs: %s",
            model.name,
            e,
        )
        return None
    told = {
        "name": model.name,
        "dtype": model.dtype,
        **row,
        **_of_any_layer(model),
        "is_graph_network": getattr(model, "_layer_graph", None) is not None,
        "keras_version": hdf5._KERAS_VERSION,
        "backend": "tensorflow",
        "model_config": row,
    }
    if compiled is not None:
        told["training_config"] = hdf5_file.training_config(model, compiled)
    return json.dumps(told, default=objects.jsonable)


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
    rows = _read_metadata(path)
    told = rows["root"]
    try:
        model = objects.model_of(_config_of(told), custom_objects, safe_mode)
    except (TypeError, ValueError) as e:
        with serialization.CustomObjectScope(custom_objects or {}):
            model = _revived(path, rows, e, safe_mode)
    training = told.get("training_config")
    if compile and training:
        with serialization.CustomObjectScope(custom_objects or {}):
            objects.compile_like(model, hdf5_file.compile_config(_plain(training)))
    status = tf.train.Checkpoint(root=model).read(os.path.join(path, _VARIABLES))
    status.expect_partial()
    settings.run_restored(status)
    return model


def _config_of(told):
    """The configuration of a model or layer, with the shape that it was built for."""
    row = told.get("model_config") or told
    config = {"class_name": row["class_name"], "config": _plain(row.get("config"))}
    shape = _plain(told.get("build_input_shape"))
    if shape is not None:
        config["build_config"] = {"input_shape": shape}
    return config


def _revived(path, rows, error, safe_mode):
    """The model, layers of unknown classes made of their functions; the error where
    there are none, or where that was of something else."""
    unknown = {
        row["class_name"]
        for row in rows.values()
        if "class_name" in row and not _is_known(row["class_name"])
    }
    if not unknown:
        raise error
    if stack.plain_graph() is not None:
        raise ValueError(
            f"{path} has layers of the classes {sorted(unknown)}: in graphs of TensorFlow "
            "1 none are made of their functions; give the classes in custom_objects"
        ) from error

    def known(row):
        if row["class_name"] in unknown:
            return None
        made = objects.model_of(_config_of(row), None, safe_mode)
        shape = _plain(row.get("build_input_shape"))
        is_one = (
            shape and not isinstance(shape, dict) and not tf.nest.is_nested(shape[0])
        )
        made._keras.seen_shape = tf.TensorShape(shape) if is_one else shape
        return made

    revival = revived.Revival(tf.saved_model.load(path), rows, known)
    try:
        if rows["root"]["class_name"] in unknown:
            return revival.model()
        classes = {name: _finder(name, revival) for name in unknown}
        return objects.model_of(_config_of(rows["root"]), classes, safe_mode)
    except (TypeError, ValueError) as e:
        raise ValueError(
            f"{path}: the model cannot be made by its configuration ({error}), nor of its "
            f"functions ({e}); give its classes in custom_objects, or use "
            "tf.saved_model.load"
        ) from e


def _is_known(class_name):
    name = class_name.rpartition(">")[2]
    if name in ("Functional", "Sequential", "Model"):
        return True
    try:
        return serialization.find(name, layers._all(), "layer", None) is not None
    except ValueError:
        return False


def _finder(class_name, revival):
    """What stands for an unknown class in configurations."""

    def from_config(cls, config):
        return revival.next_of(class_name, config.get("name"))

    return type(
        class_name, (tf.keras.layers.Layer,), {"from_config": classmethod(from_config)}
    )


def _read_metadata(path):
    """{path of a layer or metric: what is said of it}, of the root at least."""
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
        rows = {
            "root" if node.node_id == 0 else node.node_path: json.loads(node.metadata)
            for node in saved.nodes
        }
        rows["root"]["class_name"]
    except (KeyError, TypeError, ValueError) as e:
        raise ValueError(f"{place} says nothing of a model: {e!r}") from e
    except Exception as e:  # protobuf's DecodeError has no base of Python's
        raise ValueError(f"{place} cannot be read: {e}") from e
    return rows


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
