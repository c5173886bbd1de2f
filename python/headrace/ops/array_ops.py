"""Shapes and pieces of tensors."""

import builtins

import numpy as np

from headrace._load import _headrace, raw
from headrace.context import errors
from headrace.framework import conversion, dtypes, execution, tensor_shape
from headrace.framework.name_scopes import composite, name_scope
from headrace.framework.support import signatures
from headrace.ops import math_ops, reduction_ops
from headrace.ops.faces import add_faces, face

newaxis = None


def _is_sparse(x):
    return not isinstance(x, _headrace.Tensor) and getattr(x, "_is_sparse", False)


add_faces(
    globals(),
    """
broadcast_to BroadcastTo(input, shape, name=None)
reshape Reshape(tensor, shape, name=None)
fill Fill(dims, value, name=None)
unravel_index UnravelIndex(indices, dims, name=None)
identity Identity(input, name=None)
stop_gradient StopGradient(input, name=None)
tile Tile(input, multiples, name=None)
slice Slice(input_->input, begin, size, name=None)
gather_nd_op=gather_nd GatherNd(params, indices, name=None, bad_indices_policy='')
bitcast Bitcast(input, type, name=None)
_expand_dims=expand_dims ExpandDims(input, axis->dim, name=None)
_pack=stack Pack(values, axis=0, name=None)
_unpack=unstack Unpack(value, num, axis=0, name=None)
_concat=concat ConcatV2(values, axis, name=None)
shape_n ShapeN(input, out_type=int32, name=None)
    The shapes of several tensors.
reverse ReverseV2(tensor, axis, name=None)
    Dimensions turned round.
roll Roll(input, shift, axis, name=None)
    Elements shifted along dimensions, those that leave come back.
identity_n IdentityN(input, name=None)
    The tensors as they are.
broadcast_dynamic_shape BroadcastArgs(shape_x->s0, shape_y->s1)
    The shape, as a tensor, that two shapes broadcast to.
scatter_nd ScatterNd(indices, updates, shape, bad_indices_policy='', name=None)
    A tensor of zeros with updates added at indices.

    Indices out of range raise InvalidArgumentError; with `bad_indices_policy` "IGNORE"
    they are passed over.
space_to_depth SpaceToDepth(input, block_size, data_format='NHWC', name=None)
    Blocks of space moved to the depth dimension.
depth_to_space DepthToSpace(input, block_size, data_format='NHWC', name=None)
    Depth moved to blocks of space.
dynamic_partition DynamicPartition(data, partitions, num_partitions, name=None)
    Rows dealt to `num_partitions` tensors.
dynamic_stitch DynamicStitch(indices, data, name=None)
    Rows of several tensors put at their indices.
""",
)


def expand_dims(input, axis, name=None):
    """A dimension of size 1 at `axis`."""
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return _expand_dims(input, axis, name)


def stack(values, axis=0, name="stack"):
    """Tensors of one shape along a new dimension."""
    if axis == 0:
        if not isinstance(values, (list, tuple)):  # stacked as it stands
            return conversion.convert_to_tensor(values, name=name)
        if not _headrace.holds_tensors(values):
            try:
                return conversion.convert_to_tensor(values, name=name)
            except (TypeError, ValueError, NotImplementedError):
                pass
        elif not _headrace.is_eager() and any(type(v) in (int, float) for v in values):
            return conversion.pack_in_graph(values, None, None, name)
    if axis and isinstance(values, (list, tuple)) and values:
        rank = conversion.convert_to_tensor(values[0]).shape.rank
        if rank is not None and not -rank - 1 <= axis <= rank:
            raise ValueError(
                f"Argument `axis` = {axis} not in range [{-rank - 1}, {rank + 1})"
            )
    return _pack(values, axis, name)


