"""Shapes and pieces of tensors."""

import builtins

import numpy as np

from headrace._load import _headrace
from headrace.framework import conversion, dtypes, tensor_shape
from headrace.ops.faces import face

newaxis = None

broadcast_to = face("BroadcastTo", "broadcast_to", "input, shape, name=None")
reshape = face("Reshape", "reshape", "tensor, shape, name=None")
fill = face("Fill", "fill", "dims, value, name=None")
identity = face("Identity", "identity", "input, name=None")
stop_gradient = face("StopGradient", "stop_gradient", "input, name=None")
tile = face("Tile", "tile", "input, multiples, name=None")
slice = face("Slice", "slice", "input_->input, begin, size, name=None")
gather_nd_op = face("GatherNd", "gather_nd", "params, indices, name=None")
bitcast = face("Bitcast", "bitcast", "input, type, name=None")

_CHECK = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
    "tf.int32/tf.int64 tensors are valid indices, got "
)
_INTEGERS = (dtypes.int16, dtypes.int32, dtypes.int64)


def _check_index(index):
    if isinstance(index, (int, np.integer, list, tuple)) and not isinstance(index, bool):
        return
    dtype = getattr(index, "dtype", None)
    if isinstance(index, (_headrace.Tensor, _headrace.VariableBase)):
        if dtype in _INTEGERS and index.shape.rank in (0, None):
            return
    elif dtype is not None and getattr(index, "shape", None) == ():
        if dtypes.as_dtype(dtype).is_integer:
            return
    raise TypeError(f"{_CHECK}{index!r}")


def _is_mask(key):
    if isinstance(key, (bool, np.bool_)):
        return True
    if isinstance(key, (_headrace.Tensor, _headrace.VariableBase)):
        return key.dtype == dtypes.bool
    return isinstance(key, np.ndarray) and key.dtype == np.bool_


class _Slice:
    """Collects the arguments of a StridedSlice."""

    def __init__(self):
        self.begin, self.end, self.strides = [], [], []
        self.begin_mask = self.end_mask = self.ellipsis_mask = 0
        self.new_axis_mask = self.shrink_axis_mask = 0

    def add(self, key):
        bit = 1 << len(self.begin)
        begin, end, stride = 0, 0, 1
        if isinstance(key, builtins.slice):
            if key.start is None:
                self.begin_mask |= bit
            else:
                _check_index(key.start)
                begin = key.start
            if key.stop is None:
                self.end_mask |= bit
            else:
                _check_index(key.stop)
                end = key.stop
            if key.step is not None:
                _check_index(key.step)
                stride = key.step
        elif key is Ellipsis:
            self.ellipsis_mask |= bit
        elif key is None:
            self.new_axis_mask |= bit
        else:
            _check_index(key)
            begin, end = key, _next(key)
            self.shrink_axis_mask |= bit
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)

    def arrays(self):
        """begin, end, strides as tensors of one dtype."""
        lists = (self.begin, self.end, self.strides)
        leaves = [x for items in lists for x in items]
        if all(type(x) is int for x in leaves):
            return tuple(_headrace.make_tensor(x, dtypes.int32) if _small(x) else
                         _headrace.make_tensor(x, dtypes.int64) for x in lists)
        dtype = dtypes.int32
        for x in leaves:
            if getattr(x, "dtype", None) in (dtypes.int64, np.int64):
                dtype = dtypes.int64
        return tuple(stack([_cast_index(x, dtype) for x in items]) for items in lists)


def _small(values):
    return all(-(2**31) <= v < 2**31 for v in values)


def _next(key):
    return key + 1 if not isinstance(key, (list, tuple)) else [k + 1 for k in key]


def _cast_index(x, dtype):
    if isinstance(x, (_headrace.Tensor, _headrace.VariableBase)):
        from headrace.ops import math_ops

        return math_ops.cast(x, dtype)
    return _headrace.to_tensor(int(x) if not isinstance(x, (list, tuple)) else x, dtype)


def slice_tensor(tensor, key, variable=None):
    """tensor[key], in all of Python's and NumPy's forms that upstream takes."""
    if _is_mask(key):
        return boolean_mask(tensor, key)
    if isinstance(key, list):
        key = tuple(key)
    parts = _Slice()
    for k in key if isinstance(key, tuple) else (key,):
        parts.add(k)
    if not parts.begin:
        begin = end = strides = _headrace.make_tensor([], dtypes.int32)
    else:
        begin, end, strides = parts.arrays()
    result = _strided_slice(
        input=tensor,
        begin=begin,
        end=end,
        strides=strides,
        begin_mask=parts.begin_mask,
        end_mask=parts.end_mask,
        ellipsis_mask=parts.ellipsis_mask,
        new_axis_mask=parts.new_axis_mask,
        shrink_axis_mask=parts.shrink_axis_mask,
        name="strided_slice/" if _headrace.is_eager() else "strided_slice",
    )
    return result


_strided_slice = face(
    "StridedSlice",
    "strided_slice",
    "input, begin, end, strides, begin_mask=0, end_mask=0, ellipsis_mask=0, "
    "new_axis_mask=0, shrink_axis_mask=0, name=None",
)


def expand_dims(input, axis, name=None):
    """A dimension of size 1 at `axis`."""
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return _expand_dims(input, axis, name)


_expand_dims = face("ExpandDims", "expand_dims", "input, axis->dim, name=None")
_pack = face("Pack", "stack", "values, axis=0, name=None")
_unpack = face("Unpack", "unstack", "value, num, axis=0, name=None")


