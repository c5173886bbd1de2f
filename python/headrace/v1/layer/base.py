"""tf.compat.v1.layers.Layer: a layer whose variables belong to variable scopes."""

import contextlib
import copy
import threading
import weakref

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack
from headrace.framework.name_scopes import name_scope
from headrace.framework.support import signatures
from headrace.keras import serialization, settings
from headrace.keras.base import base_layer, tracking
from headrace.keras.base.call_context import spec_of
from headrace.keras.classes import with_constructor
from headrace.ops.random import initializers_v1
from headrace.v1 import collections
from headrace.v1.variable_scope import (
    VariableScope,
    default_initializer,
    get_variable,
    get_variable_scope,
    variable_scope,
)

_KEYS = collections.GraphKeys
_IN_ALL_CONFIGS = ("name", "trainable", "dtype")


def takes(text):
    """keras.classes.takes() for layers and cells; "zeros" and "ones" in the text are
    initializers."""
    first = {"zeros": initializers_v1.Zeros(), "ones": initializers_v1.Ones()}
    parameters = signatures.from_text(f"self, {text}", **first)

    def decorate(cls):
        cls._config_names = [
            p.name
            for p in parameters[1:]
            if p.kind is not p.VAR_KEYWORD and p.name not in _IN_ALL_CONFIGS
        ]
        return with_constructor(cls, parameters)

    return decorate


class _Style(threading.local):
    keras = False  # whether layers are named as Keras names them, and never share


_style = _Style()
# Of each graph: how often a name was taken under the name of a variable scope.
_names_taken = weakref.WeakKeyDictionary()


class keras_style_scope:  # noqa: N801  (upstream's name)
    """A context whose layers make their own variables, named as in Keras, whatever
    variable scope is in force."""

    def __enter__(self):
        self._outer, _style.keras = _style.keras, True

    def __exit__(self, *error):
        _style.keras = self._outer
        return False


def set_keras_style():
    """Layers that are made from now on are as in keras_style_scope()."""
    _style.keras = True


def _new_name(base):
    """base_1, base_2, …: not yet taken in the graph's variable scope of here; in Keras'
    style in the graph."""
    taken = _names_taken.setdefault(stack.default_graph(), {})
    key = ("" if _style.keras else get_variable_scope().name, base)
    taken[key] = taken.get(key, 0) + 1
    return f"{base}_{taken[key]}"


def add_to_collection(elements, key):
    """Adds what a collection of the graph does not have yet."""
    found = stack.default_graph().get_collection_ref(key)
    known = {id(element) for element in found}
    found.extend(e for e in tracking.unique(elements) if id(e) not in known)


