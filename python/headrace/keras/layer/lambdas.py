"""The layer that calls a function: Lambda."""

import base64
import inspect
import marshal
import sys
import types

import numpy as np

from headrace import _api as tf
from headrace.autograph.calls import in_graph
from headrace.keras import serialization
from headrace.keras.base.base_layer import Layer

_REFUSED = (
    "Requested the deserialization of a Lambda layer with a Python `lambda` inside it. "
    "This carries a potential risk of arbitrary code execution and thus it is "
    "disallowed by default. If you trust the source of the saved model, you can pass "
    "`safe_mode=False` to the loading function in order to allow Lambda layer loading."
)
_PARTS = ("function", "output_shape", "mask")  # of a configuration that may be code


class Lambda(Layer):
    """Wraps a function as a layer."""

    def __init__(
        self, function, output_shape=None, mask=None, arguments=None, **kwargs
    ):
        super().__init__(**kwargs)
        self.arguments = dict(arguments or {})
        self.function = function
        self._mask = mask
        self._output_shape = output_shape
        self.supports_masking = mask is not None

    def call(self, inputs, mask=None, training=None):
        """function(inputs, **arguments), with `mask` and `training` where it takes
        them.
        """
        kwargs = dict(self.arguments)
        wanted = inspect.signature(self.function).parameters
        if "mask" in wanted:
            kwargs["mask"] = mask
        if "training" in wanted:
            kwargs["training"] = training
        return in_graph(self.function)(inputs, **kwargs)

    def compute_output_shape(self, input_shape):
        """What output_shape says, or a function of it; else found by a call."""
        shape = self._output_shape
        if shape is None:
            return super().compute_output_shape(input_shape)
        if callable(shape):
            return tf.TensorShape(shape(input_shape))
        return tf.TensorShape([tf.TensorShape(input_shape)[0], *shape])

    def compute_mask(self, inputs, mask=None):
        """The mask given to the constructor, or what it gives as a function."""
        return self._mask(inputs, mask) if callable(self._mask) else self._mask

    def get_config(self):
        """The function by its name, or its code where it is a lambda; so are
        output_shape and the mask."""
        kept = (self.function, self._output_shape, self._mask)
        config = super().get_config()
        for name, value in zip(_PARTS, kept):
            if name == "mask" and value is None:
                continue
            config[name], kind, module = _written(value)
            config[f"{name}_type"] = kind
            config["module" if name == "function" else f"{name}_module"] = module
        return {**config, "arguments": self.arguments}

    _config_names = ()

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A new layer of what get_config() gave; ValueError for code in a file that is
        loaded in safe mode, and for functions that are not known."""
        config = dict(config)
        for name in _PARTS:
            kind = config.pop(f"{name}_type", "raw")
            config.pop("module" if name == "function" else f"{name}_module", None)
            if name in config:
                config[name] = _read(config[name], kind, custom_objects)
        return cls(**config)


def _written(value):
    """(what a configuration holds of it, its kind, the module it is from)."""
    if not isinstance(value, types.FunctionType):
        if callable(value):
            return value.__name__, "function", value.__module__
        return value, "raw", None
    if value.__name__ != "<lambda>":
        return value.__name__, "function", value.__module__
    code = base64.encodebytes(marshal.dumps(value.__code__)).decode()
    closure = value.__closure__
    closed = None if closure is None else [cell.cell_contents for cell in closure]
    return [code, value.__defaults__, closed], "lambda", value.__module__


def _read(value, kind, custom_objects):
    if kind == "raw":
        return value
    if kind == "function":
        return serialization.find(value, {}, "function", custom_objects)
    if kind != "lambda":
        raise ValueError(f"Unknown function type: {kind}")
    if serialization.in_safe_mode():
        raise ValueError(_REFUSED)
    if isinstance(value, dict):  # as other versions write it
        value = [value.get(key) for key in ("code", "defaults", "closure")]
    try:
        text, defaults, closed = value
        code = marshal.loads(base64.decodebytes(text.encode()))
        cells = None if closed is None else tuple(map(types.CellType, closed))
        defaults = None if defaults is None else tuple(defaults)
        scope = {"tf": sys.modules["headrace"], "np": np, "__builtins__": __builtins__}
        return types.FunctionType(code, scope, argdefs=defaults, closure=cells)
    except (ValueError, TypeError, EOFError, AttributeError) as e:
        raise ValueError(f"The lambda of a Lambda layer cannot be read: {e}") from e
