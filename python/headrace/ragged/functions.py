"""Functions of tf that take ragged tensors and are no reductions, joins or gathers."""

from headrace._load import raw
from headrace.context import errors
from headrace.framework import dispatch
from headrace.framework.support import signatures
from headrace.ops import (
    array_ops,
    check_ops,
    elementwise_ops,
    math_ops,
    reduction_ops,
    sort_ops,
    string_ops,
)
from headrace.ops.nn import embedding_ops, nn_ops
from headrace.ragged import broadcast, checks, reductions, text
from headrace.ragged.ragged_tensor import (
    RaggedTensor,
    as_ragged,
    as_values,
    is_ragged,
)


def on_values(api, *args, **kwargs):
    """The function of the values, in the same rows."""
    x, args, kwargs = dispatch.first_of(RaggedTensor, args, kwargs)
    return x.with_flat_values(api(x.flat_values, *args, **kwargs))


def of_values(api, *args, **kwargs):
    """The function of the values alone."""
    x, args, kwargs = dispatch.first_of(RaggedTensor, args, kwargs)
    return api(x.flat_values, *args, **kwargs)


def equals(self, other):
    """self == other, element by element; False where these cannot be compared."""
    return _compared(math_ops.equal, self, other, False)


def not_equals(self, other):
    """self != other, element by element; True where these cannot be compared."""
    return _compared(math_ops.not_equal, self, other, True)


def _compared(function, x, y, otherwise):
    try:
        return broadcast.apply(function, x, y)
    except errors.InvalidArgumentError:
        return otherwise


def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    """The values, none of them below or above the bounds."""

    def bounded(function, x, bound):
        if is_ragged(x) or is_ragged(bound):
            return broadcast.apply(function, x, bound)
        return function(x, bound)

    t = bounded(elementwise_ops.minimum, as_values(t), clip_value_max)
    return bounded(elementwise_ops.maximum, t, clip_value_min)


def add_n(inputs, name=None):
    """The sum of ragged tensors with the same rows."""
    inputs = list(inputs)
    if len(inputs) == 1:
        return inputs[0]
    return broadcast.map_flat_values(reduction_ops.add_n, inputs)


def softmax(logits, axis=None, name=None):
    """exp(x) over its sum along a dimension, the last one by default."""
    axis = -1 if axis is None else axis
    top = reductions.reduce_max(logits, axis, True)
    if is_ragged(top):
        top = on_values(array_ops.stop_gradient, top)
    else:
        top = array_ops.stop_gradient(top)
    shifted = broadcast.apply(math_ops.subtract, logits, top)
    powers = on_values(elementwise_ops.exp, shifted)
    total = reductions.reduce_sum(powers, axis, True)
    return broadcast.apply(math_ops.truediv, powers, total)


def _no_noise_shape(noise_shape):
    if noise_shape is not None:
        raise ValueError("noise_shape is not supported yet for RaggedTensor x")


def dropout(x, rate, noise_shape=None, seed=None, name=None):
    """Values, some of them replaced by 0."""
    _no_noise_shape(noise_shape)
    return x.with_flat_values(nn_ops.dropout(x.flat_values, rate, seed=seed))


def stateless_dropout(
    x, rate, seed, rng_alg="auto_select", noise_shape=None, name=None
):
    """Values, some of them replaced by 0, by a given seed."""
    _no_noise_shape(noise_shape)
    flat = nn_ops.stateless_dropout(x.flat_values, rate, seed, rng_alg)
    return x.with_flat_values(flat)


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """(x - mean) / sqrt(variance + epsilon) * scale + offset."""
    inverse = elementwise_ops.rsqrt(variance + variance_epsilon)
    if scale is not None:
        inverse = inverse * scale
    moved = -mean * inverse if offset is None else offset - mean * inverse
    scaled = broadcast.apply(math_ops.multiply, x, inverse)
    return broadcast.apply(math_ops.add, scaled, moved)


# --- Products of matrices.

_RAGGED_INSIDE = (
    "The matrices in `a` and `b` may not be ragged in their innermost dimension."
)


@signatures.taking(signatures.parameters_of(math_ops.matmul))
def matmul(a, b, **turns):
    """Products of matrices whose number of rows, or of columns, varies in the batch."""
    for name in ("a", "b"):
        if turns[f"transpose_{name}"] and turns[f"adjoint_{name}"]:
            raise ValueError(
                f"Only one of transpose_{name} and adjoint_{name} can be True."
            )
    a = as_values(a, dtype_hint=b.dtype)
    b = as_values(b, dtype_hint=a.dtype)
    if a.shape.rank is None or b.shape.rank is None:
        raise ValueError("matmul requires at least one input to have known rank")
    if a.shape.rank != b.shape.rank:
        raise ValueError("`a` and `b` must have the same rank.")
    kept = ("transpose_a", "transpose_b", "adjoint_a", "adjoint_b", "output_type")
    return _matmul(a, b, {name: turns[name] for name in kept})


def _matmul(a, b, turns):
    if not is_ragged(a) and not is_ragged(b):
        return math_ops.matmul(a, b, **turns)
    if a.shape.rank > 3:
        a, b = as_ragged(a), as_ragged(b)
        splits = checks.same_splits(a.row_splits, b.row_splits)
        return a._like(_matmul(a.values, b.values, turns), splits)
    one = a.shape.rank == 2
    if one:
        a, b = (
            array_ops.expand_dims(x, 0) if not is_ragged(x) else x[None] for x in (a, b)
        )
    result = _product(a, b, turns)
    if not one:
        return result
    return result[0]