def unstack(value, num=None, axis=0, name="unstack"):
    """The pieces of a tensor along a dimension, which goes away."""
    if num is None:
        value = conversion.convert_to_tensor(value)
        shape = value.shape
        if shape.rank is not None:
            if axis < -shape.rank or axis >= shape.rank:
                raise ValueError(
                    f"Argument `axis` = {axis} not in range [{-shape.rank}, {shape.rank})"
                )
            num = shape[axis]
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {shape}")
    return _unpack(value, num, axis, name)


def shape(input, out_type=None, name=None):
    """The shape as a tensor."""
    out_type = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    if _is_sparse(input):
        return raw.Cast(input.dense_shape, DstT=out_type, name=name)
    input = conversion.convert_to_tensor(input)
    if not _headrace.is_eager() and input.shape.is_fully_defined():
        sizes = input.shape.as_list()
        return conversion.constant(sizes, out_type, name=name or "Shape")
    return raw.Shape(input, out_type=out_type, name=name)


@composite("zeros", ends=True)
def zeros(shape, dtype=dtypes.float32, name=None, layout=None):
    """A tensor of zeros."""
    return _filled(shape, dtype, 0, name)


@composite("ones", ends=True)
def ones(shape, dtype=dtypes.float32, name=None, layout=None):
    """A tensor of ones."""
    return _filled(shape, dtype, 1, name)


_PLAIN_NUMBERS = ("float", "int", "uint", "complex")


def _are_ints(shape):
    """Whether a shape is a list or tuple of ints that fit int32."""
    if type(shape) is not list and type(shape) is not tuple:
        return False
    for d in shape:
        if type(d) is not int or not -1 < d < 2**31:
            return False
    return len(shape) > 0


def _filled(shape, dtype, value, name):
    dtype = dtypes.as_dtype(dtype).base_dtype
    eager = _headrace.is_eager()
    if eager and dtype._kind in _PLAIN_NUMBERS and _are_ints(shape):
        return raw.Fill(shape, _headrace.make_tensor(value, dtype))
    if dtype.is_quantized:  # as the integers that they are made of
        plain = dtypes.as_dtype(dtype.name[1:])
        made = _filled(shape, plain, value, name)
        return raw.Bitcast(made, type=dtype)
    if dtype == dtypes.string:
        value = value or ""  # of ones there are none: the conversion says so
    elif dtype == dtypes.bool:
        value = bool(value)
    if isinstance(shape, (int, np.integer)):
        shape = [shape]
    if not isinstance(shape, _headrace.Tensor):
        if not eager and _is_small(shape):
            return conversion.constant(value, dtype, shape, name)
        kind = dtypes.int64 if _headrace.needs_int64(shape) else dtypes.int32
        shape = conversion.convert_to_tensor(shape, kind, name="shape_as_tensor")
    if shape.shape.rank == 0:
        shape = reshape(shape, [-1])
    return fill(shape, _headrace.to_tensor(value, dtype), name="" if eager else name)


def _is_small(shape):
    """Whether a graph holds zeros of this shape as a constant, as upstream's do."""
    count = 1
    known = isinstance(shape, (list, tuple, tensor_shape.TensorShape))
    for d in shape if known else [None]:
        if not isinstance(d, (int, np.integer)) or d < 0:
            return False
        count *= int(d)
    return count < 1000


def _is_known(x):
    """Whether a tensor of a graph has a shape that is known, and plain elements."""
    if not isinstance(x, _headrace.SymbolicTensor) or x.graph.shows_eager:
        return False
    plain = x.dtype not in (dtypes.variant, dtypes.resource)
    return plain and x.shape.is_fully_defined()


def _like(name, op, value, what):
    def like(input, dtype=None, name=None, layout=None):
        if _is_sparse(input) and dtype is not None:
            return _filled(input.dense_shape, dtype or input.dtype, value, name)
        input = conversion.convert_to_tensor(input)
        if _is_known(input):  # a constant, which does not wait for the input
            return _filled(input.shape.as_list(), dtype or input.dtype, value, name)
        if dtype is None or dtypes.as_dtype(dtype) == input.dtype:
            return op(input, name=name)
        return _filled(shape(input), dtype, value, name)

    doc = f"""{what} of the shape (and dtype) of `input`; of sparse tensors, to whose values
    a dtype must be given, dense ones."""
    return composite(name, ends=True)(signatures.called(like, name, doc))


