"""Tensors with a layout: the whole value, and how it lies on the devices of a mesh."""

import contextlib
import functools
import threading

from headrace import _api as tf
from headrace._load import _headrace, raw
from headrace.dtensor.layout import Layout
from headrace.framework.support import operators

DEVICE = "/job:localhost/replica:0/task:0/device:CUSTOM:0"
EagerTensor = _headrace.EagerTensor


class _Thread(threading.local):
    inside = False  # a function that knows no layouts runs


_thread = _Thread()


@contextlib.contextmanager
def inside():
    """Tensors with layouts are plain ones to what runs inside."""
    before, _thread.inside = _thread.inside, True
    try:
        yield
    finally:
        _thread.inside = before


def is_inside():
    """Whether tensors with layouts are plain ones now."""
    return _thread.inside


class DTensor(EagerTensor):
    """A tensor that holds its value whole, and says of which part each device is.

    All devices of a mesh lie in this process's memory, so that an operation computes
    the whole at once; parts are cut when they are asked for.
    """

    _parts = None  # what it was packed of, where that is kept
    _variable = None  # whose value it is: a weak reference

    device = backing_device = property(lambda self: DEVICE)

    def __repr__(self):
        return (
            f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, "
            f"value={self._text()}>"
        )

    def __str__(self):
        return f"tf.Tensor({self._text()}, shape={self.shape}, dtype={self.dtype.name})"

    def __format__(self, spec):
        return format(self._text(), spec)

    def _text(self):
        layout = self._layout
        return f'{self._value_text()}, layout="{layout.to_string()}"'

    def _value_text(self):
        parts = self._cut()
        if self._layout.is_fully_replicated() or not parts:
            # Of a mesh without devices of this process there is the whole alone.
            return _summary(parts[0] if parts else plain(self))
        devices = self._layout.mesh.local_devices()
        named = (
            f'"{_short(d)}": {_summary(p)}' for d, p in zip(devices, parts, strict=True)
        )
        return "{" + ", ".join(named) + "}"

    def _cut(self):
        """The parts of the local devices, in order: a list of plain tensors."""
        if self._parts is not None:
            return list(self._parts)
        view = EagerTensor._numpy_view(self)
        return [
            tf.constant(view[slices], self.dtype)
            for slices in self._layout._slices(self.shape)
        ]

    def _check_whole(self):
        if not (is_inside() or self._layout.is_fully_replicated()):
            raise tf.errors.UnimplementedError(
                None,
                None,
                "Trying to copy a non-single-device and non-replicated DTensor is not "
                f"supported. Input tensor is: DTensor({self._text()})",
            )

    def numpy(self):
        """The value as an array; UnimplementedError where the tensor is divided."""
        self._check_whole()
        return EagerTensor.numpy(self)

    _numpy = numpy

    def __array__(self, dtype=None, copy=None):
        self._check_whole()
        return EagerTensor.__array__(self, dtype, copy)

    def __deepcopy__(self, memo):
        memo[id(self)] = made = with_layout(plain(self), self._layout, self._parts)
        return made


def _short(device):
    spec = tf.DeviceSpec.from_string(device)
    return f"{spec.device_type}:{spec.device_index or 0}"


def _summary(tensor):
    """The elements as TensorFlow's runtime writes them, of long rows both ends."""
    with inside():
        return tf.strings.format("{}", [tensor], summarize=3).numpy().decode()


def plain(tensor):
    """A tensor of the same value without a layout; itself where it has none."""
    if not isinstance(tensor, DTensor):
        return tensor
    with no_hook():
        return raw.Identity(tensor)


def with_layout(tensor, layout, parts=None):
    """The tensor with a layout: another object, unless it is a new plain one."""
    tensor.__class__ = DTensor
    tensor._layout = layout
    tensor._parts = parts
    return tensor


def laid(tensor, layout):
    """A tensor of the same value, and of the same gradient, with that layout."""
    with no_hook():
        return with_layout(raw.Identity(tensor), layout)


def layout_of(value):
    """The layout of a tensor or variable; None of what has none."""
    if isinstance(value, (DTensor, _headrace.VariableBase)):
        return getattr(value, "_layout", None)
    return None


def variable_of(value):
    """The variable whose value a tensor was read as; None of others."""
    reference = (
        getattr(value, "_variable", None) if isinstance(value, DTensor) else None
    )
    return None if reference is None else reference()


# --- what eager operations give inside of a default mesh ---

_scopes = threading.local()


@contextlib.contextmanager
def no_hook():
    """What operations give inside is plain."""
    before, _scopes.off = getattr(_scopes, "off", False), True
    try:
        yield
    finally:
        _scopes.off = before


class _OfScope:
    """The layout of what operations gave in the scope of a mesh: whole, unless the
    tensor was given one of its own."""

    def __init__(self, mesh):
        self._mesh = mesh

    def __get__(self, made, kind):
        if made is None:
            return None
        return Layout.replicated(self._mesh, made.shape.rank or 0)


@functools.cache
def _class_of(mesh):
    """Tensors of the scope of a mesh: a class, as they cannot be given attributes while
    they are made."""
    return type("DTensor", (DTensor,), {"_layout": _OfScope(mesh)})


def adopt(tensor, mesh):
    """Called with each tensor that is made in the scope of a mesh."""
    if not getattr(_scopes, "off", False) and tensor.dtype != tf.resource:
        tensor.__class__ = _class_of(mesh)


# --- operators ---


def attach_operators(call):
    """Operators of tensors with layouts: call(public name, operands)."""

    def operator(name, public, swapped):
        base = getattr(EagerTensor, name)

        def apply(self, *others):
            if is_inside():
                return base(self, *others)
            operands = (self, *others)
            return call(public, operands[::-1] if swapped else operands)

        return apply

    operators.attach(DTensor, operator)
    for name, public in (("__eq__", "math.equal"), ("__ne__", "math.not_equal")):
        setattr(DTensor, name, operator(name, public, swapped=False))
    DTensor.__hash__ = EagerTensor.__hash__
