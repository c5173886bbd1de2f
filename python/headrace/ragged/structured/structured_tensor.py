"""tf.experimental.StructuredTensor: records with named fields, in a ragged shape."""

import re
from typing import Mapping, Union

from headrace import _names
from headrace._load import _headrace
from headrace.context import errors
from headrace.framework import conversion, dtypes, tensor_shape
from headrace.framework.extension import batches
from headrace.framework.extension.extension_type import ExtensionType
from headrace.framework.type_spec import TypeSpec
from headrace.ops import array_ops
from headrace.ragged import convert
from headrace.ragged.dynamic_shape import DynamicRaggedShape
from headrace.ragged.parts import checked_axis, is_ragged
from headrace.ragged.ragged_tensor import RaggedTensor
from headrace.ragged.ragged_value import RaggedTensorValue
from headrace.ragged.row_partition import RowPartition

_FIELD_NAME = re.compile("[a-zA-Z][a-zA-Z0-9_]*")
_FAILED = "`StructuredTensor.with_updates`"


class Spec:
    """What a StructuredTensor is like: the specs of its fields and of its shape."""

    @classmethod
    def _from_fields_and_rank(cls, fields, rank):
        """The spec of records in `rank` dimensions, which all fields begin with."""
        if not fields:
            raise ValueError("Must provide at least one field")
        shape = None
        for name, spec in fields.items():
            found = _shape_spec(spec)
            if found.rank is not None and found.rank < rank:
                raise ValueError(
                    f"Rank of field {name} is {found.rank}, but must be at least {rank}."
                )
            found = found._truncate(rank)
            shape = found if shape is None else shape._merge_with(found)
        return cls(_fields=fields, _ragged_shape=shape)

    @classmethod
    def _from_shape(cls, shape):
        """The spec of records without fields, of the spec of a shape."""
        return cls(_fields={}, _ragged_shape=shape)

    @property
    def _field_specs(self):
        return self._fields

    @property
    def shape(self):
        """The static shape of the records, None for ragged dimensions."""
        return self._ragged_shape._to_tensor_shape()

    _shape = shape

    @property
    def rank(self):
        """The number of dimensions of the records."""
        return self._ragged_shape.rank


def _shape_spec(spec):
    own = getattr(spec, "_ragged_shape", None)
    own = DynamicRaggedShape.Spec._from_spec(spec if own is None else own)
    if own is None:
        raise ValueError(f"The shape of {spec} is not known")
    return own