zeros_like = _like("zeros_like", raw.ZerosLike, 0, "Zeros")
ones_like = _like("ones_like", raw.OnesLike, 1, "Ones")


@composite("boolean_mask")
def boolean_mask(tensor, mask, axis=None, name="boolean_mask"):
    """The elements (or rows) where `mask` is true."""
    tensor = conversion.convert_to_tensor(tensor, name="tensor")
    mask = conversion.convert_to_tensor(mask, name="mask")
    ndims = mask.shape.rank
    if ndims == 0:
        raise ValueError("mask cannot be scalar.")
    if ndims is None:
        raise ValueError(
            "Number of mask dimensions must be specified, even if some dimensions are "
            "None.  E.g. shape=[None] is ok, but shape=None is not."
        )
    if isinstance(axis, _headrace.Tensor):
        known = execution.get_static_value(axis)
        axis = reshape(axis, []) if known is None else int(known)
    else:
        axis = 0 if axis is None else int(axis)
    if isinstance(axis, int):
        tensor.shape[axis : axis + ndims].assert_is_compatible_with(mask.shape)
    sizes = shape(tensor)
    count = raw.Prod(sizes[axis : axis + ndims], [0])
    flat = concat([sizes[:axis], [count], sizes[axis + ndims :]], 0)
    indices = squeeze(where(reshape(mask, [-1])), [1])
    return gather(reshape(tensor, flat), indices, axis=axis)


def squeeze(input, axis=None, name=None):
    """Without dimensions of size 1 (those of `axis`, or all)."""
    if axis is None:
        axis = []
    elif isinstance(axis, int):
        axis = [axis]
    return raw.Squeeze(input, axis=axis, name=name)