class Layer(base_layer.Layer):
    """Computation with variables that get_variable makes, or finds where it is to reuse
    them, under the layer's variable scope. The scope is entered by the layer's name, or a
    new one by its kind, when the layer is first called.

    The dtype is that of the first inputs unless it is given.
    """

    # Subclasses of programs may leave out the constructor.
    built = False
    _scope = _reuse = _graph = _name = _current_scope = None
    _keras_style = False
    _dtype = None
    _config_names = ()

    def __init__(self, trainable=True, name=None, dtype=None, **kwargs):
        scope, self._reuse = kwargs.pop("_scope", None), kwargs.pop("_reuse", None)
        self._keras_style = _style.keras
        if self._keras_style:
            self._only_without("scope", scope)
            self._only_without("reuse", self._reuse)
        kwargs["autocast"] = False
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)
        self._dtype = None if dtype is None else self._dtype
        if scope:
            with variable_scope(scope) as self._scope:
                pass

    def _init_name(self, name):
        if name is not None and not isinstance(name, (str, VariableScope)):
            raise TypeError(f"Expected `name` argument to be a string, but got: {name}")
        name = getattr(name, "name", name)
        self._base_name = name or settings.snake_case(type(self).__name__)
        return name or _new_name(self._base_name)

    @staticmethod
    def _only_without(what, value):
        if value is not None:
            raise ValueError(
                f"{what} argument not allowed when keras style layers are enabled, but "
                f"saw: {value}"
            )

    def __setattr__(self, name, value):
        # Layers in attributes are not this one's: programs list their variables.
        object.__setattr__(self, name, value)

    def __deepcopy__(self, memo):
        cls = type(self)
        memo[id(self)] = made = cls.__new__(cls)
        for name, value in vars(self).items():
            if not name.startswith("_self_"):
                shared = name in ("_scope", "_graph", "_current_scope", "_keras")
                made.__dict__[name] = value if shared else copy.deepcopy(value, memo)
        state, own = tracking.State(), self._keras
        state.__dict__.update((k, copy.copy(v)) for k, v in vars(own).items())
        object.__setattr__(made, "_keras", state)
        for name, variable in state.names:
            made._track_trackable(variable, name, overwrite=True)
        return made

    # --- what it is ---

    @property
    def dtype(self):
        """The name of the dtype of the weights; None before it is known."""
        return None if self._dtype is None else self._dtype.name

    compute_dtype = variable_dtype = dtype

    @property
    def graph(self):
        """The graph that the layer was first called in; RuntimeError eagerly."""
        if _headrace.is_eager():
            raise RuntimeError("Layer.graph not supported when executing eagerly.")
        return self._graph

    @property
    def scope_name(self):
        """The name of the variable scope: known from the first call on, before it
        ValueError."""
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self._name}" '
                "has not been used yet. The scope name  is determined the first time "
                "the layer instance is called. You must therefore call the layer before "
                "querying `scope_name`."
            )
        return self._scope.name

    def get_config(self):
        """The constructor's arguments as a dict, for from_config()."""
        config = {"name": self._name, "trainable": self.trainable, "dtype": self.dtype}
        return {**config, **serialization.config_of(self)}

    # --- scopes ---

    def _set_scope(self, scope=None):
        if self._scope is not None:
            return
        if self._keras_style:
            self._only_without("scope", scope)
            with name_scope(self._name) as names:
                self._scope = VariableScope(None, names[:-1], name_scope=names)
            return
        if self._reuse:
            entered = variable_scope(self._base_name if scope is None else scope)
        else:
            entered = variable_scope(scope, default_name=self._base_name)
        with entered as self._scope:
            pass

    def _entered(self, reuse):
        """A context in which get_variable makes, or finds, the layer's variables."""
        return _Entered(self, reuse)

    def _name_scope(self):
        """The name scope of the layer's operations."""
        return self._current_scope.original_name_scope

    # --- weights ---

    @signatures.having(
        "self, name, shape, dtype=None, initializer=None, regularizer=None, "
        "trainable=None, constraint=None, use_resource=None, synchronization=AUTO, "
        "aggregation=NONE, partitioner=None, **kwargs",
        AUTO=tf.VariableSynchronization.AUTO,
        NONE=tf.VariableAggregation.NONE,
    )
    def add_weight(self, name, shape, dtype, initializer, regularizer, **given):
        """The variable of that name in the layer's scope, made or found; checkpoints of
        objects know it by its name.

        Without an initializer it is the scope's, else one by the dtype: Glorot's for
        floats, zeros for others. Raises ValueError as get_variable does.
        """
        for key in list(given):
            if key in ("experimental_autocast", "caching_device", "tracked_as"):
                del given[key]
        on_read = given["synchronization"] == tf.VariableSynchronization.ON_READ
        if on_read and given["trainable"]:
            raise ValueError(
                "Synchronization value can be set to VariableSynchronization.ON_READ "
                "only for non-trainable variables. You have specified trainable=True "
                "and synchronization=VariableSynchronization.ON_READ."
            )
        if given["trainable"] is None:
            given["trainable"] = not on_read
        given["trainable"] = bool(given["trainable"] and self.trainable)
        dtype = dtype or self._dtype or settings.floatx()
        self._set_scope()
        with self._entered(self.built or self._reuse) as scope:
            made_before = {id(v) for v in self._known_variables()}
            variable = self._get(scope, name, shape, dtype, initializer, given)
            if regularizer is not None and id(variable) not in made_before:
                with name_scope(scope.original_name_scope):
                    self._regularize(variable, regularizer, name)
        self._remember_weight(name, variable)
        return variable

    def add_variable(self, *args, **kwargs):
        """add_weight() under its older name."""
        return self.add_weight(*args, **kwargs)

    def _known_variables(self):
        if _headrace.is_eager():
            return ()
        return stack.default_graph().get_collection(_KEYS.GLOBAL_VARIABLES)

    def _get(self, scope, name, shape, dtype, initializer, given):
        if not self._keras_style:
            if initializer is None and scope.initializer is None:
                initializer = default_initializer(tf.as_dtype(dtype))
            options = dict(given, initializer=initializer)
            return get_variable(name, shape, dtype, **options)
        sizes = tf.TensorShape(shape).as_list()
        make = initializer or default_initializer(tf.as_dtype(dtype))
        for other in ("partitioner", "use_resource"):
            given.pop(other)
        with stack.init_scope(), name_scope(scope.original_name_scope):
            return tf.compat.v1.Variable(
                lambda: make(sizes, dtype=dtype), dtype=dtype, name=name, **given
            )

    def _remember_weight(self, name, variable):
        """Lists what get_variable gave: a variable, its parts, or what a custom getter
        made of one, which no checkpoint holds."""
        parts = getattr(variable, "_get_variable_list", None)
        for part in [variable] if parts is None else parts():
            if not any(v is part for v in self._keras.own):
                self._keras.own.append(part)
        if parts is None and not isinstance(variable, _headrace.Tensor):
            self._keras.names.append((name, variable))
            self._track_trackable(variable, name, overwrite=True)
            tracking.start_restored(variable)

    def _regularize(self, variable, penalty, name):
        if _headrace.is_eager():
            super()._regularize(variable, penalty, name)
            return
        parts = getattr(variable, "_get_variable_list", None)
        for part in [variable] if parts is None else parts():
            with stack.init_scope(), name_scope(f"{name}/Regularizer"):
                loss = penalty(part)
            if loss is not None:
                self._keras.loss_functions.append(lambda loss=loss: loss)
                add_to_collection([loss], _KEYS.REGULARIZATION_LOSSES)

    # --- losses and updates ---

    def add_loss(self, losses, inputs=None):
        """Adds losses, tensors or functions of them, to the layer's; in a graph to the
        collection REGULARIZATION_LOSSES, too."""
        before = {id(loss) for loss in self.losses}
        super().add_loss(losses)
        if not _headrace.is_eager():
            new = [loss for loss in self.losses if id(loss) not in before]
            add_to_collection(new, _KEYS.REGULARIZATION_LOSSES)

    def _penalize(self, inputs, outputs):
        with tf.name_scope("ActivityRegularizer"):
            super()._penalize(inputs, outputs)

    def _notes_updates(self):
        return not _headrace.is_eager()

    _graph_inputs = property(lambda self: self.__dict__.setdefault("_called_with", []))

    # --- calling ---

    def _scope_of_operations(self):
        return contextlib.nullcontext()  # __call__ entered it already

    def __call__(self, inputs, *args, **kwargs):
        scope = kwargs.pop("scope", None)
        if scope is not None and self._keras_style:
            self._only_without("scope", scope)
        self._set_scope(scope)
        self._infer_dtype(inputs)
        if self._graph is None and not _headrace.is_eager():
            self._graph = stack.default_graph()
        with self._entered(True if self.built else self._reuse):
            if scope is not None and "scope" in spec_of(self).accepted:
                kwargs["scope"] = scope
            outputs = super().__call__(inputs, *args, **kwargs)
        if not _headrace.is_eager():
            self._graph_inputs.extend(
                t for t in tf.nest.flatten(inputs) if isinstance(t, _headrace.Tensor)
            )
            add_to_collection(self.updates, _KEYS.UPDATE_OPS)
        return outputs

    def _infer_dtype(self, inputs):
        if self._dtype is None:
            found = next(iter(tf.nest.flatten(inputs)), None)
            dtype = getattr(found, "dtype", settings.floatx())
            self._dtype = tf.as_dtype(dtype).base_dtype

    def apply(self, *args, **kwargs):
        """The same as calling the layer."""
        return self(*args, **kwargs)

    def _settle_dtype(self):
        """What is built before it is called has the usual dtype."""
        if self._dtype is None:
            self._dtype = tf.as_dtype(settings.floatx())

    def _build_now(self, shapes):
        self._settle_dtype()
        self.build(shapes)
        self.built = True
        self._keras.seen_shape = shapes
        if self._keras.initial_weights is not None:
            self.set_weights(self._keras.initial_weights)
            self._keras.initial_weights = None


class _Entered:
    """The variable scope and the name scope of a layer, entered again."""

    def __init__(self, layer, reuse):
        self._layer, self._outer = layer, layer._current_scope
        self._scope = variable_scope(
            layer._scope, reuse=reuse, auxiliary_name_scope=False
        )
        self._names = None

    def __enter__(self):
        scope = self._scope.__enter__()
        try:
            self._layer._current_scope = scope
            names = self._layer._name_scope()
            if names is not None:
                self._names = name_scope(names)
                self._names.__enter__()
        except BaseException:
            self._scope.__exit__(None, None, None)
            raise
        return scope

    def __exit__(self, *error):
        if self._names is not None:
            self._names.__exit__(*error)
        self._layer._current_scope = self._outer
        return self._scope.__exit__(*error)