class StructuredTensor(batches.BatchableExtensionType):
    """Records in a ragged shape; the field of a name of all of them is one tensor.

    A field is a tensor, a ragged tensor or a StructuredTensor (or an extension type that
    tf.shape takes), whose first dimensions are those of the records.
    """

    _fields: Mapping[
        str,
        Union[_headrace.Tensor, RaggedTensor, "StructuredTensor", ExtensionType],
    ]
    _ragged_shape: DynamicRaggedShape

    FieldName = Union[str, "tuple[str, ...]"]
    Spec = Spec

    def __init__(self, fields, ragged_shape):
        self._fields = fields
        self._ragged_shape = ragged_shape

    # --- Making them.
    @classmethod
    def from_fields(
        cls, fields, shape=(), nrows=None, row_partitions=None, validate=False
    ):
        """Of fields by name, and the static shape of the records.

        What the shape leaves open is that of the fields; without fields `nrows` (rank 1)
        or `row_partitions` (one less than the rank) say it. TypeError for names that are
        no strings and values that are no tensors; ValueError for names that are not
        letters, digits and underscores, and where shapes differ.
        """
        shape = tensor_shape.as_shape(shape)
        if shape.rank is None:
            raise ValueError("StructuredTensor's shape must have known rank.")
        if not isinstance(fields, dict):
            raise TypeError(f"fields must be a dictionary, got {type(fields).__name__}")
        if shape.rank < 2 and row_partitions:
            raise ValueError("row_partitions must be None or [] if shape.rank<2")
        if not shape.rank and nrows is not None:
            raise ValueError("nrows must be None if shape.rank==0")
        if shape.rank >= 2 and row_partitions is not None:
            if len(row_partitions) != shape.rank - 1:
                raise ValueError("len(row_partitions) must be shape.rank-1")
        fields = _converted(fields)
        for value in fields.values():
            _check_shape(shape, value.shape[: shape.rank])
        given = _given_shape(shape, nrows, row_partitions, bool(fields))
        return cls._of(fields, shape.rank, given, shape, validate)

    @classmethod
    def from_fields_and_rank(cls, fields, rank, validate=False, dtype=None):
        """Of fields by name: the records have the first `rank` dimensions of these.

        `dtype` is that of the shape, int32 or int64. ValueError without fields, and where
        their shapes differ.
        """
        if not fields:
            raise ValueError("Must provide at least one field")
        if not isinstance(rank, int):
            raise ValueError("rank must be an integer")
        if rank < 0:
            raise ValueError("rank must be nonnegative")
        open_shape = tensor_shape.TensorShape([None] * rank)
        return cls._of(_converted(fields), rank, None, open_shape, validate, dtype)

    @classmethod
    def from_shape(cls, ragged_shape):
        """Records without fields, in a DynamicRaggedShape."""
        return cls({}, ragged_shape)

    @classmethod
    def _of(cls, fields, rank, given, static, validate, dtype=None):
        found = {} if given is None else {None: given}
        for name, value in fields.items():
            found[name] = _shape_of_field(name, value, rank)
        if dtype is None:
            kinds = {s.dtype for n, s in found.items() if _has_dtype(fields.get(n), s)}
            dtype = kinds.pop() if len(kinds) == 1 else dtypes.int64
        shape = None
        for name, one in found.items():
            one = one.with_dtype(dtype)
            if shape is None:
                shape = _narrowed(one, static)
                continue
            try:
                shape = _merged(shape, one, validate)
            except (ValueError, errors.InvalidArgumentError) as e:
                raise ValueError(f"Error in shape of {name}") from e
        fields = {k: _with_dtype(v, dtype) for k, v in fields.items()}
        return cls(fields, shape)

    @classmethod
    def from_pyval(cls, pyval, typespec=None):
        """Of dicts, in nested lists, with values or nested lists and dicts of such.

        What holds no dict becomes a tensor or a ragged tensor. `typespec` says more of
        dtypes and shapes. ValueError for dicts at different depths and values that do not
        make a tensor or do not fit the spec, KeyError for a dict without a key of others.
        """
        return pyvals.from_pyval(cls, pyval, typespec, ())

    # --- What they are.
    @property
    def rank(self):
        """The number of dimensions of the records: an int."""
        return self._ragged_shape.rank

    @property
    def shape(self):
        """The static shape of the records, None for ragged dimensions."""
        return self._ragged_shape._to_tensor_shape()

    @property
    def row_partitions(self):
        """A tuple of the RowPartitions of all dimensions but the first."""
        return self._ragged_shape._as_row_partitions() if self.rank > 1 else ()

    def nrows(self):
        """The size of the first dimension: a scalar, or None where there is none."""
        return self._ragged_shape[0] if self.rank else None

    def field_names(self):
        """A tuple of the names of the fields."""
        return tuple(self._fields)

    def field_value(self, field_name):
        """The tensor of a field, by its name or, below other fields, a tuple of names.

        KeyError where there is none.
        """
        if not isinstance(field_name, (list, tuple)):
            return self._fields[field_name]
        value = self
        for name in field_name:
            if not isinstance(value, StructuredTensor) or name not in value._fields:
                raise KeyError(f"Field path {field_name} not found in {self}")
            value = value._fields[name]
        return value

    def to_pyval(self):
        """The records as dicts in nested lists. ValueError in graphs."""
        return pyvals.to_pyval(self)

    def __getitem__(self, key):
        """Some of the records, or, behind as many keys as these have dimensions, a field
        by its name, and of that what further keys say.

        ValueError for single rows of ragged dimensions other than the first.
        """
        keys = tuple(key) if isinstance(key, (list, tuple)) else (key,)
        if not self.rank:
            return self._scalar_item(keys)
        keys += (slice(None),) * (self.rank - len(keys))
        outer, inner = keys[: self.rank], keys[self.rank :]
        if any(k is ... or k is None for k in outer):
            shown = "Ellipsis" if any(k is ... for k in outer) else "newaxis"
            raise ValueError(f"Slicing not supported for {shown}")
        if inner:
            name, *rest = inner
            if not isinstance(name, str):
                raise ValueError("Key for indexing a StructuredTensor must be a string")
            return self.field_value(name)[(*outer, *rest)]
        rows = self.shape[0]
        if isinstance(outer[0], int) and rows is not None:
            if not -rows <= outer[0] < rows:
                raise IndexError(f"Row key {outer[0]} out of bounds")
        shape = self._ragged_shape
        nothing = shape._add_row_partitions(array_ops.zeros(shape.inner_shape))
        shape = DynamicRaggedShape.from_tensor(nothing[outer], shape.dtype)
        fields = {k: v[outer] for k, v in self._fields.items()}
        return StructuredTensor(fields, shape)

    def _scalar_item(self, keys):
        if not keys or isinstance(keys[0], slice) and keys[0] == slice(None):
            return self[keys[1:]] if len(keys) > 1 else self
        name, *rest = keys
        if not isinstance(name, str):
            raise ValueError(
                "Key for indexing a StructuredTensor must be a string or a full slice "
                "(':')"
            )
        value = self.field_value(name)
        return value[tuple(rest)] if rest else value

    def __repr__(self):
        fields = ",".join(
            f'\n        "{name}": '
            + str(self._fields[name]).replace("\n", "\n" + " " * 12)
            for name in sorted(self._fields)
        )
        return (
            f"<StructuredTensor(\n    fields={{{fields or chr(10) + ' ' * 8}}},\n"
            f"    shape={tuple(self.shape.as_list())})>"
        )

    # --- Others like them.
    def with_shape_dtype(self, dtype):
        """The same with int32 or int64 for the sizes and row splits of all fields."""
        fields = {k: _with_dtype(v, dtype) for k, v in self._fields.items()}
        return StructuredTensor(fields, self._ragged_shape.with_dtype(dtype))

    def with_updates(self, updates, validate=False):
        """The same with other fields: by name or tuple of names a value, a function of
        the field's value, or None, which takes the field away.

        ValueError for a function of, or None for, a field that is not there, for fields
        below what is no StructuredTensor, and for values of other shapes.
        """
        by_path = [(_path(k), v) for k, v in updates.items()]
        for parent, _ in by_path:
            for child, _ in by_path:
                if parent != child and child[: len(parent)] == parent:
                    raise ValueError(
                        f"{_FAILED} does not allow both parent and child nodes to be "
                        f"updated: parent={parent}, child={child}. If needed you can "
                        "update child nodes in the parent update value."
                    )
        return self._updated((), by_path, validate)

    def _updated(self, prefix, updates, validate):
        fields, deeper = dict(self._fields), {}
        for path, value in updates:
            name = path[0]
            if len(path) > 1:
                deeper.setdefault(name, []).append((path[1:], value))
            elif value is None:
                if name not in fields:
                    raise ValueError(
                        f"{_FAILED} cannot delete field {(*prefix, name)} because it is "
                        "not present."
                    )
                del fields[name]
            else:
                fields[name] = _new_value(fields, prefix, name, value)
        for name, below in deeper.items():
            parent, child = (*prefix, name), (*prefix, name, below[0][0][0])
            self._check_parent(parent, child)
            fields[name] = self._fields[name]._updated(parent, below, validate)
        if not fields:
            return StructuredTensor.from_shape(self._ragged_shape)
        try:
            fields, shape = _converted(fields), self._ragged_shape
            return self._of(fields, self.rank, shape, self.shape, validate)
        except ValueError as e:
            where = f" for field {prefix}" if prefix else ""
            raise ValueError(f"{_FAILED} failed{where}") from e

    def _check_parent(self, parent, child):
        value = self._fields.get(parent[-1])
        if value is None:
            raise ValueError(
                f"{_FAILED} cannot create new sub-field {child} if parent field {parent} "
                "is not set."
            )
        if not isinstance(value, StructuredTensor):
            raise ValueError(
                f"{_FAILED} cannot create new sub-field {child} if parent structure "
                f"{parent} is not a `StructuredTensor` that can contain sub-structures "
                f"-- it is a `{type(value)}`."
            )

    def promote(self, source_path, new_name):
        """The same with a field once more, one level further out, under a new name.

        `source_path` is a tuple of at least two names. The records that it is within are
        those of the field two levels up: what their dimensions divided is one row.
        """
        if not isinstance(source_path, (list, tuple)):
            raise ValueError("source_path must be a list or tuple")
        if len(source_path) < 2:
            raise ValueError("source_path must have length at least two")
        if not isinstance(new_name, str):
            raise ValueError("new_name is not a string")
        *outer, parent, name = source_path
        grand = self.field_value(outer)
        parent = grand.field_value(parent)
        value = parent.field_value(name)
        last = min(parent.rank, value.shape.rank - 1)
        if last > grand.rank:
            value = _merged_dims(value, grand.rank, last)
        return self.with_updates({(*outer, new_name): value})

    def merge_dims(self, outer_axis, inner_axis):
        """The records with dimensions outer_axis to inner_axis as one."""
        outer = checked_axis(outer_axis, self.rank, "outer_axis")
        inner = checked_axis(inner_axis, self.rank, "inner_axis")
        if outer > inner:
            raise ValueError(
                f"Expected outer_axis ({outer_axis}) to be less than or equal to "
                f"inner_axis ({inner_axis})"
            )
        fields = {k: _merged_dims(v, outer, inner) for k, v in self._fields.items()}
        return StructuredTensor(fields, self._ragged_shape._merge_dims(outer, inner))

    def partition_outer_dimension(self, row_partition):
        """The records, whose first dimension is cut into the rows of a RowPartition: one
        more dimension.

        TypeError for what is no RowPartition, ValueError for records of rank 0,
        InvalidArgumentError for a partition of another number of values.
        """
        if not isinstance(row_partition, RowPartition):
            raise TypeError("row_partition must be a RowPartition.")
        self.shape.with_rank_at_least(1)
        partition = row_partition.with_dtype(self._ragged_shape.dtype)
        fields = {k: _partitioned(v, partition) for k, v in self._fields.items()}
        shape = self._ragged_shape
        shape = DynamicRaggedShape(
            [partition, *shape.row_partitions], shape.inner_shape, shape.dtype
        )
        return StructuredTensor(fields, shape)