def where(condition, x=None, y=None, name=None):
    """Where `condition` holds: the places, or x there and y elsewhere."""
    if x is None and y is None:
        condition = conversion.convert_to_tensor(condition, dtype_hint=dtypes.bool)
        return raw.Where(condition, name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return raw.SelectV2(condition, x, y, name=name)


def concat(values, axis, name="concat"):
    """Tensors one after the other along a dimension."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        with name_scope(name):
            axis = conversion.convert_to_tensor(axis, dtypes.int32, name="concat_dim")
            axis.shape.assert_has_rank(0)
            if getattr(values[0], "_is_composite_tensor", False):
                return values[0]
            return identity(values[0], name=name)
    return _concat(values, axis, name)


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    """The slices of `params` at `indices` along `axis`."""
    axis = batch_dims if axis is None else axis
    return raw.GatherV2(params, indices, axis, batch_dims=batch_dims, name=name)


@composite("meshgrid")
def meshgrid(*args, indexing="xy", name="meshgrid"):
    """Coordinate grids of vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError(
            "Argument `indexing` parameter must be either 'xy' or 'ij', got "
            f"'{indexing}'"
        )
    n = len(args)
    args = [conversion.convert_to_tensor(x) for x in args]
    grids = []
    for i, x in enumerate(args):
        shape_ = [1] * n
        shape_[i] = -1
        grids.append(reshape(x, shape_))
    sizes = [raw.Size(x) for x in args]
    if indexing == "xy" and n > 1:
        grids = [raw.Transpose(g, [1, 0, *builtins.range(2, n)]) for g in grids]
        sizes = [sizes[i] for i in (1, 0, *builtins.range(2, n))]
    full = stack(sizes)
    return [broadcast_to(g, full) for g in grids]


def rank(input, name=None):
    """The number of dimensions as a tensor."""
    if _is_sparse(input):
        return size(input.dense_shape, name=name)
    input = conversion.convert_to_tensor(input)
    static = input.shape.rank
    if static is not None and not _headrace.is_eager():
        return conversion.constant(static, dtypes.int32, name=name or "Rank")
    return raw.Rank(input, name=name)


def size(input, out_type=None, name=None):
    """The number of elements as a tensor."""
    out_type = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    if _is_sparse(input):
        sizes = raw.Cast(input.dense_shape, DstT=out_type)
        return raw.Prod(sizes, 0, name=name)
    is_index = out_type in (dtypes.int32, dtypes.int64)
    if not is_index or not _headrace.is_eager():  # known sizes are constants
        input = conversion.convert_to_tensor(input)
        count = input.shape.num_elements()
        if count is not None:
            name = execution.node_name(name or "Size")
            return conversion.constant(count, out_type, name=name)
    return raw.Size(input, out_type=out_type, name=name)


def transpose(a, perm=None, conjugate=False, name="transpose"):
    """Dimensions in another order; reversed by default."""
    a = conversion.convert_to_tensor(a)
    turned = conjugate and a.dtype.is_complex
    if perm is None:
        static = a._rank()
        if static is None:
            r = rank(a)
            perm = (r - 1) - raw.Range(0, r, 1)
        else:
            perm = list(_count(static - 1, -1, -1))
    op = raw.ConjugateTranspose if turned else raw.Transpose
    return op(a, perm, name=execution.node_name(name))


_count = builtins.range


def matrix_transpose(a, name="matrix_transpose", conjugate=False):
    """The last two dimensions swapped."""
    a = conversion.convert_to_tensor(a)
    r = a._rank()
    if r is None:
        r = rank(a)
        order = concat([range(r - 2), [r - 1, r - 2]], 0)
        return transpose(a, order, conjugate, name)
    if r < 2:
        raise ValueError(
            "Argument `a` should be a (batch) matrix with rank >= 2.  Received `a` = "
            f"{a} with shape: {a.shape}"
        )
    return transpose(a, [*_count(r - 2), r - 1, r - 2], conjugate, name)


def range(start, limit=None, delta=1, dtype=None, name="range"):
    """Numbers from `start` (0) up to `limit`, in steps of `delta`."""
    if limit is None:
        start, limit = 0, start
    plain = all(type(v) is int for v in (start, limit, delta))
    if dtype is None and plain and not _headrace.needs_int64((start, limit, delta)):
        # The op makes constants of them, and names them.
        return raw.Range(start, limit, delta, name=execution.node_name(name))
    return _range(start, limit, delta, dtype, name=name)


@composite("range", ends=True)
def _range(start, limit, delta, dtype, name=None):
    if dtype is not None:
        wide = dtypes.as_dtype(dtype)
    else:
        order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
        known = [_dtype_of(v) for v in (start, limit, delta)]
        for d in known:
            if d not in order:
                order.append(d)
        wide = order[max(order.index(d) for d in known)]
    start = _as(start, wide, "start")
    limit = _as(limit, wide, "limit")
    return raw.Range(start, limit, _as(delta, wide, "delta"), name=name)


def _dtype_of(value):
    if isinstance(value, (_headrace.Tensor, _headrace.VariableBase)):
        return value.dtype
    if type(value) is float:
        return dtypes.float32
    if type(value) is int:
        return dtypes.int64 if _headrace.needs_int64((value,)) else dtypes.int32
    return conversion.convert_to_tensor(value).dtype


def _as(value, dtype, name=None):
    if isinstance(value, (_headrace.Tensor, _headrace.VariableBase)):
        return math_ops.cast(value, dtype)
    return conversion.convert_to_tensor(value, dtype=dtype, name=name)


@composite("linspace", ends=True)
def linspace(start, stop, num, name=None, axis=0):
    """`num` evenly spaced values from `start` to `stop`."""
    start = conversion.convert_to_tensor(start)
    stop = conversion.convert_to_tensor(stop, dtype=start.dtype)
    if start.dtype.is_integer:
        start = math_ops.cast(start, dtypes.float64)
        stop = math_ops.cast(stop, dtypes.float64)
    shape_ = broadcast_static_shape(start.shape, stop.shape)
    full = shape_
    if not shape_.is_fully_defined():
        full = broadcast_dynamic_shape(shape(start), shape(stop))
    start, stop = broadcast_to(start, full), broadcast_to(stop, full)
    start, stop = expand_dims(start, axis), expand_dims(stop, axis)
    if isinstance(num, _headrace.Tensor):
        count = _as(num, dtypes.int32)
        steps = raw.Maximum(count - 1, 1)
        inner, between = range(1, steps), steps - 1
    else:
        if np.asarray(num).dtype.kind in "fcbSU":
            num = conversion.convert_to_tensor(num)
            raise TypeError(
                "Argument `tensor` (name: num) must be of type integer. Received "
                f"`tensor` = {num} of dtype: {num.dtype!r}"
            )
        count = int(num)
        if count < 0:
            raise errors.InvalidArgumentError._of(f"Requires num >= 0: {count}")
        steps = max(count - 1, 1)
        inner, between = np.arange(1, steps), steps - 1
    if shape_.rank is None:  # ones but for the place of the steps
        places = range(rank(start))
        at = raw.FloorMod(axis, rank(start))
        # `==` compares objects in plain graphs.
        here = raw.Equal(places, at)
        sizes, kept = where(here, between, 1), where(here, count, -1)
    else:
        place = axis % (shape_.rank + 1)
        rest = shape_.rank - place
        sizes = [1] * place + [between] + [1] * rest
        kept = [-1] * place + [count] + [-1] * rest
    step = (stop - start) / _as(steps, start.dtype)
    inner = start + step * reshape(_as(inner, start.dtype), sizes)
    line = concat([start, inner, stop], axis)
    if isinstance(count, int) and count > 1:
        return line
    return slice(line, zeros_like(kept), kept)  # one value is the start


@composite("eye")
def eye(num_rows, num_columns=None, batch_shape=None, dtype=dtypes.float32, name=None):
    """Identity matrices."""
    num_columns = num_rows if num_columns is None else num_columns
    dtype = dtypes.as_dtype(dtype)
    if num_rows is num_columns:
        least = num_rows
    elif isinstance(num_rows, int) and isinstance(num_columns, int):
        least = min(num_rows, num_columns)
    else:
        least = raw.Minimum(num_rows, num_columns)
    parts = (batch_shape, num_rows, num_columns)
    if any(isinstance(part, _headrace.Tensor) for part in parts):
        batch = [] if batch_shape is None else batch_shape
        batch = conversion.convert_to_tensor(batch, dtype_hint=dtypes.int32)
        rows, columns, least = (
            _as(n, batch.dtype) for n in (num_rows, num_columns, least)
        )
        sizes = concat([batch, [least]], 0)
        shape_ = concat([batch, [rows], [columns]], 0)
    else:
        batch = [] if batch_shape is None else list(batch_shape)
        sizes = [*batch, int(least)]
        shape_ = [*batch, num_rows, num_columns]
    diagonal = ones(sizes, dtype)
    if num_rows is num_columns or (num_rows == num_columns) is True:
        return raw.MatrixDiag(diagonal, name="diag")
    return raw.MatrixSetDiag(zeros(shape_, dtype), diagonal, name=name)


_HOT = ("on_value", "off_value")


@composite("one_hot", ends=True)
def one_hot(
    indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None
):
    """A vector of `depth` for every index, `on_value` at the index."""
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    else:
        for value in (on_value, off_value):
            if value is not None:
                dtype = _dtype_of(value)
                break
        else:
            dtype = dtypes.float32
    for label, value in zip(_HOT, (on_value, off_value)):
        given = getattr(value, "dtype", None)
        if given is not None and dtypes.as_dtype(given) != dtype:
            raise TypeError(
                f"dtype {dtypes.as_dtype(given)} of {label} does not match dtype "
                f"parameter {dtype}"
            )
    if dtype == dtypes.bool:
        defaults = (True, False)
    elif dtype == dtypes.string:
        defaults = (None, None)
    else:
        defaults = (1, 0)
    names = [None if v is not None else n for n, v in zip(_HOT, (on_value, off_value))]
    on_value = defaults[0] if on_value is None else on_value
    off_value = defaults[1] if off_value is None else off_value
    return raw.OneHot(
        indices,
        depth,
        conversion.convert_to_tensor(on_value, dtype, name=names[0]),
        conversion.convert_to_tensor(off_value, dtype, name=names[1]),
        axis=-1 if axis is None else axis,
        name=name,
    )


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    """The tensor cut along a dimension, in equal parts or by sizes."""
    if isinstance(num_or_size_splits, (int, np.integer)):
        return raw.Split(axis, value, num_split=num_or_size_splits, name=name)
    if num is None and _headrace.is_eager() and _are_ints(num_or_size_splits):
        count = len(num_or_size_splits)
        return raw.SplitV(value, num_or_size_splits, axis, num_split=count)
    sizes = conversion.convert_to_tensor(num_or_size_splits)
    if sizes.shape.rank == 0:
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to "
            f"split. Argument provided: {num_or_size_splits}"
        )
    if num is None:
        num = sizes.shape[0]
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {sizes.shape}")
    return raw.SplitV(value, sizes, axis, num_split=num, name=name)


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None):
    """Elements added before and after, by dimension."""
    kind = mode.upper()
    if kind == "CONSTANT":
        if (
            not isinstance(constant_values, _headrace.Tensor)
            and np.isscalar(constant_values)
            and constant_values == 0
        ):
            return raw.Pad(tensor, paddings, name=name)
        tensor = conversion.convert_to_tensor(tensor)
        return raw.PadV2(tensor, paddings, constant_values, name=name)
    if kind not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(
            'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or '
            f'"SYMMETRIC". Received `mode` = {str(mode).upper()}'
        )
    return raw.MirrorPad(tensor, paddings, mode=kind, name=name)


