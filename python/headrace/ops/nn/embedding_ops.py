"""Rows of embeddings: in one part or several, one by one or combined."""

from headrace._load import _headrace
from headrace.framework import conversion, dtypes, name_scopes
from headrace.framework.sparse_tensor import SparseTensor, to_sparse
from headrace.framework.support import signatures
from headrace.ops import (
    array_ops,
    clip_ops,
    elementwise_ops,
    math_ops,
    reduction_ops,
    sort_ops,
)
from headrace.ops.sparse import sparse_ops


def _rows(params, ids, name=None):
    if isinstance(params, _headrace.VariableBase):
        return params.sparse_read(ids, name)
    return array_ops.gather(params, ids, name=name)


def _row_count(part, dtype):
    """A tensor; variables, which may lie elsewhere, are not read for it."""
    if isinstance(part, _headrace.VariableBase) and part.shape.rank:
        if part.shape[0] is not None:
            return conversion.to_tensor(part.shape[0], dtype)
    return array_ops.shape(part, out_type=dtype)[0]


def _places(ids, params, strategy):
    """(the part, the row there) of each id."""
    count = conversion.to_tensor(len(params), ids.dtype)
    if strategy == "mod":
        return ids % count, ids // count
    if strategy != "div":
        raise ValueError(
            "Only 'mod' and 'div' are supported partition strategies: "
            f"partition_strategy={strategy}"
        )
    sizes = [_row_count(p, ids.dtype) for p in params]
    total = reduction_ops.add_n(sizes)
    each, extra = total // count, total % count
    one = conversion.to_tensor(1, ids.dtype)
    part = elementwise_ops.maximum(ids // (each + one), (ids - extra) // each)
    row = array_ops.where(
        part < extra,
        ids % (each + one),
        (ids - extra) % elementwise_ops.maximum(each, one),
    )
    return part, row


def lookup(params, ids, strategy="mod", max_norm=None, name=None):
    """The rows at `ids` of a list of parts that make up one embedding."""
    if params is None:
        raise ValueError("params must be specified")
    if getattr(params, "is_sharded_variable", False):
        params, strategy = params.variables, "div"
    parts = list(params) if isinstance(params, (list, tuple)) else [params]
    if not parts:
        raise ValueError("Length of params is currently 0. Need at least one param.")
    if len(parts) == 1:
        with name_scopes.name_scope(name or "embedding_lookup") as scope:
            ids = conversion.convert_to_tensor(ids, name="ids")
            rows = _clipped(_rows(parts[0], ids, scope), ids, max_norm)
            # By which programs fetch it.
            return rows if _headrace.is_eager() else array_ops.identity(rows)
    ids = conversion.convert_to_tensor(ids)
    flat = array_ops.reshape(ids, [-1])
    part, row = _places(flat, parts, strategy)
    part = math_ops.cast(part, dtypes.int32)
    rows = array_ops.dynamic_partition(row, part, len(parts))
    back = array_ops.dynamic_partition(
        array_ops.range(array_ops.size(flat)), part, len(parts)
    )
    found = [_rows(p, r) for p, r in zip(parts, rows)]
    made = array_ops.dynamic_stitch(back, found, name=name)
    shape = array_ops.concat([array_ops.shape(ids), array_ops.shape(made)[1:]], axis=0)
    return _clipped(array_ops.reshape(made, shape), ids, max_norm)


def _clipped(rows, ids, max_norm):
    if max_norm is None:
        return rows
    axes = list(range(ids.shape.rank, rows.shape.rank))
    return clip_ops.clip_by_norm(rows, max_norm, axes=axes)


def _weights(sp_weights, sp_ids, params):
    first = params[0] if isinstance(params, (list, tuple)) else params
    weights = to_sparse(sp_weights).values
    if not sp_ids.values.shape.is_compatible_with(weights.shape):
        raise ValueError(
            f"Shapes of sparse ids and weights differ: {sp_ids.values.shape} and "
            f"{weights.shape}"
        )
    if not weights.dtype.is_floating:
        weights = math_ops.cast(weights, first.dtype)
    return weights


_SPARSE = "params, sp_ids, sp_weights, combiner=None, max_norm=None, name=None"
_SAFELY = (
    "embedding_weights, sparse_ids, sparse_weights=None, combiner='mean', "
    "default_id=None, max_norm=None, name=None"
)


@signatures.having(f"{_SPARSE}, partition_strategy='div'")
def lookup_sparse(
    params, sp_ids, sp_weights, combiner, max_norm, name, partition_strategy
):
    """For each row of ids the sum, mean or mean by root of its embeddings."""
    combiner = combiner or "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(
            "combiner must be one of 'mean', 'sqrtn' or 'sum', got " + str(combiner)
        )
    sp_ids = to_sparse(sp_ids)
    segments = sp_ids.indices[:, 0]
    ids, places = sort_ops.unique(sp_ids.values)
    rows = lookup(params, ids, partition_strategy, max_norm)
    if sp_weights is None:
        raw = {"sum": "Sum", "mean": "Mean", "sqrtn": "SqrtN"}[combiner]
        return _headrace.raw_op("SparseSegment" + raw)(
            data=rows, indices=places, segment_ids=segments, name=name
        )
    weights = math_ops.cast(_weights(sp_weights, sp_ids, params), rows.dtype)
    ones = [1] * (rows.shape.rank - 1)
    shape = array_ops.concat([array_ops.shape(weights), ones], axis=0)
    column = array_ops.reshape(weights, shape)
    total = reduction_ops.segment_sum(array_ops.gather(rows, places) * column, segments)
    if combiner == "sum":
        return array_ops.identity(total, name=name)
    if combiner == "sqrtn":
        norm = elementwise_ops.sqrt(
            reduction_ops.segment_sum(column * column, segments)
        )
    else:
        norm = reduction_ops.segment_sum(column, segments)
    return elementwise_ops.divide_no_nan(total, norm, name=name)


