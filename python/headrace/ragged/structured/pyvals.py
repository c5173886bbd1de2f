"""StructuredTensors of Python values, and these of them."""

from headrace._load import _headrace
from headrace.framework import conversion, type_spec
from headrace.ragged import factory
from headrace.ragged.dynamic_shape import DynamicRaggedShape
from headrace.ragged.parts import is_ragged
from headrace.ragged.row_partition import RowPartition
from headrace.ragged.spec import RaggedTensorSpec


def _is_list(x):
    return isinstance(x, (list, tuple))


def from_pyval(cls, pyval, typespec, path):
    """See StructuredTensor.from_pyval; `path` has the names of the fields above."""
    if isinstance(pyval, dict):
        return _of_dict(cls, pyval, typespec, path)
    if not _is_list(pyval):
        return _of_scalar(cls, pyval, typespec, path)
    keys, rank = set(), None
    depth = _depth_of_dicts(pyval, keys)
    if depth is not None:
        return _of_dicts(cls, pyval, keys, depth, typespec, path)
    if isinstance(typespec, cls.Spec):
        rank = typespec.rank
        if _scalars(pyval):
            raise _mismatch(pyval, typespec, path)
        return _of_dicts(cls, pyval, set(typespec._field_specs), rank, typespec, path)
    return _of_values(pyval, typespec, path)


def _mismatch(pyval, typespec, path, why=""):
    return ValueError(
        f"Value at {path} does not match typespec{why}: {typespec!r} vs {pyval!r}"
    )


def _depth_of_dicts(pyval, keys):
    """How many lists lie around dicts, whose keys go into a set; None without dicts."""
    if isinstance(pyval, dict):
        keys.update(pyval)
        return 0
    if not _is_list(pyval):
        return None
    found = [(_depth_of_dicts(x, keys), x) for x in pyval]
    found = {depth for depth, x in found if depth is not None or _scalars(x)}
    if len(found) > 1:
        if None in found:
            raise ValueError("Expected dict or nested list/tuple of dict")
        raise ValueError("Inconsistent depth of dictionaries")
    depth = found.pop() if found else None
    return None if depth is None else depth + 1


def _scalars(pyval):
    """Whether lists hold anything but lists."""
    return not _is_list(pyval) or any(map(_scalars, pyval))


def _of_dict(cls, pyval, typespec, path):
    if typespec is None:
        return cls.from_fields(
            {k: from_pyval(cls, v, None, (*path, k)) for k, v in pyval.items()}
        )
    if not isinstance(typespec, cls.Spec) or set(typespec._field_specs) != set(pyval):
        raise _mismatch(pyval, typespec, path)
    specs = typespec._field_specs
    fields = {k: from_pyval(cls, v, specs[k], (*path, k)) for k, v in pyval.items()}
    return cls.from_fields(fields, typespec.shape)


def _of_dicts(cls, pyval, keys, rank, typespec, path):
    specs = dict.fromkeys(keys)
    if typespec is not None:
        if not isinstance(typespec, cls.Spec) or set(typespec._field_specs) != keys:
            raise _mismatch(pyval, typespec, path)
        if typespec.rank not in (None, rank):
            raise _mismatch(pyval, typespec, path, " (rank mismatch)")
        specs = typespec._field_specs
    if not keys:
        return _without_fields(cls, pyval, rank, typespec)
    _check_keys(pyval, keys, rank)
    fields = {}
    for key in sorted(keys, key=str):
        column = _column(pyval, key, rank)
        fields[key] = from_pyval(cls, column, specs[key], (*path, key))
    if typespec is None or typespec.rank is None:
        return cls.from_fields_and_rank(fields, rank)
    return cls.from_fields(fields, typespec.shape)


def _column(pyval, key, depth):
    """The values of a key, in the lists that the dicts lie in."""
    if depth == 0:
        return pyval[key]
    return [_column(x, key, depth - 1) for x in pyval]


def _check_keys(pyval, keys, depth):
    """KeyError for the first dict without a key of others."""
    if depth:
        for x in pyval:
            _check_keys(x, keys, depth - 1)
    elif len(pyval) < len(keys):
        raise KeyError(min(keys - set(pyval), key=str))


def _without_fields(cls, pyval, rank, typespec):
    if typespec is not None and typespec.shape.is_fully_defined():
        return cls.from_fields({}, typespec.shape)
    partitions, rows = [], pyval
    for _ in range(rank - 1):
        partitions.append(RowPartition.from_row_lengths([len(x) for x in rows]))
        rows = [x for row in rows for x in row]
    return cls.from_shape(DynamicRaggedShape(partitions, [len(rows)]))


def _of_values(pyval, typespec, path):
    """A tensor or ragged tensor of nested lists without dicts."""
    try:
        if typespec is None:
            return factory.constant(pyval)
        if isinstance(typespec, type_spec.TensorSpec):
            result = conversion.constant(pyval, typespec.dtype)
        elif isinstance(typespec, RaggedTensorSpec):
            inner = typespec.shape[typespec.ragged_rank + 1 :].as_list()
            known = inner if None not in inner else None
            result = factory.constant(
                pyval,
                typespec.dtype,
                typespec.ragged_rank,
                known,
                row_splits_dtype=typespec.row_splits_dtype,
            )
        else:
            raise _mismatch(pyval, typespec, path)
    except (TypeError, ValueError) as e:
        if "does not match typespec" in str(e):
            raise
        raise ValueError(f"Error parsing path {path}") from e
    if not typespec.shape.is_compatible_with(result.shape):
        raise _mismatch(pyval, typespec, path)
    return result


def _of_scalar(cls, pyval, typespec, path):
    if typespec is None:
        try:
            return conversion.convert_to_tensor(pyval)
        except (TypeError, ValueError) as e:
            raise ValueError(f"Error parsing path {path}") from e
    fits = isinstance(typespec, type_spec.TensorSpec)
    if not fits or typespec.shape.rank not in (0, None):
        raise _mismatch(pyval, typespec, path)
    return conversion.constant(pyval, typespec.dtype)


def to_pyval(tensor):
    """See StructuredTensor.to_pyval."""
    fields = {k: _plain(v) for k, v in tensor._fields.items()}
    if not fields and not isinstance(
        tensor._ragged_shape.inner_shape, _headrace.EagerTensor
    ):
        raise _only_eager()
    if fields:
        return _records(fields, tensor.rank)
    if tensor.rank == 0:
        return {}
    count = tensor._ragged_shape._num_slices_in_dimension(tensor.rank - 1)
    rows = [{} for _ in range(int(count.numpy()))]
    for partition in reversed(tensor.row_partitions):
        splits = partition.row_splits().numpy().tolist()
        rows = [rows[a:b] for a, b in zip(splits, splits[1:])]
    return rows


def _only_eager():
    return ValueError("StructuredTensor.to_pyval is only supported in eager mode.")


def _plain(value):
    """The Python value of a field."""
    if hasattr(value, "to_pyval"):
        return value.to_pyval()
    if is_ragged(value):
        if not isinstance(value.flat_values, _headrace.EagerTensor):
            raise _only_eager()
        return value.to_list()
    if not isinstance(value, _headrace.EagerTensor):
        raise _only_eager()
    return value.numpy().tolist() if value.shape.rank else value.numpy()


def _records(fields, rank):
    """Dicts in nested lists, of nested lists by name."""
    if rank == 0:
        return fields
    count = len(next(iter(fields.values())))
    rows = [{k: v[i] for k, v in fields.items()} for i in range(count)]
    return [_records(row, rank - 1) for row in rows]
