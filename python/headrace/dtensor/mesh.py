"""tf.experimental.dtensor.Mesh: devices in an array whose dimensions have names."""

import collections
import itertools
import math
import re

import numpy as np

from headrace import _api as tf
from headrace import _protos

MeshDimension = collections.namedtuple("MeshDimension", ["name", "size"])

_INT64 = 2**63
# Meshes of text may name any number of devices, which are then listed: so many are
# more than one process has.
_MOST_DEVICES = 1 << 16


def _known_device(name):
    """The type of the device of that name in a text; ValueError where it is none."""
    found = _DEVICE.fullmatch(name)
    if found is None:
        raise ValueError("Failed to parse local_devices")
    return found["type"].upper()


_DEVICE = re.compile(
    r"(/job:[A-Za-z][\w.-]*)?(/replica:\d+)?(/task:\d+)?"
    r"/(device:)?(?P<type>[A-Za-z]\w*)(:(\d+|\*))?"
)


def _numbers(text):
    """The whole numbers of a list such as "0,1,2"; ValueError where they are none."""
    if not text:
        return []
    found = []
    for part in text.split(","):
        try:
            number = int(part)
        except ValueError:
            raise ValueError(f"Expected an integer but found {part!r}") from None
        if not -_INT64 <= number < _INT64:
            raise ValueError(f"The integer {part} has more than 64 bits")
        found.append(number)
    return found


def _dimensions(text):
    """[(name, size)] of a text such as "x=2,y=3"."""
    found = []
    for part in text.split(",") if text else ():
        name, equals, size = part.partition("=")
        if not equals or "=" in size:
            raise ValueError(f"Expected a dimension such as x=2 but found {part!r}")
        (number,) = _numbers(size) or [0]
        if number < 0:
            raise ValueError(f"The size of mesh dimension {name} is negative: {number}")
        if name in dict(found):
            raise ValueError("repeated mesh dimension")
        found.append((name, number))
    return found


def _check_text(what, value):
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, got {type(value).__name__}: {value!r}")
    return value


def _device_text(device):
    return device.to_string() if isinstance(device, tf.DeviceSpec) else device


def _type_in(device):
    found = re.search(r"(?:^|[/:])([A-Za-z]+)(?::(?:\d+|\*))?$", device)
    return found[1].upper() if found else ""