def _path(key):
    path = tuple(key) if isinstance(key, (list, tuple)) else (key,)
    if not path or any(name == "" for name in path):
        raise ValueError(f"{_FAILED} does not allow empty names {(key,)}.")
    for name in path:
        if not isinstance(name, str):
            raise TypeError(f"Unexpected type for key in `updates`: {key!r}")
    return path


def _new_value(fields, prefix, name, value):
    if not callable(value):
        return value
    if name not in fields:
        raise ValueError(
            f"{_FAILED} cannot update the field {(*prefix, name)} because a transforming "
            "function was given, but that field does not already exist."
        )
    return value(fields[name])


def _converted(fields):
    """Fields with names and values that are allowed."""
    result = {}
    for name, value in fields.items():
        if not isinstance(name, str):
            raise TypeError(f"Unexpected type for key in `fields`: {name}")
        if not _FIELD_NAME.fullmatch(name):
            raise ValueError(f"Field name {name!r} is not currently allowed.")
        if isinstance(value, RaggedTensorValue):
            value = RaggedTensor.from_nested_row_splits(
                value.flat_values, value.nested_row_splits, validate=False
            )
        elif not (is_ragged(value) or isinstance(value, ExtensionType)):
            try:
                value = conversion.convert_to_tensor(value)
            except (TypeError, ValueError) as e:
                raise TypeError(
                    f"Unexpected type for value in `fields`: {value}"
                ) from e
        result[name] = value
    return result


