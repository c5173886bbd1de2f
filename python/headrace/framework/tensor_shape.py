"""tf.TensorShape: sizes that may be unknown, of a rank that may be unknown."""

import operator
import sys

from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.framework.support import protos
from headrace.framework.dimension import Dimension


def dimension_value(dimension):
    """The int (or None) of what TensorFlow 1 held in Dimension objects."""
    return getattr(dimension, "value", dimension)


def dimension_at_index(shape, index):
    """The size at `index` of a shape, None where the rank is unknown."""
    return None if shape.rank is None else shape._dims[index]


def _as_dim(value):
    if value is None:
        return None
    if hasattr(value, "_dims"):
        raise TypeError(
            "Dimension value must be integer or None or have an __index__ method, "
            f"got value '{value!r}' with type '{type(value)!r}'"
        )
    value = dimension_value(value)
    if value is None:
        return None
    try:
        value = operator.index(value)
    except (TypeError, AttributeError):
        raise TypeError(
            "Dimension value must be integer or None or have an __index__ method, "
            f"got value '{value!r}' with type '{type(value)!r}'"
        ) from None
    if value < 0:
        raise ValueError(f"Dimension {value} must be >= 0")
    return value


class TensorShape:
    """The shape of a tensor, known as far as it is known. Immutable."""

    __slots__ = ("_dims",)

    def __init__(self, dims):
        if type(dims) is tuple:
            for d in dims:
                if d is not None and (type(d) is not int or d < 0):
                    break
            else:
                self._dims = dims
                return
        if dims is None:
            self._dims = None
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif isinstance(dims, (tuple, list, range)):
            self._dims = tuple(_as_dim(d) for d in dims)
        elif hasattr(dims, "unknown_rank") and hasattr(dims, "dim"):
            self._dims = (
                None
                if dims.unknown_rank
                else tuple(None if d.size == -1 else int(d.size) for d in dims.dim)
            )
        else:
            try:
                items = list(dims)
            except TypeError:
                items = [dims]
            self._dims = tuple(_as_dim(d) for d in items)

    @property
    def rank(self):
        """How many dimensions there are; None where that is not known."""
        return None if self._dims is None else len(self._dims)

    ndims = read_only("rank", "The same as `rank`.")

    @property
    def dims(self):
        """The sizes as the Dimension objects of TensorFlow 1."""
        if self._dims is None:
            return None
        return [Dimension(d) for d in self._dims]

    def as_list(self):
        """The sizes, None for unknown ones; ValueError for an unknown rank."""
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def as_proto(self):
        """The shape as a TensorShapeProto."""
        proto = protos.TensorShapeProto
        if self._dims is None:
            return proto(unknown_rank=True)
        dims = [proto.Dim(size=-1 if d is None else d) for d in self._dims]
        return proto(dim=dims)

    experimental_as_proto = as_proto

    @classmethod
    def experimental_from_proto(cls, proto):
        """The shape of a TensorShapeProto."""
        return cls(proto)

    @classmethod
    def experimental_type_proto(cls):
        """The class TensorShapeProto."""
        return protos.TensorShapeProto

    def num_elements(self):
        """The product of the sizes; None where one is not known."""
        if not self.is_fully_defined():
            return None
        count = 1
        for d in self._dims:
            count *= d
        return count

    def is_fully_defined(self):
        """Whether the rank and all sizes are known."""
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self):
        """Raises ValueError where something is not known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other):
        """Whether one shape could be both."""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, other._dims)
        )

    def assert_is_compatible_with(self, other):
        """Raises ValueError where no shape could be both."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def assert_same_rank(self, other):
        """Raises ValueError where the ranks are known to differ."""
        other = as_shape(other)
        if None not in (self.rank, other.rank) and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_has_rank(self, rank):
        """Raises ValueError where the rank is known to be another."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def with_rank(self, rank):
        """The shape with that rank; ValueError where it has another."""
        try:
            return self.merge_with(unknown_shape(rank))
        except ValueError:
            raise ValueError(f"Shape {self} must have rank {rank}") from None

    def with_rank_at_least(self, rank):
        """The shape; ValueError where its rank is known to be less."""
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank):
        """The shape; ValueError where its rank is known to be more."""
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def merge_with(self, other):
        """What either knows; ValueError where the two differ."""
        other = as_shape(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        return TensorShape(
            [b if a is None else a for a, b in zip(self._dims, other._dims)]
        )

    def concatenate(self, other):
        """This shape's dimensions and then the other's."""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return unknown_shape()
        return TensorShape(self._dims + other._dims)

    def most_specific_compatible_shape(self, other):
        """What both agree in, None for sizes that differ."""
        other = as_shape(other)
        if self.rank is None or other.rank is None or self.rank != other.rank:
            return unknown_shape()
        return TensorShape(
            [a if a == b else None for a, b in zip(self._dims, other._dims)]
        )

    def is_subtype_of(self, other):
        """Whether the other shape says no more than this one, and nothing else."""
        other = as_shape(other)
        if other._dims is None:
            return True
        if self._dims is None or len(self._dims) != len(other._dims):
            return False
        return all(b is None or a == b for a, b in zip(self._dims, other._dims))

    def most_specific_common_supertype(self, others):
        """What all agree in; None where there is nothing."""
        if not all(isinstance(o, TensorShape) for o in others):
            return None
        result = self
        for other in others:
            result = result.most_specific_compatible_shape(other)
        return result

    def placeholder_value(self, placeholder_context=None):
        """The shape itself: shapes are their own placeholders in tracing."""
        return self

    def __add__(self, other):
        return self.concatenate(other)

    def __radd__(self, other):
        return as_shape(other).concatenate(self)

    def __getitem__(self, key):
        if self._dims is not None:
            if isinstance(key, slice):
                return TensorShape(self._dims[key])
            return self._dims[key]
        if isinstance(key, slice):
            start = key.start or 0
            if key.step not in (None, 1):
                raise ValueError("Steps are not yet handled")
            if key.stop is None or start < 0 or key.stop < 0:
                return unknown_shape()
            return unknown_shape(max(key.stop - start, 0))
        return None

    def __len__(self):
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __iter__(self):
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    def __bool__(self):
        return self._dims is not None

    __nonzero__ = __bool__

    def __eq__(self, other):
        try:
            other = as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented
        return self._dims == other._dims

    def __hash__(self):
        return hash(self._dims)

    def __str__(self):
        if self._dims is None:
            return "<unknown>"
        if len(self._dims) == 1:
            return f"({self._dims[0]},)"
        return "(" + ", ".join(str(d) for d in self._dims) + ")"

    def __repr__(self):
        dims = None if self._dims is None else list(self._dims)
        return f"TensorShape({dims})"

    def __reduce__(self):
        return TensorShape, (None if self._dims is None else list(self._dims),)

    def __concat__(self, other):
        return self.concatenate(other)


_SIZES = {
    name: getattr(TensorShape, name)
    for name in ("__getitem__", "__iter__", "__str__", "__repr__")
}


def _wants_sizes():
    """Whether the caller's caller is part of this package, which reads sizes."""
    return sys._getframe(2).f_globals.get("__name__", "").startswith("headrace.")


def _dimension(self, key):
    found = _SIZES["__getitem__"](self, key)
    if isinstance(found, TensorShape) or _wants_sizes():
        return found
    return Dimension(found)


def _dimensions(self):
    sizes = _SIZES["__iter__"](self)
    return sizes if _wants_sizes() else map(Dimension, sizes)


def _text_of_dimensions(self):
    return _SIZES["__str__"](self).replace("None", "?")


def _repr_of_dimensions(self):
    return f"TensorShape({self.dims})"


def use_dimensions(on):
    """Whether programs meet Dimension objects in shapes, as in TensorFlow 1. This
    package's own code reads sizes either way."""
    members = _SIZES
    if on:
        members = {
            "__getitem__": _dimension,
            "__iter__": _dimensions,
            "__str__": _text_of_dimensions,
            "__repr__": _repr_of_dimensions,
        }
    for name, member in members.items():
        setattr(TensorShape, name, member)


def as_shape(shape):
    """`shape` itself when it is a TensorShape, else a new one."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(rank=None):
    """A shape of that rank with every size unknown."""
    return TensorShape(None if rank is None else [None] * rank)


_headrace.set_shape_class(TensorShape)