class Mesh:
    """Devices in an array of named dimensions, over which tensors are laid out.

    `global_device_ids` is an array of the shape of the mesh, whose elements grow by one.
    `local_devices` are this process's, those of `local_device_ids`; all of one type.
    """

    __slots__ = ("_dims", "_global", "_ids", "_key", "_local", "_name", "_others")

    def __init__(
        self,
        dim_names,
        global_device_ids,
        local_device_ids,
        local_devices,
        mesh_name="",
        global_devices=None,
        use_xla_spmd=False,
    ):
        if not isinstance(global_device_ids, np.ndarray):
            raise ValueError("Variable global_device_ids must be an ndarray.")
        if global_device_ids.size == 0:
            raise ValueError("Variable global_device_ids must be non-empty.")
        ids = global_device_ids.flatten()
        if not np.issubdtype(ids.dtype, np.integer):
            raise TypeError("Variable global_device_ids must hold integers.")
        if any(int(a) + 1 != int(b) for a, b in itertools.pairwise(ids)):
            raise ValueError(
                f"global_device_ids must sequentially increase: {global_device_ids}"
            )
        if len(dim_names) != global_device_ids.ndim:
            raise ValueError(
                "Number of mesh dimensions does not match number of dimension names."
            )
        if not isinstance(dim_names, (list, tuple)):
            raise TypeError(f"dim_names must be a list of str, got {dim_names!r}")
        names = [_check_text("A name of a mesh dimension", n) for n in dim_names]
        if not local_devices:
            raise ValueError("Empty list of devices not allowed.")
        if len(local_device_ids) != len(local_devices):
            raise ValueError(
                "Variable local_device_ids does not have same size as local_devices."
            )
        self._check_local(local_devices)
        if use_xla_spmd and self._type_of(local_devices) != "GPU":
            raise ValueError("XLA SPMD is not currently not supported for CPU mesh.")
        self._set(
            _check_text("mesh_name", mesh_name),
            list(zip(names, map(int, global_device_ids.shape))),
            [int(i) for i in ids],
            [int(i) for i in local_device_ids],
            [_device_text(x) for x in local_devices],
            [_device_text(x) for x in global_devices or ()],
        )

    @staticmethod
    def _check_local(devices):
        types = Mesh._types_of(devices)
        if len(types) > 1:
            raise ValueError(f"Devices containing multiple device_types : {types}")

    @staticmethod
    def _types_of(devices):
        specs = [
            x if isinstance(x, tf.DeviceSpec) else tf.DeviceSpec.from_string(x)
            for x in devices
        ]
        return {s.device_type for s in specs}

    @staticmethod
    def _type_of(devices):
        return min(map(str, Mesh._types_of(devices)), default="")

    def _set(self, name, dims, ids, local_ids, local, others, single=""):
        self._name, self._dims, self._global = name, tuple(dims), tuple(ids)
        self._ids, self._local, self._others = (
            tuple(local_ids),
            tuple(local),
            tuple(others),
        )
        self._key = (name, *map(tuple, (dims, ids, local_ids, local, others)), single)

    @classmethod
    def _of(cls, *parts, single=""):
        made = cls.__new__(cls)
        made._set(*parts, single=single)
        return made

    # --- other forms ---

    @classmethod
    def from_device(cls, device):
        """The mesh of the one device of that name."""
        _check_text("device", device)
        return cls._of("", (), (), (), (), (), single=device)

    @classmethod
    def from_string(cls, mesh_str):
        """The mesh of a text that `to_string` gave; ValueError for other texts."""
        _check_text("mesh_str", mesh_str)
        parts = mesh_str.split("|")
        if len(parts) == 1:
            if not mesh_str.startswith("/job:"):
                raise ValueError(f"Input string is invalid: {mesh_str}")
            return cls.from_device(mesh_str)
        if len(parts) == 3:
            return cls._generated(*parts)
        if not 5 <= len(parts) <= 7:
            raise ValueError(
                f"Expected either 5, 6, 7 or 3 mesh parts but found {len(parts)}"
            )
        if len(parts) == 7 and parts[6] == "use_xla_spmd":
            raise ValueError("XLA SPMD is not currently not supported for CPU mesh.")
        name, dims, ids, local_ids, local = parts[:5]
        others = parts[5] if len(parts) > 5 else ""
        split = [x.split(",") if x else [] for x in (local, others)]
        return cls._checked(
            name, _dimensions(dims), _numbers(ids), _numbers(local_ids), *split
        )

    @classmethod
    def _generated(cls, name, dims, rule):
        if rule[:1] != "*":
            raise ValueError(
                f"Expected a * in mesh_gen_instructions but found {rule[:20]}"
            )
        if rule[1:] not in ("CPU", "GPU", "TPU"):
            raise ValueError(f"Expected a device type behind * but found {rule[1:]!r}")
        sizes = _dimensions(dims)
        count = math.prod(size for _, size in sizes)
        if count > _MOST_DEVICES:
            raise ValueError(f"A mesh of {count} devices is too large")
        ids = list(range(count))
        local = [f"/job:localhost/task:0/device:{rule[1:]}:{i}" for i in ids]
        return cls._checked(name, sizes, ids, ids, local, [])

    @classmethod
    def _checked(cls, name, dims, ids, local_ids, local, others):
        count = math.prod(size for _, size in dims)
        if len(local) != len(local_ids):
            raise ValueError(
                f"number of global_device_ids {len(ids)} local_devices ids "
                f"{len(local_ids)} and local devices {len(local)} not meeting "
                "requirements"
            )
        if count != len(ids):
            raise ValueError(
                f"The dimensions of the mesh have {count} places, but there are "
                f"{len(ids)} global device ids"
            )
        if len({n for n, _ in dims}) != len(dims):
            raise ValueError("repeated mesh dimension")
        types = {_known_device(x) for x in (*local, *others)}
        if len(types) > 1:
            raise ValueError(
                f"More than one device type per mesh not supported. Found {len(types)}"
            )
        return cls._of(name, dims, ids, local_ids, local, others)

    @classmethod
    def from_proto(cls, proto):
        """The mesh of a MeshProto; ValueError where its parts do not fit."""
        if getattr(getattr(proto, "DESCRIPTOR", None), "name", "") != "MeshProto":
            raise TypeError(f"from_proto takes a MeshProto, got {type(proto)}")
        if proto.single_device:
            return cls.from_device(proto.single_device)
        dims = [(x.name, x.size) for x in proto.mesh_dimensions]
        return cls._checked(
            proto.name,
            dims,
            list(proto.global_device_ids),
            list(proto.local_device_ids),
            list(proto.local_devices),
            list(proto.global_devices),
        )

    def as_proto(self):
        """The mesh as a MeshProto."""
        proto = _protos.message("tensorflow.dtensor.MeshProto")()
        proto.name, proto.single_device = self._name, self.single_device
        for name, size in self._dims:
            proto.mesh_dimensions.add(name=name, size=size)
        proto.global_device_ids.extend(self._global)
        proto.local_device_ids.extend(self._ids)
        proto.local_devices.extend(self._local)
        proto.global_devices.extend(self._others)
        return proto

    def to_string(self):
        """The text of which from_string makes an equal mesh."""
        if self.is_single_device():
            return self.single_device
        if not self._global:
            return "empty_mesh"
        dims = ",".join(f"{n}={s}" for n, s in self._dims)
        parts = [self._name, dims]
        parts += [",".join(map(str, x)) for x in (self._global, self._ids, self._local)]
        if self._others:
            parts.append(",".join(self._others))
        return "|".join(parts)

    def __repr__(self):
        return f"Mesh.from_string({self.to_string()})"

    def __eq__(self, other):
        if not isinstance(other, Mesh):
            raise TypeError(
                f"A Mesh is compared with a Mesh, not with {type(other).__name__}."
            )
        return self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __reduce__(self):
        return Mesh._of_key, (self._key,)

    @staticmethod
    def _of_key(key):
        return Mesh._of(*key[:-1], single=key[-1])

    # --- what it has ---

    name = property(lambda self: self._name, doc="The name of the mesh, or ''.")
    dim_names = property(
        lambda self: [n for n, _ in self._dims], doc="The names of the dimensions."
    )
    size = property(
        lambda self: len(self._global), doc="The number of devices of all processes."
    )
    single_device = property(
        lambda self: self._key[-1], doc="The device of a mesh of one, else ''."
    )

    def shape(self):
        """The sizes of the dimensions: a list."""
        return [size for _, size in self._dims]

    @property
    def strides(self):
        """How far devices lie apart along each dimension: a list."""
        sizes = self.shape()
        return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]

    def __contains__(self, dim_name):
        return _check_text("dim_name", dim_name) in dict(self._dims)

    def contains_dim(self, dim_name):
        """Whether a dimension has that name."""
        return dim_name in self

    def __getitem__(self, dim_name):
        return MeshDimension(dim_name, self.dim_size(dim_name))

    def dim_size(self, dim_name):
        """The size of the dimension of that name; ValueError where there is none."""
        if dim_name not in self:
            raise ValueError(
                f"Dimension {dim_name} does not exist in mesh."
                f"Available dimensions: {','.join(self.dim_names)}"
            )
        return dict(self._dims)[dim_name]

    def coords(self, device_idx):
        """The coordinates of a device by its id: an int32 tensor [rank]."""
        sizes = np.array(self.shape(), np.int64)
        at = np.int64(device_idx) // np.array(self.strides, np.int64) % sizes
        return tf.constant(at, tf.int32)

    def device_location(self, offset):
        """The coordinates of the device at that place: a list."""
        if not 0 <= offset < self.size:
            raise ValueError(
                "Mesh offset cannot be negative or exceed Mesh's size. Offset size:"
                f"{offset} and Mesh size:{self.size}"
            )
        return [offset // k % n for k, n in zip(self.strides, self.shape())]

    def device_type(self):
        """ "CPU", or what else all of its devices are."""
        devices = self._local or self._others or (self.single_device,)
        return min((_type_in(x) for x in devices if x), default="")

    def global_device_ids(self):
        """The ids of all devices: an array of the mesh's shape."""
        return np.array(self._global).reshape(self.shape())

    def global_devices(self):
        """The names of all devices, where they were given: a list."""
        return list(self._others)

    def local_device_ids(self):
        """The ids of this process's devices: a list."""
        return list(self._ids)

    def local_devices(self):
        """The names of this process's devices: a list."""
        return list(self._local)

    def num_local_devices(self):
        """How many devices of the mesh this process has."""
        return len(self._local)

    def min_global_device_id(self):
        """The least id of its devices."""
        return min(self._global)

    def local_device_locations(self):
        """The coordinates of this process's devices, each a dict by the dimensions."""
        places = self.unravel_index()
        return [places[i - self._global[0]] for i in self._ids]

    def unravel_index(self):
        """{number of a device: {dimension: coordinate}}."""
        ranges = [range(size) for size in self.shape()]
        places = itertools.product(*ranges)
        return {i: dict(zip(self.dim_names, at)) for i, at in enumerate(places)}

    def is_remote(self):
        """Whether all of its devices are other processes'."""
        return not self._local and bool(self._global)

    def is_single_device(self):
        """Whether it is one device without dimensions."""
        return bool(self.single_device)

    def use_xla_spmd(self):
        """False: programs are not divided by a compiler."""
        return False

    def host_mesh(self):
        """The mesh of the CPUs beside the devices: of CPUs, itself."""
        if self.device_type() == "CPU":
            return self
        local = [
            tf.DeviceSpec.from_string(x).replace(device_type="CPU").to_string()
            for x in self._local
        ]
        return Mesh._of(*self._key[:4], local, self._others)
