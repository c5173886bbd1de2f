"""The layers that functional models get beside those that their makers name."""

import inspect
import itertools

import numpy as np

from headrace import _api as tf
from headrace import _names
from headrace._load import _headrace
from headrace.keras import settings
from headrace.keras.base import call_errors, functional_call, keras_tensor
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.keras_tensor import KerasTensor

_GETITEM = "__operators__.getitem"
# Functions that files of tf_keras have by their names of TensorFlow 1, and the arguments
# that they have there in any case.
_AS_V1 = {
    "shape": {"name": None, "out_type": tf.int32},
    "size": {"name": None, "out_type": tf.int32},
    "transpose": {"perm": None, "name": "transpose", "conjugate": False},
    "squeeze": {"axis": None, "name": None},
    "gather": {"validate_indices": None, "name": None, "axis": None, "batch_dims": 0},
    "boolean_mask": {"name": "boolean_mask", "axis": None},
    "norm": {"ord": "euclidean", "axis": None, "keepdims": None, "name": None},
}
# Functions that read and write files or load code: no configuration may name them.
_REFUSED = ("ops.io.", "ops.op_library:", "v1.files:")
_CODED = ("ops.io.io_ops:decode_", "ops.io.io_ops:encode_")


def _item(tensor, slice_spec):
    return tensor[_key(slice_spec)]


def _key(spec):
    """What stands in the brackets: slices are dicts in a configuration."""
    if isinstance(spec, (list, tuple)):
        return tuple(_key(part) for part in spec)
    if not isinstance(spec, dict):
        return spec
    if spec == {"class_name": "__ellipsis__"}:
        return Ellipsis
    if not spec.keys() <= {"start", "stop", "step"}:
        raise ValueError(f"A slice has start, stop and step, not {sorted(spec)}")
    return slice(spec.get("start"), spec.get("stop"), spec.get("step"))


def function_of(symbol):
    """The function of tf that a configuration names.

    Only functions that make operations of tensors: ValueError for all else that tf has,
    as configurations come from strangers.
    """
    if symbol == _GETITEM:
        return _item
    found = None
    if isinstance(symbol, str) and _is_of_tensors(symbol.removeprefix("compat.v1.")):
        row = _names.row_of(symbol)
        found = row and _names.function_of_row(row)
    if not hasattr(found, "_row"):
        raise ValueError(
            f"TF symbol `{symbol}` could not be found among the functions of tensors that "
            "models may name."
        )
    return found


def _is_of_tensors(name):
    row = "ops." if name == "floor_div" else _names.row_of(name) or ""
    return row.startswith(_names.DISPATCHED) and (
        row.startswith(_CODED) or not row.startswith(_REFUSED)
    )


class OfTheModel(Layer):
    """A layer that a functional model gets for a call that was no layer's."""

    _keras_module = "tf_keras.src.layers.core.tf_op_layer"

    def __init__(self, **kwargs):
        super().__init__(**{**kwargs, "autocast": False})
        self.built = True

    def __call__(self, *args, **kwargs):
        if self._keras.seen_shape is None and args:
            self._keras.seen_shape = tf.nest.map_structure(_shape_of, args[0])
        if functional_call.is_symbolic(args, kwargs):
            return functional_call.call(self, args, kwargs)
        if _headrace.is_eager():
            return call_errors.call(self, *args, **kwargs)
        with self._scope_of_operations():
            return call_errors.call(self, *args, **kwargs)

    def _told(self, **told):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self.dtype,
            **told,
        }


def _shape_of(x):
    return x.shape if isinstance(x, KerasTensor) else tf.TensorShape(np.shape(x))


class _Member(OfTheModel):
    """What a ragged or sparse value has of that name, as a layer."""

    _known = {}  # {class of KerasTensors: names}

    def __init__(self, attr_name, **kwargs):
        known = sorted(set(itertools.chain(*self._known.values())))
        if attr_name not in known:
            raise ValueError(
                f"{type(self).__name__}: no {attr_name!r} is known of ragged and sparse "
                f"tensors, but {known}"
            )
        self.attr_name = attr_name
        if kwargs.get("name") is None:
            kwargs["name"] = settings.unique_name(f"input.{attr_name}")
        super().__init__(**kwargs)

    def get_config(self):
        return self._told(attr_name=self.attr_name)

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class InstanceProperty(_Member):
    """A part of a ragged or sparse tensor as a layer."""

    _registered_as = "InstanceProperty"
    _known = keras_tensor.PARTS

    def call(self, obj):
        return getattr(obj, self.attr_name)