def gather_nd(params, indices, batch_dims=0, name=None, bad_indices_policy=""):
    """Slices of `params` at multi-dimensional indices.

    Indices out of range raise InvalidArgumentError where `bad_indices_policy` is "",
    "DEFAULT" or "ERROR"; with "IGNORE" they give zeros.
    """
    lenient = bad_indices_policy not in ("", "DEFAULT", "ERROR")
    if isinstance(params, _headrace.VariableBase) and not batch_dims and not lenient:
        return params.gather_nd(indices, name)
    if batch_dims:
        return _batch_gather_nd(params, indices, batch_dims, name, bad_indices_policy)
    return gather_nd_op(params, indices, name, bad_indices_policy)


def _batch_gather_nd(params, indices, batch_dims, name, bad_indices_policy):
    params = conversion.convert_to_tensor(params)
    indices = conversion.convert_to_tensor(indices)
    dims = shape(indices)
    lead = [range(shape(params)[i]) for i in _count(batch_dims)]
    grids = meshgrid(*lead, indexing="ij")
    extra = indices.shape.rank - batch_dims - 1
    columns = []
    for g in grids:
        for _ in _count(extra):
            g = expand_dims(g, -1)
        g = broadcast_to(g, dims[:-1])
        columns.append(_as(expand_dims(g, -1), indices.dtype))
    places = concat(columns + [indices], -1)
    return gather_nd_op(params, places, name, bad_indices_policy)


