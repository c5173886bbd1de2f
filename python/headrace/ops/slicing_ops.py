"""Indexing and slicing of tensors by Python keys."""

import builtins

import numpy as np

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes, name_scopes
from headrace.framework.dimension import Dimension
from headrace.ops.array_ops import boolean_mask, ones_like, stack
from headrace.ops.faces import face

_CHECK = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
    "tf.int32/tf.int64 tensors are valid indices, got "
)


_INTEGERS = (dtypes.int16, dtypes.int32, dtypes.int64)


def _check_index(index):
    if isinstance(index, (int, np.integer, list, tuple)) and not isinstance(
        index, bool
    ):
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


def _value(key):
    """A bound of a slice; a Dimension stands for its size, or for none."""
    return key.value if isinstance(key, Dimension) else key


def _known(dimension):
    if dimension.value is None:
        raise TypeError(f"{_CHECK}{dimension!r}")
    return dimension.value


class _Slice:
    """Collects the arguments of a StridedSlice."""

    def __init__(self):
        self.begin, self.end, self.strides = [], [], []
        self.begin_mask = self.end_mask = self.ellipsis_mask = 0
        self.new_axis_mask = self.shrink_axis_mask = 0

    def add(self, key):
        bit = 1 << len(self.begin)
        begin, end, stride = 0, 0, 1
        if isinstance(key, Dimension):
            key = _known(key)
        if isinstance(key, builtins.slice):
            key = builtins.slice(*(_value(k) for k in (key.start, key.stop, key.step)))
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
            dtype = dtypes.int32 if all(_small(x) for x in lists) else dtypes.int64
            return tuple(_ints(x, dtype) for x in lists)
        dtype = dtypes.int32
        for x in leaves:
            if getattr(x, "dtype", None) in (dtypes.int64, np.int64):
                dtype = dtypes.int64
        return tuple(
            # Numbers stay constants, whose values shape rules see.
            _ints(items, dtype)
            if all(type(x) is int for x in items)
            else stack([_cast_index(x, dtype) for x in items])
            for items in lists
        )


def _ints(values, dtype):
    """A constant; in graphs it is named as upstream names it."""
    made = _headrace.make_tensor(values, dtype)
    return made if _headrace.is_eager() else conversion.constant(made, name="stack")


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
    if _headrace.is_eager():
        return _slice_by(tensor, key, "strided_slice/")
    with name_scopes.name_scope("strided_slice") as scope:
        return _slice_by(tensor, key, scope)


def _slice_by(tensor, key, name):
    return _strided_slice(input=tensor, name=name, **_slice_of(key))


def _slice_of(key):
    """What StridedSlice and its assignment are asked for a key."""
    parts = _Slice()
    for k in key if isinstance(key, tuple) else (key,):
        parts.add(k)
    if not parts.begin:
        begin, end, strides = (_ints([], dtypes.int32) for _ in range(3))
    else:
        begin, end, strides = parts.arrays()
    return {
        "begin": begin,
        "end": end,
        "strides": strides,
        "begin_mask": parts.begin_mask,
        "end_mask": parts.end_mask,
        "ellipsis_mask": parts.ellipsis_mask,
        "new_axis_mask": parts.new_axis_mask,
        "shrink_axis_mask": parts.shrink_axis_mask,
    }


def assign_part(variable, key, value, name=None):
    """Sets variable[key]."""
    if _is_mask(key):
        raise ValueError("Sliced assignment is not supported for boolean masks")
    with name_scopes.graph_scope(name, "strided_slice"):
        raw.ResourceStridedSliceAssign(
            ref=variable.handle,
            value=conversion.convert_to_tensor(value, variable.dtype),
            name="_assign",
            **_slice_of(tuple(key) if isinstance(key, list) else key),
        )


_strided_slice = face(
    "StridedSlice",
    "strided_slice",
    "input, begin, end, strides, begin_mask=0, end_mask=0, ellipsis_mask=0, "
    "new_axis_mask=0, shrink_axis_mask=0, name=None",
)


def strided_slice(
    input_,
    begin,
    end,
    strides=None,
    begin_mask=0,
    end_mask=0,
    ellipsis_mask=0,
    new_axis_mask=0,
    shrink_axis_mask=0,
    var=None,
    name=None,
):
    """A slice by vectors of begin, end and stride."""
    begin = conversion.convert_to_tensor(begin)
    strides = ones_like(begin) if strides is None else strides
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return _strided_slice(input_, begin, end, strides, *masks, name)


def batch_indices(indices):
    """Indices [..., n] of rows, each with its place in the batch: [..., n, depth]."""
    from headrace.ops import array_ops

    depth = indices.shape.rank
    grids = []
    if depth > 1:
        ranges = [raw.Range(0, d, 1) for d in indices.shape.as_list()[:-1]]
        grids = array_ops.meshgrid(*ranges, indexing="ij")
    full = [
        array_ops.broadcast_to(array_ops.expand_dims(g, -1), indices.shape)
        for g in grids
    ]
    return array_ops.stack([*full, indices], -1)