def _kept(sp_ids, sp_weights, keep):
    ids = sparse_ops.retain(sp_ids, keep)
    return ids, None if sp_weights is None else sparse_ops.retain(sp_weights, keep)


@signatures.having(f"{_SAFELY}, partition_strategy='div'")
def safe_lookup_sparse(
    embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name, **how
):
    """The same without ids below 0 and weights of 0 or less; rows that are empty get
    the embedding of `default_id`, or zeros."""
    sp_ids = to_sparse(sparse_ids)
    sp_weights = None if sparse_weights is None else to_sparse(sparse_weights)
    shape = sp_ids.dense_shape
    lead = shape[:-1]
    rows = array_ops.reshape(reduction_ops.reduce_prod(lead), [1])
    flat = array_ops.concat([rows, shape[-1:]], axis=0)
    sp_ids = sparse_ops.reshape(sp_ids, flat)
    if sp_weights is not None:
        sp_weights = SparseTensor(sp_ids.indices, sp_weights.values, sp_ids.dense_shape)
    sp_ids, sp_weights = _kept(sp_ids, sp_weights, sp_ids.values >= 0)
    if sp_weights is not None and combiner != "sum":
        sp_ids, sp_weights = _kept(sp_ids, sp_weights, sp_weights.values > 0)
    sp_ids, empty = sparse_ops.fill_empty_rows(sp_ids, default_id or 0)
    if sp_weights is not None:
        sp_weights, _ = sparse_ops.fill_empty_rows(sp_weights, 1.0)
    made = lookup_sparse(embedding_weights, sp_ids, sp_weights, combiner, **how)
    if default_id is None:
        made = array_ops.where(
            array_ops.expand_dims(empty, 1), array_ops.zeros_like(made), made
        )
    sizes = [math_ops.cast(lead, dtypes.int32), array_ops.shape(made)[1:]]
    return array_ops.reshape(made, array_ops.concat(sizes, axis=0), name=name)


def embedding_lookup(params, ids, max_norm=None, name=None):
    """The rows of `params` (in several parts: each with its share of the rows, the
    first ones first) at `ids`."""
    return lookup(params, ids, "div", max_norm, name)


@signatures.having(f"{_SPARSE}, allow_fast_lookup=False")
def embedding_lookup_sparse(allow_fast_lookup, **given):
    """For each row of ids the sum, mean or mean by root of its embeddings; there is
    one way to look up, `allow_fast_lookup` changes nothing."""
    return lookup_sparse(**given)


@signatures.having(f"{_SAFELY}, allow_fast_lookup=False")
def safe_embedding_lookup_sparse(allow_fast_lookup, **given):
    """The same, where ids and weights may be bad and rows empty."""
    return safe_lookup_sparse(**given)