@composite("SequenceMask")
def sequence_mask(lengths, maxlen=None, dtype=dtypes.bool, name=None):
    """True for the first `length` places of each row."""
    lengths = conversion.convert_to_tensor(lengths)
    if maxlen is None:
        maxlen = reduction_ops.reduce_max(lengths)
        maxlen = raw.Maximum(maxlen, conversion.to_tensor(0, maxlen.dtype))
    else:
        maxlen = conversion.convert_to_tensor(maxlen)
    if maxlen.shape.rank not in (None, 0):
        raise ValueError(
            f"Argument `maxlen` must be scalar for sequence_mask, received `maxlen` = "
            f"{maxlen} with shape '{maxlen.shape}' instead"
        )
    row = raw.Range(
        conversion.to_tensor(0, maxlen.dtype),
        maxlen,
        conversion.to_tensor(1, maxlen.dtype),
    )
    result = row < _as(expand_dims(lengths, -1), maxlen.dtype)
    return _as(result, dtypes.as_dtype(dtype))


def ensure_shape(x, shape, name=None):
    """The tensor, after a check of its shape."""
    return raw.EnsureShape(x, shape=tensor_shape.TensorShape(shape), name=name)


def broadcast_static_shape(shape_x, shape_y):
    """The shape that two static shapes broadcast to."""
    a, b = tensor_shape.as_shape(shape_x), tensor_shape.as_shape(shape_y)
    if a.rank is None or b.rank is None:
        return tensor_shape.unknown_shape()
    n = max(a.rank, b.rank)
    xs = [1] * (n - a.rank) + a.as_list()
    ys = [1] * (n - b.rank) + b.as_list()
    out = []
    for x, y in zip(xs, ys):
        if x is None or y is None:
            known = y if x is None else x
            out.append(known if known is not None and known > 1 else None)
        elif x == 1 or y == 1 or x == y:
            out.append(max(x, y) if 0 not in (x, y) else 0)
        else:
            raise ValueError(
                "Incompatible shapes for broadcasting. Two shapes are compatible if "
                "for each dimension pair they are either equal or one of them is 1. "
                f"Received: {a} and {b}."
            )
    return tensor_shape.TensorShape(out)


