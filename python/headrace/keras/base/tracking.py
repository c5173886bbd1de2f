"""The weights, layers, metrics and losses below a layer."""

import weakref
from itertools import chain

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import late
from headrace.context.properties import read_only
from headrace.framework import data_structures
from headrace.framework.trackable import _PLAIN, node_of
from headrace.keras import settings
from headrace.keras.base.call_context import context
from headrace.keras.base.keras_tensor import KerasTensor
from headrace.keras.classes import OfConstructor

_losing = weakref.WeakSet()  # layers that hold losses of a call


class State:
    """What a layer keeps beside its attributes, unseen by checkpoints."""

    def __init__(self):
        self.trainable = True
        self.own = []  # variables, in order of creation
        self.names = []  # of those that add_weight made, for checkpoints
        self.told_trainable = {}  # {id of a variable that add_weight was given: told}
        self.parts = []  # layers, modules and containers, in order of assignment
        self.metrics = []
        self.updates = []  # operations of plain graphs
        self.api = None  # what SavedModels hold these by
        self.call_losses = []  # tensors of add_loss
        self.loss_functions = []  # callables
        self.inbound = []  # nodes of functional graphs
        self.outbound = []  # those of other layers that take what these give
        self.arguments = ((), {})  # of the constructor
        self.spec = None
        self.checked = None  # (input spec, shape) of inputs that were right
        self.masks = None
        self.initial_weights = None
        self.batch_input_shape = None
        self.seen_shape = None  # of the first inputs
        self.has_traces = True  # whether SavedModels have its functions
        self.seen_call = None  # what a model was first called with
        # TensorSpecs of the first argument of its first call, of batches of any size
        self.seen_inputs = None
        self.functions = {}  # those that the SavedModel under way has of a layer
        self.dynamic = False  # whether its call runs eagerly alone


def _trains(layer, weight):
    """Whether it is a trained variable; custom getters also give tensors made of one.
    What add_weight was told of a variable that was there counts for that layer."""
    told = layer._keras.told_trainable.get(id(weight))
    return getattr(weight, "trainable", False) if told is None else told


def _stays(layer, weight):
    return not _trains(layer, weight)


def _trained_below(module):
    """module.trainable_variables; of a layer that has none below it, and whose class
    finds them as all do, without the steps between."""
    kind, own = type(module), getattr(module, "_keras", None)
    if (
        own is None
        or own.parts
        or own.told_trainable
        or getattr(kind, "trainable_weights", None) is not Tracking.trainable_weights
        or kind.trainable_variables is not Tracking.trainable_variables
        or kind.trainable is not Tracking.trainable
    ):
        return module.trainable_variables
    if not own.trainable:
        return []
    return [v for v in own.own if getattr(v, "trainable", False)]


def unique(items):
    """The items without later doubles, by identity."""
    if isinstance(items, list) and len(items) < 2:
        return items
    return list({id(item): item for item in items}.values())


def _is_module(value):
    return isinstance(value, tf.Module)


def start_restored(variable):
    """A variable just made and attached: a checkpoint's value is its first one."""
    operation = getattr(variable, "_restoring", None)
    if operation is not None:  # a variable of a graph
        variable._starts_with(operation)


def attach_new(node, name, variable):
    """Attaches a variable just made."""
    node.attach(name, node_of(variable))
    start_restored(variable)


def parts_of(variable):
    """The variables that a weight is made of: one, or the parts of a sharded one."""
    is_sharded = getattr(variable, "is_sharded_variable", False)
    return variable.variables if is_sharded else [variable]


class _OwnWeights(list):
    """Own weights of one kind as they are now; what is added becomes the layer's."""

    def __init__(self, layer, weights):
        super().__init__(weights)
        self._layer = layer

    def append(self, variable):
        self.extend([variable])

    def extend(self, variables):
        variables = list(variables)
        super().extend(variables)
        own = self._layer._keras.own
        own.extend(v for v in variables if not any(v is x for x in own))


def _own_weights(is_kind):
    def get(self):
        return _OwnWeights(self, [v for v in self._keras.own if is_kind(self, v)])

    def replace(self, variables):
        self._keras.own = [v for v in self._keras.own if not is_kind(self, v)]
        get(self).extend(variables)

    return property(get, replace)


