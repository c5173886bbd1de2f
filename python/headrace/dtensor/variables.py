"""Variables whose values have a layout."""

import inspect
import weakref

from headrace import _api as tf
from headrace._load import _headrace
from headrace.dtensor import calls, scopes, tensors, values
from headrace.dtensor.calls import refuse_plain
from headrace.dtensor.tensors import DTensor, inside, laid, layout_of, no_hook
from headrace.framework import variables


# What creators of variables hand on that a variable's constructor takes.
_ARGUMENTS = frozenset(inspect.signature(variables.Variable.__init__).parameters)


class _Laid:
    """What variables with a layout, and what their assignments return, have."""

    layout = property(lambda self: self._layout, doc="The layout of the value.")
    device = property(lambda self: tensors.DEVICE)

    def _laid(self, value):
        if not _headrace.is_eager():
            return value
        made = laid(value, self._layout)
        made._variable = weakref.ref(self)
        return made

    def value(self):
        """The value now: a tensor with the variable's layout."""
        with no_hook():
            return self._laid(self._read())

    def read_value(self):
        """The value now, as value() gives it."""
        with no_hook():
            return self._laid(super().read_value())

    read_value_no_copy = initialized_value = value

    def sparse_read(self, indices, name=None):
        """The rows at those indices, as tf.gather gives them."""
        if not _headrace.is_eager():
            return super().sparse_read(indices, name)
        return tf.gather(self.value(), indices, name=name)

    def numpy(self):
        """The value as an array; UnimplementedError where it is divided."""
        return self.value().numpy()

    def __array__(self, dtype=None, copy=None):
        return self.value().__array__(dtype, copy)

    def __getitem__(self, key):
        return self.value()[key]

    def __iter__(self):
        return iter(self.value())

    def __eq__(self, other):
        return other is not None and self.value() == _value(other)

    def __ne__(self, other):
        return other is None or self.value() != _value(other)

    __hash__ = variables.Variable.__hash__

    def __repr__(self):
        head = f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}"
        return (
            f"{head}, value={self.value()._text()}>"
            if _headrace.is_eager()
            else (f"{head}>")
        )

    def __tf_tensor__(self, dtype=None, name=None):
        return tf.convert_to_tensor(self.value(), dtype)

    def _change(self, native, op, value, name):
        if not _headrace.is_eager():
            super()._change(native, op, value, name)
            return
        if not isinstance(value, (DTensor, _headrace.VariableBase)):
            with no_hook():
                value = tf.convert_to_tensor(value, self.dtype)
            if value.shape == self.shape:
                refuse_plain(op, 1, value)
        with inside(), no_hook():
            super()._change(native, op, value, name)

    def _assigned(self, read_value):
        made = super()._assigned(read_value)
        if isinstance(made, variables._UnreadVariable):
            made.__class__ = _UnreadDVariable
            made._layout = self._layout
        return made


def _value(other):
    return other.value() if isinstance(other, _headrace.VariableBase) else other


class _UnreadDVariable(_Laid, variables._UnreadVariable):
    """A variable as its assignments return it."""


class DVariable(_Laid, variables.ResourceVariable):
    """A variable that keeps the layout of its first value.

    What is assigned is laid out like it. Without `layout`, the first value, or what
    gives it, has one: InvalidArgumentError else.
    """

    _save_as_bf16 = False
    _serializes_itself = True

    def __init__(self, initial_value, *args, dtype=None, **kwargs):
        layout = kwargs.pop("layout", None)
        if callable(initial_value):
            initial_value = values.call_with_layout(initial_value, layout)
        if isinstance(initial_value, _headrace.VariableBase):
            initial_value = initial_value.value()
        if layout is not None:
            initial_value = values.relayout(initial_value, layout)
        if layout_of(initial_value) is None:
            raise tf.errors.InvalidArgumentError(
                None, None, "Neither layout nor DTensor initial value are provided."
            )
        self._layout = initial_value._layout
        with inside(), no_hook():
            super().__init__(initial_value, *args, dtype=dtype, **kwargs)

    @classmethod
    def of_tensor(cls, next_creator, arguments):
        """What tf.Variable makes in the scope of a mesh."""
        value = arguments.get("initial_value")
        if callable(value):
            value = value()
        if not isinstance(value, DTensor):
            with no_hook():
                value = tf.convert_to_tensor(value, arguments.get("dtype"))
            value = values.replicated(value, scopes.current())
        given = {k: v for k, v in arguments.items() if k in _ARGUMENTS}
        return cls(**{**given, "initial_value": value})

    def _serialize_to_tensors(self):
        value = tensors.plain(self.value()) if _headrace.is_eager() else self._read()
        with no_hook():
            value = tf.cast(value, tf.bfloat16) if self._save_as_bf16 else value
        return {"VARIABLE_VALUE": value}

    def _restore_from_tensors(self, restored_tensors):
        value = restored_tensors["VARIABLE_VALUE"]
        if not _headrace.is_eager():
            return self.assign(tf.cast(value, self.dtype))
        with no_hook():
            value = tf.cast(value, self.dtype)
        return self.assign(values.relayout(value, self._layout))

    @property
    def save_as_bf16(self):
        """Whether checkpoints hold the value as bfloat16."""
        return self._save_as_bf16

    @save_as_bf16.setter
    def save_as_bf16(self, save_as_bf16):
        """Enables saving float32 as bfloat16."""
        self._save_as_bf16 = save_as_bf16 and self.dtype == tf.float32


def enable_save_as_bf16(variables):
    """Checkpoints hold those variables' values, where they are float32 and have a
    layout, as bfloat16."""
    for v in variables:
        if isinstance(v, DVariable):
            v.save_as_bf16 = True


scopes._variable_class.append(DVariable)
calls.answer_for(_Laid)