_SCATTER_DOC = """A copy of a tensor with {what} at places.

    `indices` is [..., k]: each row names a place in the first k dimensions of `tensor`;
    `updates` is [*indices.shape[:-1], *tensor.shape[k:]]. Indices out of range raise
    InvalidArgumentError{unless}.
    """
_UNLESS = ', or with `bad_indices_policy` "IGNORE" are passed over'


def _scatter(name, what, policy="bad_indices_policy='', ", unless=_UNLESS):
    op = "TensorScatter" + name.rpartition("_")[2].title()
    doc = _SCATTER_DOC.format(what=what, unless=unless)
    parameters = f"tensor, indices, updates, {policy}name=None"
    return face(op, name, parameters, doc, __name__)


tensor_scatter_nd_update = _scatter("tensor_scatter_nd_update", "other values", "", "")
tensor_scatter_nd_add = _scatter("tensor_scatter_nd_add", "values added")
tensor_scatter_nd_sub = _scatter("tensor_scatter_nd_sub", "values subtracted")
_EXTREME = "the {} of old and new values"
tensor_scatter_nd_max = _scatter("tensor_scatter_nd_max", _EXTREME.format("larger"))
tensor_scatter_nd_min = _scatter("tensor_scatter_nd_min", _EXTREME.format("smaller"))


def reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None):
    """Each row's first `seq_lengths` elements turned round."""
    return raw.ReverseSequence(
        input,
        seq_lengths,
        seq_dim=seq_axis,
        batch_dim=0 if batch_axis is None else batch_axis,
        name=name,
    )


def guarantee_const(input, name=None):
    """The tensor as it is."""
    return identity(input, name=name)


def parallel_stack(values, name="parallel_stack"):
    """Tensors of one shape along a new first dimension."""
    return stack(values, 0, name)


def _block_shape(block_shape):
    if isinstance(block_shape, int):
        block_shape = [block_shape, block_shape]
    return conversion.convert_to_tensor(block_shape)


def batch_to_space(input, block_shape, crops, name=None):
    """Blocks of the batch laid side by side in space, then cropped."""
    return raw.BatchToSpaceND(input, _block_shape(block_shape), crops, name=name)


def space_to_batch(input, block_shape, paddings, name=None):
    """Space, padded, cut into blocks that become parts of the batch."""
    return raw.SpaceToBatchND(input, _block_shape(block_shape), paddings, name=name)
