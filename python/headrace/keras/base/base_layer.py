"""tf.keras.layers.Layer."""

import inspect
import warnings

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework.name_scopes import get_current_name_scope, name_scope
from headrace.keras import (
    activation,
    constraint,
    initializer,
    policy,
    regularizer,
    serialization,
    settings,
)
from headrace.keras.base import call_errors, calls, functional_call, graph_updates
from headrace.keras.base import input_spec as input_specs
from headrace.keras.base import own_variables, tracking
from headrace.keras.base.call_context import context, spec_of

_EagerTensor = _headrace.EagerTensor
_ALLOWED = ("input_dim", "input_shape", "batch_input_shape", "batch_size", "weights")
_ALLOWED += ("activity_regularizer", "autocast", "implementation")


_KEPT = {  # what arguments whose names end so stand for
    "activation": activation.get,
    "initializer": initializer.get,
    "regularizer": regularizer.get,
    "constraint": constraint.get,
}


class Layer(graph_updates.Updating, calls.Calls, own_variables.Kept, tracking.Tracking):
    """Computation with weights: `build` makes them, `call` computes."""

    _keras_module = "keras.layers"
    _saved_identifier = "_tf_keras_layer"  # what SavedModels call the kind of object
    supports_masking = False
    input_spec = None
    _any_dynamic = False  # whether any layer of this process is
    _keeps_shape = False  # whether outputs always have the inputs' shape
    _config_without = ("trainable", "name", "dtype", "dynamic")  # all have them
    _read_in = None  # what variables are read in, unless it is what they are kept in

    def __init__(self, trainable=True, name=None, dtype=None, dynamic=False, **kwargs):
        for key in kwargs:
            if key not in _ALLOWED:
                raise TypeError("Keyword argument not understood:", key)
        state = self._keras
        if dynamic:
            state.dynamic = Layer._any_dynamic = True
        if not (isinstance(trainable, bool) or trainable in (0, 1)):
            raise TypeError(
                f"Expected `trainable` argument to be a boolean, but got: {trainable}"
            )
        state.trainable = bool(trainable)
        self._name = self._init_name(name)
        self.built = False
        self._set_policy(policy.of(dtype))
        self._autocast = kwargs.get("autocast", True)
        self.activity_regularizer = regularizer.get(
            kwargs.pop("activity_regularizer", None)
        )
        state.initial_weights = kwargs.get("weights")
        state.batch_input_shape = self._declared_shape(kwargs)

    def _set_policy(self, chosen):
        self._dtype_policy = chosen
        if chosen.compute_dtype is None:
            raise NotImplementedError(
                f'{type(self).__name__}: the dtype policy "{chosen.name}", which takes '
                "the dtype of the first inputs, is not supported"
            )
        self._dtype = tf.as_dtype(chosen.variable_dtype)
        self._computed = tf.as_dtype(chosen.compute_dtype)
        self._read_in = None if self._computed == self._dtype else self._computed

    def _kept(self, name, value):
        """What layers keep of an argument of that name."""
        if name == "data_format":
            return settings.data_format(value)
        get = _KEPT.get(name.rpartition("_")[2])
        return value if get is None else get(value)

    def _init_name(self, name):
        if name is None:
            return settings.unique_name(settings.snake_case(type(self).__name__))
        if not isinstance(name, str):
            raise TypeError(f"Expected `name` argument to be a string, but got: {name}")
        return name

    @staticmethod
    def _declared_shape(kwargs):
        if "input_dim" in kwargs and "input_shape" not in kwargs:
            kwargs["input_shape"] = (kwargs["input_dim"],)
        if "batch_input_shape" in kwargs:
            return tuple(kwargs["batch_input_shape"])
        if "input_shape" in kwargs:
            shape = kwargs["input_shape"]
            shape = (shape,) if isinstance(shape, int) else tuple(shape)
            return (kwargs.get("batch_size"), *shape)
        return None

    # --- what it is ---

    @property
    def dynamic(self):
        """Whether it, or a layer below, was made with dynamic=True: its call is run
        eagerly alone, so that compute_output_shape tells the shapes of its outputs."""
        if not Layer._any_dynamic:
            return False  # each step of training asks
        return any(layer._keras.dynamic for layer in self._flatten_layers())

    def __repr__(self):
        name, built = getattr(self, "_name", None), getattr(self, "built", False)
        return f"<{type(self).__name__} name={name}, built={built}>"

    name = read_only("_name", "The name, which its weights' names start with: a str.")

    dtype = read_only("_dtype.name", "The same as variable_dtype.")

    compute_dtype = read_only(
        "_computed.name",
        "The name of the dtype that inputs are cast to and outputs have.",
    )

    _compute_dtype = compute_dtype  # layers of programs ask for these two
    _compute_dtype_object = read_only("_computed", "compute_dtype as a tf.DType.")

    variable_dtype = read_only(
        "_dtype.name",
        'The name of the dtype that weights are kept in, such as "float32".',
    )

    @property
    def _activity_regularizer(self):
        """Keras' own name of activity_regularizer, which subclasses use."""
        return self.activity_regularizer

    @_activity_regularizer.setter
    def _activity_regularizer(self, value):
        self.activity_regularizer = value

    dtype_policy = read_only(
        "_dtype_policy", "The tf.keras.mixed_precision.Policy of the layer."
    )

    @property
    def name_scope(self):
        """A tf.name_scope of the layer's name."""
        return name_scope(self._name + "/")

    def _name_scope(self):
        """The name with which code of the layer opens its scope where it stands now, such
        as "outer/dense/": programs make weights in it before the layer is built."""
        outer = get_current_name_scope()
        return f"{outer}/{self._name}/" if outer else self._name + "/"

    @property
    def stateful(self):
        """Whether states go on from one batch to the next: of recurrent layers only."""
        return getattr(self, "_stateful", False)

    @stateful.setter
    def stateful(self, value):
        self._stateful = value

    def count_params(self):
        """The number of scalars in all weights; ValueError where the layer is not
        built.
        """
        if not self.built:
            raise ValueError(
                "You tried to call `count_params` on layer "
                f"{self.name}, but the layer isn't built. You can build it manually via: "
                f"`{self.name}.build(batch_input_shape)`."
            )
        return sum(settings.count_params(w) for w in self.weights)

    # --- weights ---

    def build(self, input_shape):
        """Makes the weights; by default there are none."""
        self.built = True

    def add_weight(
        self,
        name=None,
        shape=None,
        dtype=None,
        initializer=None,
        regularizer=None,
        trainable=None,
        constraint=None,
        use_resource=None,
        synchronization=tf.VariableSynchronization.AUTO,
        aggregation=tf.VariableAggregation.NONE,
        tracked_as=None,
        **kwargs,
    ):
        """A new variable of this layer, known to checkpoints by its name, or as
        `tracked_as` says. `getter`, a function of these arguments by name, gives one
        that is there already.
        """
        is_cast = kwargs.pop("experimental_autocast", True) and self._autocast
        getter = kwargs.pop("getter", None)
        told = {key: kwargs.pop(key, None) for key in ("collections", "caching_device")}
        for key in kwargs:
            raise TypeError("Unknown keyword argument:", key)
        dtype = self._dtype if dtype is None else tf.as_dtype(dtype)
        on_read = synchronization == tf.VariableSynchronization.ON_READ
        if on_read and trainable:
            raise ValueError(
                "Synchronization value can be set to VariableSynchronization.ON_READ "
                "only for non-trainable variables. You have specified trainable=True "
                "and synchronization=VariableSynchronization.ON_READ."
            )
        trainable = not on_read if trainable is None else trainable
        make = _initial(initializer, dtype, name, self.name)
        shape = () if shape is None else shape
        how = {"trainable": trainable, "dtype": dtype}
        how |= {"synchronization": synchronization, "aggregation": aggregation}
        how["constraint"] = _KEPT["constraint"](constraint)
        if getter is not None:
            told |= {**how, "shape": shape, "use_resource": use_resource}
            variable = getter(name=name, initializer=make, **told)
            self._keras.told_trainable[id(variable)] = trainable
        else:
            variable = _new_variable(make, shape, name=name or "Variable", **how)
        if is_cast and self._read_in is not None and dtype.is_floating:
            for part in tracking.parts_of(variable):
                part._is_cast = True
        if regularizer is not None:
            self._regularize(variable, _KEPT["regularizer"](regularizer), name)
        self._track_weight(tracked_as or name or "Variable", variable)
        return variable

    def add_variable(self, *args, **kwargs):
        """The same as add_weight, by its old name: warns (UserWarning)."""
        warnings.warn(
            "`layer.add_variable` is deprecated and will be removed in a future "
            "version. Please use the `layer.add_weight()` method instead.",
            stacklevel=2,
        )
        return self.add_weight(*args, **kwargs)

    def _regularize(self, variable, penalty, name):
        self._keras.loss_functions.append(_Penalty(variable, penalty, name))

    def get_weights(self):
        """A list of NumPy arrays, in the order of `weights`."""
        return settings.batch_get_value(self.weights)

    def set_weights(self, weights):
        """Assigns arrays in the order of `weights`.

        ValueError where their number or a shape is wrong; then nothing is assigned.
        """
        mine = self.weights
        weights = list(weights)
        if len(mine) != len(weights):
            raise ValueError(
                f'You called `set_weights(weights)` on layer "{self.name}" with a '
                f"weight list of length {len(weights)}, but the layer was expecting "
                f"{len(mine)} weights. Provided weights: {str(weights)[:50]}..."
            )
        for variable, value in zip(mine, weights):
            shape = tuple(np.shape(value))
            if not variable.shape.is_compatible_with(shape):
                raise ValueError(
                    f"Layer {self.name} weight shape {tuple(variable.shape.as_list())} "
                    f"is not compatible with provided weight shape {shape}."
                )
        settings.batch_set_value(zip(mine, weights))

    # --- configuration ---

    def get_config(self):
        """The constructor's arguments as a dict, for from_config().

        Values are what JSON can hold: name, trainable, dtype, batch_input_shape, where
        it was given, and the arguments of the class's own. Subclasses add theirs; for a
        direct subclass without a get_config of its own the arguments are those that the
        constructor was called with.
        """
        config = self._recorded_config()
        if config is not None:
            return config
        config = {"name": self.name, "trainable": self.trainable}
        config["dtype"] = policy.config_of(self._dtype_policy)
        if self.dynamic:
            config["dynamic"] = True
        if self._keras.batch_input_shape is not None:
            config["batch_input_shape"] = self._keras.batch_input_shape
        return {**config, **serialization.config_of(self)}

    # Decorators of classes ask whether one has a get_config of its own.
    get_config._is_default = True

    def get_build_config(self):
        """{"input_shape": the shapes that it was built for}, which
        build_from_config() takes; None before it is built."""
        shape = plain_shapes(self._keras.seen_shape)
        return None if shape is None else {"input_shape": shape}

    def build_from_config(self, config):
        """Builds it for what get_build_config() gave."""
        shape = config["input_shape"]
        if shape is not None:
            self.build(shapes_from(shape))

    def _recorded_config(self):
        """What a class that says nothing itself was made with."""
        cls = type(self)
        if cls.__module__.startswith("headrace.keras"):
            return None
        told = next(c for c in cls.__mro__ if "get_config" in vars(c))
        if not told.__module__.startswith("headrace.keras"):
            return None
        if serialization.config_names(cls):
            return None
        arguments, extra = self._keras.arguments
        names = [p.name for p in inspect.signature(cls.__init__).parameters.values()]
        config = dict(zip(names[1:], arguments), **extra)
        if all(name in _COMMON for name in names[1:]):
            return None
        if not all(map(_is_plain, config.values())):
            raise NotImplementedError(_NO_CONFIG.format(name=cls.__name__))
        return config

    @classmethod
    def from_config(cls, config):
        """A new layer, without weights, of what get_config() gave.

        TypeError where the constructor does not take it.
        """
        try:
            return cls(**config)
        except Exception as e:
            raise TypeError(
                f"Error when deserializing class '{cls.__name__}' using "
                f"config={config}.\n\nException encountered: {e}"
            ) from e

    # --- shapes and masks ---

    def compute_output_shape(self, input_shape):
        """The static shape, or shapes, of the output for `input_shape`.

        Found by a call with a stand-in of that shape where a subclass does not say it.
        """
        if self._keeps_shape:
            return tf.TensorShape(input_shape)
        return functional_call.inferred_shape(self, input_shape)

    @property
    def _signature_dtype(self):
        """What compute_output_signature() says of all outputs."""
        return self._computed

    def compute_output_signature(self, input_signature):
        """The tf.TensorSpecs of the outputs for those of the inputs, in their structure:
        shapes by compute_output_shape(), and the layer's compute_dtype.

        TypeError for what is no TensorSpec.
        """

        def shape_of(spec):
            if not isinstance(spec, tf.TensorSpec):
                raise TypeError(
                    f"Only TensorSpec signature types are supported. Received: {spec}."
                )
            return spec.shape

        shapes = tf.nest.map_structure(shape_of, input_signature)
        shapes = self.compute_output_shape(shapes)
        make = lambda shape: tf.TensorSpec(shape, self._signature_dtype)
        return tf.nest.map_structure(make, shapes)

    def finalize_state(self):
        """Called when all weights have their values, by load_weights: subclasses compute
        of them what their calls need. Here it does nothing."""

    def compute_mask(self, inputs, mask=None):
        """The mask of the output: here that of the input, if the layer supports
        masking.

        A layer that does not raises TypeError when it gets a mask.
        """
        if not self.supports_masking:
            if any(m is not None for m in tf.nest.flatten(mask)):
                raise TypeError(
                    f"Layer {self.name} does not support masking, but was passed an "
                    f"input_mask: {mask}"
                )
            return None
        return mask

    # --- calling ---

    def call(self, inputs, *args, **kwargs):
        """The computation: subclasses define it; here the inputs themselves.

        `layer(inputs)` builds the weights at the first call, then calls this. The
        argument `training`, where a subclass has one, is True, False or None; `mask` is
        a bool tensor, or a list of them.
        """
        return inputs

    def __call__(self, *args, **kwargs):
        state = self._keras
        spec = state.spec
        if spec is None:
            spec = self._first_call()
        if not args:
            args, kwargs = self._first_from(kwargs, spec)
        inputs = args[0]
        if type(inputs) is not _EagerTensor or len(args) + len(kwargs) > 1:
            if functional_call.is_symbolic(args, kwargs):
                return functional_call.call(self, args, kwargs)
        return self._run_on_values(args, kwargs)

    def _run_on_values(self, args, kwargs):
        """The outputs of a call with values."""
        state = self._keras
        spec, inputs = state.spec, self._prepared(args[0])
        names, outer = context.names, context.training
        if not names and stack.plain_graph() is None:
            self._clear_losses()
        names.append(self._name)
        read = context.read
        if read is not self._read_in:
            context.reads(self._read_in)
        try:
            if spec.has_training:
                given, value = spec.given("training", args, kwargs)
                if value is None:
                    value = self._training_mode(spec, outer)
                    passes = value is not None or spec.catches_training
                    if passes and not (given and "training" not in kwargs):
                        kwargs = dict(kwargs, training=value)
                context.training = value if value is not None else outer
            elif "training" in kwargs:
                kwargs = dict(kwargs)
                value = kwargs.pop("training")
                context.training = value if value is not None else outer
            wanted = self.input_spec
            if wanted is not None:
                self._check_inputs(wanted, inputs, state)
            if not self.built:
                self._build_for(inputs)
            elif self._keras.seen_inputs is None:
                self._see(inputs)  # of a layer that build() was called of
            if _headrace.is_eager():
                return self._call_with_masks(spec, state, inputs, args[1:], kwargs)
            with self._scope_of_operations():
                return self._call_with_masks(spec, state, inputs, args[1:], kwargs)
        finally:
            names.pop()
            context.training = outer
            if read is not self._read_in:
                context.reads(read)

    def _scope_of_operations(self):
        """A context in which a graph's operations have the layer's name before theirs."""
        return name_scope(self._name)

    def _call_signature(self):
        return inspect.signature(self.call)

    @property
    def _expects_training_arg(self):
        """Whether call() takes `training`; layers around others ask."""
        return spec_of(self).has_training

    @property
    def _expects_mask_arg(self):
        """Whether call() takes `mask`; layers around others ask."""
        return spec_of(self).has_mask

    def _check_inputs(self, wanted, inputs, state):
        """Checks the inputs unless some of that shape were found right before."""
        one = inputs[0] if isinstance(inputs, list) and len(inputs) == 1 else inputs
        dims = one.shape._dims if isinstance(one, _headrace.Tensor) else None
        if dims is not None and state.checked == (wanted, dims):
            return
        input_specs.check(wanted, inputs, self._name)
        state.checked = (wanted, dims)

    def _first_call(self):
        if "_name" not in self.__dict__:
            raise RuntimeError(
                "You must call `super().__init__()` in the layer constructor."
            )
        state = self._keras
        state.spec = spec_of(self)
        state.masks = self.supports_masking or (
            type(self).compute_mask is not Layer.compute_mask
        )
        return state.spec

    def _first_from(self, kwargs, spec):
        if spec.first in kwargs:
            kwargs = dict(kwargs)
            return (kwargs.pop(spec.first),), kwargs
        raise ValueError("The first argument to `Layer.call` must always be passed.")

    @staticmethod
    def _training_mode(spec, outer):
        if outer is not None:
            return outer
        phase = settings.phase_that_was_set()
        if phase is not None:
            return phase
        if spec.default_training is None and stack.plain_graph() is not None:
            return settings.learning_phase()
        return spec.default_training

    def _prepared(self, inputs):
        """The inputs as tensors, floats in the dtype that the layer computes in."""
        if isinstance(inputs, _headrace.Tensor):
            return self._cast_in(inputs)
        if tf.nest.is_nested(inputs):
            return tf.nest.map_structure(self._prepared, inputs)
        if isinstance(inputs, (np.ndarray, float, int, np.generic, tf.Variable)):
            return self._cast_in(tf.convert_to_tensor(inputs))
        return inputs  # what is no tensor is refused where there is an input_spec

    def _cast_in(self, x):
        if self._autocast and x.dtype.is_floating and x.dtype != self._computed:
            return tf.cast(x, self._computed)
        return x

    def _cast_out(self, x):
        """x, computed in another dtype, in the one that the layer computes in."""
        return x if x.dtype == self._computed else tf.cast(x, self._computed)

    def _build_for(self, inputs):
        if self._keras.seen_inputs is None:
            self._see(inputs)
        self._build_now(shapes_of(inputs))

    def _see(self, inputs):
        """Remembers what the first inputs were: files of models tell of it."""
        self._keras.seen_inputs = tf.nest.map_structure(any_batch_spec, inputs)
        if self._keras.seen_shape is None:
            self._keras.seen_shape = shapes_of(inputs)

    def _build_now(self, shapes):
        """Builds outside of any function that is being traced."""
        with tf.init_scope(), name_scope("/".join(context.names) + "/"):
            read = context.reads(None)
            try:
                self.build(shapes)
            finally:
                context.reads(read)
        self.built = True
        self._keras.seen_shape = shapes
        if self._keras.initial_weights is not None:
            with tf.init_scope():  # values are the variables' own, not a trace's
                self.set_weights(self._keras.initial_weights)
            self._keras.initial_weights = None

    def _call_with_masks(self, spec, state, inputs, rest, kwargs):
        mask = None
        if spec.has_mask or state.masks:
            given, mask = spec.given("mask", (inputs, *rest), kwargs)
            if not given:
                mask = _masks_of(inputs)
                if mask is not None and spec.has_mask:
                    kwargs = dict(kwargs, mask=mask)
        if "mask" in kwargs and not spec.has_mask:
            kwargs = {k: v for k, v in kwargs.items() if k != "mask"}
        outputs = call_errors.call(self, inputs, *rest, **kwargs)
        if self.activity_regularizer is not None:
            self._penalize(inputs, outputs)
        if state.masks:
            _set_masks(outputs, self.compute_mask(inputs, mask))
        return outputs

    def _penalize(self, inputs, outputs):
        batch = None
        for out in tf.nest.flatten(outputs):
            if batch is None:
                batch = tf.cast(tf.shape(out)[0], out.dtype)
            self.add_loss(self.activity_regularizer(out) / batch)


