"""tf.keras.Model."""

import contextlib
import json
import os

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import late, stack
from headrace.framework.trackable import node_of, owner_of
from headrace.keras import serialization, settings
from headrace.keras.base import functional_call
from headrace.keras.base.base_layer import Layer, any_batch_spec, shapes_of
from headrace.keras.base.tracking import unique
from headrace.keras.engine import export, export_archive, hdf5, objects
from headrace.keras.engine.training import Trainer

_FORGOTTEN = (
    "It looks like you are subclassing `Model` and you forgot to call "
    "`super().__init__()`. Always start with this line."
)


class Model(Trainer, Layer):
    """A layer that can be trained, evaluated and saved.

    Made of inputs and outputs (functional), or by subclassing: layers in
    `__init__`, the computation in `call`.
    """

    _saved_identifier = "_tf_keras_model"
    _keras_module = "keras"
    _own_weights_last = True

    def __new__(cls, *args, **kwargs):
        if cls is Model and _names_graph(args, kwargs):
            return functional.Functional.__new__(functional.Functional, *args, **kwargs)
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, *args, **kwargs):
        object.__setattr__(self, "_ready", True)
        if _names_graph(args, kwargs):
            self._become_functional(args, kwargs)
            return
        if args and args != (self,):  # super().__init__(self), as some programs have it
            raise TypeError(f"Model takes inputs and outputs, or neither: got {args}")
        super().__init__(**kwargs)
        self._init_training()

    def _become_functional(self, args, kwargs):
        """For subclasses that hand inputs and outputs to Model.__init__."""
        cls = type(self)
        mixed = type(
            cls.__name__, (cls, functional.Functional), {"__module__": cls.__module__}
        )
        self.__class__ = mixed
        functional.Functional.__init__(self, *args, **kwargs)

    def __setattr__(self, name, value):
        if "_ready" not in self.__dict__ and self._setattr_tracking:
            if isinstance(value, (Layer, _headrace.VariableBase)):
                raise RuntimeError(_FORGOTTEN)
        super().__setattr__(name, value)

    # --- structure ---

    _is_graph_network = property(
        lambda self: getattr(self, "_layer_graph", None) is not None,
        doc="Whether the model is a graph of layers, by Keras' name for it.",
    )

    @property
    def layers(self):
        """A list of the layers that are attributes,
        in the order of their assignment."""
        return [x for x in self._layers_below() if not getattr(x, "_is_metric", False)]

    @layers.setter
    def layers(self, _):
        raise AttributeError(
            "`Model.layers` attribute is reserved and should not be used. Please use "
            "another name."
        )

    def get_layer(self, name=None, index=None):
        """The layer of a name, or the one at an index of `layers`.

        ValueError unless just one of both is given and there is such a layer.
        """
        if index is not None and name is not None:
            raise ValueError(
                "Provide only a layer name or a layer index. Received: "
                f"index={index}, name={name}."
            )
        layers = self.layers
        if index is not None:
            if len(layers) <= index:
                raise ValueError(
                    f"Was asked to retrieve layer at index {index} but model only has "
                    f"{len(layers)} layers."
                )
            return layers[index]
        if name is None:
            raise ValueError(
                "Provide either a layer name or layer index at `get_layer`."
            )
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(
            f"No such layer: {name}. Existing layers are: {[x.name for x in layers]}."
        )

    inputs = outputs = None  # but for models that are graphs of layers

    def reset_states(self):
        """Sets what stateful layers remember from batch to batch to zeros."""
        for layer in self._flatten_layers(include_self=False):
            if layer.stateful and hasattr(layer, "reset_states"):
                layer.reset_states()

    @property
    def state_updates(self):
        """A list of the operations of a graph by which stateful layers remember what
        came, which all runs of the model make."""
        layers = [layer for layer in self._flatten_layers() if layer.stateful]
        return [update for layer in layers for update in layer._keras.updates]

    def _is_made(self):
        """Whether a `build` that makes weights has run, where there is one."""
        makes = type(self).build is not Model.build and not self._keras.dynamic
        return self.built or not makes

    def _check_made(self):
        """ValueError before a `build` that makes weights has run."""
        if not self._is_made():
            raise ValueError(
                f"Weights for model {self.name!r} have not yet been created. Weights are "
                "created when the model is first called on inputs or `build()` is called "
                "with an `input_shape`."
            )

    @property
    def trainable_weights(self):
        """As of layers; ValueError before they are made."""
        self._check_made()
        return super().trainable_weights

    @property
    def non_trainable_weights(self):
        """As of layers; ValueError before they are made."""
        self._check_made()
        return super().non_trainable_weights

    @property
    def weights(self):
        """A list of all weights in the order of the layers; ValueError before they are
        made."""
        self._check_made()
        below = self._variables_below()
        own = self._keras.own  # what is the model's comes last
        mine = [v for v in own if v.trainable] + [v for v in own if not v.trainable]
        return unique(below + mine)

    def build(self, input_shape):
        """Makes the weights by calling the model on symbolic inputs."""
        if type(self).call is Layer.call or input_shape is None:
            self.built = True
            return
        self.built = True
        seen = self._keras.seen_call
        try:
            functional_call.run_shapes(self, input_shape, self.dtype)
            self._keras.seen_call = seen
        except (TypeError, ValueError) as e:
            self.built = False
            raise ValueError(
                "You cannot build your model by calling `build` if your layers do not "
                "support float type inputs. Instead, in order to instantiate and build "
                "your model, call your model on real tensor data (of the correct dtype)."
                f"\n\nThe actual error from `call` is: {e}."
            ) from e

    def call(self, inputs, training=None, mask=None):
        """The computation: subclasses define it. NotImplementedError here."""
        raise NotImplementedError(
            "Unimplemented `tf.keras.Model.call()`: if you intend to create a `Model` "
            "with the Functional API, please provide `inputs` and `outputs` arguments. "
            "Otherwise, subclass `Model` with an overridden `call()` method."
        )

    def _begin_with(self, shape, dtype):
        """Tells models that know no inputs yet what the first data are."""

    def _build_for(self, inputs):
        """A subclass without a `build` of its own is built by its first call."""
        if self._keras.seen_inputs is None:
            self._keras.seen_inputs = tf.nest.map_structure(any_batch_spec, inputs)
        if type(self).build is Model.build:
            self._keras.seen_shape = shapes_of(inputs)
            self.built = True
        else:
            super()._build_for(inputs)

    def _see(self, inputs):
        """Nothing: what a model that was built takes, its graph or its calls say."""

    def _run_on_values(self, args, kwargs):
        if self._keras.seen_call is None:
            self._keras.seen_call = export.spec_of_call(args, kwargs)
        return super()._run_on_values(args, kwargs)

    def _set_save_spec(self, inputs, args=None, kwargs=None):
        """Says what save_spec() tells, and SavedModels take, of a model that has not been
        called: the TensorSpecs of its inputs, in their structure, of what follows and of
        keyword arguments. What a call, or this, said before stays. Programs that define
        models ahead of their first call use it."""
        if self._keras.seen_call is None:
            rest = list(args or ())
            self._keras.seen_call = export.spec_of_call([inputs, *rest], kwargs or {})
            self._keras.seen_inputs = tf.nest.map_structure(any_batch_spec, inputs)

    def save_spec(self, dynamic_batch=True):
        """(a list of arguments, a dict of keyword arguments): what the model was first
        called with, or is made of, as tf.TensorSpecs; without `training`, None where
        there was no call. Sizes of batches are open, unless `dynamic_batch` is False.
        """
        return export.call_of(self, dynamic_batch)

    def export(self, filepath):
        """Writes a SavedModel for serving alone, whose only function, also the default
        signature, is what the model computes of its inputs; prints what it has.

        ValueError for models that have not been called.
        """
        export_archive.export_model(self, filepath)

    def get_weight_paths(self):
        """{path: variable} of all variables that attributes lead to, with dots between
        their names, the shortest path of each."""
        paths = {}
        seen, waiting = {id(self)}, [((), self)]
        for path, owner in waiting:  # which grows
            if isinstance(owner, tf.Variable):
                paths[".".join(path)] = owner
            for name, node in node_of(owner).children():
                child = owner_of(node)
                if child is not None and id(child) not in seen:
                    seen.add(id(child))
                    named = not path and name.startswith(("layer-", "layer_with_"))
                    waiting.append(((*path, child.name if named else name), child))
        return paths

    def _model_children(self):
        """What SavedModels have of it and checkpoints have not."""
        traces = export.children_of(self) if self._keras.has_traces else {}
        return {**super()._model_children(), **traces}

    def _repr_html_(self):
        """What notebooks show: the table of summary(), once the model is built."""
        return summary.as_html(self)

    def summary(
        self,
        line_length=None,
        positions=None,
        print_fn=None,
        expand_nested=False,
        show_trainable=False,
        layer_range=None,
    ):
        """Prints a table of the layers: name, kind, shape of the output and parameters.

        `line_length` is in characters; `positions` are where the columns end, as parts
        of it or in characters; `print_fn` gets each line, print() otherwise; `layer_range`:
        patterns of the names of the first and the last layer that are shown. ValueError
        before the model is built, and for patterns that fit no layer.
        """
        if not self.built:
            raise ValueError(
                "This model has not yet been built. Build the model first by calling "
                "`build()` or by calling the model on a batch of data."
            )
        summary.show(
            self,
            line_length,
            positions,
            print_fn,
            expand_nested,
            show_trainable,
            layer_range,
        )

    # --- weights on disk ---

    def save_weights(self, filepath, overwrite=True, save_format=None, options=None):
        """Writes the weights: a TensorFlow checkpoint, which `checkpoint` beside it
        names, or an HDF5 file where the name ends in .h5 (or `save_format` is "h5").

        `.weights.h5` is the layout of Keras 3, others that of Keras 2. Neither holds
        the optimizer's state. Without `overwrite` it asks on the terminal before it
        replaces a file. ValueError before the weights are made, ImportError for HDF5
        without h5py.
        """
        path = os.fspath(filepath)
        _check_format(path, save_format)
        self._assert_weights_created()
        in_hdf5 = hdf5.is_name(path, save_format)
        old = path if in_hdf5 else path + ".index"
        if not whole.may_write(old, overwrite):
            return
        if in_hdf5:
            hdf5.save(self, path)
            return
        with _session():
            tf.train.Checkpoint(root=self).write(path, options)
        name = os.path.basename(path)
        folder = os.path.dirname(path)
        full = os.path.join(folder, name)
        _headrace.write_checkpoint_state(folder, full, [full], "checkpoint")

    def load_weights(self, filepath, skip_mismatch=False, by_name=False, options=None):
        """Reads a checkpoint; values of weights that are yet to be made wait for them.

        Returns its status, as tf.train.Checkpoint.read() does. HDF5 files (.h5) are
        read at once, by the order of layers or, with `by_name`, by their names; then
        `skip_mismatch` leaves out layers whose weights differ. ValueError where they do
        not fit, and before the weights are made.
        """
        path = os.fspath(filepath)
        _check_format(path, None)
        if skip_mismatch and not (by_name or path.endswith(".weights.h5")):
            raise ValueError(
                "When calling model.load_weights, skip_mismatch can only be set to True "
                "when by_name is True."
            )
        if hdf5.is_name(path):
            if not self.built:
                raise ValueError(
                    "Unable to load weights saved in HDF5 format into a subclassed Model "
                    "which has not created its variables yet. Call the Model first, then "
                    "load the weights."
                )
            return hdf5.load(self, path, by_name, skip_mismatch)
        if by_name:
            raise NotImplementedError(
                "Weights may only be loaded based on topology into Models when loading "
                "TensorFlow-formatted weights (got by_name=True to load_weights)."
            )
        status = tf.train.Checkpoint(root=self).read(path, options)
        settings.run_restored(status)
        return status

    def _assert_weights_created(self):
        own_build = type(self).build is not Model.build
        if not self.built and (isinstance(self, tf.keras.Sequential) or own_build):
            raise ValueError(
                f"Weights for model '{self.name}' have not yet been created. Weights are "
                "created when the model is first called on inputs or `build()` is called "
                "with an `input_shape`."
            )

    def save(self, filepath, overwrite=True, save_format=None, **kwargs):
        """Writes the whole model, as tf.keras.models.save_model does: a `.keras` file,
        HDF5 (`.h5`), else a SavedModel, with the call traced for training and not and
        `signatures` (by default what it predicts).

        tf.keras.models.load_model gives it back.
        """
        whole.save_model(self, filepath, overwrite, save_format, **kwargs)

    # --- configuration ---

    def get_config(self):
        """The arguments of the constructor, where they are known,
        else an empty dict."""
        config = self._recorded_config()
        return {} if config is None else config

    def get_compile_config(self):
        """What compile() was told, for compile_from_config(); None before it was."""
        return objects.of_compiled(self)

    def compile_from_config(self, config):
        """Compiles it as get_compile_config() told, and makes the optimizer's
        variables."""
        objects.compile_like(self, config)

    def to_json(self, **kwargs):
        """The config as JSON, for model_from_json(); without weights.

        Further arguments are json.dumps'.
        """
        config = {
            "class_name": type(self).__name__,
            "config": self.get_config(),
            "keras_version": "2.21.0",
            "backend": "tensorflow",
        }
        return json.dumps(config, default=objects.jsonable, **kwargs)

    def to_yaml(self, **kwargs):
        """RuntimeError: models are no longer written as YAML."""
        raise RuntimeError(
            "Method `model.to_yaml()` has been removed due to security risk of arbitrary "
            "code execution. Please use `model.to_json()` instead."
        )

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A new model, without trained weights, of what get_config() gave.

        Configs of functional models give these; a subclass with a constructor gets the
        config as arguments.
        """
        if not serialization.overrides(cls, "__init__"):
            of_graph = functional.Functional.from_config.__func__
            return of_graph(
                functional.Functional if cls is Model else cls, config, custom_objects
            )
        with serialization.CustomObjectScope(custom_objects or {}):
            return cls(**config)


def _session():
    """A context whose default session is Keras' own, in a graph."""
    if stack.plain_graph() is None:
        return contextlib.nullcontext()
    return late.keras_session().as_default()


def _names_graph(args, kwargs):
    """True for the arguments of a functional model."""
    return (
        len(args) >= 2
        or (len(args) == 1 and "outputs" in kwargs)
        or ("inputs" in kwargs and "outputs" in kwargs)
    )


def _check_format(path, save_format):
    if save_format == "keras" or (save_format is None and path.endswith(".keras")):
        raise NotImplementedError(
            f"{path}: .keras files hold whole models, which save and load_model are for; "
            "for weights use a name that ends in .weights.h5, or one without an ending "
            "for a TensorFlow checkpoint"
        )
    if save_format not in (None, "tf", "tensorflow", "h5", "hdf5"):
        raise ValueError(
            f"Unknown format: `{save_format}`. Was expecting one of "
            '{"tf", "h5", "keras"}.'
        )


# Last, for they have models of their own kinds.
from headrace.keras.engine import functional, summary, whole  # noqa: E402
