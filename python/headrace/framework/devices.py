"""tf.device and device names."""

import contextlib
import threading
import weakref

from headrace._load import _headrace
from headrace.context import errors, stack, strategies
from headrace.framework import tensor
from headrace.framework.settings import cluster, config

_state = strategies.carry(threading.local())


class DeviceSpec:
    """The parts of a device's name; immutable."""

    __slots__ = ("device_index", "device_type", "job", "replica", "task")
    _FIELDS = ("job", "replica", "task", "device_type", "device_index")

    def __init__(
        self, job=None, replica=None, task=None, device_type=None, device_index=None
    ):
        if device_type in ("cpu", "gpu", "tpu"):
            device_type = device_type.upper()
        given = (job, replica, task, device_type, device_index)
        for name, value in zip(self._FIELDS, given):
            kind = str if name in ("job", "device_type") else int
            object.__setattr__(self, name, None if value is None else kind(value))

    def __setattr__(self, name, value):
        raise AttributeError(f"can't set attribute '{name}'")

    @classmethod
    def from_string(cls, spec):
        """The spec of a name such as "/job:worker/replica:0/task:1/device:GPU:0".

        Parts may be left out, "/cpu:0" may stand for "/device:CPU:0", and an index of *
        is none. ValueError on a part of another name.
        """
        parts = {}

        def set_type(kind, index):
            if "device_type" in parts:
                raise ValueError(
                    "Multiple device types are not allowed while parsing the device "
                    f"spec: {spec}."
                )
            parts["device_type"] = kind
            if index not in (None, "*"):
                parts["device_index"] = index

        for piece in spec.split("/"):
            fields = piece.split(":")
            key = fields[0]
            if not piece:
                continue
            if key in ("job", "replica", "task") and len(fields) == 2:
                parts[key] = fields[1]
            elif key.lower() in ("cpu", "gpu", "tpu") and len(fields) <= 2:
                set_type(key.upper(), fields[1] if len(fields) == 2 else None)
            elif key == "device" and len(fields) == 3:
                set_type(fields[1], fields[2])
            else:
                raise ValueError(
                    f"Unknown attribute '{key}' is encountered while parsing"
                    f" the device spec: '{spec}'."
                )
        return cls(**parts)

    def parse_from_string(self, spec):
        """The spec of a name, as from_string gives it; this one does not change."""
        return type(self).from_string(spec)

    def to_string(self):
        """The name, of the parts that are set; a type without an index gets ":*"."""
        parts = {name: getattr(self, name) for name in ("job", "replica", "task")}
        text = "".join(f"/{k}:{v}" for k, v in parts.items() if v is not None)
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            text += f"/device:{self.device_type}:{index}"
        return text

    def make_merged_spec(self, dev):
        """A new spec: the parts that `dev` sets, and this one's where it sets none."""
        return type(self)(
            *(
                getattr(dev, k) if getattr(dev, k) is not None else getattr(self, k)
                for k in self._FIELDS
            )
        )

    def replace(self, **kwargs):
        """A new spec with the parts that are named: job, replica, task, device_type,
        device_index.
        """
        return type(self)(**{k: kwargs.get(k, getattr(self, k)) for k in self._FIELDS})

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self.to_string() == other.to_string()

    def __hash__(self):
        return hash(self.to_string())

    def __repr__(self):
        fields = ", ".join(f"{k}={getattr(self, k)}" for k in self._FIELDS)
        return f"<DeviceSpec({fields})>"


class DeviceSpecV1(DeviceSpec):
    """The parts of a device's name, which can be changed."""

    def __setattr__(self, name, value):
        if name not in self._FIELDS:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
            )
        fields = {k: getattr(self, k) for k in self._FIELDS}
        DeviceSpec.__init__(self, **{**fields, name: value})

    def parse_from_string(self, spec):
        """Takes the parts of a name, as from_string gives them; this object."""
        parsed = type(self).from_string(spec)
        for name in self._FIELDS:
            object.__setattr__(self, name, getattr(parsed, name))
        return self

    def merge_from(self, dev):
        """Takes the parts that `dev` sets."""
        for name in self._FIELDS:
            if getattr(dev, name) is not None:
                setattr(self, name, getattr(dev, name))