def stack(values, axis=0, name="stack"):
    """Tensors of one shape along a new dimension."""
    if axis == 0 and isinstance(values, (list, tuple)):
        if not _headrace.holds_tensors(values):
            try:
                return conversion.convert_to_tensor(values, name=name)
            except (TypeError, ValueError, NotImplementedError):
                pass
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
            raise ValueError(
                f"Cannot infer argument `num` from shape {shape}"
            )
    return _unpack(value, num, axis, name)


def shape(input, out_type=None, name=None):
    """The shape as a tensor."""
    out_type = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    input = conversion.convert_to_tensor(input)
    static = input.shape
    if not _headrace.is_eager() and static.is_fully_defined():
        return conversion.constant(static.as_list(), out_type, name=name or "Shape")
    return _headrace.raw_op("Shape")(input=input, out_type=out_type, name=name)


def zeros(shape, dtype=dtypes.float32, name=None, layout=None):
    """A tensor of zeros."""
    return _filled(shape, dtype, 0, name or "zeros")


def ones(shape, dtype=dtypes.float32, name=None, layout=None):
    """A tensor of ones."""
    return _filled(shape, dtype, 1, name or "ones")


def _filled(shape, dtype, value, name):
    dtype = dtypes.as_dtype(dtype).base_dtype
    if dtype == dtypes.string:
        value = "" if not value else "1"
    elif dtype == dtypes.bool:
        value = bool(value)
    if not isinstance(shape, _headrace.Tensor):
        shape = conversion.convert_to_tensor(shape, dtypes.int32)
    if shape.shape.rank == 0:
        shape = reshape(shape, [-1])
    return fill(shape, _headrace.to_tensor(value, dtype), name="")


def zeros_like(input, dtype=None, name=None, layout=None):
    """Zeros of the shape (and dtype) of `input`."""
    input = conversion.convert_to_tensor(input)
    if dtype is None or dtypes.as_dtype(dtype) == input.dtype:
        return _headrace.raw_op("ZerosLike")(x=input, name=name)
    return _filled(shape(input), dtype, 0, name)


def ones_like(input, dtype=None, name=None, layout=None):
    """Ones of the shape (and dtype) of `input`."""
    input = conversion.convert_to_tensor(input)
    dtype = input.dtype if dtype is None else dtype
    return _filled(shape(input), dtype, 1, name)


def boolean_mask(tensor, mask, axis=None, name="boolean_mask"):
    """The elements (or rows) where `mask` is true."""
    tensor = conversion.convert_to_tensor(tensor)
    mask = conversion.convert_to_tensor(mask)
    ndims = mask.shape.rank
    if ndims == 0:
        raise ValueError("mask cannot be scalar.")
    if ndims is None:
        raise ValueError(
            "Number of mask dimensions must be specified, even if some dimensions are "
            "None.  E.g. shape=[None] is ok, but shape=None is not."
        )
    axis = 0 if axis is None else int(axis)
    tensor.shape[axis : axis + ndims].assert_is_compatible_with(mask.shape)
    sizes = shape(tensor)
    count = _headrace.raw_op("Prod")(input=sizes[axis : axis + ndims], axis=[0])
    flat = concat([sizes[:axis], [count], sizes[axis + ndims :]], 0)
    indices = squeeze(where(reshape(mask, [-1])), [1])
    return gather(reshape(tensor, flat), indices, axis=axis)


def squeeze(input, axis=None, name=None):
    """Without dimensions of size 1 (those of `axis`, or all)."""
    if axis is None:
        axis = []
    elif isinstance(axis, int):
        axis = [axis]
    return _headrace.raw_op("Squeeze")(input=input, axis=axis, name=name)


def where(condition, x=None, y=None, name=None):
    """Where `condition` holds: the places, or x there and y elsewhere."""
    if x is None and y is None:
        condition = conversion.convert_to_tensor(condition, dtype_hint=dtypes.bool)
        return _headrace.raw_op("Where")(condition=condition, name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return _headrace.raw_op("SelectV2")(condition=condition, t=x, e=y, name=name)


def concat(values, axis, name="concat"):
    """Tensors one after the other along a dimension."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        return identity(values[0], name=name)
    return _concat(values, axis, name)


_concat = face("ConcatV2", "concat", "values, axis, name=None")


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    """The slices of `params` at `indices` along `axis`."""
    axis = batch_dims if axis is None else axis
    return _headrace.raw_op("GatherV2")(
        params=params, indices=indices, axis=axis, batch_dims=batch_dims, name=name
    )


def meshgrid(*args, indexing="xy", name="meshgrid"):
    """Coordinate grids of vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError(
            "Argument `indexing` parameter must be either 'xy' or 'ij', got "
            f"'{indexing}'"
        )
    n = len(args)
    grids = []
    for i, x in enumerate(args):
        shape_ = [1] * n
        shape_[i] = -1
        grids.append(reshape(conversion.convert_to_tensor(x), shape_))
    sizes = [_headrace.raw_op("Size")(input=x) for x in args]
    if indexing == "xy" and n > 1:
        order = [1, 0, *range(2, n)]
        swapped = [2 if False else d for d in order]
        grids = [_swap_first(g, n) for g in grids]
        sizes = [sizes[i] for i in swapped]
    full = stack(sizes)
    return [broadcast_to(g, full) for g in grids]


def _swap_first(x, n):
    return _headrace.raw_op("Transpose")(x=x, perm=[1, 0, *range(2, n)])