_COMMON = ("args", "kwargs", "name", "trainable", "dtype", "dynamic")
_NO_CONFIG = """
Layer {name} was created by passing
non-serializable argument values in `__init__()`,
and therefore the layer must override `get_config()` in
order to be serializable. Please implement `get_config()`.

Example:

class CustomLayer(keras.layers.Layer):
    def __init__(self, arg1, arg2, **kwargs):
        super().__init__(**kwargs)
        self.arg1 = arg1
        self.arg2 = arg2

    def get_config(self):
        config = super().get_config()
        config.update({{
            "arg1": self.arg1,
            "arg2": self.arg2,
        }})
        return config"""


def _is_plain(value):
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return isinstance(value, (int, float, str, bool, type(None)))


def shapes_of(inputs):
    """The shapes of inputs, in their structure; None where one has none."""
    if not all(hasattr(x, "shape") for x in tf.nest.flatten(inputs)):
        return None
    return tf.nest.map_structure(lambda x: x.shape, inputs)


def plain_shapes(shapes):
    """A shape as a tuple, shapes in their structure; None where there are none."""
    if isinstance(shapes, tf.TensorShape):
        return None if shapes.rank is None else tuple(shapes.as_list())
    if isinstance(shapes, dict):
        return {key: plain_shapes(value) for key, value in shapes.items()}
    if isinstance(shapes, (list, tuple)):
        if all(x is None or isinstance(x, int) for x in shapes):
            return tuple(shapes)
        return [plain_shapes(x) for x in shapes]
    return shapes