class InstanceMethod(_Member):
    """A method of a ragged or sparse tensor as a layer."""

    _registered_as = "InstanceMethod"
    _known = keras_tensor.METHODS

    def call(self, obj, args, kwargs):
        return getattr(obj, self.attr_name)(*args, **kwargs)


def part_of(tensor, name):
    """The KerasTensor of a part of the value that `tensor` stands for."""
    return InstanceProperty(name)(tensor)


def result_of(tensor, name, args, kwargs):
    """The KerasTensor of what a method of that value gives."""
    return InstanceMethod(name)(tensor, args=args, kwargs=kwargs)


class TFOpLambda(OfTheModel):
    """A function of tf on KerasTensors as a layer.

    Attributes:
      symbol: its public name, such as "math.multiply".
      function: the function itself.
    """

    _registered_as = "TFOpLambda"
    _keeps_structure = True  # of the first argument, in configurations

    def __init__(self, function, **kwargs):
        self.symbol = function
        if callable(function):
            self.symbol = _names.main_name(function._row) or function.__name__
            if self.symbol in _AS_V1:
                self.symbol = f"compat.v1.{self.symbol}"
                function = function_of(self.symbol)
        self.function = function if callable(function) else function_of(function)
        if kwargs.get("name") is None:
            kwargs["name"] = settings.unique_name(f"tf.{self.symbol}")
        super().__init__(**kwargs)
        parameters = inspect.signature(self.function).parameters.values()
        rest = (p.name for p in parameters if p.kind is p.VAR_POSITIONAL)
        self._rest = next(rest, None)

    def _call_signature(self):
        return inspect.signature(self.function)

    def call(self, *args, **kwargs):
        """The function's value; what it takes by place is given by its name, too."""
        if self._rest in kwargs:
            args += tuple(kwargs.pop(self._rest))
        return self.function(*args, **kwargs)

    def get_config(self):
        """The public name of the function beside what all layers say.

        NotImplementedError where configurations may not name the function.
        """
        try:
            function_of(self.symbol)
        except ValueError as e:
            raise NotImplementedError(
                f"The configuration of {self.name}: {e}"
            ) from None
        return self._told(function=self.symbol)

    @classmethod
    def from_config(cls, config):
        """A layer of the function that a configuration names.

        ValueError for a function that it may not name, TypeError where one is missing.
        """
        return cls(**config)


class SlicingOpLambda(TFOpLambda):
    """Indexing and masking of KerasTensors as a layer."""

    _registered_as = "SlicingOpLambda"


def as_layer(function, args, kwargs):
    """The KerasTensors that a function of tf, or what has such a name, gives by a layer
    of its own.

    TypeError where the function does not take the arguments.
    """
    row = getattr(function, "_row", None)
    name = _names.main_name(row) if row else function
    is_slicing = name in (_GETITEM, "boolean_mask")
    layer = (SlicingOpLambda if is_slicing else TFOpLambda)(function)
    bound = inspect.signature(function if row else layer.function).bind(*args, **kwargs)
    given = dict(_AS_V1.get(name, {}))
    for key, value in bound.arguments.items():
        several = bound.signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD
        given.update(value if several else {key: value})
    first = given.pop(next(iter(bound.arguments)))
    return layer(first, **given)


class AddLoss(Layer):
    """Adds what it gets, a scalar, to the losses of a functional model."""

    _keras_module = "tf_keras.src.engine.base_layer"
    _registered_as = "AddLoss"

    def __init__(self, unconditional, **kwargs):
        super().__init__(**{**kwargs, "autocast": False})
        self.unconditional = unconditional

    def call(self, inputs):
        """The inputs, which become a loss."""
        self.add_loss(inputs, inputs=not self.unconditional)
        return inputs


class AddMetric(Layer):
    """Keeps the mean of what it gets as a metric of a functional model."""

    _keras_module = "tf_keras.src.engine.base_layer"
    _registered_as = "AddMetric"

    def __init__(self, aggregation=None, metric_name=None, **kwargs):
        super().__init__(**kwargs)
        self.aggregation, self.metric_name = aggregation, metric_name

    def call(self, inputs):
        """The inputs, which the metric takes."""
        self.add_metric(inputs, aggregation=self.aggregation, name=self.metric_name)
        return inputs