class Tracking(tf.Module):
    """Base of layers: finds what is assigned to attributes."""

    _is_metric = False

    __signature__ = OfConstructor()

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls)
        object.__setattr__(self, "_keras", State())
        self._keras.arguments = (args, kwargs)
        return self

    # --- assignment ---

    def __setattr__(self, name, value):
        if isinstance(value, _PLAIN):
            self._forget(name)
            super().__setattr__(name, value)
            return
        self._forget(name)
        super().__setattr__(name, value)
        value = self.__dict__.get(name)
        if value is not None and self._setattr_tracking:
            self._remember(value)

    def __delattr__(self, name):
        self._forget(name)
        super().__delattr__(name)

    def _remember(self, value):
        state = self._keras
        if getattr(value, "is_sharded_variable", False):
            for part in value.variables:
                self._remember(part)
            return
        if isinstance(value, _headrace.VariableBase):
            if not any(v is value for v in state.own):
                state.own.append(value)
                settings.keep(value)
            return
        if isinstance(value, data_structures.NoDependency):
            return
        container = isinstance(
            value, (data_structures.ListWrapper, data_structures._DictMethods, tuple)
        )
        if container:
            for leaf in tf.nest.flatten(value):
                if isinstance(leaf, _headrace.VariableBase):
                    self._remember(leaf)
        if container or _is_module(value):
            if not any(p is value for p in state.parts):
                state.parts.append(value)
        if _is_module(value) and getattr(value, "_is_metric", False):
            state.metrics.append(value)

    def _forget(self, name):
        old = self.__dict__.get(name)
        if old is None or isinstance(old, _PLAIN):
            return
        if any(v is old for k, v in self.__dict__.items() if k != name):
            return
        state = self._keras
        state.parts = [p for p in state.parts if p is not old]
        state.own = [v for v in state.own if v is not old]
        state.metrics = [m for m in state.metrics if m is not old]

    def _track_weight(self, name, variable):
        """A variable of add_weight: known to checkpoints by `name`."""
        self._keras.own.extend(parts_of(variable))
        self._keras.names.append((name, variable))
        attach_new(node_of(self), name, variable)

    def _trackable_items(self):
        items = super()._trackable_items()
        known = {n for n, _ in items}
        return items + [i for i in self._keras.names if i[0] not in known]

    def _model_children(self):
        """What SavedModels have of it and checkpoints have not: metrics of its calls, where
        tf_keras looks for them."""
        if not self._keras.metrics:
            return self._keras.functions
        found = self._keras.api
        if found is None or len(found.layer_metrics) != len(self._keras.metrics):
            found = self._keras.api = tf.__internal__.tracking.AutoTrackable()
            found.layer_metrics = {m.name: m for m in self._keras.metrics}
        return {"keras_api": found, **self._keras.functions}

    # --- what is below ---

    def _parts_with_weights(self):
        """The parts whose weights are this layer's."""
        return self._keras.parts

    def _modules_below(self, parts=None):
        """Modules one level down, containers opened; of these parts, or of all."""
        out = []
        for part in self._keras.parts if parts is None else parts:
            if _is_module(part):
                out.append(part)
            else:
                out.extend(m for m in tf.nest.flatten(part) if _is_module(m))
        return unique(out)

    def _variables_below(self):
        """The variables of modules one level down in the order of the parts; those of a
        list, tuple or dict are its trainable ones, then the others."""
        out = []
        for part in self._parts_with_weights():
            if _is_module(part):
                out.extend(part.variables)
                continue
            held = [m for m in tf.nest.flatten(part) if _is_module(m)]
            out.extend(v for m in held for v in m.trainable_variables)
            out.extend(v for m in held for v in m.non_trainable_variables)
        return unique(out)

    def _layers_below(self):
        return [m for m in self._modules_below() if isinstance(m, Tracking)]

    def _flatten_layers(self, recursive=True, include_self=True):
        """This layer and those below, each once, parents first."""
        seen, queue = set(), [self]
        while queue:
            layer = queue.pop(0)
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            if layer is not self or include_self:
                yield layer
            if recursive or layer is self:
                queue[:0] = layer._layers_below()

    # --- weights ---

    _own_weights_last = False  # models list what is below them first
    _keras_3_names = {}  # of attributes that hold layers, where they differ

    @property
    def trainable(self):
        """Whether optimizers may change the weights: False makes all of them
        non-trainable.
        """
        return self._keras.trainable

    @trainable.setter
    def trainable(self, value):
        for layer in self._flatten_layers():
            layer._keras.trainable = bool(value)

    def _gather(self, own, below):
        """Own weights that `own` accepts and those of modules that `below` gives."""
        weights = self._keras.own
        mine = [v for v in weights if own(self, v)] if weights else []
        if not self._keras.parts:
            return unique(mine)
        # Models and metrics count what metrics of theirs hold, other layers do not.
        counts_metrics = self._own_weights_last or self._is_metric
        others = [
            v
            for m in self._modules_below(self._parts_with_weights())
            if counts_metrics or not getattr(m, "_is_metric", False)
            for v in below(m)
        ]
        return unique(others + mine if self._own_weights_last else mine + others)

    # Layers that wrap others are written with these lists of Keras', and change them.
    _trainable_weights = _own_weights(_trains)
    _non_trainable_weights = _own_weights(_stays)

    @property
    def trainable_weights(self):
        """A list of the weights that training changes: own ones, then those of
        sublayers.

        Empty where `trainable` is False.
        """
        if not self.trainable:
            return []
        return self._gather(_trains, _trained_below)

    @property
    def non_trainable_weights(self):
        """A list of the weights that training leaves: all of them where `trainable` is
        False.
        """
        if not self.trainable:
            return self._gather(lambda _, v: True, lambda m: m.variables)
        return self._gather(_stays, lambda m: m.non_trainable_variables)

    @property
    def weights(self):
        """A list of all weights, the trainable ones first; each once."""
        return unique(self.trainable_weights + self.non_trainable_weights)

    trainable_variables = read_only(
        "trainable_weights", "The same as trainable_weights."
    )

    non_trainable_variables = read_only(
        "non_trainable_weights", "The same as non_trainable_weights."
    )

    variables = read_only("weights", "The same as weights.")

    @property
    def submodules(self):
        """A tuple of all layers and modules under this one, at any depth."""
        return tuple(self._flatten(predicate=_is_module))

    def _held_beside(self):
        """Own weights and the layers below, under Keras' names: modules that hold layers
        find there what is in no attribute (those of Sequential, of a graph of layers).
        """
        return {
            "_non_trainable_weights": list(self._non_trainable_weights),
            "_self_tracked_trackables": self._modules_below(),
            "_trainable_weights": list(self._trainable_weights),
        }

    # --- losses and metrics ---

    def add_loss(self, losses, **kwargs):
        """Adds scalars (inside call) or callables that give them; to a functional model
        KerasTensors, too, which are computed in each of its calls.

        ValueError for other values outside of a call.
        """
        kwargs.pop("inputs", None)
        if kwargs:
            raise TypeError(f"Unknown keyword arguments: {kwargs.keys()}")
        for loss in tf.nest.flatten(losses):
            if callable(loss):
                self._keras.loss_functions.append(loss)
            elif isinstance(loss, KerasTensor):
                self._add_keras_loss(loss)
            elif loss is not None:
                if not (context.names or isinstance(loss, _headrace.SymbolicTensor)):
                    raise ValueError(
                        "Expected a symbolic Tensors or a callable for the loss value. "
                        "Please wrap your loss computation in a zero argument `lambda`."
                    )
                self._keras.call_losses.append(tf.convert_to_tensor(loss))
                _losing.add(self)

    def _add_keras_loss(self, loss):
        """A loss of a model that is being described, of which a layer knows nothing:
        training says so."""
        self._keras.loss_functions.append(lambda: loss)

    def _clear_losses(self):
        if _losing:
            for layer in self._flatten_layers():
                layer._keras.call_losses.clear()
                _losing.discard(layer)

    @property
    def losses(self):
        """A list of what add_loss() was given here and below, and of regularizers'
        penalties.

        Functions are called anew at each access; tensors are those of the last call.
        """
        found = []
        for layer in self._flatten_layers():
            state = layer._keras
            found.extend(state.call_losses)
            for function in state.loss_functions:
                value = function()
                if value is not None:
                    found.append(value)
        return found

    @property
    def metrics(self):
        """A list of the metrics of this layer and those below it; each once."""
        return unique(m for layer in self._flatten_layers() for m in layer._own_metrics)

    @property
    def _own_metrics(self):
        """Those that are attributes or stand in lists and dicts of them."""
        held = (m for m in self._layers_below() if m._is_metric)
        return unique(chain(self._keras.metrics, held))

    def add_metric(self, value, name=None, **kwargs):
        """Keeps the mean of a tensor as a metric of that name; in a functional model also
        of a KerasTensor, which is computed in each of its calls.

        `aggregation`, "mean" or None, is kept in configurations. ValueError for a layer
        that gets a KerasTensor.
        """
        aggregation = kwargs.pop("aggregation", None)
        if kwargs:
            raise TypeError(
                f"Unknown keyword arguments: {kwargs.keys()}. Expected `aggregation`."
            )
        if name is None:
            raise ValueError(
                "Please provide a name for your metric like "
                "`self.add_metric(tf.reduce_sum(inputs), name='mean_activation')`"
            )
        if isinstance(value, KerasTensor):
            self._add_keras_metric(value, name, aggregation)
            return
        state = self._keras
        found = next((m for m in state.metrics if m.name == name), None)
        if found is None:
            with tf.init_scope():
                found = late.Mean(name=name)
            state.metrics.append(found)
        # Nobody runs what describes a model; in a strategy's scope such an update would be
        # one across replicas.
        if not context.describes:
            found.update_state(value)

    def _add_keras_metric(self, value, name, aggregation):
        raise ValueError(
            f"{self._name} cannot keep {value!r} as the metric {name}: KerasTensors are "
            "for `add_metric` of a functional model"
        )