def _given_shape(shape, nrows, row_partitions, has_fields):
    """The shape that is said without fields, or None."""
    if not shape.rank:
        return DynamicRaggedShape([], array_ops.zeros([0], dtypes.int64))
    if row_partitions:
        found = DynamicRaggedShape.from_row_partitions(row_partitions)
        return _narrowed(found, shape)
    if shape.is_fully_defined():
        return DynamicRaggedShape._from_inner_shape(shape.as_list())
    if nrows is not None and shape.rank == 1:
        nrows = conversion.convert_to_tensor(nrows, dtype_hint=dtypes.int64)
        return DynamicRaggedShape([], array_ops.reshape(nrows, [1]))
    if has_fields:
        return None
    if shape.rank == 1:
        raise ValueError(
            "Must specify `nrows`, a fully specified `shape`, or have `fields` if "
            "`rank=1`"
        )
    raise ValueError(
        "Must specify row_partitions, a fully specified shape, or have fields if rank > 1"
    )


def _shape_of_field(name, value, rank):
    """The first dimensions of a field, as many as the records have."""
    try:
        found = value
        if isinstance(value, ExtensionType) and not isinstance(value, StructuredTensor):
            found = _names.public("shape")(value, out_type=dtypes.int64)
            if not isinstance(found, DynamicRaggedShape):
                found = DynamicRaggedShape._from_inner_shape(found)
        else:
            found = DynamicRaggedShape.from_tensor(
                value, None if _has_dtype(value, None) else dtypes.int64
            )
    except (TypeError, ValueError, AttributeError) as e:
        raise ValueError(f"Error in shape of {name}") from e
    if found.rank is not None and found.rank < rank:
        raise ValueError(
            f"Rank of field {name} is {found.rank}, but must be at least {rank}."
        )
    return found[:rank]


