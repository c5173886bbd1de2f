"""tf.experimental.dtensor.Layout: how a tensor is divided over the devices of a mesh."""

import enum

from headrace import _protos
from headrace.dtensor.mesh import Mesh

UNSHARDED = "unsharded"
MATCH = "match"


class LayoutType(enum.IntEnum):
    """The kinds of layouts, by their numbers in LayoutProto."""

    STATIC = 1
    PARTED = 2
    SINGLE_DEVICE = 3


_PREFIX = {"sharding_specs:": LayoutType.STATIC, "parted:": LayoutType.PARTED}
_OF_ONE = "maximal:true, mesh:"


class Layout:
    """A mesh, and for each dimension of a tensor the mesh's dimension that divides it.

    `sharding_specs` has the names of dimensions of the mesh, each at most once, UNSHARDED
    where a dimension of the tensor is whole on all devices, or MATCH, for `relayout`.
    """

    __slots__ = ("_mesh", "_specs", "_type")

    def __init__(self, sharding_specs, mesh):
        if not isinstance(mesh, Mesh):
            raise ValueError("mesh is not a valid Mesh object.")
        for i, spec in enumerate(sharding_specs):
            if spec in (UNSHARDED, MATCH):
                continue
            if spec not in mesh:
                raise ValueError(
                    f"{spec}: A dimension sharding must either be a valid mesh "
                    "dimension or UNSHARDED."
                )
            if spec in sharding_specs[i + 1 :]:
                raise ValueError(
                    f"Mesh dimension {spec} was repeated in sharding specification "
                    f"{sharding_specs}. Mesh dimensions must be unique in a layout."
                )
        if not isinstance(sharding_specs, (list, tuple)):
            raise TypeError(
                f"sharding_specs must be a list of str, got {sharding_specs!r}"
            )
        self._set(LayoutType.STATIC, sharding_specs, mesh)

    def _set(self, kind, specs, mesh):
        self._type, self._specs, self._mesh = kind, tuple(specs), mesh

    @classmethod
    def _of(cls, kind, specs, mesh):
        made = cls.__new__(cls)
        made._set(kind, specs, mesh)
        return made

    @classmethod
    def _checked(cls, kind, specs, mesh):
        """A layout of what others wrote; ValueError where it does not fit the mesh."""
        seen = set()
        for spec in specs:
            if spec in (UNSHARDED, "any"):
                continue
            if spec != MATCH and spec not in mesh:
                raise ValueError(
                    f"sharding spec ({spec}) refers to mesh dimension not contained in "
                    f"mesh {mesh.to_string()}"
                )
            if spec in seen:
                raise ValueError(
                    "Attempted to shard two or more tensor dimensions over mesh "
                    f"dimension {spec}"
                )
            seen.add(spec)
        return cls._of(kind, specs, mesh)

    # --- making them ---

    @classmethod
    def replicated(cls, mesh, rank):
        """Of tensors of that rank, whole on all devices."""
        return cls([UNSHARDED] * _rank(rank), _mesh(mesh))

    @classmethod
    def batch_sharded(cls, mesh, batch_dim, rank, axis=0):
        """Divided along one dimension, the first where `axis` does not say another."""
        rank = _rank(rank)
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} is not within a tensor of rank {rank}.")
        if batch_dim not in _mesh(mesh):
            raise RuntimeError(
                f"sharding spec ({batch_dim}) refers to mesh dimension not contained in "
                f"mesh {mesh.to_string()}"
            )
        specs = [UNSHARDED] * rank
        specs[axis] = batch_dim
        return cls(specs, mesh)

    @classmethod
    def inner_sharded(cls, mesh, inner_dim, rank):
        """Divided along the last dimension."""
        return cls.batch_sharded(mesh, inner_dim, rank, axis=rank - 1)

    @classmethod
    def from_single_device_mesh(cls, mesh):
        """Of tensors on the one device of a mesh without dimensions."""
        if not _mesh(mesh).is_single_device():
            raise ValueError("type is single device, but mesh is not single device")
        return cls._of(LayoutType.SINGLE_DEVICE, (), mesh)

    @classmethod
    def from_device(cls, device):
        """Of tensors on the device of that name."""
        return cls.from_single_device_mesh(Mesh.from_device(device))

    @classmethod
    def from_string(cls, layout_str):
        """The layout of a text that `to_string` gave; ValueError for other texts."""
        if not isinstance(layout_str, str):
            raise TypeError(f"from_string takes a str, got {type(layout_str).__name__}")
        parts = layout_str.split(" ", 1)
        if len(parts) != 2:
            raise ValueError(f"Expected 2 items but found 1{layout_str}")
        specs, mesh_text = parts
        mesh = Mesh.from_string(mesh_text.removeprefix("mesh:"))
        if layout_str.startswith(_OF_ONE):
            return cls.from_single_device_mesh(mesh)
        for prefix, kind in _PREFIX.items():
            if specs.startswith(prefix):
                names = specs.removeprefix(prefix).split(",")
                # The last one ends in a comma; "scalar" stands for no dimension.
                names = [] if names[0] == "scalar" else names[:-1]
                return cls._checked(kind, names, mesh)
        raise ValueError(f"Unknown layout type prefix {specs} in {layout_str}")

    @classmethod
    def from_proto(cls, layout_proto):
        """The layout of a LayoutProto; ValueError where its parts do not fit."""
        name = getattr(getattr(layout_proto, "DESCRIPTOR", None), "name", "")
        if name != "LayoutProto":
            raise TypeError(f"from_proto takes a LayoutProto, got {type(layout_proto)}")
        mesh = Mesh.from_proto(layout_proto.mesh_config)
        if layout_proto.type not in set(LayoutType):
            raise ValueError("The type of the layout is unknown")
        if layout_proto.type == LayoutType.SINGLE_DEVICE:
            return cls.from_single_device_mesh(mesh)
        specs = [s.sharding_spec for s in layout_proto.sharding_specs]
        return cls._checked(LayoutType(layout_proto.type), specs, mesh)

    # --- other forms ---

    def as_proto(self):
        """The layout as a LayoutProto."""
        proto = _protos.message("tensorflow.dtensor.LayoutProto")()
        for spec in self._specs:
            proto.sharding_specs.add(sharding_spec=spec)
        proto.mesh_config.CopyFrom(self._mesh.as_proto())
        proto.type = int(self._type)
        return proto

    def to_string(self):
        """The text of which from_string makes an equal layout."""
        if self.is_single_device():
            return _OF_ONE + self._mesh.to_string()
        prefix = next(p for p, kind in _PREFIX.items() if kind == self._type)
        specs = "".join(f"{s}," for s in self._specs)
        return f"{prefix}{specs} mesh:{self._mesh.to_string()}"

    def __repr__(self):
        return f"Layout.from_string({self.to_string()})"

    def _key(self):
        return self._type, self._specs, self._mesh

    def __eq__(self, other):
        if not isinstance(other, Layout):
            raise TypeError(
                f"A Layout is compared with a Layout, not with {type(other).__name__}."
            )
        return self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __reduce__(self):
        return Layout._of, self._key()

    # --- what it has ---

    mesh = property(lambda self: self._mesh, doc="The mesh.")
    type = property(lambda self: self._type, doc="The LayoutType.")
    rank = property(lambda self: len(self._specs), doc="The rank of its tensors.")
    sharding_specs = property(
        lambda self: list(self._specs),
        doc="Of each dimension of a tensor the mesh's dimension, or UNSHARDED: a list.",
    )
    shape = property(lambda self: self._mesh.shape(), doc="The mesh's shape: a list.")

    def num_shards(self, idx):
        """How many shards the dimension `idx` of a tensor has."""
        if not 0 <= idx < self.rank:
            raise IndexError(f"A layout of rank {self.rank} has no dimension {idx}.")
        spec = self._specs[idx]
        return self._mesh.dim_size(spec) if spec in self._mesh else 1

    def is_fully_replicated(self):
        """Whether all devices have the whole tensor."""
        return all(self.num_shards(i) == 1 for i in range(self.rank))

    def is_batch_parallel(self):
        """Whether no dimension but the first is divided."""
        return all(self.num_shards(i) == 1 for i in range(1, self.rank))

    def is_single_device(self):
        """Whether it is of tensors on one device."""
        return self._type == LayoutType.SINGLE_DEVICE

    def local_shape_from_global_shape(self, global_shape):
        """The sizes of one device's part of a tensor, as a tuple; -1 where unknown."""
        return tuple(
            n if n is None or n < 0 else n // k
            for n, k in zip(global_shape, self._counts(global_shape))
        )

    def global_shape_from_local_shape(self, local_shape):
        """The sizes of a tensor whose parts have those, as a tuple; -1 where unknown."""
        return tuple(
            n if n is None or n < 0 else n * k
            for n, k in zip(local_shape, self._counts(local_shape))
        )

    def _counts(self, shape):
        if len(shape) != self.rank and not self.is_single_device():
            raise ValueError(
                f"A shape of rank {len(shape)} does not fit a layout of rank "
                f"{self.rank}."
            )
        if self.is_single_device():
            return [1] * len(shape)
        return [self.num_shards(i) for i in range(self.rank)]

    def _shard_at(self, place):
        """Which shard a device has, by its place {dimension: coordinate}: a tuple."""
        return tuple(place.get(s, 0) for s in self._specs)

    def offset_to_shard(self):
        """Of each device, in order, which shard it has: a list of tuples."""
        return [self._shard_at(p) for p in self._mesh.unravel_index().values()]

    def offset_tuple_to_global_index(self, offset_tuple):
        """The number of the first device that has the shard of that tuple."""
        index = 0
        for dim, stride in zip(self._mesh.dim_names, self._mesh.strides):
            if dim in self._specs:
                index += offset_tuple[self._specs.index(dim)] * stride
        return index

    def delete(self, dims):
        """The layout without the dimensions of those numbers."""
        for i in dims:
            if not 0 <= i < self.rank:
                raise IndexError(f"A layout of rank {self.rank} has no dimension {i}.")
        kept = [s for i, s in enumerate(self._specs) if i not in dims]
        return Layout._of(self._type, kept, self._mesh)

    def to_parted(self):
        """The layout as a parted one."""
        return Layout._of(LayoutType.PARTED, self._specs, self._mesh)

    # --- for the package ---

    def _like(self, specs):
        """A static layout on the same mesh; a dimension of it that comes twice, or
        divides nothing, counts once or not."""
        return Layout._of(LayoutType.STATIC, specs, self._mesh)

    def _slices(self, shape):
        """Of each local device, in order, the slices of its part of the whole."""
        sizes = self.local_shape_from_global_shape(shape)
        for place in self._mesh.local_device_locations():
            at = self._shard_at(place)
            yield tuple(slice(i * n, (i + 1) * n) for i, n in zip(at, sizes))


def _mesh(mesh):
    if not isinstance(mesh, Mesh):
        raise TypeError(f"mesh must be a Mesh, got {type(mesh).__name__}")
    return mesh


def _rank(rank):
    if not isinstance(rank, int):
        raise TypeError(f"rank must be an int, got {type(rank).__name__}")
    if not 0 <= rank <= _MOST_RANK:
        raise ValueError(f"rank {rank} is not between 0 and {_MOST_RANK}.")
    return rank


_MOST_RANK = 254  # of a tensor's shape