def _sizes(x, turned):
    """(rows, columns) of each matrix, as vectors of the batch or scalars; and whether
    these are ragged."""
    dims = []
    for axis in (1, 2):
        if is_ragged(x) and axis <= x.ragged_rank and x.shape[axis] is None:
            dims.append(_lengths(x, axis))
        else:
            dims.append(None)
    return dims[::-1] if turned else dims


def _lengths(x, axis):
    """The length of the dimension in each matrix, which is one in a matrix."""
    if axis == 1:
        return x.row_lengths()
    inner = x.values.row_lengths()
    ids = x.value_rowids()
    longest = raw.UnsortedSegmentMax(inner, ids, x.nrows())
    longest = elementwise_ops.maximum(longest, array_ops.zeros_like(longest))
    assertion = check_ops.assert_equal(
        inner, array_ops.gather(longest, ids), message=_RAGGED_INSIDE
    )
    return checks.after([assertion], longest)


def _product(a, b, turns):
    turn_a = turns["transpose_a"] or turns["adjoint_a"]
    turn_b = turns["transpose_b"] or turns["adjoint_b"]
    rows, inner_a = _sizes(a, turn_a)
    inner_b, columns = _sizes(b, turn_b)
    dense_a = a.to_tensor() if is_ragged(a) else a
    dense_b = b.to_tensor() if is_ragged(b) else b
    dense_a = _check_inner(dense_a, dense_b, inner_a, inner_b, turn_a, turn_b)
    result = math_ops.matmul(dense_a, dense_b, **turns)
    dtype = (a if is_ragged(a) else b).row_splits.dtype
    if rows is None and columns is None:
        return RaggedTensor.from_tensor(result, row_splits_dtype=dtype)
    if columns is None:
        return RaggedTensor.from_tensor(result, rows, row_splits_dtype=dtype)
    if rows is None:
        shape = array_ops.shape(result, out_type=dtype)
        rows = array_ops.fill(shape[:1], shape[1])
    wide = sort_ops.repeat(columns, rows)
    return RaggedTensor.from_tensor(result, (rows, wide), row_splits_dtype=dtype)


def _check_inner(dense_a, dense_b, inner_a, inner_b, turn_a, turn_b):
    """dense_a, once both have the same inner sizes in each matrix."""
    if inner_a is None and inner_b is None:
        return dense_a
    dtype = (inner_a if inner_a is not None else inner_b).dtype
    if inner_a is None:
        inner_a = array_ops.shape(dense_a, out_type=dtype)[1 if turn_a else 2]
    if inner_b is None:
        inner_b = array_ops.shape(dense_b, out_type=dtype)[2 if turn_b else 1]
    assertion = check_ops.assert_equal(
        math_ops.cast(inner_a, dtype),
        math_ops.cast(inner_b, dtype),
        message=_RAGGED_INSIDE,
    )
    return checks.after([assertion], dense_a)


# --- Embeddings, images, strings.


def embedding_lookup(params, ids, max_norm=None, name=None):
    """The embeddings of ragged ids."""
    return looked_up(embedding_ops.embedding_lookup, params, ids, max_norm=max_norm)


def looked_up(lookup, params, ids, *args, **kwargs):
    if params is None:
        raise ValueError("params must be specified.")
    if isinstance(params, (list, tuple)) and not params:
        raise ValueError("params should not be empty.")
    if not ids.dtype.is_integer:
        raise ValueError(
            f"The values contained by the inputs have type {ids.dtype!r} and cannot be "
            "processed. All values should be indices, either of type `int32` or `int64`."
        )
    return ids.with_flat_values(lookup(params, ids.flat_values, *args, **kwargs))


def as_sparse(x):
    return x.to_sparse() if is_ragged(x) else x


def embedding_lookup_sparse(
    params, sp_ids, sp_weights, combiner=None, max_norm=None, name=None, **kwargs
):
    """The combined embeddings of each row of ragged ids."""
    return embedding_ops.embedding_lookup_sparse(
        params,
        as_sparse(sp_ids),
        as_sparse(sp_weights),
        combiner=combiner,
        max_norm=max_norm,
        name=name,
        **kwargs,
    )


def safe_embedding_lookup_sparse(
    embedding_weights, sparse_ids, sparse_weights=None, **kwargs
):
    """The combined embeddings of each row of ragged ids; empty rows get the default."""
    return embedding_ops.safe_embedding_lookup_sparse(
        embedding_weights, as_sparse(sparse_ids), as_sparse(sparse_weights), **kwargs
    )


def join(inputs, separator="", name=None):
    """Strings put together, element by element."""
    return broadcast.map_flat_values(string_ops.join, list(inputs), separator=separator)


def format(template, inputs, placeholder="{}", summarize=3, name=None):
    """Text with ragged tensors in it."""
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    pieces = template.split(placeholder)
    if len(pieces) - 1 != len(inputs):
        raise ValueError(
            f"{len(inputs)} inputs for {len(pieces) - 1} placeholders in {template!r}"
        )
    parts = []
    for piece, x in zip(pieces, inputs):
        parts.append(piece)
        if is_ragged(x):
            parts.append(text.formatted(x, summarize))
        else:
            parts.append(string_ops.format("{}", [x], summarize=summarize))
    return string_ops.join([*parts, pieces[-1]], name=name)