def _has_dtype(value, shape):
    """Whether a value's rows come with a dtype of their own."""
    return is_ragged(value) or isinstance(value, StructuredTensor)


def _check_shape(wanted, found):
    if not wanted.is_compatible_with(found):
        raise ValueError(f"Shapes {wanted} and {found} are not compatible")


def _narrowed(shape, static):
    """The shape, of which is known what a TensorShape says."""
    _check_shape(static, shape._to_tensor_shape())
    if static.rank is None or not any(static.as_list()):
        return shape
    spec = DynamicRaggedShape.Spec._from_tensor_shape(static, 0, shape.dtype)
    return shape._merge_with_spec(spec)


def _merged(a, b, validate):
    """One shape of two, which must be equal; in graphs that is checked where wanted."""
    count = max(a.num_row_partitions, b.num_row_partitions)
    a, b = (
        s._with_num_row_partitions(count) if s.num_row_partitions < count else s
        for s in (a, b)
    )
    static = a._static_inner_shape.merge_with(b._static_inner_shape)
    pairs = zip(a.row_partitions, b.row_partitions)
    validate = validate or _headrace.is_eager()
    partitions = [p._merge_precomputed_encodings(q, validate) for p, q in pairs]
    return a._like(partitions, a.inner_shape, static)


def _with_dtype(value, dtype):
    if is_ragged(value):
        return value.with_row_splits_dtype(dtype)
    return value.with_shape_dtype(dtype) if _has_dtype(value, None) else value


def _merged_dims(value, outer, inner):
    if isinstance(value, StructuredTensor):
        return value.merge_dims(outer, inner)
    return convert.merge_dims(value, outer, inner)


def _partitioned(value, partition):
    if isinstance(value, StructuredTensor):
        return value.partition_outer_dimension(partition)
    if not is_ragged(value) and partition.is_uniform():
        length = array_ops.reshape(partition.uniform_row_length(), [1])
        nrows = array_ops.reshape(partition.nrows(), [1])
        sizes = array_ops.shape(value, out_type=partition.dtype)[1:]
        sizes = array_ops.concat([nrows, length, sizes], 0)
        return array_ops.reshape(value, sizes)
    return RaggedTensor._from_row_partition(value, partition)


# Last, for it asks for the class.
from headrace.ragged.structured import pyvals  # noqa: E402