def spec_of(name):
    """The DeviceSpec of a name or DeviceSpec; ValueError for what is no name."""
    return name if isinstance(name, DeviceSpec) else DeviceSpec.from_string(name)


def merged(device, specs):
    """The name `device` with the parts of specs, those of earlier ones first, where it
    has none itself."""
    for spec in specs:
        device = DeviceSpec.to_string(
            spec.make_merged_spec(DeviceSpec.from_string(device))
        )
    return device


def current():
    """The device that tf.device asked for on this thread, or ""."""
    return getattr(_state, "device", "")


def placed():
    """The full name of the logical device that makes what this thread makes now."""
    if getattr(_state, "place", None) is not None:
        return _state.place
    index = _processor_of(current())
    if index == _CUSTOM:
        return current()
    return f"/job:localhost/replica:0/task:0/device:CPU:{index}"


def here():
    """A context in which operations run in this process, whatever tf.device says."""
    if not cluster.devices():
        return contextlib.nullcontext()
    job, task = cluster.own()
    return device(f"/job:{job}/replica:0/task:{task}/device:CPU:0")


class device:
    """A context manager: operations made inside are placed on the device."""

    def __init__(self, device_name):
        if callable(device_name):
            raise RuntimeError("tf.device does not support functions.")
        self._name = device_name
        self._old = []

    def __enter__(self):
        name = self._name
        if isinstance(name, DeviceSpec):
            name = name.to_string()
        name = name or ""
        if name and _headrace.is_eager():
            # Parts that the name leaves open are those of the context around.
            name = merged(name, (DeviceSpec.from_string(current()),))
        self._check(name)
        in_graph = None
        if not _headrace.is_eager():
            in_graph = stack.current().device(self._name)
            in_graph.__enter__()
            name = stack.current()._core.device
        self._old.append((current(), in_graph))
        self._use(name)
        return self

    @staticmethod
    def _use(name):
        _state.device = name
        _state.place = cluster.place(DeviceSpec.from_string(name) if name else None)
        _headrace.set_processor(_processor_of(name))

    def _check(self, name):
        if not name:
            return
        spec = DeviceSpec.from_string(name)
        if not _headrace.is_eager() or config.get_soft_device_placement():
            return
        if spec.job not in (None, "localhost") and cluster.devices():
            return
        local = spec.job in (None, "localhost") and not spec.task and not spec.replica
        known = [d.name for d in config.local_devices("CPU")]
        kind = (spec.device_type or "CPU").upper()
        if not local or f"/device:{kind}:{spec.device_index or 0}" not in known:
            host = "/job:localhost/replica:0/task:0"
            full = DeviceSpec("localhost", 0, 0, "CPU", 0).make_merged_spec(spec)
            raise errors.InvalidArgumentError._of(
                f"Could not satisfy device specification '{full.to_string()}'. "
                "enable_soft_placement=0. Supported device types [CPU]. All available "
                f"devices [{', '.join(host + d for d in known)}]."
            )

    def __exit__(self, *error):
        name, in_graph = self._old.pop()
        self._use(name)
        if in_graph is not None:
            in_graph.__exit__(*error)
        return False


# The processor of what is made on the device that stands for several: more than there
# are of others.
_CUSTOM = 1 << 20
_adopts = []  # what is called with each tensor that is made there


def on_custom_device(adopt):
    """From now on eager tensors made on a device of the type CUSTOM are handed to
    adopt(tensor), which may change their class but must not set attributes: natively the
    tensor is being given its own."""
    _adopts[:] = [adopt]
    tensor.EagerTensor._processor = property(_processor, _set_processor)


_of_tensors = {}  # by a tensor's id: its processor, and what takes it out again


def _processor(made):
    found = _of_tensors.get(id(made))
    return found[0] if found else 0


def _set_processor(made, index):
    if index == _CUSTOM:
        _adopts[0](made)
        return
    key = id(made)
    _of_tensors[key] = index, weakref.ref(made, lambda _: _of_tensors.pop(key, None))


def _processor_of(name):
    """The index of the logical CPU that a name means; 0 where there is no such one."""
    if not name:
        return 0
    spec = DeviceSpec.from_string(name)
    if spec.device_type == "CUSTOM":
        return _CUSTOM if _adopts else 0
    index = spec.device_index
    if not index:
        return 0
    return index if index < len(config.local_devices("CPU")) else 0