def shapes_from(plain):
    """What build() takes, of plain_shapes() or what JSON made of it."""
    if isinstance(plain, dict):
        return {key: shapes_from(value) for key, value in plain.items()}
    if any(isinstance(x, (list, tuple, dict)) for x in plain):
        return [shapes_from(x) for x in plain]
    return tuple(plain)


def _new_variable(make, shape, dtype, **how):
    """A variable whose first value an initializer makes, outside of traced code."""
    sizes = tf.TensorShape(shape).as_list()
    with tf.init_scope():
        first = lambda: make(sizes, dtype=dtype)  # in graphs named by the variable
        value = first() if stack.plain_graph() is None else first
        variable = tf.Variable(value, dtype=dtype, **how)
        for part in tracking.parts_of(variable):
            settings.keep(part)
    return variable


def _initial(init, dtype, name, layer_name):
    """The initializer function of a weight."""
    if init is not None:
        return initializer.get(init)
    if dtype.is_floating:
        return initializer.get("glorot_uniform")
    if dtype.is_integer or dtype.is_unsigned or dtype == tf.bool:
        return initializer.get("zeros")
    raise ValueError(
        f"An initializer for variable {name} of type {dtype.base_dtype} is required "
        f"for layer {layer_name}."
    )


def _masks_of(inputs):
    """The masks that inputs carry, in their structure; None when no one does."""
    if isinstance(inputs, _headrace.Tensor):
        return getattr(inputs, "_keras_mask", None)
    leaves = tf.nest.flatten(inputs)
    masks = [getattr(x, "_keras_mask", None) for x in leaves]
    if all(m is None for m in masks):
        return None
    return tf.nest.pack_sequence_as(inputs, masks)


def _set_masks(outputs, masks):
    if masks is None:
        return
    leaves = tf.nest.flatten(outputs)
    for out, mask in zip(leaves, tf.nest.flatten(masks)):
        if mask is not None and isinstance(out, _headrace.Tensor):
            out._keras_mask = mask


serialize = serialization.serialize


class _Penalty:
    """The loss that a regularizer gives of a variable, which may be put in another's
    place: in copies, and where a file's variable is."""

    def __init__(self, variable, penalty, name):
        self.variable, self._penalty, self._name = variable, penalty, name

    def __call__(self):
        with tf.name_scope(f"{self._name or 'weight'}/Regularizer"):
            return self._penalty(tf.convert_to_tensor(self.variable))


def any_batch_spec(x):
    """What is kept of first inputs: the TensorSpec of batches of any size; None of what
    is no tensor."""
    if not isinstance(x, tf.Tensor | tf.TensorSpec):
        return None
    shape = [None, *x.shape[1:]] if x.shape.rank else x.shape
    return tf.TensorSpec(shape, x.dtype)
